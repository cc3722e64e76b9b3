/**
 * Suite `peers`: runs Kvasir and other engines on the same random model, the same prompts and the same number of
 * threads. Participants alternate (A B C, then B C A, ...) and all but the measured one are stopped. setup.ts is a
 * separate step. Several runs may add to one result.
 */
import { mkdirSync, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gigabytesPerSecond, lastLevelCacheBytes, openWasmScan } from '../bandwidth.ts';
import { SHAPES, type ShapeName } from '../shapes.ts';
import { DriverProcess } from './driverProcess.ts';
import { type Participant, participants, type PeerName, type Places } from './participants.ts';
import type { Opened } from './protocol.ts';
import {
  contextTokens,
  type Figures,
  type Outcome,
  playScene,
  type SceneName,
  SEQUENCES,
  SIZES,
  type Sizes,
  sharedTokens,
  TINY_SIZES,
} from './workload.ts';

export interface Sample {
  participant: string;
  scene: SceneName;
  /** Rounds with the same number have the same prompts. */
  round: number;
  figures: Figures;
  firstTokens: number[];
  /** Memory read speed in GB/s right before and right after. Absent in results before 2026-11-23. */
  memory?: [number, number];
}

export interface PeersResult {
  shape: ShapeName;
  threads: number;
  sizes: Sizes;
  participants: Record<
    string,
    Opened & {
      label: string;
      /** Bytes of its files. For Kvasir, of the files that it imports. */
      modelBytes: number;
    }
  >;
  samples: Sample[];
}

export interface PeersOptions {
  peers: readonly PeerName[];
  shape: ShapeName;
  scenes: readonly SceneName[];
  rounds: number;
  threads: number;
  at: Places;
  /** An earlier result of the same shape and threads to add to. */
  earlier?: PeersResult;
  /** Settings by participant that replace the usual ones, to search for better ones. */
  settings?: Record<string, Record<string, unknown>>;
  onSample?: (sample: Sample) => void;
}

export const SCENES: readonly SceneName[] = ['small', 'medium', 'large', 'together'];

/** Time for the threads of the other participants to come to rest. */
const REST_MS = 200;
/** Round number of the warm-up prompts. */
const WARM_UP = 1_000_000;

/** @throws Error that names a participant that is not set up or that failed. */
export async function peersBench({
  peers,
  shape,
  scenes,
  rounds,
  threads,
  at,
  earlier,
  settings = {},
  onSample,
}: PeersOptions): Promise<PeersResult> {
  const sizes = shape === 'tiny' ? TINY_SIZES : SIZES;
  if (earlier && (earlier.shape !== shape || earlier.threads !== threads))
    throw new Error(`the earlier result is of ${earlier.shape} with ${earlier.threads} threads; it cannot be added to`);
  const result: PeersResult = {
    shape,
    threads,
    sizes,
    participants: { ...earlier?.participants },
    samples: [...(earlier?.samples ?? [])],
  };
  const firstRound = 1 + Math.max(-1, ...result.samples.map(({ round }) => round));
  mkdirSync(at.logs, { recursive: true });

  // On a shared machine, other memory traffic changes from minute to minute, and with it the time per token.
  const scan = await openWasmScan(shape === 'tiny' ? 1 : 8 * lastLevelCacheBytes(), threads);
  const running: { participant: Participant; driver: DriverProcess }[] = [];
  const play = async (
    { participant, driver }: (typeof running)[number],
    scene: SceneName,
    round: number,
  ): Promise<Outcome> => {
    driver.thaw();
    await sleep(REST_MS);
    try {
      return await playScene(
        scene,
        (request) => driver.generate(request),
        sizes,
        SHAPES[shape].vocab_size,
        1 + SCENES.length * round + SCENES.indexOf(scene),
      );
    } catch (error) {
      throw new Error(
        `${participant.label}, scene ${scene}: ${error instanceof Error ? error.message : String(error)}`,
      );
    } finally {
      driver.freeze();
    }
  };
  try {
    for (const participant of await participants(peers, shape, at)) {
      const driver = new DriverProcess(
        participant.label,
        participant.command,
        path.join(at.logs, `${participant.id}.log`),
      );
      running.push({ participant, driver });
      const opened = await driver.open({
        model: participant.model,
        installed: participant.installed,
        threads,
        contextTokens: contextTokens(sizes),
        sequences: SEQUENCES,
        sharedTokens: sharedTokens(sizes),
        settings: { ...participant.settings, ...settings[participant.id] },
      });
      result.participants[participant.id] = {
        label: participant.label,
        modelBytes: bytesOf(participant.model),
        ...opened,
      };
      // The first requests compile, allocate and adapt.
      for (const scene of ['small', 'together'] as const) await play(running.at(-1)!, scene, WARM_UP);
    }
    for (let round = firstRound; round < firstRound + rounds; round++) {
      for (const scene of scenes) {
        for (let i = 0; i < running.length; i++) {
          const one = running[(i + round) % running.length]!;
          const before = await gigabytesPerSecond(scan);
          const outcome = await play(one, scene, round);
          const sample: Sample = {
            participant: one.participant.id,
            scene,
            round,
            ...outcome,
            memory: [before, await gigabytesPerSecond(scan)],
          };
          result.samples.push(sample);
          onSample?.(sample);
        }
      }
    }
    for (const { driver } of running) await driver.close();
  } finally {
    for (const { driver } of running) driver.kill();
    await scan.close();
  }
  return result;
}

/** Bytes of a file, or of all files in a folder. */
function bytesOf(file: string): number {
  if (!statSync(file).isDirectory()) return statSync(file).size;
  return readdirSync(file).reduce((sum, name) => sum + bytesOf(path.join(file, name)), 0);
}
