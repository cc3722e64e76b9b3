/**
 * Suite `typing`: measures the value of each policy of ghost text (withoutPolicies.ts) during typing. Types the
 * passages of the recorded session at their recorded times into the real completion provider, between a fake editor and
 * the real engine in a thread. Each pass has its own engine. Variants take turns, each second time in reverse order.
 */
import { registerHooks } from 'node:module';
import path from 'node:path';
import { readSession } from '../../support/session/session.ts';
import type { Policy } from './withoutPolicies.ts';
import { type Pass, type VariantFigures, variantFigures, variantTable } from './typingFigures.ts';

/** Policies that each variant switches off. */
const VARIANTS = {
  all: [],
  'no joining': ['joinRunning'],
  'no carrying over': ['carryOver'],
  neither: ['joinRunning', 'carryOver'],
  'no ahead': ['ahead'],
  'no warmup': ['warmup'],
} as const satisfies Record<string, readonly Policy[]>;
export type Variant = keyof typeof VARIANTS;

export interface TypingOptions {
  variants: readonly Variant[];
  rounds: number;
  /** Speed of typing relative to the recording. */
  speed: number;
  /** 0 lets the engine choose. */
  threads: number;
  /** Whether the chat answers during the whole pass. */
  chat: boolean;
}

/** Values of the command line. */
export interface TypingArguments {
  only?: string;
  rounds?: string;
  speed?: string;
  threads?: string;
  chat?: boolean;
}

export interface TypingBench extends TypingOptions {
  figures: VariantFigures[];
  passes: Pass[];
}

export async function typingSuite(given: TypingArguments): Promise<{ result: TypingBench; report: string }> {
  const options = typingOptions(given);
  const fake = new URL('./fakeVscode.ts', import.meta.url).href;
  const hooks = registerHooks({
    resolve: (specifier, context, next) =>
      specifier === 'vscode' ? { url: fake, shortCircuit: true } : next(specifier, context),
  });
  // This import loads the editor's API, so it must come after the hook.
  const { typeSession } = await import('./typist.ts');
  const session = readSession();
  const passes: Pass[] = [];
  for (let round = 0; round < options.rounds; round++) {
    for (const variant of round % 2 ? [...options.variants].reverse() : options.variants) {
      const pass = await typeSession(session, {
        ...options,
        off: VARIANTS[variant],
        cacheDir: path.resolve('.cache/bench/imported'),
      });
      passes.push({ variant, ...pass });
      console.error(`${variant}, round ${round + 1}: ${pass.requests.asked} requests, ${pass.seconds.toFixed(0)} s`);
    }
  }
  hooks.deregister();
  const result: TypingBench = { ...options, figures: variantFigures(passes), passes };
  return { result, report: report(result) };
}

/** @throws Error with one sentence that names the wrong value. */
export function typingOptions({
  only,
  rounds = '2',
  speed = '1',
  threads = '0',
  chat = false,
}: TypingArguments): TypingOptions {
  const names = Object.keys(VARIANTS) as Variant[];
  const variants = only?.split(',').map((name) => name as Variant) ?? names;
  for (const name of variants)
    if (!names.includes(name)) throw new Error(`--only ${name}: it must be one of ${names.join(', ')}`);
  for (const [name, value] of Object.entries({ rounds, threads }))
    if (!/^\d+$/.test(value)) throw new Error(`--${name} ${value}: it must be a whole number`);
  if (!(Number(rounds) > 0)) throw new Error(`--rounds ${rounds}: it must be above 0`);
  if (!(Number(speed) > 0 && Number(speed) < Number.POSITIVE_INFINITY))
    throw new Error(`--speed ${speed}: it must be a number above 0`);
  return { variants, rounds: Number(rounds), speed: Number(speed), threads: Number(threads), chat };
}

function report({ figures, rounds, speed, threads, chat }: TypingBench): string {
  const beside = chat ? ', while the chat is answering' : '';
  return `Ghost text while somebody types, at ${speed} times the recorded speed${beside}; built-in model, ${threads || 'the usual number of'} threads; passes of each: ${rounds}\n\n${variantTable(figures)}`;
}
