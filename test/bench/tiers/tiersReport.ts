/** What revisiting files costs, by the tier that had them. Pure. */
import type { Tier } from '../../../engine/protocol.ts';
import { type Figure, figure, median, short, table, withSpread } from '../spread.ts';

export interface Revisit {
  /** Where most of the file was. */
  tier: Tier;
  /** To the first token. */
  ms: number;
  /** Tokens of the prompt that were found. */
  found: number;
}

export interface TiersBench {
  model: string;
  threads: number;
  numFiles: number;
  fileTokens: number;
  /** Of the cache in memory. */
  maxBytes: number;
  /** The most that it took, buffers of the disk tier included, behind each question and each file's writing. */
  peakBytes: number;
  /** A file's rows. */
  fileBytes: number;
  /** On disk, all files. */
  diskBytes: number;
  /** Reading a file from nothing, to the first token of a question about it, ms. */
  anew: Figure;
  /** Writing a file's rows to the disk, ms. */
  written: Figure;
  revisits: Revisit[];
}

const TIERS: readonly Tier[] = ['window', 'store', 'disk', 'none'];

export function tiersReport({ model, threads, numFiles, fileTokens, maxBytes, peakBytes, fileBytes, diskBytes, anew, written, revisits }: TiersBench): string {
  const rows = TIERS.flatMap((tier) => {
    const of = revisits.filter((revisit) => revisit.tier === tier);
    if (of.length === 0) return [];
    return [[tier, of.length, `${((100 * of.reduce((sum, { found }) => sum + found, 0)) / (of.length * fileTokens)).toFixed(1)}%`, withSpread(figure(of.map(({ ms }) => ms))), `1/${short(anew.median / median(of.map(({ ms }) => ms)))}`]];
  });
  const all = median(revisits.map(({ ms }) => ms));
  return [
    `## Tiers: ${model}, ${threads} threads, ${numFiles} files of ${fileTokens} tokens (${short(fileBytes / 1e6)} MB each) under ${short(maxBytes / 1e6)} MB, ${short(diskBytes / 1e6)} MB on disk`,
    `Reading a file anew takes ${withSpread(anew)} ms to the first token of a question, writing its rows to the disk ${withSpread(written)} ms. ${revisits.length} questions about files that were read before, by where most of the file was:`,
    table(['tier', 'questions', 'found', 'first token, ms', 'of reading anew'], rows),
    `All of them: ${short(all)} ms at the median, 1/${short(anew.median / all)} of reading anew (target: less than 1/5). The cache took ${short(peakBytes / 1e6)} MB of memory at most.`,
  ].join('\n\n');
}
