/**
 * Larger models that this machine could run, by its memory and by how fast it reads that: a short table of open models
 * with facts alone, and the arithmetic. Estimates, said to be such where they are shown. Pure.
 */

export interface OpenModel {
  /** Hugging Face repository. */
  id: string;
  parameters: number;
  licence: string;
  /** Made for code, fill-in-the-middle included; the others are general. */
  code: boolean;
  /** Of the engine's int8 weight file. */
  weightsBytes: number;
  /** What writing one token reads of it, and what stays in memory: all but the embedding, of which one row is looked up. */
  residentBytes: number;
  kvBytesPerToken: number;
}

/** Sizes are the import's own arithmetic over each model's config.json; a test holds them. Licences that forbid commercial use are left out (Qwen2.5-Coder-3B). */
export const OPEN_MODELS: readonly OpenModel[] = [
  { id: 'Qwen/Qwen2.5-Coder-0.5B-Instruct', parameters: 494_032_768, licence: 'Apache-2.0', code: true, weightsBytes: 770_158_080, residentBytes: 497_281_024, kvBytesPerToken: 6796 },
  { id: 'Qwen/Qwen3-0.6B', parameters: 596_049_920, licence: 'Apache-2.0', code: false, weightsBytes: 910_323_712, residentBytes: 598_551_040, kvBytesPerToken: 59_144 },
  { id: 'Qwen/Qwen2.5-Coder-1.5B-Instruct', parameters: 1_543_714_304, licence: 'Apache-2.0', code: true, weightsBytes: 2_018_885_632, residentBytes: 1_551_530_496, kvBytesPerToken: 15_308 },
  { id: 'Qwen/Qwen3-1.7B', parameters: 1_720_574_976, licence: 'Apache-2.0', code: false, weightsBytes: 2_347_106_304, residentBytes: 1_724_168_704, kvBytesPerToken: 59_144 },
  { id: 'Qwen/Qwen3-4B', parameters: 4_022_468_096, licence: 'Apache-2.0', code: false, weightsBytes: 4_807_610_368, residentBytes: 4_029_090_304, kvBytesPerToken: 76_040 },
  { id: 'Qwen/Qwen2.5-Coder-7B-Instruct', parameters: 7_615_616_512, licence: 'Apache-2.0', code: true, weightsBytes: 8_176_656_384, residentBytes: 7_086_053_376, kvBytesPerToken: 30_092 },
];

/** Tokens of context that a memory need is told for. */
const USUAL_TOKENS = 8192;
/** Of the memory that is free now; the rest is the editor's and everybody else's. */
const USABLE_SHARE = 0.8;
/** Slower than people read. */
const LEAST_TOKENS_PER_SECOND = 8;

export interface Recommendation {
  model: OpenModel;
  /** With the cache of USUAL_TOKENS. */
  memoryBytes: number;
  /** At most; null where the speed of the memory is not known. */
  tokensPerSecond: number | null;
}

/** Weights in memory and the cache of an ordinary file and conversation. */
export function memoryNeeded(model: { residentBytes: number; kvBytesPerToken: number }, contextTokens = USUAL_TOKENS): number {
  return model.residentBytes + Math.min(USUAL_TOKENS, contextTokens) * model.kvBytesPerToken;
}

/** Every token reads the weights once, so no machine writes faster than this. */
function mostTokensPerSecond(residentBytes: number, readBytesPerSecond: number | null): number | null {
  return readBytesPerSecond === null || readBytesPerSecond <= 0 ? null : readBytesPerSecond / residentBytes;
}

/** Those that fit into the memory that is free and are fast enough to be used, the most capable first. `except` are repositories that are here already. */
export function recommend(machine: { availableBytes: number; readBytesPerSecond: number | null }, except: ReadonlySet<string> = new Set()): Recommendation[] {
  return OPEN_MODELS.filter(({ id }) => !except.has(id))
    .map((model) => ({ model, memoryBytes: memoryNeeded(model), tokensPerSecond: mostTokensPerSecond(model.residentBytes, machine.readBytesPerSecond) }))
    .filter(({ memoryBytes, tokensPerSecond }) => memoryBytes <= machine.availableBytes * USABLE_SHARE && (tokensPerSecond === null || tokensPerSecond >= LEAST_TOKENS_PER_SECOND))
    .sort((a, b) => Number(b.model.code) - Number(a.model.code) || b.model.parameters - a.model.parameters);
}

/** What fetches it with Hugging Face's own tool (Python's huggingface_hub), into the cache where `findModels` looks. */
export function fetchCommand(id: string): string {
  return `hf download ${id}`;
}
