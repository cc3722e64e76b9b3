/** Fill-in-the-middle prompts of five families against their references. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Fim, type FimFamily } from '../../../../engine/text/format/fim.ts';
import { ModelText } from '../../../../engine/text/format/modelText.ts';
import { Tokenizer } from '../../../../engine/text/tokenizer/tokenizer.ts';

const root = join(import.meta.dirname, '../../../..');
const tokenizerDir = (kind: string): string => join(root, 'test/fixtures/tokenizers', kind);

interface Reference {
  families: Record<FimFamily, { stop: string[]; bos: boolean }>;
  cases: { family: FimFamily; prefix: string; suffix: string; prompt: string; tokenizer?: string; ids?: number[] }[];
  repository_level: {
    family: FimFamily;
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
const CONTROLS: Record<FimFamily, Record<string, string>> = {
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
function fimText(family: FimFamily, prefix: string, suffix: string): string | undefined {
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
