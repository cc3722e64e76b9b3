/** Tests the samples of suite `quality`: readable sources, removed text that is in no prompt, right answers. */
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { completionPrompt } from '../../../engine/text/prompt/completionPrompt.ts';
import { Layout } from '../../../engine/text/prompt/layout.ts';
import { ModelText } from '../../../engine/text/format/modelText.ts';
import { SourceDocument } from '../../../engine/text/syntax/sourceDocument.ts';
import { Grammars } from '../../../engine/text/syntax/syntaxTrees.ts';
import { heldoutFiles } from '../kv/heldout.ts';
import { HOLE_KINDS, holesOf, type QualityHole } from './holes.ts';
import { denies, namesAll, type QualityQuestion, qualityQuestions } from './questions.ts';
import { checkHash, FITTED_ON, isReadable, NAMES_IN, PLACES_IN, qualityTexts, reasonIn, SOURCES } from './sources.ts';
import { firstSentence, type QualitySummary, summariesOf, wordsOfName } from './summaries.ts';
import { partsOf, randomOf, withTree } from './trees.ts';

const grammars = new Grammars();
const files = heldoutFiles();

const holes = (file: string, text: string, kind: QualityHole['kind'], seed = 1): Promise<QualityHole[]> =>
  withTree(grammars, file, text, (tree) => holesOf(tree, text, kind, randomOf(seed, file)));
const questions = (file: string, text: string, elsewhere: string[] = []): Promise<QualityQuestion[]> =>
  withTree(grammars, file, text, (tree) => qualityQuestions(tree, { path: file, text }, elsewhere, randomOf(1, file)));
const summaries = (file: string, text: string): Promise<QualitySummary[]> =>
  withTree(grammars, file, text, (tree) => summariesOf(tree, text, randomOf(1, file)));

describe('sources', () => {
  test('the built-in model was trained on none of them, and only its tokenizer on those that weights are fitted on', () => {
    const corpus = JSON.parse(readFileSync('model/corpus_sources.json', 'utf8')) as {
      name: string;
      split: string;
      licence: string;
    }[];
    const of = (...splits: string[]): string[] =>
      corpus.filter(({ split }) => splits.includes(split)).map(({ name }) => name.toLowerCase());
    const tokenizer = 'tokenizer alone';
    expect([of('train').length, of(tokenizer).length]).toEqual([165, 11]);
    for (const [sources, trained] of [
      [SOURCES, of('train', tokenizer)],
      [FITTED_ON, of('train')],
      [NAMES_IN, of('train', tokenizer)],
      [PLACES_IN, of('train', tokenizer)],
    ] as const) {
      for (const { name, repository } of sources)
        for (const known of [name, repository, repository.split('/')[1]!])
          expect(trained, known).not.toContain(known.toLowerCase());
    }
    for (const { name, licence } of corpus)
      expect(licence, name).toMatch(/^(MIT|Apache-2\.0|BSD-[23]-Clause|PSF-2\.0|PSF-based|Repoze)/);
  });

  test('the training lists exclude all of them for future models', () => {
    const never = [
      readFileSync('model/train/never.py', 'utf8'),
      /^HELD_OUT = .*$/m.exec(readFileSync('model/train/corpus.py', 'utf8'))?.[0],
    ]
      .join('\n')
      .toLowerCase();
    for (const { name, repository, registry } of [...SOURCES, ...FITTED_ON, ...NAMES_IN, ...PLACES_IN]) {
      expect(never, repository).toContain(`"${repository.toLowerCase()}"`);
      // Python sources of training data are packages as well as repositories.
      if (registry === 'pypi') expect(never, name).toContain(`"${name}"`);
    }
  });

  test('sources that weights are fitted on are not measured', () => {
    const measured = [...SOURCES, ...NAMES_IN, ...PLACES_IN].map(({ repository }) => repository);
    for (const { repository } of FITTED_ON) expect(measured).not.toContain(repository);
  });

  test('each is pinned by version and hash and has a suitable licence', () => {
    for (const { registry, name, version, hash, licence } of [...SOURCES, ...FITTED_ON, ...NAMES_IN, ...PLACES_IN]) {
      expect(version, name).toMatch(/^\d+\.\d+\.\d+$/);
      expect(hash, name).toMatch(registry === 'npm' ? /^[\w+/]{86}==$/ : /^[\da-f]{64}$/);
      expect(['MIT', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0'], name).toContain(licence);
    }
  });

  test('content with another hash than the pinned one is refused', () => {
    const packed = Buffer.from('a package');
    const source = {
      name: 'some',
      version: '1.0.0',
      registry: 'pypi',
      hash: createHash('sha256').update(packed).digest('hex'),
    } as const;
    checkHash(source, packed);
    expect(() => checkHash(source, Buffer.from('another'))).toThrow(/some 1\.0\.0 is not what it was/);
    const npm = { ...source, registry: 'npm', hash: createHash('sha512').update(packed).digest('base64') } as const;
    checkHash(npm, packed);
    expect(() => checkHash(npm, Buffer.from('another'))).toThrow(/Nothing of it was unpacked/);
  });

  test('a failed fetch gives one sentence that says what is needed, and leaves nothing behind', () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'kvasir-quality-'));
    const { PATH } = process.env;
    // As on a machine without npm, where the command itself fails.
    process.env.PATH = folder;
    try {
      expect(() => qualityTexts(path.join(folder, 'texts'), () => {})).toThrow(
        /^@tanstack\/query-core@5\.66\.0 could not be fetched: .+\. Suite quality needs npm, pip and a network once/,
      );
      expect(readdirSync(path.join(folder, 'texts'))).toEqual([]);
    } finally {
      process.env.PATH = PATH;
      rmSync(folder, { recursive: true, force: true });
    }
    expect(
      reasonIn(
        'npm error code ECONNREFUSED\nnpm error syscall connect\nnpm error FetchError: no connection\nnpm error     at x\nnpm error A complete log of this run',
      ),
    ).toBe('FetchError: no connection.');
    expect(reasonIn('WARNING: a folder\nERROR: Could not find it\nERROR: No match')).toBe('Could not find it.');
  });

  test('only texts written by people are read', () => {
    const text = 'const a = 1;\n'.repeat(100);
    expect(isReadable('src/a.ts', text, 'typescript')).toBe(true);
    for (const file of ['src/a.d.ts', 'src/a.test.ts', 'test/a.ts', 'src/__tests__/a.ts', 'src/a.js'])
      expect(isReadable(file, text, 'typescript'), file).toBe(false);
    expect(isReadable('lib/a.min.js', text, 'javascript')).toBe(false);
    expect(isReadable('src/a.ts', `// This file is generated\n${text}`, 'typescript')).toBe(false);
    expect(isReadable('src/a.ts', `${text}'<|fim_middle|>'`, 'typescript')).toBe(false);
    expect(isReadable('src/a.ts', 'short', 'typescript')).toBe(false);
  });
});

describe('cursors', () => {
  let layouts: Layout[];
  beforeAll(async () => {
    layouts = await Promise.all(
      (['blockAndTail', 'tail'] as const).map(async (layout) => {
        const text = await ModelText.load('model');
        text.manifest.completion.layout = layout;
        return new Layout(text, { contextTokens: 2048, numParameters: 7.5e6 });
      }),
    );
  }, 60_000);

  test('are the same for the same seed, and inserting the removed text restores the file', async () => {
    for (const { path: file, text } of files) {
      for (const kind of HOLE_KINDS) {
        const found = await holes(file, text, kind);
        expect(await holes(file, text, kind)).toEqual(found);
        for (const { text: without, offset, taken, kind: of } of found) {
          expect(of).toBe(kind);
          expect(without.slice(0, offset) + taken + without.slice(offset)).toBe(text);
          expect(taken.trim(), taken).not.toBe('');
          // The line has nothing after the cursor.
          expect(without.slice(offset).split('\n')[0]!.trim()).toMatch(kind === 'block' ? /^;?$/ : /^$/);
        }
      }
    }
    const [file] = files;
    const other = await holes(file!.path, file!.text, 'rest', 2);
    expect(other).not.toEqual(await holes(file!.path, file!.text, 'rest'));
  });

  test('every second rest begins inside a word, and no other hole does', async () => {
    const found = (await Promise.all(files.map(({ path: file, text }) => holes(file, text, 'rest')))).flat();
    expect(found.length).toBeGreaterThan(500);
    for (const { text, offset, taken, midWord } of found)
      expect(/[\w$]$/.test(text.slice(0, offset)) && /^[\w$]/.test(taken), JSON.stringify(taken)).toBe(midWord);
    const share = found.filter(({ midWord }) => midWord).length / found.length;
    expect(share).toBeGreaterThan(0.45);
    expect(share).toBeLessThan(0.55);
  });

  test('blocks are whole bodies of a few lines, and lines and rests are code, not comments', async () => {
    const text = `import { a } from './a';\n\n\n\n\n/** Says what\n * it does. */\nexport function twice(n: number): number {\n  const m = n;\n  return m + n;\n}\n\nfunction once() {\n  return 1;\n}\n\nfunction told() {\n  // Why.\n  return 2;\n}\nconst said = \`first\n  second of it\n\`;\n`;
    expect((await holes('src/a.ts', text, 'block')).map(({ taken }) => taken)).toEqual([
      'const m = n;\n  return m + n;',
    ]);
    const python = `import a\n\n\n\n\ndef twice(n):\n    m = n\n    return m + n\n\n\ndef told(n):\n    """Says it."""\n    m = n\n    return m\n`;
    expect((await holes('src/a.py', python, 'block')).map(({ taken }) => taken)).toEqual(['m = n\n    return m + n']);
    expect((await holes('src/a.ts', text, 'line')).map(({ taken }) => taken).sort()).toEqual([
      'const m = n;',
      'const said = `first',
      'export function twice(n: number): number {',
      'function once() {',
      'function told() {',
      'return 1;',
      'return 2;',
      'return m + n;',
    ]);
    const beside = `${text}\nrun(one, 2); // because of several things\n`;
    for (let seed = 1; seed < 30; seed++)
      for (const { taken } of await holes('src/a.ts', beside, 'rest', seed))
        expect(taken).not.toMatch(/^(?!.*\/\/).*things/);
  });

  test('the removed text is not in the prompt in either layout', async () => {
    let numAsked = 0;
    for (const { path: file, text } of files) {
      for (const kind of HOLE_KINDS) {
        // Uses text that occurs once in the file, so that it is nowhere else.
        const alone = (await holes(file, text, kind))
          .filter(({ taken }) => taken.length > 16 && text.split(taken).length === 2)
          .slice(0, 3);
        for (const { text: without, offset, taken } of alone) {
          for (const layout of layouts) {
            const { promptIds, numBlockTokens } = completionPrompt(
              layout,
              new SourceDocument('d', file, without),
              offset,
              { answerTokens: 48 },
            );
            if (layout.text.manifest.completion.layout === 'tail') expect(numBlockTokens).toBe(0);
            expect(layout.text.tokenizer.decode(promptIds)).not.toContain(taken);
            numAsked++;
          }
        }
      }
    }
    expect(numAsked).toBeGreaterThan(150);
  });
});

describe('questions', () => {
  const text = `import fs, { type Stats } from 'node:fs';
import './side.js';
const path = require('node:path');
const { join } = require("./join").posix;

export class Store extends Base {
  constructor() { super(); }
  get size() { return 1; }
  open(dir, limit = 10) {}
  [Symbol.iterator]() {}
  close() {}
}
function load(file) {
  const lazy = require('lazy');
}
`;
  const ofKind = (all: readonly QualityQuestion[], kind: string): QualityQuestion[] =>
    all.filter((question) => question.kind === kind);

  test('ask about imports, members and missing names', async () => {
    const all = await questions('src/store.js', text, ['close', 'elsewhere']);
    expect(ofKind(all, 'imports').map(({ answer }) => answer)).toEqual([
      'This file imports `node:fs`, `./side.js`, `node:path` and `./join`.',
    ]);
    expect(ofKind(all, 'members').map(({ answer }) => answer)).toEqual(['`Store` has `open` and `close`.']);
    expect(ofKind(all, 'missing').map((question) => [question.text, question.answer])).toEqual([
      ['Where is `elsewhere` defined?', 'There is no `elsewhere` in src/store.js.'],
    ]);
    expect(ofKind(all, 'base').map(({ answer }) => answer)).toEqual(['`Store` extends `Base`.']);
    const python =
      'from __future__ import annotations\nimport os.path as p, sys\nfrom . import a\nfrom .b import c\n\nclass A(B):\n    def __init__(self):\n        pass\n\n    def run(self):\n        pass\n';
    const ofPython = await questions('src/a.py', python);
    expect(ofKind(ofPython, 'imports').map(({ answer }) => answer)).toEqual([
      'This file imports `__future__`, `os.path`, `sys`, `.` and `.b`.',
    ]);
    expect(ofKind(ofPython, 'members').map(({ answer }) => answer)).toEqual(['`A` has `run`.']);
    expect(ofKind(ofPython, 'missing')).toEqual([]);
  });

  test('accept their own answers, and reject answers to other questions of their kind', async () => {
    const all = (
      await Promise.all(
        files.map(async ({ path: file, text }) =>
          (await Promise.all(partsOf(text).map((part) => questions(file, part, ['notInAnyOfThem'])))).flat(),
        ),
      )
    ).flat();
    expect(new Set(all.map(({ kind }) => kind)).size).toBe(10);
    for (const { answer, right, text } of all) expect(right(answer), `${text} ${answer}`).toBe(true);
    for (const { kind, answer, right } of all)
      expect(
        right(
          kind === 'missing'
            ? '`notInAnyOfThem` is defined here: `x`'
            : answer.replace('no parameters', '`file`').replace(/`[^`]+`/g, '`Q9`'),
        ),
        answer,
      ).toBe(false);
  });

  test('accept answers in other words', async () => {
    const all = await questions('src/store.js', text, ['elsewhere']);
    const [imports, members, where] = ['imports', 'members', 'where'].map((kind) => ofKind(all, kind)[0]!) as [
      QualityQuestion,
      QualityQuestion,
      QualityQuestion,
    ];
    expect(imports.right('It imports ./join, ./side.js, node:fs and node:path.')).toBe(true);
    expect(imports.right('`node:fs`, `./side.js`, `node:path`')).toBe(false);
    expect(imports.right('`node:fs`, `./side.js`, `node:path`, `./join`, `lazy`')).toBe(true);
    expect(imports.right('`node:fs`, `./side.js`, `node:path`, `./join`, `other`')).toBe(false);
    expect(members.right('`Store`: `constructor()`, `size`, `open()`, `close()`')).toBe(true);
    expect(members.right('`Store` has `open`, `close` and `flush`.')).toBe(false);
    const line =
      text.split('\n').findIndex((other) => other.trim() === where.answer.split('here: ')[1]!.slice(1, -1)) + 1;
    expect(where.right(`In line ${line}.`)).toBe(true);
    expect(where.right(`In line ${line}0.`)).toBe(false);
    const typed = await questions('src/a.ts', 'class A {\n  run(file: string, limit: number = 10) {}\n}\n');
    const of = (kind: string) => ofKind(typed, kind)[0]!;
    const signature = (code: string) => `The signature of \`A.run\` is on line 2: \`run(${code})\`.`;
    expect(of('parameters').right(signature('file: string, limit: number = 10'))).toBe(true);
    expect(of('parameters').right(signature('file: string'))).toBe(false);
    expect(of('default').right(signature('file: string, limit: number = 10'))).toBe(true);
    expect(of('default').right(signature('file: string, limit: number = 9'))).toBe(false);
    const ofFile = ofKind(typed, 'type').find((one) => one.text.includes('`file`'))!;
    expect(ofFile.right(signature('file: string'))).toBe(true);
    expect(ofFile.right(signature('file: number'))).toBe(false);
    expect(of('owner').right('`A.run` is defined on line 2.')).toBe(true);
    expect(of('owner').right('`B.run` is defined on line 2.')).toBe(false);
    const inherited = ' Base classes of `Store`: `Base` (line 6). Inherited members are not listed.';
    expect(members.right(`Methods of \`Store\`: \`open\`, \`close\`.${inherited}`)).toBe(true);
    expect(namesAll('a and b', ['a', 'b'], () => false)).toBe(true);
    expect(namesAll('abc', ['a'], () => false)).toBe(false);
    for (const answer of ['There is no `x` here.', "It isn't defined in this file.", 'I cannot find `x`.'])
      expect(denies(answer), answer).toBe(true);
    for (const answer of ['`not` is defined here: `def not_(x)`', 'Now it is in line 3.'])
      expect(denies(answer), answer).toBe(false);
  });
});

describe('summaries', () => {
  test('leave the comment out of the file and compare with its first sentence', async () => {
    const text = `const a = 1;\n\n/**\n * Adds two numbers and\n * gives their sum. Slowly.\n *\n * @param a one\n */\nexport function addSlowly(a: number, b: number) {\n  return a + b;\n}\n\nclass Sum {\n  /** Takes all of them back again. */\n  undoAll() {}\n  /** Short one. */\n  short() {}\n}\n`;
    const found = await summaries('src/sum.ts', text);
    expect(found.map(({ name, reference }) => [name, reference]).sort()).toEqual([
      ['addSlowly', 'Adds two numbers and gives their sum.'],
      ['undoAll', 'Takes all of them back again.'],
    ]);
    for (const { name, text: without, start, end, reference } of found) {
      expect(without).not.toContain(reference);
      expect(without).not.toMatch(name === 'addSlowly' ? /Slowly\.|@param/ : /back again/);
      expect(without.slice(start, end)).toMatch(
        name === 'addSlowly' ? /^export function addSlowly[\s\S]*}$/ : /^undoAll\(\) {}$/,
      );
    }
    const python =
      'def load(path):\n    """Read what is in a file.\n\n    More of it.\n    """\n    return open(path).read()\n\n\ndef empty():\n    """Does nothing at all here."""\n\n\n@cached\ndef kept(a):\n    r\'\'\'Keep what was read before\n    for the next time\'\'\'\n    return a\n';
    const ofPython = await summaries('src/a.py', python);
    expect(ofPython.map(({ name, reference }) => [name, reference]).sort()).toEqual([
      ['kept', 'Keep what was read before for the next time'],
      ['load', 'Read what is in a file.'],
    ]);
    const load = ofPython.find(({ name }) => name === 'load')!;
    expect(load.text.slice(load.start, load.end)).toBe('def load(path):\n    return open(path).read()');
  });

  test('leave out functions whose comment also occurs elsewhere in the file', async () => {
    const one = '/** Gives back what it was given. */\nfunction same(a) {\n  return a;\n}\n';
    expect(await summaries('a.js', one)).toHaveLength(1);
    expect(await summaries('a.js', `${one}\n// gives back what it was given\n`)).toEqual([]);
  });

  test('take first sentences of comments and words of names', () => {
    expect(firstSentence('/** @param a only */')).toBe('');
    expect(firstSentence('/** See e.g. that one. Then this. */')).toBe('See e.g. that one.');
    expect(firstSentence('"""One\n    two\n\n    three."""')).toBe('One two');
    expect(firstSentence("'''")).toBe('');
    expect([wordsOfName('parseHTTPHeader'), wordsOfName('_read_all'), wordsOfName('toV2')]).toEqual([
      'parse http header',
      'read all',
      'to v2',
    ]);
  });
});
