/**
 * The codecs by name and id. Sizes and errors: `npm run bench -- kv`. Names and ids never change, because files on disk
 * carry them.
 */
import type { CodecShape, LayerSides, Rotation, RunFormat } from './codecFormat.ts';
import { gradedKeys, gradedValues, KIVI_KEYS, KIVI_VALUES, NVFP4 } from './formats.ts';
import { KvCodec } from './kvCodec.ts';

/** As the store's blocks. */
const BLOCK = 32;
/** Tokens for which per-channel codes are worth their bounds. */
const MIN_PER_CHANNEL = 16;

const byToken = {
  blockTokens: BLOCK,
  leastTokens: 1,
  sinkTokens: 0,
  recentTokens: 0,
  hadamard: false,
  unrotated: false,
};

const graded = (bits: 2 | 3 | 4): LayerSides => ({ keys: gradedKeys(bits), values: gradedValues(bits) });

export const FORMATS = [
  { ...byToken, name: 'int8', id: 1, sides: null },
  { ...byToken, name: 'nvfp4', id: 5, sides: { keys: NVFP4, values: NVFP4 } },
  {
    ...byToken,
    name: 'int4-kivi',
    id: 7,
    sides: { keys: KIVI_KEYS, values: KIVI_VALUES },
    leastTokens: MIN_PER_CHANNEL,
    sinkTokens: 4,
    recentTokens: 128,
  },
  {
    ...byToken,
    name: 'turboquant',
    id: 9,
    sides: graded(2),
    finer: [graded(4), graded(3)],
    blockTokens: 128,
    leastTokens: MIN_PER_CHANNEL,
    sinkTokens: 1,
    hadamard: true,
    unrotated: true,
  },
] as const satisfies readonly RunFormat[];

export type CodecName = (typeof FORMATS)[number]['name'];

/**
 * @param rotation of the model, needed by formats that are `unrotated`. @param needs see KvCodec. @throws an error that
 * names the known ones.
 */
export function codecNamed(
  name: CodecName | (string & {}),
  shape: CodecShape,
  rotation: Rotation | null,
  needs?: readonly number[],
): KvCodec {
  const format = FORMATS.find((format) => format.name === name);
  if (!format) throw new Error(`unknown codec ${name}; known are ${FORMATS.map((each) => each.name).join(', ')}`);
  return new KvCodec(format, shape, rotation, needs);
}
