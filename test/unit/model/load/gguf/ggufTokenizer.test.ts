/** Tokenizers in GGUF files give the ids of the tokenizer.json that they were made from. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { mergesOf } from '../../../../../engine/model/load/gguf/spmMerges.ts';
import { ModelText } from '../../../../../engine/text/format/modelText.ts';
import { Tokenizer } from '../../../../../engine/text/tokenizer/tokenizer.ts';
import { FIXTURES, MODELS, readJson } from '../../../../support/model/fixtures.ts';
import {
  ARRAY,
  BOOL,
  configEntries,
  type Entry,
  F32,
  ggufBytes,
  TEXT,
  tokenizerEntries,
  U32,
} from '../../../../support/model/ggufFile.ts';

const EMBEDDING = { name: 'token_embd.weight', shape: [500, 8], type: 1, bytes: new Uint8Array(8000) };
const SHAPE = configEntries(path.join(MODELS, 'gguf-llama'));
/** Texts of code and prose. */
const samples = ['samples', 'heldout', 'questions'].flatMap((folder) =>
  readdirSync(path.join(FIXTURES, folder)).map((file) => readFileSync(path.join(FIXTURES, folder, file), 'utf8')),
);

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(path.join(tmpdir(), 'kvasir-gguf-tokenizer-'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

function write(name: string, entries: readonly Entry[]): string {
  const file = path.join(dir, `${name}.gguf`);
  writeFileSync(file, ggufBytes([...SHAPE, ...entries], [EMBEDDING]));
  return file;
}

/** The entries of a tokenizer, without some keys and with others. */
function changed(entries: readonly Entry[], change: Record<string, readonly [number, unknown] | undefined>): Entry[] {
  const kept = entries.filter(([key]) => !(key.replace('tokenizer.ggml.', '') in change));
  const added = Object.entries(change).flatMap(([key, value]): Entry[] =>
    value === undefined ? [] : [[`tokenizer.ggml.${key}`, ...value]],
  );
  return [...kept, ...added];
}

describe.each([
  ['qwen2', 'qwen2'],
  ['llama3', 'llama-bpe'],
  ['deepseek', 'deepseek-coder'],
  ['starcoder2', 'starcoder'],
  ['codellama', undefined],
])('the tokenizer %s in a GGUF file', (kind, pre) => {
  const folder = path.join(FIXTURES, 'tokenizers', kind);
  const { strings } = readJson<{ strings: { text: string; ids: number[]; decoded: string }[] }>(
    folder,
    'tokenizer_reference.json',
  );

  test('gives the ids of the reference, with and without control tokens', async () => {
    const [own, original] = [
      await Tokenizer.load(write(kind, tokenizerEntries(folder, pre))),
      await Tokenizer.load(folder),
    ];
    expect(own.vocabSize).toBe(original.vocabSize);
    expect(own.headIds).toEqual(pre === 'deepseek-coder' ? [] : original.headIds);
    expect(own.hasLineBoundaries).toBe(original.hasLineBoundaries);
    for (const { text, ids, decoded } of strings) {
      expect(own.encodeTemplate(text), text).toEqual(ids);
      expect(own.encode(text), text).toEqual(original.encode(text));
      expect(own.decode(ids), text).toBe(decoded);
    }
    for (const text of samples) expect(own.encode(text)).toEqual(original.encode(text));
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 40 }), (text) => {
        expect(own.encode(text)).toEqual(original.encode(text));
      }),
      { seed: 1, numRuns: 500 },
    );
  });
});

/** Forms of tokenizers with the ids of the reference library (test/fixtures/tokenizer_forms). */
const forms = readJson<{
  texts: string[];
  models: Record<string, { vocab: Record<string, number>; merges: [string, string][] }>;
  forms: { name: string; tokenizer: { model: string }; ids: number[][] }[];
}>(FIXTURES, 'tokenizer_forms', 'forms.json');

test.each([
  ['gpt-4o', 'o200k'],
  ['tekken', 'tekken'],
  ['smaug-bpe', 'ignore_merges'],
  ['dbrx', 'llama3'],
  ['deepseek-r1-qwen', 'qwen2'],
  ['seed-coder', 'seed-coder'],
  ['mellum', 'gpt2'],
  ['gpt-2', 'gpt2'],
  ['mellum2', 'starcoder2'],
])('text is split by the name %s as in a tokenizer.json of the form %s', async (pre, name) => {
  const form = forms.forms.find((each) => each.name === name)!;
  const { vocab, merges } = forms.models[form.tokenizer.model]!;
  const tokens = Object.keys(vocab).sort((a, b) => vocab[a]! - vocab[b]!);
  const own = await Tokenizer.load(
    write(pre, [
      ['tokenizer.ggml.model', TEXT, 'gpt2'],
      ['tokenizer.ggml.pre', TEXT, pre],
      ['tokenizer.ggml.tokens', ARRAY, { type: TEXT, list: tokens }],
      ['tokenizer.ggml.merges', ARRAY, { type: TEXT, list: merges.map((pair) => pair.join(' ')) }],
    ]),
  );
  const original = Tokenizer.fromJson({ ...form.tokenizer, model: forms.models[form.tokenizer.model] });
  for (const [i, text] of forms.texts.entries()) expect(own.encode(text), text).toEqual(form.ids[i]);
  for (const text of samples) expect(own.encode(text)).toEqual(original.encode(text));
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 40 }), (text) => {
      expect(own.encode(text)).toEqual(original.encode(text));
    }),
    { seed: 1, numRuns: 300 },
  );
});

test('the template and the ends of an answer come from the metadata', async () => {
  const file = path.join(MODELS, 'gguf-llama', 'gguf-llama-q8_0.gguf');
  const [own, original] = [await ModelText.load(file), await ModelText.load(path.join(MODELS, 'gguf-llama'))];
  expect(own.manifest.name).toBe('gguf-llama-q8_0');
  expect(own.tokenizer.headIds).toEqual(original.tokenizer.headIds);
  expect(own.bosTokenId).toBe(original.bosTokenId);
  expect(own.endTokenIds).toEqual(original.endTokenIds);
  expect(own.chatStopIds.sort()).toEqual(original.chatStopIds.sort());
  const messages = [{ role: 'user', content: 'What does <|eot_id|> do?' }];
  expect(own.chatTemplate!.encode(messages)).toEqual(original.chatTemplate!.encode(messages));
});

test('fill-in-the-middle prompts are those of the folder', async () => {
  const file = path.join(MODELS, 'gguf-qwen2', 'gguf-qwen2-q8_0.gguf');
  const [own, original] = [await ModelText.load(file), await ModelText.load(path.join(MODELS, 'gguf-qwen2'))];
  expect(own.fim!.family).toBe('qwen2.5-coder');
  expect(own.fim!.build([1, 2], [3])).toEqual(original.fim!.build([1, 2], [3]));
  expect(own.completionStopIds.sort()).toEqual(original.completionStopIds.sort());
});

test('fill-in-the-middle tokens of no known family are those that the metadata name, in the order of llama.cpp', async () => {
  const entries = tokenizerEntries(path.join(FIXTURES, 'tokenizers', 'llama3'), 'llama-bpe');
  const named = changed(entries, {
    fim_pre_token_id: [U32, 449],
    fim_suf_token_id: [U32, 448],
    fim_mid_token_id: [U32, 452],
  });
  const { fim, fimFault } = await ModelText.load(write('fim', named));
  expect(fim!.build([1, 2], [3])).toEqual([446, 449, 1, 2, 448, 3, 452]);
  expect(fimFault).toBeNull();
  expect((await ModelText.load(write('no-fim', entries))).fim).toBeUndefined();
});

describe('of SentencePiece', () => {
  const entries = tokenizerEntries(path.join(FIXTURES, 'tokenizers', 'codellama'), undefined);

  test('a file without a space before texts has none', async () => {
    const own = await Tokenizer.load(write('unspaced', changed(entries, { add_space_prefix: [BOOL, false] })));
    const spaced = await Tokenizer.load(write('spaced', entries));
    expect(own.encode(' return x')).toEqual(spaced.encode('return x'));
    expect(own.decode(own.encode(' return x'))).toBe(' return x');
  });

  test('merges: the highest score first, every way to make a token, no control tokens', () => {
    const tokens = ['<s>', 's>', '<', 'a', 'b', 'ab', 'aba', 'ba'];
    const scores = [0, -1, -2, -3, -4, -5, -7, -6];
    expect(mergesOf(tokens, scores, (id) => id !== 0)).toEqual([
      ['a', 'b'],
      ['b', 'a'],
      ['ab', 'a'],
      ['a', 'ba'],
    ]);
  });

  test('a vocabulary with too many pairs or too long tokens is refused before it takes memory', async () => {
    const words = Array.from({ length: 17 }, (_, length) =>
      Array.from({ length: 2 ** length }, (_, i) => i.toString(2).padStart(length, '0')),
    ).flat();
    const zeros = (tokens: readonly string[]): number[] => tokens.map(() => 0);
    expect(mergesOf(words, zeros(words), () => true)).toBeNull();
    const long = Array.from({ length: 1000 }, (_, i) => `${i}`.padEnd(500, 'x'));
    expect(mergesOf(long, zeros(long), () => true)).toBeNull();
    const fewer = words.slice(0, 2 ** 12);
    expect(mergesOf(fewer, zeros(fewer), () => true)).toHaveLength(
      fewer.reduce((pairs, word) => pairs + Math.max(0, word.length - 1), 0),
    );
    const longest = ['x'.repeat(10_000)];
    const list = changed(entries, {
      tokens: [ARRAY, { type: TEXT, list: longest }],
      scores: [ARRAY, { type: F32, list: [0] }],
      token_type: undefined,
      bos_token_id: undefined,
      eos_token_id: undefined,
    });
    await expect(Tokenizer.load(write('long', list))).rejects.toThrow(
      'long.gguf: tokenizer.ggml.tokens consist of each other in more ways than in any known model: choose another file.',
    );
  });
});

describe('is refused by name:', () => {
  const entries = tokenizerEntries(path.join(FIXTURES, 'tokenizers', 'qwen2'), 'qwen2');
  const spm = tokenizerEntries(path.join(FIXTURES, 'tokenizers', 'codellama'), undefined);
  test.each<[string, Entry[], RegExp]>([
    ['an unknown way to split text', changed(entries, { pre: [TEXT, 'falcon3'] }), /tokenizer\.ggml\.pre is "falcon3"/],
    ['no way to split text', changed(entries, { pre: undefined }), /tokenizer\.ggml\.pre is missing/],
    ['another tokenizer', changed(entries, { model: [TEXT, 'bert'] }), /tokenizer\.ggml\.model is "bert"/],
    ['no tokens', changed(entries, { tokens: undefined }), /tokenizer\.ggml\.tokens is missing/],
    ['no merges', changed(entries, { merges: undefined }), /tokenizer\.ggml\.merges is missing/],
    ['no scores', changed(spm, { scores: undefined }), /tokenizer\.ggml\.scores is missing/],
    ['an id that does not exist', changed(entries, { eos_token_id: [U32, 4000] }), /eos_token_id is 4000/],
    [
      'changed characters',
      changed(spm, { precompiled_charsmap: [ARRAY, { type: 0, list: [1] }] }),
      /precompiled_charsmap/,
    ],
  ])('%s', async (_, changes, message) => {
    await expect(Tokenizer.load(write('refused', changes))).rejects.toThrow(message);
  });
});
