/** PURE: how far a budget for the KV cache reaches with a model: tokens of one context in the window, tokens of others in the store. */
import { scratchRows } from './batch.ts';
import { codecNamed, type CodecName, FORMATS } from './cache/codecs/registry.ts';
import { kvBytesPerToken } from './cache/kvRows.ts';
import { PAGE_SLOTS } from './cache/window.ts';
import { mostPrefillTokens } from './memory.ts';
import type { ModelConfig } from './model/hfConfig.ts';
import { kvShape } from './model/importModel.ts';
import { RopeTable } from './model/rope.ts';
import { Snapshots } from './snapshots.ts';

export interface CacheReach {
  /** Ceiling of window, store, scratch and snapshot buffers. */
  budgetBytes: number;
  /** Of it, taken while a prompt of the whole context is read: the prefill lane's scratch, and what the disk tier reads and writes with. */
  workBytes: number;
  /** Tokens of one context for which the window has room beside that, whole pages. The model may be made for fewer. */
  windowTokens: number;
  /** The longest context that both the model and the window take. */
  longestContext: number;
  codecs: CodecReach[];
}

interface CodecReach {
  codec: CodecName;
  /** In the store, of a long context, headers and shared scales included. */
  bytesPerToken: number;
  /** Against two bytes a value. */
  compression: number;
  /** Tokens that the store has room for beside the longest context in the window. */
  storedTokens: number;
}

export function cacheReach(config: ModelConfig, budgetBytes: number): CacheReach {
  const shape = kvShape(config, 'int8');
  const { numLayers, kvHeads, headSize } = shape;
  const scratchBytes = kvBytesPerToken(kvShape(config, 'float32'));
  const workBytes = scratchRows(mostPrefillTokens(budgetBytes, scratchBytes, config.contextTokens)) * scratchBytes + Snapshots.bufferBytes(shape);
  const slotBytes = kvBytesPerToken(shape);
  const slots = Math.max(0, Math.floor((budgetBytes - workBytes) / slotBytes));
  const windowTokens = slots - (slots % PAGE_SLOTS);
  const longestContext = Math.min(windowTokens, config.contextTokens);
  const left = Math.max(0, budgetBytes - workBytes - Math.ceil(longestContext / PAGE_SLOTS) * PAGE_SLOTS * slotBytes);
  const rope = new RopeTable(config.rope, headSize);
  const codecs = FORMATS.map(({ name }) => {
    const codec = codecNamed(name, shape, rope);
    const bytesPerToken = codec.bytesPerToken(codec.format.blockTokens);
    return { codec: name, bytesPerToken, compression: (numLayers * kvHeads * headSize * 2 * 2) / bytesPerToken, storedTokens: Math.floor(left / bytesPerToken) };
  });
  return { budgetBytes, workBytes, windowTokens, longestContext, codecs };
}
