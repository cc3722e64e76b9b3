/** Tests the exercises that measure a compressed context: questions, holes, needles and parts of files. */
import { beforeAll, describe, expect, it } from 'vitest';
import { Parser } from 'web-tree-sitter';
import { exercisesOf, someOfEach, textExercises, viewsOf } from '../../bench/eval/exercises.ts';
import { holesIn } from '../../bench/eval/holes.ts';
import { needleIn } from '../../bench/eval/needles.ts';
import { judged, type Question, questionsOf } from '../../bench/eval/questions.ts';
import { baseline, qualityCells } from '../../bench/eval/report.ts';
import { Layout } from '../../../engine/text/prompt/layout.ts';
import { ModelText } from '../../../engine/text/format/modelText.ts';
import { Grammars } from '../../../engine/text/syntax/syntaxTrees.ts';
import { heldoutFiles } from '../kv/heldout.ts';
import { seededRandom } from '../../support/engine/workload.ts';

const grammars = new Grammars();
let layout: Layout;
beforeAll(async () => {
  await Promise.all(['typescript', 'python'].map((name) => grammars.load(name)));
  layout = new Layout(await ModelText.load('model'), { contextTokens: 2048, numParameters: 7.5e6 });
}, 60_000);

function questions(grammar: string, text: string): Question[] {
  const tree = new Parser().setLanguage(grammars.get(grammar)!).parse(text)!;
  return questionsOf(tree, text);
}
const answers = (all: readonly Question[], kind: string): string[] =>
  all.filter((question) => question.kind === kind).map(({ answer }) => answer);

describe('questions', () => {
  it('are read off TypeScript', () => {
    const all = questions(
      'typescript',
      `
export class Store<T> extends Base.Map<T> implements Kept {
  readonly size = 1;
  constructor(private readonly a: number) {}
  static async open(dir: string, limit = 10, ...rest: string[]): Promise<Store> {}
  get(key?: string): T | undefined {}
  #hidden(a = 3): void {}
}
abstract class Plain {}
export default function twice({ a, b }: Point, n: number): number {}
const join = (parts: string[], by = ', '): string => parts.join(by);
const one = item => item;
const LIMIT = 3;
function same() {}
class Other { same() {} }
`,
    );
    expect(answers(all, 'parameters')).toEqual([
      '`open` takes `dir`, `limit` and `...rest`.',
      '`get` takes `key`.',
      '`join` takes `parts` and `by`.',
      '`one` takes `item`.',
    ]);
    expect(answers(all, 'returns')).toEqual([
      '`open` returns `Promise<Store>`.',
      '`get` returns `T | undefined`.',
      '`twice` returns `number`.',
      '`join` returns `string`.',
    ]);
    expect(answers(all, 'type')).toEqual([
      '`dir` has the type `string`.',
      '`...rest` has the type `string[]`.',
      '`key` has the type `string`.',
      '`parts` has the type `string[]`.',
    ]);
    expect(answers(all, 'default')).toEqual(['`limit` defaults to `10`.', "`by` defaults to `', '`."]);
    expect(answers(all, 'base')).toEqual(['`Store` extends `Base.Map`.']);
    expect(answers(all, 'owner')).toEqual(['`open` is a method of `Store`.', '`get` is a method of `Store`.']);
    expect(answers(all, 'where')).toContain(
      "`join` is defined here: `const join = (parts: string[], by = ', '): string => parts.join(by);`",
    );
    expect(all.find(({ kind }) => kind === 'default')?.text).toBe('What is the default value of `limit` in `open`?');
  });

  it('are read off Python', () => {
    const all = questions(
      'python',
      `
class Block(nn.Module, metaclass=M):
    def __init__(self, x: int = 3):
        pass
    @staticmethod
    async def load(a, /, name: str = "x", *args, flag=None, **kw) -> dict:
        return 1

def run(x):
    def inner(y):
        return y
    return inner
`,
    );
    expect(answers(all, 'parameters')).toEqual([
      '`load` takes `a`, `name`, `*args`, `flag` and `**kw`.',
      '`run` takes `x`.',
    ]);
    expect(answers(all, 'default')).toEqual(['`name` defaults to `"x"`.', '`flag` defaults to `None`.']);
    expect(answers(all, 'type')).toEqual(['`name` has the type `str`.']);
    expect(answers(all, 'returns')).toEqual(['`load` returns `dict`.']);
    expect(answers(all, 'base')).toEqual(['`Block` extends `nn.Module`.']);
    expect(answers(all, 'owner')).toEqual(['`load` is a method of `Block`.']);
    expect(answers(all, 'where')).toEqual([
      '`Block` is defined here: `class Block(nn.Module, metaclass=M):`',
      '`load` is defined here: `async def load(a, /, name: str = "x", *args, flag=None, **kw) -> dict:`',
      '`run` is defined here: `def run(x):`',
    ]);
  });

  it('are answered exactly with the expected words, and rightly with any answer that contains the core', () => {
    const question = { answer: '`f` returns `number`.', core: '`number`' };
    expect(judged(question, '`f` returns `number`.')).toEqual({ exact: true, right: true });
    expect(judged(question, 'It is `number`, I think.')).toEqual({ exact: false, right: true });
    expect(judged(question, '`f` returns `numbers`.')).toEqual({ exact: false, right: false });
    expect(judged({ answer: "`by` defaults to `','`.", core: "`','`" }, '`by` defaults to `","`.')).toEqual({
      exact: true,
      right: true,
    });
  });
});

describe('holes', () => {
  const text = Array.from({ length: 40 }, (_, i) =>
    i % 4 === 0 ? `  // comment ${i}` : i % 4 === 1 ? '}' : `  const value${i} = compute(${i}, other.thing);`,
  ).join('\n');

  it('remove lines of code after the first part of the text, and restore the text when inserted again', () => {
    const holes = holesIn(text, 4, 0.5, seededRandom(1));
    expect(holes.map(({ kind }) => kind)).toEqual([...Array(4).fill('line'), ...Array(4).fill('rest')]);
    const lines = new Set<number>();
    for (const { kind, offset, taken, text: rest } of holes) {
      expect(rest.slice(0, offset) + taken + rest.slice(offset)).toBe(text);
      const line = text.slice(0, offset).split('\n').length - 1;
      lines.add(line);
      expect(line).toBeGreaterThanOrEqual(20);
      if (kind === 'line') expect(taken).toMatch(/^const value\d+ = compute\(\d+, other\.thing\);$/);
      else expect(taken.length).toBeGreaterThanOrEqual(4);
      expect(rest.slice(offset)).toMatch(/^(\n|$)/);
    }
    expect(lines.size).toBe(8);
    expect(holesIn(text, 4, 0.5, seededRandom(1))).toEqual(holes);
  });

  it('are fewer than asked for where the text has fewer', () => {
    expect(holesIn('}\n\n// no code', 3, 0, seededRandom(1))).toEqual([]);
  });
});

describe('needles', () => {
  const [file] = heldoutFiles().filter(({ path }) => path === 'cache/window.ts');
  const encode = (text: string) => layout.text.tokenizer.encodeWithOffsets(text);

  it.each([256, 1024, 1900])('are %i tokens before the end', (distance) => {
    const needle = needleIn(file!.text, '//', { numTokens: 1990, distance }, encode, seededRandom(distance));
    expect(Math.abs(needle.distance - distance)).toBeLessThan(60);
    expect(encode(needle.text).ids.length).toBeLessThanOrEqual(1990);
    expect(encode(needle.text).ids.length).toBeGreaterThan(1900);
    expect(needle.value).toMatch(/^\d{4}$/);
    expect(needle.text.split(`${needle.recall.slice(1)}${needle.value}.`)).toHaveLength(2);
    expect(needle.text.split(needle.value)).toHaveLength(2);
  });
});

describe('texts and parts of files', () => {
  it('texts do not overlap, and files take turns', () => {
    const ids = (n: number, first: number) => Array.from({ length: n }, (_, i) => first + i);
    const exercises = textExercises([ids(500, 0), ids(250, 1000), ids(60, 5000)], {
      contextTokens: 160,
      scoredTokens: 39,
      numTexts: 3,
    });
    expect(exercises.map(({ contextIds, next }) => [contextIds[0], contextIds.length, next[0], next.length])).toEqual([
      [0, 160, 160, 40],
      [1000, 160, 1160, 40],
      [200, 160, 360, 40],
    ]);
  });

  it('each part fits a file block, and all parts together are the file', () => {
    for (const file of heldoutFiles()) {
      const views = viewsOf(layout, file);
      for (const view of views) expect(layout.fileBlock(view).omitted).toBe('');
      const shown = views.map(({ lf }) => lf).join('');
      expect(file.text.length - shown.length).toBeLessThan(300);
      if (shown.length === file.text.length) expect(shown).toBe(file.text);
    }
  });

  it('held-out files give lines, questions of each kind and needles, the same on each call', async () => {
    const options = {
      contextTokens: 512,
      scoredTokens: 63,
      numTexts: 4,
      holes: 1,
      questions: 2,
      distances: [256, 1900],
      needles: 2,
      seed: 1,
    };
    const make = () => exercisesOf(layout, grammars, heldoutFiles(), options);
    const exercises = await make();
    const prompts = exercises.flatMap(({ kind, prompts }) => prompts.map(({ group }) => `${kind} ${group}`));
    for (const group of [
      'fim line',
      'fim rest',
      'question parameters',
      'question returns',
      'question type',
      'question default',
      'question base',
      'question owner',
      'question where',
      'needle 256',
      'needle 1900',
    ])
      expect(prompts).toContain(group);
    for (const { contextIds, prompts } of exercises)
      for (const { tail } of prompts)
        expect(contextIds.length + tail.ids.length + tail.maxTokens).toBeLessThanOrEqual(2048);
    expect(JSON.stringify(await make())).toBe(JSON.stringify(exercises));
  });

  it('takes some questions of each kind', () => {
    const many = ['where', 'where', 'where', 'base'].map((kind, i) => ({ kind, text: `${i}` }) as Question);
    expect(someOfEach(many, 2, seededRandom(1)).map(({ kind }) => kind)).toEqual(['base', 'where', 'where']);
  });
});

it('the text that follows the prompt of a hole is judged right, also where the prompt was shortened', async () => {
  const exercises = await exercisesOf(layout, grammars, heldoutFiles(), {
    contextTokens: 512,
    scoredTokens: 8,
    numTexts: 1,
    holes: 4,
    questions: 0,
    distances: [],
    needles: 0,
    seed: 3,
  });
  const holes = exercises.filter(({ kind }) => kind === 'fim').flatMap(({ prompts }) => prompts);
  const texts = heldoutFiles().map(({ text }) => text.replaceAll('\r\n', '\n'));
  const groups = new Set<string>();
  let numFound = 0;
  for (const { tail, group, judge } of holes) {
    const written = layout.text.tokenizer.decode(tail.ids).split('<|fim_middle|>')[1]!;
    const places = texts.flatMap((text) =>
      [text.indexOf(written)]
        .filter((at) => at >= 0 && text.indexOf(written, at + 1) < 0)
        .map((at) => text.slice(at + written.length).split('\n')[0]!),
    );
    if (written === '' || places.length !== 1) continue;
    expect(judge(places[0]!).exact, `${written}|${places[0]}`).toBe(true);
    expect(judge(`x${places[0]}`).exact).toBe(false);
    groups.add(group);
    numFound++;
  }
  expect(numFound).toBeGreaterThan(5);
  expect([...groups].sort()).toEqual(['line', 'rest']);
});

it('the table shows right and same answers, and no column for what was not measured', () => {
  const answers = [{ kind: 'question' as const, group: 'base', n: 4, exact: 1, right: 2, same: 3 }];
  const treatment = {
    treatment: 'int4',
    bytesPerToken: 100,
    bytesPerTokenHere: 200,
    compression: 4,
    klMean: 0.01,
    klMax: 0.5,
    top1: 0.991,
    perplexity: -0.01,
    accuracy: 0.5,
    answers,
    changes: [],
    contexts: [],
  };
  const result = {
    model: 'm',
    numTokens: 10,
    numContexts: 2,
    longestContext: 99,
    perplexity: 3,
    accuracy: 0.5,
    answers,
    treatments: [treatment],
  };
  const { head, rows } = qualityCells(result);
  expect(head).toEqual([
    '',
    'bytes/token',
    'vs float16',
    'vs float16 here',
    'KL mean',
    'KL max',
    'top-1',
    'perplexity',
    'next token right',
    'questions right (same)',
  ]);
  expect(rows).toEqual([
    ['int4', '100', '4.00x', '2.00x', '1.0e-2', '5.0e-1', '99.1%', '-1.00%', '50.0%', '50.0% (75%)'],
  ]);
  expect(qualityCells({ ...result, numTokens: 0 }).head).not.toContain('KL mean');
  expect(baseline(result)).toBe(
    'm: 2 contexts of up to 99 tokens; without compression 10 tokens predicted, perplexity 3.00, 50.0% of them right, 2 of 4 questions right.',
  );
});
