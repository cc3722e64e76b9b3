/** GGUF files that are cut, lie about their lengths, or hold no model, made from a good one. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { MODELS } from './fixtures.ts';
import {
  ARRAY,
  configEntries,
  type Entry,
  F32,
  folderTensors,
  ggufBytes,
  type GgufTensor,
  I32,
  TEXT,
  text,
  tokenizerEntries,
  U32,
  u32,
  U64,
  u64,
  U8,
} from './ggufFile.ts';

const FOLDER = path.join(MODELS, 'gguf-llama');
const entries = [...configEntries(FOLDER), ...tokenizerEntries(FOLDER, 'llama-bpe', 453)];
const tensors = folderTensors(FOLDER);
/** A file that is read. */
export const good = ggufBytes(entries, tensors);

/** The same in two parts. */
export function inParts(): [Buffer, Buffer] {
  const count: Entry = ['split.count', U32, 2];
  return [ggufBytes([...entries, count], tensors.slice(0, 5)), ggufBytes([count], tensors.slice(5))];
}

const HUGE = [2n ** 31n, 2n ** 40n, 2n ** 60n, 2n ** 64n - 1n];

/** The header with the entries that `change` gives, whose bytes may be anything. */
function raw(change: Buffer, { keys = 1n, count = 0n }: { keys?: bigint; count?: bigint } = {}): Buffer {
  return Buffer.concat([Buffer.from('GGUF'), u32(3), u64(count), u64(keys), change, Buffer.alloc(64)]);
}

function withEntry(key: string, ...value: [type: number, value: unknown] | []): Buffer {
  const others = entries.filter(([name]) => name !== key);
  return ggufBytes(value.length === 0 ? others : [...others, [key, ...value] as Entry], tensors);
}

function withTensor(name: string, change: Partial<GgufTensor> | null): Buffer {
  const index = tensors.findIndex((tensor) => tensor.name === name);
  const changed = change === null ? [] : [{ ...tensors[index]!, ...change }];
  return ggufBytes(entries, [...tensors.slice(0, index), ...changed, ...tensors.slice(index + 1)]);
}

function cuts(): [string, Buffer][] {
  const header = good.indexOf('rope_freqs.weight');
  const places = [0, 1, 3, 4, 7, 8, 15, 16, 23, 24, 31, 32, 40, header, good.length - 1];
  for (let i = 1; i <= 10; i++) places.push(Math.floor((header * i) / 11), header + i * 1000);
  return places.map((at) => [`cut at ${at}`, good.subarray(0, at)]);
}

function lengths(): [string, Buffer][] {
  return HUGE.flatMap((size): [string, Buffer][] => [
    [`${size} tensors`, Buffer.concat([good.subarray(0, 8), u64(size), good.subarray(16)])],
    [`${size} entries`, Buffer.concat([good.subarray(0, 16), u64(size), good.subarray(24)])],
    [`a key of ${size} bytes`, raw(u64(size))],
    [`a text of ${size} bytes`, raw(Buffer.concat([text('a'), u32(TEXT), u64(size)]))],
    [`a list of ${size} numbers`, raw(Buffer.concat([text('a'), u32(ARRAY), u32(U8), u64(size)]))],
    [`a list of ${size} texts`, raw(Buffer.concat([text('tokenizer.ggml.tokens'), u32(ARRAY), u32(TEXT), u64(size)]))],
    [`a list with a text of ${size} bytes`, raw(Buffer.concat([text('a'), u32(ARRAY), u32(TEXT), u64(1), u64(size)]))],
    [
      `a tensor with the dimension ${size}`,
      raw(Buffer.concat([text('t'), u32(1), u64(size), u32(0), u64(0)]), { keys: 0n, count: 1n }),
    ],
    [`a tensor at ${size}`, withTensor('output.weight', { offset: size })],
  ]);
}

function structure(): [string, Buffer][] {
  const nested = Array.from({ length: 10_000 }, () => Buffer.concat([u32(ARRAY), u64(1)]));
  const cell = (dims: number[], type = 0): Buffer =>
    raw(Buffer.concat([text('t'), u32(dims.length), ...dims.map(u64), u32(type), u64(0)]), { keys: 0n, count: 1n });
  const four = cell([2 ** 40, 2 ** 40, 2 ** 40, 2 ** 40]);
  return [
    ['nested lists', raw(Buffer.concat([text('a'), u32(ARRAY), ...nested]))],
    ['a list of an unknown type', raw(Buffer.concat([text('a'), u32(ARRAY), u32(77), u64(1)]))],
    ['a value of an unknown type', raw(Buffer.concat([text('a'), u32(77)]))],
    ['a key twice', ggufBytes([...entries, entries[0]!], tensors)],
    ['a tensor twice', ggufBytes(entries, [...tensors, tensors[0]!])],
    ['tensors that overlap', withTensor('token_embd.weight', { offset: 0n })],
    ['an offset that is not aligned', withTensor('output.weight', { offset: 7n })],
    ['no dimensions', cell([])],
    ['five dimensions', cell([1, 1, 1, 1, 1])],
    ['a product of dimensions beyond 2^160', four],
    ['rows that are no whole blocks', cell([33, 2], 8)],
    ['a vector in blocks', cell([64], 8)],
    ['a type that is not supported', cell([256], 16)],
    ['a type that does not exist', cell([256], 4_000_000_000)],
    ['no entries and no tensors', raw(Buffer.alloc(0), { keys: 0n })],
    ['version 1', Buffer.concat([Buffer.from('GGUF'), u32(1), good.subarray(8)])],
    ['version 4', Buffer.concat([Buffer.from('GGUF'), u32(4), good.subarray(8)])],
    ['big-endian', Buffer.concat([Buffer.from('GGUF'), u32(0x03000000), good.subarray(8)])],
    ['another beginning', Buffer.concat([Buffer.from('ggjt'), good.subarray(4)])],
    ['a web page', Buffer.from('<!DOCTYPE html><title>Not found</title>')],
    [
      'a Git LFS pointer',
      Buffer.from(`version https://git-lfs.github.com/spec/v1\noid sha256:${'ab'.repeat(32)}\nsize 23\n`),
    ],
    ['zeros', Buffer.alloc(100_000)],
    ['a key that is no text', raw(Buffer.concat([u64(3), Buffer.from([0xff, 0xfe, 0xfd]), u32(TEXT), u64(2n ** 50n)]))],
  ];
}

function contents(): [string, Buffer][] {
  const [alignment, arch, tokens] = ['general.alignment', 'general.architecture', 'tokenizer.ggml.tokens'];
  const list = (type: number, values: unknown[]): [number, unknown] => [ARRAY, { type, list: values }];
  const many = Array.from({ length: 600 }, (_, i) => `t${i}`);
  const required = [
    arch,
    'llama.block_count',
    'llama.embedding_length',
    'llama.attention.head_count',
    'llama.context_length',
  ];
  return [
    ...required.map((key): [string, Buffer] => [`no ${key}`, withEntry(key)]),
    ...[0, 3, 2 ** 31].map((value): [string, Buffer] => [`the alignment ${value}`, withEntry(alignment, U32, value)]),
    ['an alignment that is a text', withEntry(alignment, TEXT, 'x'.repeat(100_000))],
    ['another architecture', withEntry(arch, TEXT, `gemma3${'\n'.repeat(1000)}`)],
    ['an architecture that is a number', withEntry(arch, U32, 1)],
    ['experts', withEntry('llama.expert_count', U32, 8)],
    ['no layers', withEntry('llama.block_count', U32, 0)],
    ['4 billion layers', withEntry('llama.block_count', U32, 2 ** 32 - 1)],
    ['2^60 layers', withEntry('llama.block_count', U64, 2n ** 60n)],
    ['a million layers', withEntry('llama.block_count', U32, 1_000_000)],
    ['half a head', withEntry('llama.attention.head_count', F32, 0.5)],
    ['a head size that is a list', withEntry('llama.attention.key_length', ...list(U32, [1, 2]))],
    ['an odd head size', withEntry('llama.attention.key_length', U32, 31)],
    ['an epsilon that is no number', withEntry('llama.attention.layer_norm_rms_epsilon', F32, Number.NaN)],
    ['a negative rope', withEntry('llama.rope.freq_base', F32, -1)],
    ['yarn beside factors', withEntry('llama.rope.scaling.type', TEXT, 'yarn')],
    ['an adapter', withEntry('general.type', TEXT, 'adapter')],
    ['more parts', withEntry('split.count', U32, 3)],
    ['tokens that are numbers', withEntry(tokens, ...list(U32, [1, 2, 3]))],
    ['no tokens', withEntry(tokens, ...list(TEXT, []))],
    ['more tokens than rows', withEntry(tokens, ...list(TEXT, many))],
    ['token types for other tokens', withEntry('tokenizer.ggml.token_type', ...list(I32, [1]))],
    ['merges of tokens that do not exist', withEntry('tokenizer.ggml.merges', ...list(TEXT, ['zz yy']))],
    ['merges without a space', withEntry('tokenizer.ggml.merges', ...list(TEXT, ['zzyy', '', ' ']))],
    ['an end that does not exist', withEntry('tokenizer.ggml.eos_token_id', U32, 2 ** 32 - 1)],
    ['no embedding', withTensor('token_embd.weight', null)],
    ['no query weights', withTensor('blk.1.attn_q.weight', null)],
    ['an embedding of another shape', withTensor('token_embd.weight', { shape: [64, 453] })],
    ['an unknown tensor', withTensor('output.weight', { name: 'blk.0.ffn_gate_inp.weight' })],
    ['a matrix that is a vector', withTensor('blk.0.ffn_up.weight', { shape: [64 * 128] })],
    [
      'rope factors of another number',
      withTensor('rope_freqs.weight', { shape: [8], bytes: new Uint8Array(new Float32Array(8).fill(1).buffer) }),
    ],
    ['rope factors of another type', withTensor('rope_freqs.weight', { type: 1 })],
    ['rope factors that are infinite', withTensor('rope_freqs.weight', { bytes: new Uint8Array(64).fill(255) })],
  ];
}

/** Each must be refused. */
export function hostileFiles(): [string, Buffer][] {
  return [...cuts(), ...lengths(), ...structure(), ...contents()];
}

/** A file of the Python package gguf, for random changes. */
export const quantised = readFileSync(path.join(FOLDER, 'gguf-llama-q4_0.gguf'));
