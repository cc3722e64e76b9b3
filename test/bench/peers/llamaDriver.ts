/**
 * Drives node-llama-cpp: llama.cpp in a Node process, as its users run it. A single prompt uses a context of one
 * sequence and keeps the state of its common prefix with the next prompt, as the library's chat session does. Several
 * prompts use another context with one sequence each, in one batch.
 */
import { pathToFileURL } from 'node:url';
import path from 'node:path';
import { type Driver, type Generated, type GenerateRequest, type Opened, type OpenOptions, serve } from './protocol.ts';

/** The used part of node-llama-cpp. The package is not installed when types are checked. */
interface Llama {
  loadModel(options: { modelPath: string }): Promise<LlamaModel>;
}
interface LlamaModel {
  createContext(options: Record<string, unknown>): Promise<LlamaContext>;
  dispose(): Promise<void>;
}
interface LlamaContext {
  getSequence(): LlamaSequence;
}
interface LlamaSequence {
  readonly nextTokenIndex: number;
  adaptStateToTokens(tokens: number[], allowShift: boolean): Promise<void>;
  evaluate(tokens: number[], options: { temperature: number; yieldEogToken: boolean }): AsyncIterable<number>;
}

class LlamaDriver implements Driver {
  #model: LlamaModel | undefined;
  #alone: LlamaSequence | undefined;
  #together: LlamaSequence[] = [];

  async open({
    model,
    installed,
    threads,
    contextTokens,
    sequences,
    sharedTokens,
    settings,
  }: OpenOptions): Promise<Opened> {
    const folder = path.join(installed, 'node_modules/node-llama-cpp');
    const library = (await import(pathToFileURL(path.join(folder, 'dist/index.js')).href)) as {
      getLlama(options: object): Promise<Llama>;
      getModuleVersion(): Promise<string>;
    };
    const llama = await library.getLlama({ build: 'never', gpu: false, logLevel: 'error', maxThreads: threads });
    this.#model = await llama.loadModel({ modelPath: model });
    const options = { threads, flashAttention: true, batchSize: 512, ...settings };
    this.#alone = (
      await this.#model.createContext({ ...options, contextSize: contextTokens, sequences: 1 })
    ).getSequence();
    const shared = await this.#model.createContext({ ...options, contextSize: sharedTokens, sequences });
    this.#together = Array.from({ length: sequences }, () => shared.getSequence());
    return { name: `node-llama-cpp ${await library.getModuleVersion()}`, settings: { kv: 'f16', ...options } };
  }

  async generate({ prompts, tokens }: GenerateRequest): Promise<Generated[]> {
    const start = performance.now();
    const sequences = prompts.length === 1 ? [this.#alone!] : this.#together;
    return Promise.all(prompts.map((prompt, i) => continued(sequences[i]!, prompt, tokens, start)));
  }

  async close(): Promise<void> {
    await this.#model?.dispose();
  }
}

async function continued(sequence: LlamaSequence, prompt: number[], tokens: number, start: number): Promise<Generated> {
  const generated: Generated = { tokenIds: [], atMs: [] };
  // The last token is always evaluated, because its logits give the first generated token.
  await sequence.adaptStateToTokens(prompt.slice(0, -1), false);
  for await (const tokenId of sequence.evaluate(prompt.slice(sequence.nextTokenIndex), {
    temperature: 0,
    yieldEogToken: true,
  })) {
    generated.tokenIds.push(tokenId);
    generated.atMs.push(performance.now() - start);
    if (generated.tokenIds.length >= tokens) break;
  }
  return generated;
}

await serve(new LlamaDriver());
