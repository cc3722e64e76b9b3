/** kvasir.json: read, defaulted, or refused by field. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ModelText } from '../../../engine/text/format/modelText.ts';

const root = join(import.meta.dirname, '../../..');
let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'kvasir-manifest-'));
  for (const name of ['tokenizer.json', 'tokenizer_config.json', 'generation_config.json', 'config.json'])
    cpSync(join(root, 'model', name), join(dir, name));
});
afterEach(() => rmSync(dir, { recursive: true }));

describe('a wrong manifest is refused by name', () => {
  it.each([
    ['{', /^kvasir\.json is not valid JSON/],
    ['{"nmae":"x"}', /^kvasir\.json: nmae is not a known field/],
    ['{"name":3}', /^kvasir\.json: name is not a string/],
    ['{"note":3}', /^kvasir\.json: note is neither a string nor an object/],
    ['{"note":{"de":"klein"}}', /^kvasir\.json: note\.de is not a known field; known are en, pt/],
    ['{"completion":3}', /^kvasir\.json: completion is not an object/],
    ['{"completion":{"maxTokens":0}}', /^kvasir\.json: completion\.maxTokens is not a whole number/],
    [
      '{"completion":{"order":"middle"}}',
      /^kvasir\.json: completion\.order is "middle"; known are "suffixFirst", "family"/,
    ],
    [
      '{"completion":{"fim":{"order":"middle"}}}',
      /^kvasir\.json: completion\.fim\.order is "middle"; known are "prefix-suffix-middle", "suffix-prefix-middle"/,
    ],
    [
      '{"completion":{"fim":{"prefix":"<x>"}}}',
      /^kvasir\.json: completion\.fim\.prefix is "<x>", which is not a token/,
    ],
    [
      '{"completion":{"order":"suffixFirst","fim":{"order":"suffix-prefix-middle"}}}',
      /^kvasir\.json: completion\.order is "suffixFirst", but completion\.fim gives another order/,
    ],
    ['{"completion":{"copy":{"share":1.5}}}', /^kvasir\.json: completion\.copy\.share is above 1/],
    ['{"completion":{"confidence":{"words":2}}}', /^kvasir\.json: completion\.confidence\.words is above 1/],
    ['{"completion":{"confidence":{"lines":2}}}', /^kvasir\.json: completion\.confidence\.lines is above 1/],
    ['{"fileBlock":"somewhere"}', /^kvasir\.json: fileBlock is "somewhere"/],
    ['{"chat":{"temperature":-1}}', /^kvasir\.json: chat\.temperature/],
    ['{"chat":{"facts":"yes"}}', /^kvasir\.json: chat\.facts is not a boolean/],
    ['{"chat":{"note":3}}', /^kvasir\.json: chat\.note is neither a string nor an object/],
    ['{"chat":{"note":["Small."]}}', /^kvasir\.json: chat\.note is neither a string nor an object/],
    ['{"chat":{"note":{"en":3}}}', /^kvasir\.json: chat\.note\.en is not a string/],
    ['{"chat":{"note":{"de":"klein"}}}', /^kvasir\.json: chat\.note\.de is not a known field; known are en, pt/],
    ['{"summary":{"symbolQuestion":"What?"}}', /^kvasir\.json: summary\.symbolQuestion/],
    ['{"constructor":1}', /^kvasir\.json: constructor is not a known field/],
  ])('%s', async (json, message) => {
    writeFileSync(join(dir, 'kvasir.json'), json);
    await expect(ModelText.load(dir)).rejects.toThrow(
      expect.objectContaining({ code: 'modelInvalid', message: expect.stringMatching(message) }),
    );
  });

  it('when it promises what the tokenizer cannot do', async () => {
    const llama = join(root, 'test/fixtures/tokenizers/llama3');
    for (const name of ['tokenizer.json', 'tokenizer_config.json']) cpSync(join(llama, name), join(dir, name));
    writeFileSync(join(dir, 'kvasir.json'), '{"can":{"complete":true}}');
    await expect(ModelText.load(dir)).rejects.toThrow(/^kvasir\.json: can\.complete/);
  });
});

it('without a manifest, what the tokenizer offers decides', async () => {
  const { manifest, fim } = await ModelText.load(dir);
  expect(manifest.can).toEqual({ complete: true, chat: true, summarize: true, edit: true });
  expect(manifest.completion).toMatchObject({ layout: 'tail', order: 'family' });
  expect(manifest.chat.facts).toBe(false);
  expect(fim?.prefixLast).toBe(false);
  const plain = await ModelText.load(join(root, 'test/fixtures/tokenizers/starcoder2'));
  expect(plain.manifest.can).toEqual({ complete: true, chat: false, summarize: false, edit: false });
});

it.each([
  ['"Small."', { en: 'Small.', pt: 'Small.' }],
  ['{"en":"Small.","pt":"Pequeno."}', { en: 'Small.', pt: 'Pequeno.' }],
  ['{"en":"Small."}', { en: 'Small.', pt: 'Small.' }],
  ['{"pt":"Pequeno."}', { en: 'Pequeno.', pt: 'Pequeno.' }],
])('a note is one text, or one for each language: %s', async (note, read) => {
  writeFileSync(join(dir, 'kvasir.json'), `{"note":${note}}`);
  const ofModel = (await ModelText.load(dir)).manifest;
  expect([ofModel.note, ofModel.chat.note]).toEqual([read, { en: '', pt: '' }]);
  writeFileSync(join(dir, 'kvasir.json'), `{"chat":{"note":${note}}}`);
  const ofAnswers = (await ModelText.load(dir)).manifest;
  expect([ofAnswers.note, ofAnswers.chat.note]).toEqual([{ en: '', pt: '' }, read]);
});

it.each([
  ['{"line":0.1,"words":0.5}', { line: 0.1, words: 0.5, lines: 0.1 }],
  ['{"line":0.1,"words":0.5,"lines":0}', { line: 0.1, words: 0.5, lines: 0 }],
  ['{"words":0.5}', { line: 0, words: 0.5, lines: 0 }],
])('limits of confidence: %s', async (given, read) => {
  writeFileSync(join(dir, 'kvasir.json'), `{"completion":{"confidence":${given}}}`);
  expect((await ModelText.load(dir)).manifest.completion.confidence).toEqual(read);
});

it('the built-in model has a manifest with a note', async () => {
  const { manifest } = await ModelText.load(join(root, 'model'));
  expect(manifest).toMatchObject({
    name: 'kvasir-starter',
    fileBlock: 'fileSeparator',
    completion: { order: 'suffixFirst', maxTokens: 48 },
    chat: { facts: true },
  });
  expect(manifest.note).toEqual({ en: expect.stringMatching(/small/), pt: expect.stringMatching(/pequeno/) });
  const asked = readFileSync(join(root, 'model/train/questions.py'), 'utf8');
  for (const question of [
    manifest.summary.fileQuestion,
    manifest.summary.symbolQuestion.replace('`{name}`', '{n}'),
    manifest.summary.selectionQuestion,
  ])
    expect(asked).toContain(`"${question}"`);
});
