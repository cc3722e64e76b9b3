/**
 * What may happen to a context that nobody uses for a while: its rows go through a codec of the store, or tokens of it are
 * dropped. To the evaluation both are the same: rows in the window change, and slots are left that the tokens after it attend to.
 */
import { type CodecName, FORMATS } from '../cache/codecs/registry.ts';
import type { ComputedContext, KvSubject } from './evaluateSubject.ts';

interface TreatedContext {
  /** That the tokens after it attend to, in order; fewer than tokens where some were dropped. */
  readonly slots: Int32Array;
  /** That it takes where it is kept. */
  readonly bytes: number;
}

export interface Treatment {
  readonly name: string;
  /** Bytes per token of a long context, far from either end of it. */
  bytesPerToken(subject: KvSubject): number;
  /** Changes rows of the context, which stands in the window as computed. */
  apply(subject: KvSubject, context: ComputedContext): Promise<TreatedContext>;
}

/** Encodes and decodes a context in blocks, as the store does with a file that is out of use. */
export function codecTreatment(name: CodecName): Treatment {
  return {
    name,
    bytesPerToken(subject) {
      const codec = subject.codec(name);
      return codec.bytesPerToken(codec.format.blockTokens);
    },
    async apply(subject, { slots }) {
      const codec = subject.codec(name);
      const { window } = subject.runner;
      const { blockTokens } = codec.format;
      let bytes = 0;
      for (let from = 0; from < slots.length; from += blockTokens) {
        const block = slots.subarray(from, Math.min(slots.length, from + blockTokens));
        const encoded = codec.encode(window.read(block), { startIndex: from, contextEnd: slots.length });
        window.write(block, codec.decode(encoded).rows, 0, from);
        bytes += encoded.length;
      }
      return { slots, bytes };
    },
  };
}

/** All there are, by name. */
export const TREATMENTS: readonly Treatment[] = FORMATS.map(({ name }) => codecTreatment(name));
