/** Tests how suite `quality` judges answers and calculates figures. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { Grammars } from '../../../engine/text/syntax/syntaxTrees.ts';
import { heldoutFiles } from '../kv/heldout.ts';
import { layoutsOf, withLayout } from './engine.ts';
import { cellsOf, holeFigures, questionFigures, type ScoredHole, summaryFigures } from './figures.ts';
import { HOLE_KINDS, type QualityHole } from './holes.ts';
import { neighbours } from './neighbours.ts';
import { qualityCharts, qualityReport, qualityTable } from './report.ts';
import { GROUPS, samplesOf } from './samples.ts';
import { chrF, interval, rougeL, scoreHole } from './scores.ts';
import type { QualityText } from './sources.ts';
import { type QualityBench, qualityOptions } from './suite.ts';

const grammars = new Grammars();
const texts: QualityText[] = heldoutFiles().map((file) => ({
  ...file,
  source: 'ours',
  language: file.path.endsWith('.py') ? 'python' : 'typescript',
}));

describe('scores', () => {
  const score = (taken: string, shown: string, kind: QualityHole['kind'] = 'rest') => scoreHole({ kind, taken }, shown);
  test('judge completions', () => {
    expect(score('foo(bar);', 'foo(bar);')).toEqual({
      shown: true,
      exact: true,
      whole: true,
      firstWord: true,
      kept: 9,
    });
    expect(score('foo(bar);', '')).toEqual({ shown: false, exact: false, whole: false, firstWord: false, kept: 0 });
    // "foo(" is kept. The equal start of "bar" is not.
    expect(score('foo(bar);', 'foo(bat);')).toEqual({
      shown: true,
      exact: false,
      whole: false,
      firstWord: true,
      kept: 4,
    });
    expect(score('foobar', 'foo')).toMatchObject({ firstWord: false, kept: 0 });
    expect(score('foo', 'foobar')).toMatchObject({ firstWord: false, kept: 0 });
    expect(score('foo.bar', 'foo')).toMatchObject({ firstWord: true, kept: 3, exact: false });
    // The line is right but the text continues below it, so it is exact but not accepted as a whole.
    expect(score('return a;', 'return a;\n}', 'line')).toMatchObject({ exact: true, whole: false, kept: 9 });
    // Whole lines from the start of a block are accepted. A part of a line is not, nor is a different line.
    expect(score('a;\n  b;', 'a;', 'block')).toMatchObject({ exact: false, whole: true, kept: 2 });
    for (const shown of ['a', 'a;\n  b', 'a;\n  c;'])
      expect(score('a;\n  b;', shown, 'block')).toMatchObject({ exact: false, whole: false });
    expect(score('a;\n  b;', 'a;', 'line')).toMatchObject({ whole: false });
    expect(score('a;\n  b;', 'a;  \r\n  b;\n', 'block')).toMatchObject({ exact: true, whole: true });
    expect(score('  a', '  b')).toMatchObject({ kept: 0 });
  });

  test('judge summaries', () => {
    expect(rougeL('Adds two numbers.', 'adds two numbers')).toBe(1);
    expect(rougeL('a b c d', 'a c')).toBeCloseTo(4 / 6);
    expect(rougeL('c a', 'a b c')).toBeCloseTo(2 / 5);
    expect([rougeL('', 'a'), chrF('', 'a'), chrF('xyz', 'abc')]).toEqual([0, 0, 0]);
    expect(chrF('same text', 'same text')).toBe(1);
    // One of two letters matches and no pair, so P and R are 1/4.
    expect(chrF('ab', 'ac')).toBeCloseTo(0.25);
    // Recall has more weight than precision.
    expect(chrF('abcdef', 'abc')).toBeGreaterThan(chrF('abc', 'abcdef'));
  });

  test('intervals have the known ends, and are 0..1 without values', () => {
    expect(interval(0, 200)[0]).toBe(0);
    const [least, most] = interval(20, 200);
    expect([least, most].map((end) => end.toFixed(3))).toEqual(['0.066', '0.149']);
    expect(interval(0, 0)).toEqual([0, 1]);
  });
});

describe('the suite as a whole', () => {
  test('samples have the wanted number of each kind, are the same for the same seed, and do not depend on other groups', async () => {
    const all = await samplesOf(grammars, texts, { n: 12, groups: GROUPS, seed: 1 });
    for (const kind of HOLE_KINDS)
      for (const language of ['typescript', 'python'])
        expect(
          all.holes.filter((hole) => hole.kind === kind && hole.language === language),
          `${kind} ${language}`,
        ).toHaveLength(12);
    expect(all.holes.filter(({ midWord }) => midWord)).toHaveLength(12);
    expect(all.questions).toHaveLength(24);
    expect(new Set(all.questions.map(({ kind }) => kind)).size).toBe(10);
    expect(all.summaries.length).toBeGreaterThan(12);
    for (const { text, reference } of all.summaries) expect(text).not.toContain(reference);
    const plain = (value: unknown) => JSON.parse(JSON.stringify(value)) as unknown;
    expect(plain(await samplesOf(grammars, texts, { n: 12, groups: GROUPS, seed: 1 }))).toEqual(plain(all));
    const some = await samplesOf(grammars, texts, { n: 12, groups: ['line'], seed: 1 });
    expect([some.questions, some.summaries]).toEqual([[], []]);
    expect(some.holes).toEqual(all.holes.filter(({ kind }) => kind === 'line'));
  });

  const hole = (more: Partial<ScoredHole>): ScoredHole => ({
    source: 's',
    path: 'p',
    language: 'python',
    layout: 'tail',
    kind: 'rest',
    midWord: false,
    offset: 1,
    numTaken: 10,
    numShown: 4,
    firstMs: 20,
    shown: true,
    exact: false,
    whole: false,
    firstWord: false,
    kept: 0,
    ...more,
  });
  const nothing = hole({ shown: false, numShown: 0, firstMs: null });

  test('figures have shares of all completions and of shown ones', () => {
    const figures = holeFigures([
      hole({ exact: true, whole: true, firstWord: true, kept: 8, midWord: true }),
      hole({ firstWord: true, kept: 4, firstMs: 40 }),
      nothing,
      nothing,
    ]);
    expect(figures).toEqual({
      n: 4,
      exact: 0.25,
      firstWord: 0.5,
      shown: 0.5,
      exactOfShown: 0.5,
      firstWordOfShown: 1,
      wholeOfShown: 0.5,
      keptPerShown: 6,
      shownCharacters: 4,
      takenCharacters: 10,
      medianMs: 30,
      p95Ms: 40,
    });
    expect(holeFigures([nothing])).toMatchObject({
      shown: 0,
      exact: 0,
      exactOfShown: Number.NaN,
      keptPerShown: Number.NaN,
      medianMs: Number.NaN,
    });
    const cells = cellsOf(
      [hole({}), hole({ midWord: true, language: 'typescript' }), hole({ layout: 'blockAndTail' })],
      ['blockAndTail', 'tail'],
    );
    expect(cells.map(({ layout, kind, language, n }) => [layout, kind, language, n])).toEqual([
      ['blockAndTail', 'rest', 'python', 1],
      ['blockAndTail', 'rest', 'all', 1],
      ['blockAndTail', 'rest, between words', 'all', 1],
      ['tail', 'rest', 'typescript', 1],
      ['tail', 'rest', 'python', 1],
      ['tail', 'rest', 'all', 2],
      ['tail', 'rest, between words', 'all', 1],
      ['tail', 'rest, in a word', 'all', 1],
    ]);
  });

  test('the report names the shipped layout and has a chart', () => {
    const scored = [hole({ exact: true, firstWord: true }), nothing, hole({ layout: 'blockAndTail' })];
    const place = { source: 's', path: 'p', language: 'python' } as const;
    const result: QualityBench = {
      model: 'starter',
      parameters: 7.5e6,
      threads: 2,
      n: 2,
      seed: 1,
      shipped: 'blockAndTail',
      sources: [{ name: 'some', version: '1.0.0', licence: 'MIT' }],
      cells: cellsOf(scored, ['blockAndTail', 'tail']),
      questions: questionFigures([
        { ...place, kind: 'imports', right: true, exact: false },
        { ...place, kind: 'where', right: false, exact: false },
      ]),
      summaries: summaryFigures([{ ...place, name: 'n', rougeL: 0.5, chrF: 0.25, nameRougeL: 0.1, nameChrF: 0.2 }]),
      items: { holes: scored, questions: [], summaries: [] },
    };
    const report = qualityReport(result);
    expect(report).toContain('some 1.0.0');
    expect(report).toContain('million parameters, int8, 2 threads');
    expect(qualityReport({ ...result, loadMs: 240 })).toContain('int8, loaded in 240 ms, 2 threads');
    expect(report).toContain('No other file is copied from.');
    expect(qualityReport({ ...result, beside: 5 })).toContain('5 other files of the project');
    expect(report).toContain(qualityTable(result));
    expect(report).toContain('| file block + tail (as shipped) | rest of the line | Python | 1 | 0.0%');
    expect(report).toContain(
      '| FIM in the file | rest of the line | Python | 2 | 50.0% (9–91) | 50.0% | 50.0% | 100.0% |',
    );
    expect(report).toContain('| all questions | all | 2 | 50.0% (9–91) | 0.0% |');
    expect(report).toContain('| Python | 1 | 0.500 | 0.100 | 0.250 | 0.200 |');
    expect(report).not.toContain('NaN');
    const { 'quality.svg': svg } = qualityCharts(result);
    expect(svg).toContain('file block + tail (as shipped)');
    expect(svg).not.toContain('NaN');
    expect(qualityCharts({ ...result, cells: [] })).toEqual({});
  });

  test('files of the same project and language are open, the nearest folders first', () => {
    const text = (file: string, source = 'a', language: QualityText['language'] = 'python'): QualityText => ({
      path: file,
      source,
      language,
      text: '',
    });
    const texts = [
      text('x/one.py'),
      text('lib/deep/two.py'),
      text('lib/three.py'),
      text('lib/four.py', 'b'),
      text('lib/five.ts', 'a', 'typescript'),
      text('lib/this.py'),
    ];
    expect(
      neighbours(texts, texts[5]!, 3, 1)
        .map((other) => other.path)
        .slice(0, 2)
        .sort(),
    ).toEqual(['lib/deep/two.py', 'lib/three.py']);
    expect(neighbours(texts, texts[5]!, 9, 1)).toHaveLength(3);
    expect(neighbours(texts, texts[5]!, 0, 1)).toEqual([]);
  });

  test('the command line explains its errors', () => {
    expect(qualityOptions({})).toMatchObject({
      n: 200,
      groups: GROUPS,
      threads: 0,
      beside: 100,
      modelDir: path.resolve('model'),
    });
    expect(qualityOptions({ only: 'rest,questions', n: '3', beside: '0' })).toMatchObject({
      n: 3,
      beside: 0,
      groups: ['rest', 'questions'],
    });
    expect(() => qualityOptions({ only: 'words' })).toThrow(
      '--only words: it must be one of rest, line, block, questions, summaries',
    );
    expect(() => qualityOptions({ n: '0' })).toThrow('--n 0');
    expect(() => qualityOptions({ n: 'many' })).toThrow('--n many');
    expect(() => qualityOptions({ model: 'docs' })).toThrow(/--model docs: there is no config.json/);
  });

  test('the other layout is the same model with another manifest', () => {
    expect(layoutsOf('model')).toEqual({ shipped: 'blockAndTail', other: 'tail' });
    const folder = mkdtempSync(path.join(tmpdir(), 'kvasir-quality-'));
    try {
      const tail = withLayout('model', 'tail', path.join(folder, 'tail'));
      expect(layoutsOf(tail)).toEqual({ shipped: 'tail', other: 'blockAndTail' });
      expect(readFileSync(path.join(tail, 'model.safetensors')).equals(readFileSync('model/model.safetensors'))).toBe(
        true,
      );
      const manifest = JSON.parse(readFileSync('model/kvasir.json', 'utf8'));
      expect(JSON.parse(readFileSync(path.join(tail, 'kvasir.json'), 'utf8'))).toEqual({
        ...manifest,
        completion: { ...manifest.completion, layout: 'tail' },
      });
      // A model without a file block has one layout.
      rmSync(path.join(tail, 'kvasir.json'));
      expect(layoutsOf(tail)).toEqual({ shipped: 'tail', other: undefined });
      writeFileSync(path.join(tail, 'kvasir.json'), '{"fileBlock":"chatTemplate"}');
      expect(layoutsOf(tail).other).toBeUndefined();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
