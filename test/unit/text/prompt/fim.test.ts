/** Fill-in-the-middle prompts of the families against their references, and what is not guessed. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Fim } from '../../../../engine/text/format/fim.ts';
import { findFim, type FimFamily, type OwnFim } from '../../../../engine/text/format/fimFamilies.ts';
import { ModelText } from '../../../../engine/text/format/modelText.ts';
import { Tokenizer } from '../../../../engine/text/tokenizer/tokenizer.ts';

const root = join(import.meta.dirname, '../../../..');
const tokenizerDir = (kind: string): string => join(root, 'test/fixtures/tokenizers', kind);

/** The families of the references. */
type Referenced = Exclude<FimFamily, 'codegemma' | 'granite4' | 'mellum' | 'seed-coder'>;

interface Reference {
  families: Record<Referenced, { stop: string[]; bos: boolean }>;
  cases: { family: Referenced; prefix: string; suffix: string; prompt: string; tokenizer?: string; ids?: number[] }[];
  repository_level: {
    family: Referenced;
    repo: string;
    files: { path: string; content: string }[];
    current_path: string;
    prefix: string;
    suffix: string;
    prompt: string;
    tokenizer?: string;
    ids?: number[];
  }[];
}

const reference = JSON.parse(readFileSync(join(root, 'test/fixtures/fim/fim_reference.json'), 'utf8')) as Reference;

/** The control tokens of each family, and how its published layout writes them. */
const CONTROLS: Record<Referenced, Record<string, string>> = {
  'qwen2.5-coder': asWritten('<|fim_prefix|>', '<|fim_suffix|>', '<|fim_middle|>'),
  starcoder2: asWritten('<fim_prefix>', '<fim_suffix>', '<fim_middle>'),
  codellama: { '▁<PRE>': '<PRE> ', '▁<SUF>': ' <SUF>', '▁<MID>': ' <MID>' },
  'deepseek-coder': asWritten('<｜fim▁begin｜>', '<｜fim▁hole｜>', '<｜fim▁end｜>'),
  codestral: asWritten('[SUFFIX]', '[PREFIX]'),
};

function asWritten(...tokens: string[]): Record<string, string> {
  return Object.fromEntries(tokens.map((token) => [token, token]));
}

/** The text of a prompt, from a tokenizer that knows the control tokens of one family only. */
function fimText(family: Referenced, prefix: string, suffix: string): string | undefined {
  const tokens = Object.keys(CONTROLS[family]);
  const texts = [prefix, suffix, ...Object.values(CONTROLS[family])];
  const idOf = (token: string) => (tokens.includes(token) ? 2 + tokens.indexOf(token) : undefined);
  const fim = Fim.of({ idOf } as Tokenizer);
  expect(fim?.family).toBe(family);
  return fim
    ?.build([0], [1])
    .map((id) => texts[id])
    .join('');
}

describe('prompts', () => {
  it.each(reference.cases)('$family: $prompt', async ({ family, prefix, suffix, prompt, tokenizer: kind, ids }) => {
    expect(fimText(family, prefix, suffix)).toBe(prompt);
    if (kind === undefined) return;
    const { fim, tokenizer } = await ModelText.load(tokenizerDir(kind));
    expect(fim?.family).toBe(family);
    expect(fim?.build(tokenizer.encode(prefix), fim.encodeSuffix(suffix))).toEqual(ids);
  });

  it.each(reference.repository_level)(
    '$family with other files of the repository',
    async ({ repo, files, current_path, prefix, suffix, prompt, ids }) => {
      const { fim, tokenizer } = await ModelText.load(tokenizerDir('qwen2'));
      const head = fim?.repositoryHead(
        repo,
        files.map(({ path, content }) => ({ path, text: content })),
        current_path,
      );
      const built = fim?.build(tokenizer.encode(prefix), fim.encodeSuffix(suffix), head);
      expect(tokenizer.decode(built ?? [])).toBe(prompt);
      if (ids !== undefined) expect(built).toEqual(ids);
    },
  );

  it.each([
    ['qwen2', 'qwen2.5-coder'],
    ['starcoder2', 'starcoder2'],
    ['deepseek', 'deepseek-coder'],
    ['codellama', 'codellama'],
  ] as const)('stops of %s', async (kind, family) => {
    const { fim, tokenizer } = await ModelText.load(tokenizerDir(kind));
    expect(fim?.stopTokenIds).toEqual(reference.families[family].stop.flatMap((token) => tokenizer.idOf(token) ?? []));
    expect(
      fim?.build([], [])[0] === tokenizer.idOf('<s>') ||
        fim?.build([], [])[0] === tokenizer.idOf('<｜begin▁of▁sentence｜>'),
    ).toBe(reference.families[family].bos);
  });
});

it('puts the prefix last for a model that was trained so', async () => {
  const { fim, tokenizer } = await ModelText.load(join(root, 'model'));
  expect(fim?.prefixLast).toBe(true);
  expect(tokenizer.decode(fim?.build(tokenizer.encode('a = '), fim.encodeSuffix('\nb')) ?? [])).toBe(
    '<|fim_prefix|><|fim_suffix|>\nb<|fim_middle|>a = ',
  );
});

it('codellama: the suffix begins without a space of its own', async () => {
  const { fim, tokenizer } = await ModelText.load(tokenizerDir('codellama'));
  const ids = fim?.build(tokenizer.encode('x'), fim.encodeSuffix('y')) ?? [];
  expect(tokenizer.decode(ids)).toBe('<s> <PRE> x <SUF>y <MID>');
});

it('is undefined for a tokenizer without such tokens', async () => {
  expect(Fim.of(await Tokenizer.load(tokenizerDir('llama3')))).toBeUndefined();
});

const QWEN = ['<|fim_prefix|>', '<|fim_suffix|>', '<|fim_middle|>'];
const STARCODER = ['<fim_prefix>', '<fim_suffix>', '<fim_middle>', '<fim_pad>'];
/** Published control tokens (special_tokens_map.json) that tell families with the same three tokens apart. */
const STARCODER_DATA = [
  '<filename>',
  '<gh_stars>',
  '<issue_start>',
  '<jupyter_start>',
  '<commit_before>',
  '<reponame>',
];
const MELLUM = [...STARCODER, ...STARCODER_DATA, '<system>', '<assistant>', '<user>', '<think>'];
const SEED = ['<[begin▁of▁sentence]>', '<[end▁of▁sentence]>', '<[fim-prefix]>', '<[fim-suffix]>', '<[fim-middle]>'];
const NOTHING: OwnFim = { order: '', prefix: '', suffix: '', middle: '', file: '' };

/** The prompt text that a tokenizer with these tokens leads to, for the texts P and S and the file a.ts. */
function layout(tokens: readonly string[], own: OwnFim = NOTHING, bos: readonly string[] = []) {
  const found = findFim((token) => tokens.includes(token), own, tokens);
  if (found.layout === undefined) return found;
  const names = [...tokens];
  const idOf = (text: string): number => (names.includes(text) ? names.indexOf(text) : names.push(text) - 1);
  const tokenizer = {
    idOf: (token: string) => (tokens.includes(token) ? idOf(token) : undefined),
    encode: (text: string) => [idOf(text)],
    headIds: bos.map(idOf),
  } as unknown as Tokenizer;
  const fim = new Fim(found.layout, tokenizer, {});
  const shown = (head: readonly number[]): string =>
    fim
      .build([idOf('P')], [idOf('S')], head)
      .map((id) => names[id])
      .join('');
  const others = fim.repositoryHead('', [{ path: 'b.ts', text: 'B' }], 'a.ts');
  return { name: fim.family, prompt: shown(fim.fileHead('a.ts')), ...(others && { others: shown(others) }) };
}

describe('families with the same three tokens, and new ones', () => {
  const psm = '<fim_prefix>P<fim_suffix>S<fim_middle>';
  const barred = '<|fim_prefix|>P<|fim_suffix|>S<|fim_middle|>';
  it.each([
    ['StarCoder2', [...STARCODER, '<repo_name>', '<file_sep>'], [], { name: 'starcoder2', prompt: psm }],
    ['Granite Code and StarCoder', [...STARCODER, ...STARCODER_DATA], [], { name: 'starcoder2', prompt: psm }],
    [
      'Mellum',
      MELLUM,
      [],
      {
        name: 'mellum',
        prompt: '<filename>a.ts\n<fim_suffix>S<fim_prefix>P<fim_middle>',
        others: '<filename>b.ts\nB\n<filename>a.ts\n<fim_suffix>S<fim_prefix>P<fim_middle>',
      },
    ],
    [
      'Qwen2.5-Coder',
      [...QWEN, '<|repo_name|>', '<|file_sep|>'],
      ['<s>'],
      {
        name: 'qwen2.5-coder',
        prompt: barred,
        others: `<|repo_name|>\n<|file_sep|>b.ts\nB\n<|file_sep|>a.ts\n${barred}`,
      },
    ],
    ['Granite 4', [...QWEN, '<|filename|>', '<|reponame|>'], [], { name: 'granite4', prompt: barred }],
    ['CodeGemma', [...QWEN, '<|file_separator|>'], ['<bos>'], { name: 'codegemma', prompt: `<bos>${barred}` }],
    [
      'Seed-Coder',
      SEED,
      ['<[begin▁of▁sentence]>'],
      {
        name: 'seed-coder',
        prompt: '<[begin▁of▁sentence]><[fim-suffix]>S<[fim-prefix]>P<[fim-middle]>',
      },
    ],
  ])('%s', (_, tokens, bos, expected) => {
    expect(layout(tokens, NOTHING, bos)).toEqual(expected);
  });

  it('tokens of two families with different orders are not guessed', () => {
    expect(layout([...STARCODER, '<filename>', '<reponame>'])).toEqual({
      fault: expect.stringMatching(
        /^its .* \(<fim_prefix>, <fim_suffix>, <fim_middle>\) belong to no known family.*completion\.fim/,
      ),
    });
    expect(layout(['<fim-prefix>', '<fim-suffix>', '<fim-middle>', '<s>'])).toEqual({
      fault: expect.stringContaining('(<fim-prefix>, <fim-suffix>, <fim-middle>)'),
    });
    expect(layout(['<s>', '<table>', 'prefix', '[CLS]'])).toEqual({ fault: null });
  });
});

describe('kvasir.json', () => {
  const santa = { prefix: '<fim-prefix>', suffix: '<fim-suffix>', middle: '<fim-middle>' };
  const tokens = [...Object.values(santa), '<file>'];
  it.each<[string, readonly string[], Partial<OwnFim>, string]>([
    ['all of it', tokens, { ...santa, order: 'prefix-suffix-middle' }, '<fim-prefix>P<fim-suffix>S<fim-middle>'],
    [
      'with a mark for the file',
      tokens,
      { ...santa, order: 'suffix-prefix-middle', file: '<file>' },
      '<file>a.ts\n<fim-suffix>S<fim-prefix>P<fim-middle>',
    ],
    [
      'without a token for the middle',
      tokens,
      { ...santa, order: 'suffix-prefix-middle', middle: '' },
      '<fim-suffix>S<fim-prefix>P',
    ],
    [
      'the order of tokens that two families have',
      [...STARCODER, '<filename>'],
      { order: 'suffix-prefix-middle' },
      '<fim_suffix>S<fim_prefix>P<fim_middle>',
    ],
    [
      'Mellum without its file mark',
      MELLUM,
      { order: 'suffix-prefix-middle' },
      '<fim_suffix>S<fim_prefix>P<fim_middle>',
    ],
  ])('gives %s', (_, known, own, prompt) => {
    expect(layout(known, { ...NOTHING, ...own })).toMatchObject({ name: 'own', prompt });
  });

  it.each<[Partial<OwnFim>, string]>([
    [santa, 'completion.fim.order is missing; known are "prefix-suffix-middle", "suffix-prefix-middle"'],
    [{ order: 'prefix-suffix-middle', suffix: '<fim-suffix>' }, 'completion.fim.prefix is missing'],
    [{ ...santa, order: 'prefix-suffix-middle', middle: '' }, 'completion.fim.middle is missing'],
    [
      { ...santa, order: 'suffix-prefix-middle', suffix: '<x>' },
      'completion.fim.suffix is "<x>", which is not a token of tokenizer.json',
    ],
    [{ ...santa, order: 'suffix-prefix-middle', file: '<x>' }, 'completion.fim.file is "<x>", which is not a token'],
  ])('with %j is refused by field', (own, message) => {
    expect(() => layout(tokens, { ...NOTHING, ...own })).toThrow(`kvasir.json: ${message}`);
  });
});
