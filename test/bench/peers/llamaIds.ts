/**
 * Suite `gguf`: greedy tokens of the GGUF fixtures in float32, by Kvasir and by llama.cpp. The models are tiny and have
 * random weights, so a token that differs is accepted only if the two likeliest tokens are nearly equal.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { forEachLogits } from '../../../engine/model/calibrate/measurement.ts';
import { FIXTURES, generateTogether, loadRunner } from '../../support/model/fixtures.ts';
import { table } from '../spread.ts';
import { installNode } from './setup.ts';
import { writeWide } from './wideGguf.ts';

const NUM_TOKENS = 24;
const CONTEXT = 64;

/** The used part of node-llama-cpp. */
interface Sequence {
  clearHistory(): Promise<void>;
  evaluate(tokens: number[], options: { temperature: number; yieldEogToken: boolean }): AsyncIterable<number>;
}
interface Llama {
  loadModel(options: { modelPath: string }): Promise<{
    createContext(options: object): Promise<{ getSequence(): Sequence }>;
    dispose(): Promise<void>;
  }>;
}

interface GgufIds {
  name: string;
  types: string[];
  prompts: number;
  /** Prompts with all tokens equal. Null if llama.cpp does not load the file. */
  same: number | null;
  /** Of each other prompt: the first token that differs, and by how much the likeliest logit is above the next one. */
  differences: { at: number; gap: number }[];
}

export async function ggufSuite(): Promise<{ result: { llama: string; models: GgufIds[] }; report: string }> {
  const installed = path.resolve('.cache/bench/peers/node');
  installNode(installed);
  const library = (await import(
    pathToFileURL(path.join(installed, 'node_modules/node-llama-cpp/dist/index.js')).href
  )) as { getLlama(options: object): Promise<Llama>; getModuleVersion(): Promise<string> };
  const llama = await library.getLlama({ build: 'never', gpu: false, logLevel: 'error', maxThreads: 1 });
  const folder = path.resolve('.cache/bench/gguf');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const models: GgufIds[] = [];
  for (const { name, file, reference } of fixtures()) {
    const wide = path.join(folder, `${name}.gguf`);
    const types = [...writeWide(file, wide)];
    const { prompts } = JSON.parse(readFileSync(reference, 'utf8')) as { prompts: { input_ids: number[] }[] };
    const inputs = prompts.map(({ input_ids: ids }) => ids);
    const theirs = await idsOfLlama(llama, wide, inputs);
    const found = theirs ? await compared(wide, folder, inputs, theirs) : { same: null, differences: [] };
    models.push({ name, types, prompts: inputs.length, ...found });
  }
  const version = `node-llama-cpp ${await library.getModuleVersion()}`;
  return { result: { llama: version, models }, report: ggufReport(version, models) };
}

function fixtures(): { name: string; file: string; reference: string }[] {
  const families = path.join(FIXTURES, 'families');
  const models = path.join(FIXTURES, 'models');
  return [
    ...readdirSync(path.join(families, 'gguf'))
      .filter((name) => name.endsWith('.gguf'))
      .map((name) => ({
        name: name.replace('.gguf', ''),
        file: path.join(families, 'gguf', name),
        reference: path.join(families, name.replace('.gguf', ''), 'reference.json'),
      })),
    ...readdirSync(models).flatMap((model) =>
      readdirSync(path.join(models, model))
        .filter((name) => name.endsWith('.gguf'))
        .map((name) => ({
          name: name.replace('.gguf', ''),
          file: path.join(models, model, name),
          reference: path.join(models, model, 'reference/reference.json'),
        })),
    ),
  ];
}

/** Null if llama.cpp does not load the file. */
async function idsOfLlama(llama: Llama, file: string, inputs: readonly number[][]): Promise<number[][] | null> {
  const model = await llama.loadModel({ modelPath: file }).catch(() => null);
  if (!model) return null;
  const context = await model.createContext({
    threads: 1,
    flashAttention: false,
    contextSize: Math.max(CONTEXT, ...inputs.map((input) => input.length + NUM_TOKENS)),
    sequences: 1,
    experimentalKvCacheKeyType: 'F32',
    experimentalKvCacheValueType: 'F32',
  });
  const sequence = context.getSequence();
  const all: number[][] = [];
  for (const input of inputs) {
    await sequence.clearHistory();
    const ids: number[] = [];
    for await (const id of sequence.evaluate(input, { temperature: 0, yieldEogToken: true })) {
      ids.push(id);
      if (ids.length === NUM_TOKENS) break;
    }
    all.push(ids);
  }
  await model.dispose();
  return all;
}

async function compared(
  file: string,
  cacheDir: string,
  inputs: readonly number[][],
  theirs: readonly number[][],
): Promise<Pick<GgufIds, 'same' | 'differences'>> {
  const runner = await loadRunner(file, cacheDir, 'float32');
  const ours = await generateTogether(runner, inputs, NUM_TOKENS, 64, 1);
  const differences: GgufIds['differences'] = [];
  for (const [i, ids] of ours.entries()) {
    const at = ids.findIndex((id, k) => id !== theirs[i]![k]);
    if (at < 0) continue;
    const context = [...inputs[i]!, ...ids.slice(0, at)];
    let gap = 0;
    await forEachLogits(runner, context, (position, row) => {
      if (position !== context.length - 1) return;
      const [first = 0, second = 0] = [...row].sort((a, b) => b - a);
      gap = first - second;
    });
    differences.push({ at, gap });
  }
  await runner.dispose();
  return { same: inputs.length - differences.length, differences };
}

function ggufReport(llama: string, models: readonly GgufIds[]): string {
  const rows = models.map(({ name, types, prompts, same, differences }) => [
    name,
    types.join(', '),
    same === null ? 'not loaded by llama.cpp' : `${same} of ${prompts}`,
    differences.map(({ at, gap }) => `token ${at}, gap ${gap.toPrecision(2)}`).join('; ') || '–',
  ]);
  return `Greedy tokens in float32, ${NUM_TOKENS} of each prompt, compared with ${llama}.\n\n${table(
    ['file', 'its types', 'prompts with the same tokens', 'first difference'],
    rows,
  )}`;
}
