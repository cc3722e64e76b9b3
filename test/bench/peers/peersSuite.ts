/**
 * Reads the command line of suite `peers`. Runs the set-up step or the benchmark, and reads an earlier result to add
 * to.
 */
import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { SHAPES, type ShapeName } from '../shapes.ts';
import { PEERS, type PeerName, places } from './participants.ts';
import { peersBench, type PeersResult, SCENES } from './peersBench.ts';
import { peersReport } from './peersReport.ts';
import { setUp } from './setup.ts';
import type { SceneName } from './workload.ts';

/** Values of the command line, each with its default. */
export interface PeersArguments {
  out?: string;
  /** Comma-separated names of PEERS. Default: all. */
  peers?: string;
  /** A name of SHAPES. Default: qwen2.5-0.5b. */
  shape?: string;
  /** Comma-separated names of SCENES. Default: all. */
  only?: string;
  /** Default: 3. */
  rounds?: string;
  /** Default: the number of processors. */
  threads?: string;
  /** Only installs and exports. */
  setup?: boolean;
  /** Adds to DIR/peers.json. */
  add?: boolean;
  /** JSON with other settings by participant. Default: none. */
  settings?: string;
}

/** @returns null after the set-up step. @throws Error with a message that says what to do. */
export async function peersSuite(given: PeersArguments): Promise<{ result: PeersResult; report: string } | null> {
  const peers = names<PeerName>('peers', given.peers ?? PEERS.join(), PEERS);
  const [shape] = names<ShapeName>('shape', given.shape ?? 'qwen2.5-0.5b', Object.keys(SHAPES) as ShapeName[]) as [
    ShapeName,
  ];
  const at = places('.cache');
  if (given.setup) {
    const failures = await setUp(peers, shape, at);
    if (failures.size)
      throw new Error(`not set up: ${[...failures.keys()].join(', ')}; the others can be run with --peers`);
    return null;
  }
  const options = {
    peers,
    shape,
    at,
    scenes: names<SceneName>('only', given.only ?? SCENES.join(), SCENES),
    rounds: whole('rounds', given.rounds ?? '3'),
    threads: whole('threads', given.threads ?? String(availableParallelism())),
    settings: JSON.parse(given.settings ?? '{}') as Record<string, Record<string, unknown>>,
    earlier: given.add ? earlierResult(given.out) : undefined,
  };
  const result = await peersBench({
    ...options,
    onSample: ({ participant, scene, round, figures }) =>
      console.error(`${round} ${scene} ${participant} ${JSON.stringify(figures)}`),
  });
  return { result, report: peersReport(result) };
}

function names<T extends string>(option: string, given: string, allowed: readonly T[]): T[] {
  const chosen = given.split(',').filter(Boolean);
  const unknown = chosen.find((name) => !(allowed as readonly string[]).includes(name));
  if (unknown !== undefined) throw new Error(`--${option} ${unknown}: it is one of ${allowed.join(', ')}`);
  return chosen as T[];
}

function whole(option: string, given: string): number {
  if (!/^[1-9]\d*$/.test(given)) throw new Error(`--${option} ${given}: it must be a whole number from 1`);
  return Number(given);
}

function earlierResult(out: string | undefined): PeersResult | undefined {
  const file = out && path.join(out, 'peers.json');
  return file && existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as PeersResult) : undefined;
}
