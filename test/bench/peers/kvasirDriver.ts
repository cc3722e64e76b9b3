/** Drives Kvasir as a peer: loads a model into an engine and steps it until every sequence has ended. */
import type { LoadedModel } from '../../../engine/server/loadedModel.ts';
import { loadModel } from '../../../engine/server/loadModel.ts';
import { Sequence } from '../../../engine/sequence/sequence.ts';
import { prefillRanges } from '../../../engine/tasks/preparedRequest.ts';
import { type Driver, type Generated, type GenerateRequest, type Opened, type OpenOptions, serve } from './protocol.ts';

class KvasirDriver implements Driver {
  #model: LoadedModel | undefined;
  #numAdded = 0;

  async open({ model, installed, threads, contextTokens, settings }: OpenOptions): Promise<Opened> {
    this.#model = await loadModel({
      modelDir: model,
      cacheDir: installed,
      precision: settings.precision === 'int4' ? 'int4' : 'int8',
      maxBytes: 0,
      threads,
      contextTokens,
    });
    const { info } = this.#model;
    return { name: 'Kvasir', settings: { precision: info.precision, kv: info.kv, threads: info.threads } };
  }

  async generate({ prompts, tokens }: GenerateRequest): Promise<Generated[]> {
    const { engine } = this.#model!;
    const start = performance.now();
    let failure: Error | undefined;
    const sequences = prompts.map((promptIds) => {
      const generated: Generated = { tokenIds: [], atMs: [] };
      const sequence = new Sequence({
        id: `r${this.#numAdded++}`,
        priority: 'chat',
        promptIds,
        prefill: prefillRanges(0, [[0, promptIds.length]]),
        sampling: { maxTokens: tokens, ignoreEos: true },
        eosIds: [],
        // Random models write no text. They repeat themselves, which is easy to foresee, so drafts are off.
        detokenizer: { push: () => '', flush: () => '' },
        draftSources: null,
        onToken: ({ tokenId }) => {
          generated.tokenIds.push(tokenId);
          generated.atMs.push(performance.now() - start);
        },
        onFinish: () => {},
        onError: (error) => {
          failure = error;
        },
      });
      engine.add(sequence);
      return generated;
    });
    while (engine.hasWork()) await engine.step();
    if (failure) throw failure;
    return sequences;
  }

  async close(): Promise<void> {
    await this.#model?.dispose();
  }
}

await serve(new KvasirDriver());
