/** Formats suite `peers`: medians over rounds, the comparison of Kvasir with each peer, and their settings. Pure. */
import { type Figure, figure, short, table, withSpread } from '../spread.ts';
import type { PeersResult, Sample } from './peersBench.ts';
import { MEASURES, type MeasureName } from './workload.ts';

/** By measure, then by participant. */
export type Medians = Partial<Record<MeasureName, Record<string, Figure>>>;

const names = Object.keys(MEASURES) as MeasureName[];

export function medians(samples: readonly Sample[]): Medians {
  const result: Medians = {};
  for (const name of names) {
    const byParticipant: Record<string, number[]> = {};
    for (const { participant, figures } of samples) {
      const value = figures[name];
      if (value === undefined) continue;
      byParticipant[participant] ??= [];
      byParticipant[participant].push(value);
    }
    if (Object.keys(byParticipant).length)
      result[name] = Object.fromEntries(Object.entries(byParticipant).map(([id, values]) => [id, figure(values)]));
  }
  return result;
}

/** How many times better `ours` is. Above 1, `ours` is better. */
export function ratio(name: MeasureName, ours: number, theirs: number): number {
  return MEASURES[name].better === 'less' ? theirs / ours : ours / theirs;
}

/**
 * Share of first tokens that two participants chose alike, over prompts that both were given. NaN without such prompts.
 */
export function agreement(samples: readonly Sample[], a: string, b: string): number {
  let [alike, all] = [0, 0];
  for (const one of samples.filter(({ participant }) => participant === a)) {
    const other = samples.find(
      ({ participant, scene, round }) => participant === b && scene === one.scene && round === one.round,
    );
    for (const [i, id] of (other?.firstTokens ?? []).entries()) {
      all++;
      if (id === one.firstTokens[i]) alike++;
    }
  }
  return alike / all;
}

/** Memory speed before and after each scene. The time per token depends on it if reading the weights takes longest. */
function memoryTable(ids: readonly string[], { participants, samples }: PeersResult): string[] {
  const scenes = [...new Set(samples.filter(({ memory }) => memory).map(({ scene }) => scene))];
  if (!scenes.length) return [];
  const cell = (scene: string, id: string): string => {
    const rates = samples.flatMap((sample) =>
      sample.scene === scene && sample.participant === id ? (sample.memory ?? []) : [],
    );
    return rates.length ? withSpread(figure(rates)) : '–';
  };
  return [
    'How fast memory was read before and after each scene, GB/s (medians, least–most), by a scan of eight times the last-level cache with as many threads:',
    table(
      ['scene', ...ids.map((id) => participants[id]!.label)],
      scenes.map((scene) => [scene, ...ids.map((id) => cell(scene, id))]),
    ),
  ];
}

export function peersReport(result: PeersResult): string {
  const { shape, threads, participants, samples } = result;
  const ids = Object.keys(participants).sort((a, b) => Number(b === 'kvasir') - Number(a === 'kvasir'));
  const found = medians(samples);
  const rows = names.flatMap((name) => {
    const row = found[name];
    if (!row) return [];
    const { label, unit } = MEASURES[name];
    const ours = row.kvasir?.median ?? Number.NaN;
    const cell = (id: string): string => {
      const theirs = row[id];
      if (!theirs) return '–';
      return id === 'kvasir'
        ? withSpread(theirs)
        : `${withSpread(theirs)} · **${short(ratio(name, ours, theirs.median))}x**`;
    };
    return [[`${label} (${unit})`, ...ids.map(cell)]];
  });
  const settings = ids.map((id) => {
    const { label, name, modelBytes, settings: chosen } = participants[id]!;
    const alike =
      id === 'kvasir' ? '' : `; first tokens as Kvasir's: ${short(100 * agreement(samples, 'kvasir', id))}%`;
    return `- ${label}: ${name}, model files of ${short(modelBytes / 1e6)} MB, ${JSON.stringify(chosen)}${alike}`;
  });
  return [
    `# Peers on the shape of ${shape}, ${threads} threads`,
    'Medians of alternated rounds (least–most). In bold: how many times better Kvasir is, by the medians; below 1 the peer is better.',
    table(['', ...ids.map((id) => participants[id]!.label)], rows),
    ...memoryTable(ids, result),
    settings.join('\n'),
  ].join('\n\n');
}
