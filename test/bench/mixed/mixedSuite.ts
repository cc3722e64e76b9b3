/** Reads the command line of suite `mixed`. */
import { type MixedBench, mixedBench, type MixedBenchOptions, MODELS, SCENES } from './mixedBench.ts';
import { mixedCharts, mixedReport } from './mixedReport.ts';

/** Values of the command line. mixedBench has the defaults. */
export interface MixedArguments {
  /** A name of MODELS. */
  shape?: string;
  /** Comma-separated names of SCENES. */
  only?: string;
  rounds?: string;
  /** Speed relative to the recording: of `live`, and of `rush`. */
  speed?: string;
  rush?: string;
  context?: string;
  threads?: string;
}

export async function mixedSuite(
  given: MixedArguments,
): Promise<{ result: MixedBench; report: string; charts: { [file: string]: string } }> {
  const result = await mixedBench({ ...mixedOptions(given), onProgress: (line) => console.error(line) });
  return { result, report: mixedReport(result), charts: mixedCharts(result) };
}

/** @throws Error with one sentence about an invalid value. */
export function mixedOptions(given: MixedArguments): MixedBenchOptions {
  const options: MixedBenchOptions = {};
  if (given.shape !== undefined) options.model = among('shape', given.shape, MODELS);
  if (given.only !== undefined) options.only = given.only.split(',').map((name) => among('only', name, SCENES));
  if (given.rounds !== undefined) options.rounds = above('rounds', given.rounds, true);
  if (given.speed !== undefined) options.speed = above('speed', given.speed);
  if (given.rush !== undefined) options.rush = above('rush', given.rush);
  if (given.context !== undefined) options.contextTokens = above('context', given.context, true);
  if (given.threads !== undefined) options.threads = above('threads', given.threads, true);
  return options;
}

function among<T extends string>(name: string, value: string, allowed: readonly T[]): T {
  if (!allowed.includes(value as T)) throw new Error(`--${name} ${value}: it must be one of ${allowed.join(', ')}`);
  return value as T;
}

function above(name: string, text: string, whole = false): number {
  const value = text.trim() === '' ? Number.NaN : Number(text);
  if (!(value > 0 && value < Number.POSITIVE_INFINITY) || (whole && !Number.isInteger(value)))
    throw new Error(`--${name} ${text}: it must be a ${whole ? 'whole ' : ''}number above 0`);
  return value;
}
