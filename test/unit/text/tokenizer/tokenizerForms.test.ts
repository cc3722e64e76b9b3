/** Tokenizers of many forms have the ids of the reference library, or are refused by name. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { IncrementalEncoding } from '../../../../engine/text/tokenizer/incrementalEncoding.ts';
import { Tokenizer } from '../../../../engine/text/tokenizer/tokenizer.ts';

interface Form {
  name: string;
  tokenizer: { model: string; added_tokens: { content: string; special: boolean }[] };
  ids: number[][];
}

const file = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../../fixtures/tokenizer_forms/forms.json'), 'utf8'),
) as { texts: string[]; flagTexts: string[]; models: Record<string, object>; forms: Form[]; flags: Form[] };

const read = ({ tokenizer }: Form): Tokenizer =>
  Tokenizer.fromJson({ ...tokenizer, model: file.models[tokenizer.model] });

const REFUSED: Record<string, RegExp> = {
  add_prefix_space: /^tokenizer\.json: ByteLevel puts a space before a text/,
  'inline flag': /^tokenizer\.json: .*Invalid group/,
  strip: /^tokenizer\.json: the normalizer Prepend follows another one/,
  'digits, then metaspace first': /^tokenizer\.json: a Metaspace with prepend_scheme "first" follows/,
};

describe('forms', () => {
  it.each(file.forms)('$name', (form) => {
    const refused = REFUSED[form.name];
    if (refused !== undefined) {
      expect(() => read(form)).toThrow(refused);
      return;
    }
    const tokenizer = read(form);
    const got = file.texts.map((text) => [text, tokenizer.encodeTemplate(text)]);
    expect(got).toEqual(file.texts.map((text, i) => [text, form.ids[i]]));
    // Control tokens are the only added tokens that text of a user does not have.
    const controls = form.tokenizer.added_tokens.filter(({ special }) => special).map(({ content }) => content);
    for (const [i, text] of file.texts.entries()) {
      if (controls.some((content) => text.includes(content))) continue;
      const { ids, ends } = tokenizer.encodeWithOffsets(text);
      expect([text, ids]).toEqual([text, form.ids[i]]);
      expect(ends).toEqual([...ends].sort((a, b) => a - b));
    }
  });
});

it('a form is refused without its merges exactly if it is refused with them', () => {
  const refusal = (make: () => unknown): string | undefined => {
    try {
      make();
      return undefined;
    } catch (error) {
      return (error as Error).message;
    }
  };
  for (const form of [...file.forms, ...file.flags]) {
    const json = { ...form.tokenizer, model: file.models[form.tokenizer.model] };
    const fast = refusal(() => Tokenizer.withoutMerges(json as Parameters<typeof Tokenizer.withoutMerges>[0]));
    expect([form.name, fast]).toEqual([form.name, refusal(() => read(form))]);
  }
});

describe('flags of added tokens', () => {
  it.each(file.flags)('$name', (form) => {
    const tokenizer = read(form);
    const got = file.flagTexts.map((text) => [text, tokenizer.encodeTemplate(text)]);
    expect(got).toEqual(file.flagTexts.map((text, i) => [text, form.ids[i]]));
  });
});

// The reference library numbers them itself, after the vocabulary, and ignores the ids of the file.
it.each([
  [[2, 3], undefined],
  [[2, 4], /added_tokens gives "<b>" the id 4, but its place is 3/],
  [[3, 2], /added_tokens gives "<a>" the id 3, but its place is 2/],
  [[2, 2], /added_tokens gives "<b>" the id 2, but its place is 3/],
])('ids of added tokens that the reference would not give are refused: %j', (ids, refusal) => {
  const added = ['<a>', 'x', '<b>'].map((content) => ({ content, special: true }));
  const json = {
    added_tokens: [
      { ...added[0], id: ids[0] },
      { ...added[1], id: 99 },
      { ...added[2], id: ids[1] },
    ],
    decoder: { type: 'ByteLevel' },
    pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false },
    model: { type: 'BPE', vocab: { x: 0, y: 1 }, merges: [] },
  };
  if (refusal) expect(() => Tokenizer.fromJson(json)).toThrow(refusal);
  else expect(Tokenizer.fromJson(json).idOf('<b>')).toBe(3);
});

it('text of a user has added tokens that are text, and no control tokens', () => {
  const form = file.flags.find(({ name }) => name === 'llama3 plain') as Form;
  const tokenizer = read(form);
  const [control, word, spaces] = ['<c>', 'word', '  '].map((content) => tokenizer.idOf(content));
  const ids = tokenizer.encode('<c>word  </c>');
  expect(ids).toContain(word);
  expect(ids).toContain(spaces);
  expect(ids).not.toContain(control);
  expect(tokenizer.decode(ids)).toBe('<c>word  </c>');
});

it('a text behind a control token, and one that goes on, get no space from Metaspace "first"', () => {
  const tokenizer = read(file.forms.find(({ name }) => name === 'metaspace first') as Form);
  const [space, ...rest] = tokenizer.encode('a b');
  expect(tokenizer.decode([space as number])).toBe(' ');
  expect(tokenizer.encode('a b', 'token')).toEqual(rest);
  expect(tokenizer.encode('a b', 'text')).toEqual(rest);
  const always = read(file.forms.find(({ name }) => name === 'metaspace always') as Form);
  expect(always.encode('a b', 'token')).toEqual([space, ...rest]);
  expect(always.encode('a b', 'text')).toEqual(rest);
  expect(always.encodeWithOffsets('a b').ends).toEqual([0, 1, 3]);
});

it('a tokenizer whose control token can come out of other text is refused by name', () => {
  const form = file.flags.find(({ name }) => name === 'qwen2 normalized') as Form;
  const tokenizer = { ...form.tokenizer, normalizer: { type: 'NFKC' } };
  expect(() => read({ ...form, tokenizer })).toThrow(/the normalizer NFKC applies to the control token <c>/);
});

it.each([
  [{ type: 'Metaspace', prepend_scheme: 'first', replacement: '_' }, /a replacement other than/],
  [{ type: 'Metaspace', add_prefix_space: false }, /add_prefix_space false/],
  [{ type: 'Split', pattern: { Regex: 'a' }, behavior: 'Doubled' }, /the behaviour "doubled"/],
  [
    { type: 'Split', pattern: { Regex: '(a)\\1++' }, behavior: 'Isolated' },
    /possessive quantifier and a back reference/,
  ],
  [{ type: 'Split', pattern: { Regex: 'a++' }, behavior: 'Removed' }, /removes matches of a pattern with a possessive/],
])('%j is refused by name', (step, reason) => {
  const form = file.forms.find(({ name }) => name === 'llama3') as Form;
  expect(() => read({ ...form, tokenizer: { ...form.tokenizer, pre_tokenizer: step } as Form['tokenizer'] })).toThrow(
    expect.objectContaining({ code: 'modelUnsupported', message: expect.stringMatching(reason) }),
  );
});

it.each([
  [
    'metaspace first',
    { type: 'Replace', pattern: { String: 'a' }, content: 'bc' },
    /Replace by text of another length/,
  ],
  ['metaspace first', { type: 'Replace', pattern: { Regex: 'a+' }, content: 'b' }, /Replace by text of another length/],
  ['metaspace first', { type: 'Replace', pattern: { String: 'a' }, content: 'b' }, undefined],
  ['metaspace always', { type: 'Replace', pattern: { String: 'a' }, content: 'bc' }, undefined],
  ['metaspace always', { type: 'Precompiled', precompiled_charsmap: '' }, /the normalizer Precompiled/],
])('%s with the normalizer %j', (name, normalizer, reason) => {
  const form = file.forms.find((each) => each.name === name) as Form;
  const load = () => read({ ...form, tokenizer: { ...form.tokenizer, normalizer } as Form['tokenizer'] });
  if (reason) expect(load).toThrow(reason);
  else expect(load).not.toThrow();
});

it('encodes an edited text with spaces as tokens as the whole text', () => {
  for (const name of ['neox spaces', 'codegen tabs', 'deepseek-coder', 'metaspace first', 'metaspace always']) {
    const tokenizer = read(file.forms.find((form) => form.name === name) as Form);
    expect([name, tokenizer.hasLineBoundaries]).toEqual([name, true]);
    const line = (i: number) => `${'\t'.repeat(i % 4)}${' '.repeat(i % 9)}let ü${i} = a[  ${i}];${' '.repeat(i % 3)}\n`;
    const lines = Array.from({ length: 200 }, (_, i) => line(i));
    const incremental = new IncrementalEncoding(tokenizer);
    for (const at of [0, 57, 120, 199]) {
      lines[at] = `${' '.repeat(at % 7)}x\n`;
      incremental.update(lines.join(''));
      expect(incremental.ids).toEqual(tokenizer.encode(lines.join(''), 'token'));
    }
  }
});
