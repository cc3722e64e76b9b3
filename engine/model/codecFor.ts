/** A codec of the store as it is for a model: of one that codes layers differently it has been measured which of them need most. */
import { codecNamed, FORMATS } from '../cache/codecs/registry.ts';
import type { KvCodec } from '../cache/codecs/kvCodec.ts';
import type { RunFormat } from '../cache/codecs/codecFormat.ts';
import { layerNeeds, type NeedsMeasuring } from './layerNeeds.ts';

/** @throws an error that names the known ones. */
export async function codecFor(name: string, measuring: NeedsMeasuring): Promise<KvCodec> {
  const format: RunFormat | undefined = FORMATS.find((each) => each.name === name);
  const needs = format?.finer ? await layerNeeds(format, measuring) : undefined;
  return codecNamed(name, measuring.runner.window.shape, measuring.rope, needs);
}
