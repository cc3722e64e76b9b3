/** The list of languages: the last matching entry decides, and toggling adds no duplicates. */
import fc from 'fast-check';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { Settings } from '../../../../src/config.ts';
import { editor, FakeDocument, vscodeApi } from '../../../support/editor/fakeEditor.ts';

vi.mock('../../../../src/vscode.ts', async () => (await import('../../../support/editor/fakeEditor.ts')).vscodeApi);
const { isWanted, toggled, toggleLanguage } = await import('../../../../src/completion/filter.ts');

const none = () => false;

test.each<[string[], string, boolean]>([
  [['*'], 'python', true],
  [[], 'python', false],
  [['typescript'], 'python', false],
  [['*', '!python'], 'python', false],
  [['!python'], 'python', false],
  [['!python'], 'typescript', true],
  [['*', '!python', 'python'], 'python', true],
])('the list %j allows %s: %s', (languages, languageId, expected) =>
  expect(isWanted(languages, languageId, none)).toBe(expected),
);

test('globs in the list match files', () => {
  const inTests = (glob: string) => glob === '**/*.test.ts';
  expect(isWanted(['*', '!**/*.test.ts'], 'typescript', inTests)).toBe(false);
  expect(isWanted(['**/*.test.ts'], 'typescript', inTests)).toBe(true);
  expect(isWanted(['**/*.test.ts'], 'typescript', none)).toBe(false);
});

test.each<[string[], string[]]>([
  [['*'], ['*', '!python']],
  [['*', '!python'], ['*']],
  [['!python'], ['*']],
  [['typescript'], ['typescript', 'python']],
  [['typescript', 'python'], ['typescript']],
  [[], ['python']],
])('toggling python: %j becomes %j', (before, after) => expect(toggled(before, 'python', none)).toEqual(after));

test('toggling switches only this language and never names it twice', () => {
  const entry = fc.constantFrom('*', 'python', 'rust', '!python', '!rust', '**/*.py', '!**/*.py');
  const python = (glob: string) => glob === '**/*.py';
  fc.assert(
    fc.property(fc.uniqueArray(entry), (languages) => {
      const after = toggled(languages, 'python', python);
      expect(isWanted(after, 'python', python)).toBe(!isWanted(languages, 'python', python));
      expect(isWanted(after, 'rust', none)).toBe(isWanted(languages, 'rust', none));
      expect(after.filter((entry) => /^!?python$/.test(entry)).length).toBeLessThanOrEqual(1);
    }),
  );
});

describe('the command', () => {
  const updated: unknown[][] = [];
  let inWorkspace = false;
  beforeEach(() => {
    editor.reset();
    updated.length = 0;
    Object.assign(vscodeApi.workspace, {
      getConfiguration: () => ({
        inspect: () => (inWorkspace ? { workspaceValue: ['*'] } : { globalValue: ['*'] }),
        update: async (...update: unknown[]) => void updated.push(update),
      }),
    });
    editor.select(new FakeDocument('x'), 0);
  });

  test.each([
    [false, 1],
    [true, 2],
  ])('writes the setting where it is set (in the workspace: %s), and reports the new state', async (where, target) => {
    inWorkspace = where;
    await toggleLanguage({ current: { completion: { languages: ['*'] } } } as unknown as Settings);
    expect(updated).toEqual([['completion.languages', ['*', '!typescript'], target]]);
    expect(editor.messages).toEqual(['Kvasir: completions are off for typescript.']);
  });
});
