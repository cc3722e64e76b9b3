/** PURE: how far a budget for the KV cache reaches with a model: tokens of one context in the pool, tokens of others in the store. */
import { scratchRows } from '../model/batch.ts';
import { codecNamed, type CodecName, FORMATS } from '../kv/approx/codecs/registry.ts';
import { PoolBudget } from '../kv/poolBudget.ts';
import { type Compression, compressionOf } from '../kv/approx/compression.ts';
import { H2O, KEPT_CODEC, keptBytesPerToken, KVZIP, type PruningName } from '../kv/approx/pruned/keptRows.ts';
import { canSketch } from '../kv/approx/sparse/keySketch.ts';
import { codingBytes, sketchingBytes } from '../kv/approx/compression.ts';
import type { Needs } from '../kv/kvCache.ts';
import { kvBytesPerToken } from '../kv/kvRows.ts';
import { SparseRoom } from '../kv/approx/sparse/sparseRoom.ts';
import { exactBytesPerToken } from '../kv/storedBlocks.ts';
import { codingReserve } from '../kv/approx/toCode.ts';
import { divideBudget } from '../core/memoryDivision.ts';
import type { ModelConfig } from '../model/load/hfConfig.ts';
import { kvShape } from '../model/load/importedModel.ts';
import { scratchBytesPerToken } from '../model/runtime/prefillScratch.ts';
import { RopeTable } from '../model/runtime/rope.ts';
import { Snapshots } from '../kv/disk/snapshots.ts';

/** Of what may be on the disk, where it is switched off: as much as is usual, in bytes. */
const USUAL_DISK = 1e9;

export interface CacheReach {
  /** PoolBudget of pool, store, scratch and snapshot buffers. */
  budgetBytes: number;
  /** Of it, taken while a prompt of the whole context is read: the prefill lane's scratch, what the disk tier reads and writes with, and what sketches are made with. */
  workBytes: number;
  /** Tokens of one context for which the pool has room beside that, whole pages but for very few. The model may be made for fewer. */
  poolTokens: number;
  /** The longest context that both the model and the pool take. */
  longestContext: number;
  /** Tokens of one context that is read in parts, for which there is room with so many bytes on the disk; the model may be made for fewer. 0: none is longer than the pool. */
  sketchedTokens: number;
  diskBytes: number;
  codecs: CodecReach[];
}

interface CodecReach {
  codec: CodecName | PruningName;
  /** In the store, of a long context, headers and shared scales included. */
  bytesPerToken: number;
  /** Against two bytes a value. */
  compression: number;
  /** Tokens that the store has room for beside the longest context in the pool. */
  storedTokens: number;
}

/** @param diskBytes that rows may take on the disk for which there is no room in memory. @param mostBytes that the budget may come to under the same settings: the prefill lane's share goes by it (see divideBudget). */
export function cacheReach(
  config: ModelConfig,
  budgetBytes: number,
  diskBytes: number,
  mostBytes = budgetBytes,
): CacheReach {
  const shape = kvShape(config, 'int8');
  const { numLayers, kvHeads, headSize } = shape;
  const scratchBytes = scratchBytesPerToken(shape);
  const { prefillTokens, rowBytes } = divideBudget(budgetBytes, scratchBytes, config.contextTokens, mostBytes);
  const keeps = Snapshots.fitUnder(budgetBytes, shape);
  const spills = diskBytes > 0 && canSketch(shape);
  const kernelBytes = spills ? sketchingBytes(shape) : 0;
  const besideBytes = (keeps ? Snapshots.bufferBytes(shape) : 0) + kernelBytes;
  const workBytes = scratchRows(prefillTokens) * scratchBytes + besideBytes;
  const slotBytes = kvBytesPerToken(shape);
  const ceilingBeside = (bytes: number, reserve: number): PoolBudget =>
    new PoolBudget({
      maxBytes: Math.max(0, rowBytes - besideBytes - bytes),
      bytesPerSlot: slotBytes,
      softSlots: 2 * config.contextTokens,
      reserve,
    });
  const budget = ceilingBeside(0, 0);
  const poolTokens = budget.maxSlots;
  const longestContext = Math.min(poolTokens, config.contextTokens);
  const rope = new RopeTable(config.rope, headSize);
  const reach = (
    codec: CodecName | PruningName,
    bytesPerToken: number,
    compression: Compression | null,
  ): CodecReach => {
    const moreKernelBytes = Math.max(0, codingBytes(compression) - kernelBytes);
    const left = Math.max(
      0,
      ceilingBeside(moreKernelBytes, codingReserve(compression, shape)).bytesBeside(longestContext),
    );
    return {
      codec,
      bytesPerToken,
      compression: (numLayers * kvHeads * headSize * 2 * 2) / bytesPerToken,
      storedTokens: Math.floor(left / bytesPerToken),
    };
  };
  const kept = codecNamed(KEPT_CODEC, shape, rope);
  const codecs = [
    ...FORMATS.map(({ name }) => {
      const codec = codecNamed(name, shape, rope);
      return reach(name, codec.bytesPerToken(codec.format.blockTokens), compressionOf(name, [codec]));
    }),
    ...([KVZIP, H2O] as const).map((name) => reach(name, keptBytesPerToken(kept, name), compressionOf(KVZIP, [kept]))),
  ];
  const room = new SparseRoom({
    budget,
    shape,
    storeBytesPerToken: exactBytesPerToken(shape),
    diskBytes: spills ? diskBytes : 0,
  });
  room.prefillTokens = prefillTokens;
  return {
    budgetBytes,
    workBytes,
    poolTokens,
    longestContext,
    sketchedTokens: room.capacity > poolTokens ? room.capacity : 0,
    diskBytes,
    codecs,
  };
}

/** What is enough for texts of so many tokens. `diskBytes`: see cacheReach; 0: there is no file for parts. */
export function needsOf(config: ModelConfig, numTokens: number, diskBytes: number): Needs {
  return {
    numTokens,
    whole: leastBudget(config, numTokens, diskBytes, true),
    inParts: leastBudget(config, numTokens, diskBytes || USUAL_DISK),
    spills: diskBytes > 0,
  };
}

/**
 * The least budget, in bytes and about, from which on a context of so many tokens is read: whole, or, unless it is to be `whole`, in parts with so many bytes on the disk.
 * Where the parts are larger from a budget on, one a little smaller may have room for more of them: so it is looked for from above.
 */
export function leastBudget(config: ModelConfig, numTokens: number, diskBytes: number, whole = false): number {
  const reaches = (budgetBytes: number): boolean => {
    const { poolTokens, sketchedTokens } = cacheReach(config, budgetBytes, diskBytes);
    return Math.max(poolTokens, whole ? 0 : sketchedTokens) >= numTokens;
  };
  let high = 1e6;
  while (!reaches(high)) high *= 2;
  // All do that are larger than twice this one.
  for (high *= 2; reaches((63 / 64) * high); ) high *= 63 / 64;
  return Math.ceil(high);
}
