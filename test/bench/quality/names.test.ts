/** Suite `names`: places and first names. The judge needs the projects, so only the suite runs it. */
import { beforeAll, expect, test } from 'vitest';
import { Grammars } from '../../../engine/text/syntax/syntaxTrees.ts';
import { firstName } from './nameJudge.ts';
import { namePlaces } from './names.ts';
import { withTree } from './trees.ts';

const grammars = new Grammars();
const TEXT = `import { join } from 'node:path';
// a comment with some.member
const read = (file: string) => cache.get(join(file, 'a.b'));
`;
beforeAll(() => grammars.load('typescript'));

const places = (kind: 'member' | 'import' | 'call') =>
  withTree(grammars, 'a.ts', TEXT, (tree) =>
    namePlaces(tree, { source: 'a', path: 'a.ts', language: 'typescript', text: TEXT }, kind).map(
      ({ before, taken, text, offset }) => [before, taken, text.slice(offset).split('\n')[0]],
    ),
  );

test('cuts the rest of the line and keeps what editors close', async () => {
  expect(await places('member')).toEqual([['cache.', "get(join(file, 'a.b'));", '']]);
  expect(await places('import')).toEqual([["import { join } from '", "node:path';", "'"]]);
  expect(await places('call')).toEqual([['get(', "join(file, 'a.b'));", ')']]);
});

test.each([
  ['member', 'a.', 'size > 2', 'size'],
  ['member', 'a.', '1', undefined],
  ['import', "import { a } from '", "./b.ts';", './b.ts'],
  ['import', 'from a import ', 'b, c', 'b'],
  ['call', 'f(', '!(await x)', 'await'],
  ['call', 'f(', "'x', y", undefined],
] as const)('%s %s%s', (kind, before, text, name) => expect(firstName({ kind, before }, text)).toBe(name));
