/** Ghost text copied from other files of the project, both open and not open. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { PATIENCE } from './editor.ts';
import { editorSuite } from './suite.ts';

const ledger = (
  name: string,
  ...fields: string[]
): string => `export function open${name}(options: ${name}Options): ${name} {
  const ${name.toLowerCase()} = create${name}(${fields.map((field) => `options.${field}`).join(', ')});
  return ${name.toLowerCase()};
}
`;
/** The beginning of a similar function in another file. */
const begun = (name: string): string =>
  `export function copy${name}(options: ${name}Options): ${name} {\n  const ${name.toLowerCase()} = create${name}(`;
const COLUMN = begun('Ledger').split('\n')[1]!.length + 1;
const FILES = {
  'lib/open.ts': ledger('Ledger', 'fiscalYear', 'accountPlan'),
  'lib/copy.ts': `${begun('Ledger')}\n`,
  // The tests never open these files.
  'lib/stored.ts': ledger('Parcel', 'sealNumber', 'grossWeight'),
  'lib/secret.key.ts': ledger('Sample', 'hiddenName', 'hiddenPlace'),
  'built/made.ts': ledger('Sample', 'madeName', 'madePlace'),
  '.gitignore': 'built/\n',
  'lib/parcels.ts': `${begun('Parcel')}\n`,
  'lib/samples.ts': `${begun('Sample')}\n`,
};

editorSuite(
  'copying',
  { '.vscode/settings.json': JSON.stringify({ 'kvasir.completion.exclude': ['**/*.key.ts'] }), ...FILES },
  (editor) => {
    async function ghostTextIn(file: string): Promise<string> {
      const window = editor();
      await window.openFile(file, 2, COLUMN);
      await window.runCommand('Kvasir: Trigger Completion');
      await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).not.toBe('');
      return window.ghostText();
    }

    test('code of another open file is completed', async () => {
      const window = editor();
      const complete = async (...options: string[]): Promise<string> => {
        const { stdout } = await promisify(execFile)(process.execPath, [
          'dist/cli.js',
          'complete',
          '--file',
          window.file('lib/copy.ts'),
          '--line',
          '2',
          '--column',
          String(COLUMN),
          ...options,
        ]);
        return stdout;
      };
      expect(await complete('--open-file', window.file('lib/open.ts'))).toContain('options.fiscalYear');
      expect(await complete()).not.toContain('fiscalYear');
      await window.openFile('lib/open.ts');
      // Otherwise the next file that opens in this tab would close this one.
      await window.runCommand('View: Keep Editor');
      expect(await ghostTextIn('lib/copy.ts')).toContain('options.fiscalYear');
      await window.screenshot('ghost-text-copied');
      await window.runCommand('View: Close All Editors');
    });

    test('code of a file that is not open is completed, but not of an excluded or ignored file', async () => {
      const window = editor();
      await window.openFile('lib/parcels.ts');
      // Other files are read while the user types. The first completions may come before that. An edit makes the editor
      // forget them.
      await expect
        .poll(
          async () => {
            await window.press('Escape');
            await window.goTo(3, 1);
            await window.press('Enter');
            return ghostTextIn('lib/parcels.ts');
          },
          { timeout: PATIENCE },
        )
        .toContain('options.sealNumber');
      await window.screenshot('ghost-text-copied-unopened');
      expect(await ghostTextIn('lib/samples.ts')).not.toMatch(/hidden|made/);
      await window.runCommand('View: Close All Editors');
    });
  },
);
