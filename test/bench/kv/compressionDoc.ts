/**
 * `node test/bench/kv/compressionDoc.ts DIR [--out docs]`: writes OUT/compression.md and its charts from DIR/kv.json (../keptDocument.ts).
 * Its parts `quality` and `rows` may be of two runs: what DIR lacks of them is taken from what is kept.
 */
import { writeDocument } from '../keptDocument.ts';
import { compressionText, type MeasuredQuality } from './compressionText.ts';

writeDocument<MeasuredQuality>({
  name: 'compression',
  suite: 'kv',
  options: '--only quality,rows',
  keep: (results) => {
    const [ofQuality, ofRows] = [results.find(({ quality }) => quality && 'starter' in quality), results.find(({ rows }) => rows)];
    return ofQuality && ofRows && ({ machine: ofQuality.machine, quality: ofQuality.quality, rows: ofRows.rows } as MeasuredQuality);
  },
  write: compressionText,
});
