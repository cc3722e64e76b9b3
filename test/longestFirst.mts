/** The order of a suite's files: a long one that begins last has one worker at the end while the others have nothing left. */
import { BaseSequencer, type TestSequencerConstructor, type TestSpecification } from 'vitest/node';

/** @param names ends of test files' paths, without ".test.ts", those first that take longest; the rest in vitest's own order, behind them. */
export function longestFirst(...names: string[]): TestSequencerConstructor {
  const place = ({ moduleId }: TestSpecification): number => {
    const at = names.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
    return at < 0 ? names.length : at;
  };
  return class extends BaseSequencer {
    override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
      // Stable: equals stay as they come.
      return (await super.sort(files)).sort((a, b) => place(a) - place(b));
    }
  };
}
