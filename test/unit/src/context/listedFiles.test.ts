/** Listing the files of a folder: .gitignore rules, and slices that let the extension host do other work in between. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';

vi.mock('../../../../src/vscode.ts', () => ({}));
const { filtered, IgnoreFiles } = await import('../../../../src/context/listedFiles.ts');

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

afterEach(() => void vi.restoreAllMocks());

test('the first matching items are returned in order, and later ones are not checked', async () => {
  const asked: number[] = [];
  const isEven = (n: number): boolean => asked.push(n) > 0 && n % 2 === 0;
  expect(await filtered(numbers(7), isEven)).toEqual([0, 2, 4, 6]);
  asked.length = 0;
  expect(await filtered(numbers(7), isEven, 2)).toEqual([0, 2]);
  expect(asked).toEqual([0, 1, 2]);
});

test('other work runs between slices of a long check', async () => {
  let clock = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => clock);
  let piece = 0;
  const pieces: number[] = [];
  const other = (): void => {
    pieces.push(piece);
    piece = 0;
    waiting = setImmediate(other);
  };
  let waiting = setImmediate(other);
  const slow = (): boolean => {
    clock += 2;
    piece++;
    return true;
  };
  expect(await filtered(numbers(100), slow)).toHaveLength(100);
  clearImmediate(waiting);
  expect(Math.max(piece, ...pieces)).toBe(3);
});

test.each([
  ['*.log', ['a.log', 'x/a.log'], ['a.logs']],
  ['generated/', ['generated/a.ts', 'x/generated/b/c.ts'], ['generated']],
  ['/build', ['build', 'build/a.ts'], ['x/build']],
  ['docs/*.md', ['docs/a.md'], ['docs/x/a.md', 'x/docs/a.md']],
  ['**/temp/**', ['temp/a', 'x/temp/b/c'], ['temp']],
  ['a/**/z', ['a/z', 'a/b/z', 'a/b/c/z'], ['b/z']],
  ['*\n!keep.ts', ['a.ts'], ['keep.ts']],
  ['out/\n!out/keep.ts', ['out/keep.ts'], []],
  ['file[0-9].ts\n# comment\n\n\\#odd', ['file1.ts', '#odd'], ['filex.ts']],
  ['fo?.ts  ', ['foo.ts'], ['fo/.ts', 'fooo.ts']],
])('.gitignore %j', (text, ignored, kept) => {
  const files = new IgnoreFiles(new Map([['', text]]));
  expect(ignored.filter((name) => !files.ignores(name))).toEqual([]);
  expect(kept.filter((name) => files.ignores(name))).toEqual([]);
});

test.skipIf(spawnSync('git', ['--version']).status !== 0)('.gitignore patterns give the same result as git', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'kvasir-ignore-'));
  const text =
    '*.log\n!important.log\n/only-here\nbuild/\nsrc/**/gen\ndoc/*.txt\n**/deep\n[ab].ts\ntemp*\n!temporary.ts\n\\!bang\n';
  // A nested .gitignore can include a file again, but no file in an ignored folder.
  const texts = new Map([
    ['', text],
    ['x', '!b.log\nown\n'],
    ['build', '!a\n'],
  ]);
  const names = [
    'x/own',
    'x/z/own',
    'a.log',
    'x/b.log',
    'important.log',
    'x/important.log',
    'only-here',
    'x/only-here',
    'build/a',
    'x/build/b',
    'src/gen/a',
    'src/x/y/gen/a',
    'src/gentle',
    'doc/a.txt',
    'doc/x/a.txt',
    'x/y/deep/z',
    'a.ts',
    'x/b.ts',
    'c.ts',
    'temp1',
    'temporary.ts',
    '!bang',
    'bang',
  ];
  try {
    execFileSync('git', ['init', '--quiet'], { cwd: folder });
    for (const name of names) {
      mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
      writeFileSync(path.join(folder, name), '');
    }
    for (const [at, rules] of texts) writeFileSync(path.join(folder, at, '.gitignore'), rules);
    const { stdout } = spawnSync('git', ['check-ignore', '--stdin'], {
      cwd: folder,
      input: names.join('\n'),
      encoding: 'utf8',
    });
    const files = new IgnoreFiles(texts);
    expect(names.filter((name) => files.ignores(name))).toEqual(stdout.trim().split('\n'));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
