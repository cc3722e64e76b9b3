/** Malformed model folders of all kinds, made with a seed: each is refused in one line, and nothing else happens. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { inspect } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseBoundedJson } from '../../../../engine/model/load/boundedJson.ts';
import { parseHeader } from '../../../../engine/model/load/safetensors.ts';
import { RequestError } from '../../../../engine/protocol/errors.ts';
import { inspectFolder } from '../../../../engine/server/inspection.ts';
import { ModelText } from '../../../../engine/text/format/modelText.ts';

const GOOD = path.join(import.meta.dirname, '../../../fixtures/models/qwen2-untied-bf16');
const FILES = ['config.json', 'generation_config.json', 'tokenizer.json', 'tokenizer_config.json', 'model.safetensors'];
/** Enough for each fault to take each of its kinds and values. */
const NUM_FOLDERS = 130;

type Json = Record<string, unknown>;
type Draw = <T>(values: readonly T[]) => T;
/** Changes files. Returns what it did, for the title. */
type Fault = (dir: string, draw: Draw) => string;

let root: string;
beforeAll(() => {
  root = mkdtempSync(path.join(tmpdir(), 'kvasir-malformed-'));
});
afterAll(() => rmSync(root, { recursive: true }));

function edit(dir: string, file: string, change: (json: Json) => void): void {
  const json = JSON.parse(readFileSync(path.join(dir, file), 'utf8')) as Json;
  change(json);
  // 1e309 is how JSON writes what is read as infinity.
  writeFileSync(path.join(dir, file), JSON.stringify(json).replaceAll('"@infinity"', '1e309'));
}

const write = (dir: string, file: string, text: string | Uint8Array): void => writeFileSync(path.join(dir, file), text);

/** No integer that could be a size. */
const NO_SIZES = [-1, 0, 1.5, 1e9, 2 ** 53, 1e308, '@infinity', '96', '', [], {}, [[[]]], true];
const SIZES = [
  'hidden_size',
  'intermediate_size',
  'num_hidden_layers',
  'num_attention_heads',
  'num_key_value_heads',
  'vocab_size',
];
const NO_NUMBERS = [-1, 0, 1e308, '@infinity', '1e-6', [], {}, false];
const NO_IDS = [-1, 0.5, 2 ** 31, 1e308, '@infinity', '5', null, [], true];
const LFS = `version https://git-lfs.github.com/spec/v1\noid sha256:${'ab'.repeat(32)}\nsize 2397104\n`;
const deep = (levels: number): string => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;

const vocabOf = (json: Json) => (json.model as { vocab: Json }).vocab;
const TOKENIZER: Record<string, (json: Json, draw: Draw) => void> = {
  'a wrong id': (json, draw) => {
    vocabOf(json)[draw(['a', 'b', 'c'])] = draw(NO_IDS);
  },
  'an id beyond the model': (json, draw) => {
    vocabOf(json)[draw(['a', 'b', 'c'])] = 435;
  },
  'a wrong id of an added token': (json, draw) => {
    draw(json.added_tokens as Json[]).id = draw(NO_IDS);
  },
  'an added token without text': (json, draw) => {
    draw(json.added_tokens as Json[]).content = draw([1, null, {}, undefined]);
  },
  'wrong added tokens': (json, draw) => {
    json.added_tokens = draw([{}, 'x', 1, [null], ['x'], [[]]]);
  },
  'a merge of a missing token': (json, draw) => {
    (json.model as { merges: unknown[] }).merges.push(draw([['a', '\nmissing'], 'a \u2028', ['a', 'a a a']]));
  },
  'a wrong merge': (json, draw) => {
    (json.model as { merges: unknown[] }).merges.push(draw<unknown>([null, 5, {}, 'a', 'a b c', ['a'], ['a', 1]]));
  },
  'wrong merges': (json, draw) => {
    (json.model as Json).merges = draw<unknown>([{}, 'a b', 3, true]);
  },
  'no vocabulary': (json, draw) => {
    (json.model as Json).vocab = draw<unknown>([null, [], 'x', 3]);
  },
  'a wrong model': (json, draw) => {
    json.model = draw<unknown>([null, [], 'BPE', 3, { type: 'Unigram', vocab: [['a', 0]] }]);
  },
  'a wrong stage': (json, draw) => {
    json[draw(['normalizer', 'pre_tokenizer', 'decoder', 'post_processor'])] = draw<unknown>([
      3,
      'NFC',
      [],
      { type: 3 },
      { type: 'Sequence' },
    ]);
  },
};

const KVASIR = [
  '{"completion":{"maxTokens":1e308}}',
  '{"completion":{"multilineMaxTokens":-1}}',
  '{"summary":{"maxTokens":"5"}}',
  '{"chat":{"temperature":1e309}}',
  '{"chat":{"repetitionPenalty":0}}',
  '{"completion":{"copy":{"match":1e308}}}',
  '{"completion":{"copy":5}}',
  '{"na\\nme":"x"}',
  '{"name":"two\\nlines"}',
  '{"name":["x"]}',
  `{"note":"${'x'.repeat(20_000)}"}`,
  '{"__proto__":{"x":1}}',
];

const FAULTS: readonly Fault[] = [
  (dir, draw) => {
    const [key, value] = [draw(SIZES), draw(NO_SIZES)];
    edit(dir, 'config.json', (json) => {
      json[key] = value;
    });
    return `${key} ${JSON.stringify(value)}`;
  },
  (dir, draw) => {
    const [key, value] = [draw(['rope_theta', 'rms_norm_eps']), draw(NO_NUMBERS)];
    edit(dir, 'config.json', (json) => {
      json[key] = value;
    });
    return `${key} ${JSON.stringify(value)}`;
  },
  (dir, draw) => {
    const file = draw(['config.json', 'generation_config.json']);
    const value = draw<unknown>([-1, 1.5, 'x', [1, 'x'], [-2], 1e308, '@infinity', {}, [[1]], 1000]);
    rmSync(path.join(dir, 'generation_config.json'));
    write(dir, 'generation_config.json', '{}');
    edit(dir, file, (json) => {
      json.eos_token_id = value;
    });
    return `${file}: eos_token_id ${JSON.stringify(value)}`;
  },
  (dir, draw) => {
    const kind = draw(Object.keys(TOKENIZER));
    edit(dir, 'tokenizer.json', (json) => TOKENIZER[kind]!(json, draw));
    return `tokenizer.json: ${kind}`;
  },
  (dir, draw) => {
    const text = draw(KVASIR);
    write(dir, 'kvasir.json', text);
    return `kvasir.json ${text.slice(0, 60)}`;
  },
  (dir, draw) => {
    const file = draw(['config.json', 'tokenizer.json', 'model.safetensors']);
    rmSync(path.join(dir, file));
    return `without ${file}`;
  },
  (dir, draw) => {
    const file = draw(FILES);
    const bytes = readFileSync(path.join(dir, file));
    const length = draw([0, 1, 7, 8, 9, bytes.length >> 1, bytes.length - 2]);
    write(dir, file, bytes.subarray(0, length));
    return `${file} cut after ${length} bytes`;
  },
  (dir, draw) => {
    const file = draw([...FILES.slice(0, 4), 'kvasir.json']);
    const text = draw(['[]', '"x"', 'null', '{"a":NaN}', '<!DOCTYPE html>\n<p>', LFS, deep(65), deep(200_000), '{,}']);
    write(dir, file, text);
    return `${file} with ${JSON.stringify(text.slice(0, 20))}`;
  },
  (dir, draw) => {
    const header = draw([
      '[]',
      'x',
      '{"a":1}',
      '{"a":{"dtype":"F32","shape":[1e308],"data_offsets":[0,4]}}',
      deep(100),
    ]);
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(draw([BigInt(header.length), 2n ** 60n, 2n ** 64n - 1n, 0n]));
    write(dir, 'model.safetensors', draw([LFS, Buffer.concat([length, Buffer.from(header)])]));
    return `a header ${header.slice(0, 30)}`;
  },
  (dir, draw) => {
    const name = draw(['a\nb.safetensors', '../x\r\n', '\u2028', `${'x\n'.repeat(300)}`]);
    rmSync(path.join(dir, 'model.safetensors'));
    write(
      dir,
      'model.safetensors.index.json',
      JSON.stringify({ weight_map: draw<unknown>([{ 'x\ny': name }, name, [name]]) }),
    );
    return `an index with ${JSON.stringify(name.slice(0, 20))}`;
  },
];

/** How often values have been drawn from, by themselves. They are taken in turn, so that each is. */
const draws = new Map<string, number>();
const draw: Draw = (values) => {
  const key = inspect(values);
  const count = draws.get(key) ?? 0;
  draws.set(key, count + 1);
  return values[count % values.length]!;
};

function goodFolder(name: string): string {
  const dir = path.join(root, draw(['plain', 'two\nlines', 'tab\tand \u2028', "quo'te"]), name);
  mkdirSync(dir, { recursive: true });
  for (const file of FILES) cpSync(path.join(GOOD, file), path.join(dir, file));
  return dir;
}

async function expectRefusal(dir: string, what: string): Promise<string> {
  const refusal = await inspectFolder(dir).then(
    () => null,
    (error: unknown) => error,
  );
  expect(refusal, what).toBeInstanceOf(RequestError);
  const { message, code } = refusal as RequestError;
  expect(['modelInvalid', 'modelUnsupported'], what).toContain(code);
  // Also not the words of a failed access in our own code.
  expect(message, what).not.toMatch(
    /[\p{Cc}\u2028\u2029]|undefined|is not a function|Cannot (?:read|destructure)|\[object/u,
  );
  expect(message.length, what).toBeLessThan(700);
  // The text side reads the same files by itself, beside the import.
  await ModelText.load(dir).catch((error: unknown) => expect(error, what).toBeInstanceOf(RequestError));
  rmSync(dir, { recursive: true });
  return message;
}

test.each(Array.from({ length: NUM_FOLDERS }, (_, i) => i))('folder %i', async (i) => {
  const dir = goodFolder(String(i));
  await expectRefusal(dir, FAULTS[i % FAULTS.length]!(dir, draw));
});

test.each(SIZES)('config.json: any wrong %s is refused by name', async (key) => {
  for (const value of NO_SIZES) {
    const dir = goodFolder(key);
    edit(dir, 'config.json', (json) => {
      json[key] = value;
    });
    expect(await expectRefusal(dir, JSON.stringify(value))).toContain(key);
  }
});

test.each(['a wrong id', 'a wrong id of an added token', 'a merge of a missing token', 'a wrong merge'])(
  'tokenizer.json: %s is refused, whatever it is',
  async (kind) => {
    for (let i = 0; i < NO_IDS.length; i++) {
      const dir = goodFolder(`${kind} ${i}`);
      edit(dir, 'tokenizer.json', (json) => TOKENIZER[kind]!(json, draw));
      expect(await expectRefusal(dir, kind)).toContain('tokenizer.json');
    }
  },
);

test('the folder that they were made from is accepted', async () => {
  expect((await inspectFolder(GOOD)).canComplete).toBe(true);
});

test('a header with too many tensors is refused', () => {
  const header = (tensors: number): Uint8Array =>
    Buffer.from(
      JSON.stringify(
        Object.fromEntries(
          Array.from({ length: tensors }, (_, i) => [`t${i}`, { dtype: 'F32', shape: [0], data_offsets: [0, 0] }]),
        ),
      ),
    );
  const read = (bytes: Uint8Array) => parseHeader(bytes, 'm', 8 + bytes.length);
  expect(read(header(1000)).size).toBe(1000);
  expect(() => read(header(65_537))).toThrow('m: the header names 65537 tensors; at most 65536 are supported.');
});

test('JSON is bounded before it is parsed, and strings do not count', () => {
  expect(() => parseBoundedJson('['.repeat(65))).toThrow('is nested more than 64 levels deep');
  expect(() => parseBoundedJson(`[${'1,'.repeat(4_000_000)}1]`)).toThrow('has more than 4000000 values');
  const texts = ['[[[', '"\\', '\\\\"{{{', '{'.repeat(100), '"'];
  expect(parseBoundedJson(JSON.stringify(texts))).toEqual(texts);
  expect(() => parseBoundedJson('["\\"')).toThrow(SyntaxError);
});
