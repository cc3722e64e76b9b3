/**
 * `node segmentWriter.ts FOLDER SEED LENGTH`: writes the segments of a context one after another. Prints the number of
 * written segments after each. The test kills it during the run.
 */
import { writeSync } from 'node:fs';
import { DiskTier } from '../../../engine/kv/disk/diskTier.ts';
import { chain, runsOf } from './segmentChain.ts';

const [folder, seed, length] = process.argv.slice(2);
const disk = await DiskTier.open(folder!, 1e9, (line) => writeSync(2, `${line}\n`));
const segments = chain(Number(seed), Number(length)).map((segment) => ({ segment, runs: runsOf(segment) }));
writeSync(1, '0\n');
for (const [i, { segment, runs }] of segments.entries()) {
  await disk.write(segment, runs, 'src/chain.ts');
  // Writes synchronously, so that the number is not lost when the process is killed.
  writeSync(1, `${i + 1}\n`);
}
