/** Sorts a suite's files so that the longest start first. A long file that starts last would keep one worker busy alone. */
import { BaseSequencer, type TestSequencerConstructor, type TestSpecification } from 'vitest/node';

/** @param names ends of test file paths without ".test.ts", longest first. All other files follow in vitest's own order. */
export function longestFirst(...names: string[]): TestSequencerConstructor {
  const place = ({ moduleId }: TestSpecification): number => {
    const at = names.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
    return at < 0 ? names.length : at;
  };
  return class extends BaseSequencer {
    override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
      // The sort is stable.
      return (await super.sort(files)).sort((a, b) => place(a) - place(b));
    }
  };
}
