/**
 * Drives @huggingface/transformers on onnxruntime-node. Reuses keys and values up to the common prefix. Feeds long
 * prompts in chunks: the logits of a whole prompt of 8k would take 5 GB, and its attention scores another 5 GB.
 * The library has no continuous batching, so several prompts of one length run as one static batch.
 */
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Driver, type Generated, type GenerateRequest, type Opened, type OpenOptions, serve } from './protocol.ts';

/** The used part of transformers.js. The package is not installed when types are checked. */
interface Tensor {
  readonly dims: number[];
  readonly data: Float32Array;
}
type Cache = Record<string, Tensor>;
interface Library {
  env: { version: string; allowRemoteModels: boolean; localModelPath: string };
  Tensor: new (type: string, data: BigInt64Array | Float32Array, dims: number[]) => Tensor;
  DynamicCache: new (entries: Cache) => Cache;
  AutoModelForCausalLM: { from_pretrained(name: string, options: object): Promise<Model> };
}
interface Model {
  generate(options: object): Promise<{ past_key_values: Cache }>;
  dispose(): Promise<unknown>;
}

class TransformersDriver implements Driver {
  #library: Library | undefined;
  #model: Model | undefined;
  #chunk = 0;
  /** Keys and values of `cachedIds`. */
  #cache: Cache | undefined;
  #cachedIds: number[] = [];

  async open({ model, installed, threads, settings }: OpenOptions): Promise<Opened> {
    const library = (await import(
      pathToFileURL(path.join(installed, 'node_modules/@huggingface/transformers/dist/transformers.node.mjs')).href
    )) as Library;
    this.#library = library;
    library.env.allowRemoteModels = false;
    library.env.localModelPath = path.dirname(model);
    const { chunk, dtype, ...sessionOptions } = { chunk: 512, dtype: 'q8', ...settings };
    this.#chunk = chunk;
    this.#model = await library.AutoModelForCausalLM.from_pretrained(path.basename(model), {
      dtype,
      device: 'cpu',
      local_files_only: true,
      session_options: { intraOpNumThreads: threads, interOpNumThreads: 1, ...sessionOptions },
    });
    return {
      name: `@huggingface/transformers ${library.env.version}`,
      settings: { dtype, chunk, threads, ...sessionOptions },
    };
  }

  async generate({ prompts, tokens }: GenerateRequest): Promise<Generated[]> {
    const start = performance.now();
    return prompts.length === 1
      ? [await this.#alone(prompts[0]!, tokens, start)]
      : this.#together(prompts, tokens, start);
  }

  async close(): Promise<void> {
    await this.#model?.dispose();
  }

  async #alone(prompt: number[], tokens: number, start: number): Promise<Generated> {
    const differing = this.#cachedIds.findIndex((id, i) => id !== prompt[i]);
    let known = Math.min(differing === -1 ? this.#cachedIds.length : differing, prompt.length - 1);
    let cache = this.#cache && known > 0 ? this.#cut(this.#cache, known) : undefined;
    if (!cache) known = 0;
    for (; prompt.length - known > this.#chunk; known += this.#chunk)
      cache = (await this.#run([prompt.slice(0, known + this.#chunk)], 1, cache, () => {})).past_key_values;
    const generated: Generated = { tokenIds: [], atMs: [] };
    const result = await this.#run([prompt], tokens, cache, (ids) => {
      generated.tokenIds.push(ids[0]!);
      generated.atMs.push(performance.now() - start);
    });
    this.#cache = result.past_key_values;
    // The last token was chosen but not computed.
    this.#cachedIds = [...prompt, ...generated.tokenIds.slice(0, -1)];
    return generated;
  }

  async #together(prompts: number[][], tokens: number, start: number): Promise<Generated[]> {
    if (prompts.some(({ length }) => length !== prompts[0]!.length))
      throw new Error('prompts of one batch must be of one length');
    const generated = prompts.map((): Generated => ({ tokenIds: [], atMs: [] }));
    const { length } = prompts[0]!;
    let cache: Cache | undefined;
    for (let known = this.#chunk; known < length; known += this.#chunk)
      cache = (
        await this.#run(
          prompts.map((prompt) => prompt.slice(0, known)),
          1,
          cache,
          () => {},
        )
      ).past_key_values;
    await this.#run(prompts, tokens, cache, (ids) => {
      const at = performance.now() - start;
      for (const [i, id] of ids.entries()) {
        generated[i]!.tokenIds.push(id);
        generated[i]!.atMs.push(at);
      }
    });
    return generated;
  }

  #run(
    prompts: number[][],
    tokens: number,
    cache: Cache | undefined,
    onTokens: (ids: number[]) => void,
  ): Promise<{ past_key_values: Cache }> {
    const { Tensor } = this.#library!;
    const shape = [prompts.length, prompts[0]!.length];
    let sawPrompt = false;
    return this.#model!.generate({
      inputs: new Tensor('int64', BigInt64Array.from(prompts.flat(), BigInt), shape),
      attention_mask: new Tensor('int64', new BigInt64Array(prompts.flat().length).fill(1n), shape),
      max_new_tokens: tokens,
      do_sample: false,
      return_dict_in_generate: true,
      ...(cache ? { past_key_values: cache } : {}),
      streamer: {
        put: (value: bigint[][]) => {
          if (sawPrompt) onTokens(value.map(([id]) => Number(id)));
          sawPrompt = true;
        },
        end: () => {},
      },
    });
  }

  /**
   * The first `length` rows of each [1, kvHeads, rows, headSize]. The library's own `generate` reuses earlier keys and
   * values only if the new prompt begins with the whole old text, so the driver cuts the rows after the common prefix.
   */
  #cut(cache: Cache, length: number): Cache {
    const { Tensor, DynamicCache } = this.#library!;
    const entries: Cache = {};
    for (const [name, tensor] of Object.entries(cache)) {
      const [batch, heads, rows, size] = tensor.dims as [number, number, number, number];
      if (rows === length) entries[name] = tensor;
      else {
        const data = new Float32Array(batch * heads * length * size);
        for (let head = 0; head < batch * heads; head++)
          data.set(tensor.data.subarray(head * rows * size, (head * rows + length) * size), head * length * size);
        entries[name] = new Tensor('float32', data, [batch, heads, length, size]);
      }
    }
    return new DynamicCache(entries);
  }
}

await serve(new TransformersDriver());
