/** Formats the cost of revisiting a file, by the tier that held it. Pure. */
import type { Tier } from '../../../engine/protocol/stats.ts';
import { type Figure, figure, median, quantile, short, table, withSpread } from '../spread.ts';

export interface Revisit {
  /** Tier that held most of the file. */
  tier: Tier;
  /** Codecs and pruning rules that have changed rows of the file. If none has, the format of its rows. */
  codecs: string[];
  /** Milliseconds to the first token. */
  ms: number;
  /** Number of tokens of the prompt that were found. */
  found: number;
}

export interface TiersScene {
  /** Value of `kvasir.cache.codec`. null: rows stay as computed and there is no idle maintenance. */
  setting: string | null;
  /**
   * Most bytes of the cache in memory, including buffers of the disk tier. Measured after each question, after each
   * file's write and after each round of idle work.
   */
  peakBytes: number;
  /** Bytes of all files on the disk. */
  diskBytes: number;
  /**
   * Milliseconds to the first token of a question about a file that is read from nothing. Measured between the
   * revisits.
   */
  anew: Figure;
  /** Milliseconds to write a file's rows to the disk. */
  written: Figure;
  revisits: Revisit[];
}

export interface TiersBench {
  model: string;
  threads: number;
  numFiles: number;
  fileTokens: number;
  /** Memory budget of the cache. */
  maxBytes: number;
  /** Bytes of a file's rows. */
  fileBytes: number;
  scenes: TiersScene[];
}

const TIERS: readonly Tier[] = ['pool', 'store', 'disk', 'none'];
const LATE = 0.95;

export function tiersReport({ model, threads, numFiles, fileTokens, maxBytes, fileBytes, scenes }: TiersBench): string {
  return [
    `## Tiers: ${model}, ${threads} threads, ${numFiles} files of ${fileTokens} tokens (${short(fileBytes / 1e6)} MB each) under ${short(maxBytes / 1e6)} MB`,
    `What comes from the disk was written minutes before, so the system still has it in memory if that is large enough: then no disk is read here, and elsewhere the time for a file's ${short(fileBytes / 1e6)} MB comes on top.`,
    ...scenes.flatMap((scene) => sceneReport(scene, fileTokens)),
  ].join('\n\n');
}

function sceneReport(
  { setting, peakBytes, diskBytes, anew, written, revisits }: TiersScene,
  fileTokens: number,
): string[] {
  const ofAnew = (ms: number): string => `1/${short(anew.median / ms)}`;
  const row = (name: string, of: readonly Revisit[]): (string | number)[] => {
    const times = of.map(({ ms }) => ms);
    const found = of.reduce((sum, revisit) => sum + revisit.found, 0) / (of.length * fileTokens);
    return [
      name,
      of.length,
      `${(100 * found).toFixed(1)}%`,
      withSpread(figure(times)),
      short(quantile(times, LATE)),
      ofAnew(median(times)),
      ofAnew(quantile(times, LATE)),
    ];
  };
  const rows = TIERS.flatMap((tier) => {
    const of = revisits.filter((revisit) => revisit.tier === tier);
    const codecs = [...new Set(of.map(({ codecs }) => codecs.join(' and ')))].sort();
    return codecs.map((codec) =>
      row(
        setting === null ? tier : `${tier}, ${codec}`,
        of.filter((revisit) => revisit.codecs.join(' and ') === codec),
      ),
    );
  });
  return [
    setting === null
      ? '### Rows as they are computed'
      : `### With \`${setting}\`, and idle maintenance between the questions`,
    `Reading a file anew, ${anew.samples.length} times between the questions, takes ${withSpread(anew)} ms to the first token of a question about it, writing its rows to the disk ${withSpread(written)} ms; on disk are ${short(diskBytes / 1e6)} MB. ${revisits.length} questions about files that were read before, by where most of the file was:`,
    table(
      ['tier', 'questions', 'found', 'first token, ms', 'P95, ms', 'of reading anew', 'P95 of it'],
      [...rows, row('all', revisits)],
    ),
    `Target: less than 1/5 of reading anew. The cache took ${short(peakBytes / 1e6)} MB of memory at most.`,
  ];
}
