/**
 * What drafts gain and what they cost. A model with random weights writes nothing that anybody would, so its choices are
 * dictated: every step is computed as in use, then the logits are changed so that the next token is that of a given text.
 * What is measured is real but for the text, and the text decides how many drafts are right:
 *
 * - `insert`: code of the recorded session with the lines that its author added; the prompt holds the code before.
 * - `rename`: the same code with a common name changed throughout.
 * - `fresh`: code of another file than the prompt's.
 * - `random`: random tokens; nothing in them has been seen before.
 * - `pairs`: random tokens of twelve: every pair has been seen, with anything after it. No text is worse.
 */
import { Tokenizer } from '../../engine/text/tokenizer.ts';
import { below } from '../engine/workload.ts';
import type { Case, Sample } from './engineCases.ts';
import type { EngineUnderTest } from './engineUnderTest.ts';
import { finalTexts, readSession } from './session.ts';

export interface Dictation {
  name: string;
  prompt: number[];
  answer: number[];
}

const FILE = 'engine/scheduler.ts';
const OTHER_FILE = 'src/engineClient.ts';
const RENAMED = [/\bsequence\b/g, 'request'] as const;
/** Lines before the first change that the answer begins with. */
const LEADING_LINES = 8;
const NUM_PAIRED = 12;

/** Prompts of at most `promptTokens`, answers of `answerTokens`. */
export async function dictations(bench: EngineUnderTest, promptTokens: number, answerTokens: number): Promise<Dictation[]> {
  const tokenizer = await Tokenizer.load('model');
  // The built-in model's ids are below those of every shape but the smallest.
  const encode = (text: string): number[] => tokenizer.encode(text).map((id) => id % bench.model.config.vocabSize);
  const session = readSession();
  const textOf = (file: string): string => session.files.find((one) => one.file === file)!.text;
  const before = textOf(FILE);
  const after = finalTexts(session).get(FILE)!;
  let start = [...before].findIndex((character, i) => character !== after[i]);
  for (let n = 0; n <= LEADING_LINES; n++) start = before.lastIndexOf('\n', start - 1);
  start++;
  const code = encode(before.slice(start)).length;
  const asked = [...encode(before.slice(0, start)), ...encode(before.slice(start)).slice(0, Math.min(code, 2 * answerTokens)), ...encode('\n```\nAnswer with the whole changed code only.\n```ts\n')].slice(-promptTokens);
  const answer = (text: string): number[] => encode(text).slice(0, answerTokens);
  const paired = (count: number): number[] => Array.from({ length: count }, () => below(bench.random, NUM_PAIRED));
  return [
    { name: 'insert', prompt: asked, answer: answer(after.slice(start)) },
    { name: 'rename', prompt: asked, answer: answer(before.slice(start).replaceAll(...RENAMED)) },
    { name: 'fresh', prompt: asked, answer: answer(textOf(OTHER_FILE)) },
    { name: 'random', prompt: bench.tokens(promptTokens), answer: bench.tokens(answerTokens) },
    { name: 'pairs', prompt: paired(promptTokens), answer: paired(answerTokens) },
  ];
}

export function speculationCases(bench: EngineUnderTest, texts: readonly Dictation[]): Case[] {
  return texts.map((text) => {
    let round = 0;
    return { group: 'speculation', key: { text: text.name, context: text.prompt.length, answer: text.answer.length }, measure: () => withAndWithout(bench, text, round++ % 2 === 0) };
  });
}

/** The same answer with and without drafts, in changing order. */
async function withAndWithout(bench: EngineUnderTest, text: Dictation, draftsFirst: boolean): Promise<Sample> {
  const first = await dictated(bench, text, draftsFirst);
  const second = await dictated(bench, text, !draftsFirst);
  const [drafted, plain] = draftsFirst ? [first, second] : [second, first];
  return { plainMs: plain.ms, draftedMs: drafted.ms, gain: plain.ms / drafted.ms, tokensPerStep: drafted.tokensPerStep, draftedTokens: drafted.drafted, acceptedTokens: drafted.accepted };
}

/** `ms`: per token after the first. */
async function dictated(bench: EngineUnderTest, { prompt, answer }: Dictation, speculation: boolean): Promise<{ ms: number; tokensPerStep: number; drafted: number; accepted: number }> {
  bench.renew(prompt.length + answer.length, { speculation: true });
  const watched = bench.add(prompt, answer.length, 'chat', speculation);
  const { tokens: before } = bench.engine.stats();
  const ms = await bench.dictate(prompt.length, answer, async () => {
    await bench.pretend(() => watched.sequence.numGenerated > 0);
    return bench.finish(watched);
  });
  if (watched.sequence.tokenIds.some((id, i) => i >= prompt.length && id !== answer[i - prompt.length])) throw new Error('The answer is not the one that was dictated.');
  const { tokens } = bench.engine.stats();
  const numTokens = answer.length - 1;
  const accepted = tokens.accepted - before.accepted;
  return { ms: ms / numTokens, tokensPerStep: numTokens / (numTokens - accepted), drafted: tokens.drafted - before.drafted, accepted };
}
