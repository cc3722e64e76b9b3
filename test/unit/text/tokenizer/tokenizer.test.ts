/** The tokenizer against the references of five tokenizer families, and incremental encoding against encoding the whole. */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { IncrementalEncoding } from '../../../../engine/text/tokenizer/incrementalEncoding.ts';
import { Tokenizer } from '../../../../engine/text/tokenizer/tokenizer.ts';

const root = join(import.meta.dirname, '../../../..');
const fixtures = join(root, 'test/fixtures/tokenizers');
const kinds = readdirSync(fixtures);

interface Reference {
  vocab_size_with_added: number;
  strings: {
    text: string;
    ids: number[];
    ids_no_added_tokens?: number[];
    decoded: string;
    decoded_skip_special: string;
    stream?: string[];
  }[];
  utf16_inputs?: { code_units: number[]; ids: number[] }[];
  raw_id_sequences?: { ids: number[]; decoded: string; stream: string[] }[];
}

function stream(tokenizer: Tokenizer, ids: number[]): string[] {
  const detokenizer = tokenizer.createDetokenizer();
  return [...ids.map((id) => detokenizer.push(id)), detokenizer.flush()];
}

describe.each(kinds)('tokenizer %s', (kind) => {
  const dir = join(fixtures, kind);
  const reference = JSON.parse(readFileSync(join(dir, 'tokenizer_reference.json'), 'utf8')) as Reference;

  it('agrees with every reference', async () => {
    const tokenizer = await Tokenizer.load(dir);
    expect(tokenizer.vocabSize).toBe(reference.vocab_size_with_added);
    expect(tokenizer.hasLineBoundaries).toBe(true);
    for (const { text, ids, ids_no_added_tokens, decoded, decoded_skip_special, stream: pieces } of reference.strings) {
      expect(tokenizer.encodeTemplate(text), text).toEqual(ids);
      expect(tokenizer.decode(ids), text).toBe(decoded);
      expect(tokenizer.decode(ids, { skipSpecial: true }), text).toBe(decoded_skip_special);
      if (pieces !== undefined) expect(stream(tokenizer, ids), text).toEqual(pieces);
      const plain = tokenizer.encode(text);
      if (ids_no_added_tokens !== undefined) expect(plain, text).toEqual(ids_no_added_tokens);
      expect(plain.filter((id) => tokenizer.addedTokens.has(id) && tokenizer.decode([id]) !== '')).toEqual([]);
      const offsets = tokenizer.encodeWithOffsets(text);
      expect(offsets.ids).toEqual(plain);
      expect(offsets.ends.at(-1) ?? 0, text).toBe(text.length);
      expect([...offsets.ends].sort((a, b) => a - b)).toEqual(offsets.ends);
    }
  });

  it('reads lone surrogates and broken byte sequences as a decoder does', async () => {
    const tokenizer = await Tokenizer.load(dir);
    for (const { code_units, ids } of reference.utf16_inputs ?? [])
      expect(tokenizer.encode(String.fromCharCode(...code_units))).toEqual(ids);
    for (const { ids, decoded, stream: pieces } of reference.raw_id_sequences ?? []) {
      expect(tokenizer.decode(ids)).toBe(decoded);
      expect(stream(tokenizer, ids)).toEqual(pieces);
    }
  });
});

it('splits numeric characters outside ASCII (the library splits only 0-9)', async () => {
  const tokenizer = await Tokenizer.load(join(fixtures, 'starcoder2'));
  for (const digits of ['٣٤', '１２', '½¼', 'Ⅷ']) {
    const [first = '', second = ''] = digits;
    expect(tokenizer.encode(digits)).toEqual([...tokenizer.encode(first), ...tokenizer.encode(second)]);
  }
});

it('decodes nothing to nothing', async () => {
  const tokenizer = await Tokenizer.load(join(root, 'model'));
  expect(tokenizer.decode([])).toBe('');
  expect(tokenizer.decode([tokenizer.vocabSize + 5])).toBe('');
  expect(tokenizer.encode('')).toEqual([]);
});

it('keeps a control token that a user typed as text', async () => {
  const tokenizer = await Tokenizer.load(join(root, 'model'));
  const text = 'const end = "<|im_end|><|file_sep|>";';
  const ids = tokenizer.encode(text);
  expect(ids.some((id) => tokenizer.addedTokens.has(id))).toBe(false);
  expect(tokenizer.decode(ids)).toBe(text);
});

it.each([
  ['{', /tokenizer\.json is not valid JSON/],
  ['{"model":{}}', /tokenizer\.json: model\.vocab/],
  ['{"model":{"type":"Unigram","vocab":[]}}', /tokenizer\.json: model\.type is "Unigram"/],
])('refuses the broken file %s', async (content, message) => {
  const { mkdtempSync, writeFileSync, rmSync } = await import('node:fs');
  const { tmpdir } = await import('node:os');
  const dir = mkdtempSync(join(tmpdir(), 'kvasir-tokenizer-'));
  try {
    writeFileSync(join(dir, 'tokenizer.json'), content);
    await expect(Tokenizer.load(dir)).rejects.toThrow(message);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

/** Text that looks like code, with what makes tokenizers stumble. */
const codeLike = fc
  .array(
    fc.constantFrom(
      '\n',
      '\n',
      '\n\n',
      '\r\n',
      '\n    ',
      '\n\t',
      ' ',
      '    ',
      'function ',
      'value',
      'x',
      'return',
      "'re",
      "'",
      '"',
      ');',
      '{',
      '}',
      '// ',
      '12',
      '٣',
      'é',
      'e\u0301',
      '\u0301',
      '한',
      '你好',
      '🙂',
      '👩‍💻',
      '<|im_end|>',
      '<s>',
      '\ud83d',
      '\0',
      '\u2028',
      '\u00a0',
      'a'.repeat(70),
      'if (a) {\n  b();\n}\n'.repeat(30),
      'foo\nbar\n'.repeat(200),
    ),
    { maxLength: 40 },
  )
  .map((parts) => parts.join(''));

it.each([...kinds.map((kind) => join(fixtures, kind)), join(root, 'model')])(
  'encodes an edited text as the whole text: %s',
  async (dir) => {
    const tokenizer = await Tokenizer.load(dir);
    fc.assert(
      fc.property(
        codeLike,
        fc.array(fc.record({ at: fc.nat(), remove: fc.nat(60), insert: codeLike }), { maxLength: 5 }),
        fc.nat(),
        (start, edits, where) => {
          const incremental = new IncrementalEncoding(tokenizer);
          let text = start;
          for (const edit of [undefined, ...edits]) {
            if (edit !== undefined) {
              const at = edit.at % (text.length + 1);
              text = text.slice(0, at) + edit.insert + text.slice(at + edit.remove);
            }
            incremental.update(text);
            const whole = tokenizer.encodeWithOffsets(text);
            expect(incremental.ids).toEqual(whole.ids);
            const offset = where % (text.length + 1);
            expect(incremental.numTokensBefore(offset)).toBe(whole.ends.filter((end) => end <= offset).length);
          }
        },
      ),
      { numRuns: 60, seed: 7 },
    );
  },
);

it('re-encodes little of a large file for a keystroke', async () => {
  const tokenizer = await Tokenizer.load(join(root, 'model'));
  const text = 'export function add(a: number, b: number): number {\n  return a + b;\n}\n\n'.repeat(15_000);
  const incremental = new IncrementalEncoding(tokenizer);
  incremental.update(text);
  const before = incremental.numEncodedCharacters;
  const at = text.length >> 1;
  incremental.update(`${text.slice(0, at)}x${text.slice(at)}`);
  expect(incremental.numEncodedCharacters - before).toBeLessThan(5000);
});
