/** Every text that the editor's side shows has a translation, and no translation is left over. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

test('the Portuguese bundle holds exactly the texts of src and engine', () => {
  const source = ['src', 'engine']
    .flatMap((folder) =>
      readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.ts'))
        .map((name) => readFileSync(`${folder}/${name}`, 'utf8')),
    )
    .join('\n');
  const texts = new Set([...source.matchAll(/(?<![\w$])t\(\s*'((?:[^'\\]|\\.)*)'/g)].map(([, text]) => text!));
  // Reasons and sources are logged in English and translated where a person reads them.
  const record = readFileSync('src/completion/record.ts', 'utf8');
  for (const [, text] of record.matchAll(/^ {2}\| '([^']+)'/gm)) texts.add(text!);
  for (const [, text] of /source\?:([^;]*);/.exec(record)![1]!.matchAll(/'([^']+)'/g)) texts.add(text!);
  const bundle = JSON.parse(readFileSync('l10n/bundle.l10n.pt-br.json', 'utf8')) as Record<string, string>;
  expect(Object.keys(bundle).sort()).toEqual([...texts].sort());
  for (const [text, translated] of Object.entries(bundle))
    expect([text, translated.match(/\{\d\}/g)?.sort()]).toEqual([text, text.match(/\{\d\}/g)?.sort()]);
});
