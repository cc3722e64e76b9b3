/**
 * `node test/bench/kv/compressionDoc.ts DIR [--out docs]`: writes OUT/compression.md and its charts from DIR/kv.json (../keptDocument.ts).
 * Its parts `quality`, `window` and `rows` may be of several runs: what DIR lacks of them is taken from what is kept.
 */
import { writeDocument } from '../keptDocument.ts';
import { compressionText, type MeasuredQuality } from './compressionText.ts';

writeDocument<MeasuredQuality>({
  name: 'compression',
  suite: 'kv',
  options: '--only quality,window,rows',
  keep: (results) => {
    const [ofQuality, ofPool, ofRows] = [
      results.find(({ quality }) => quality && 'starter' in quality),
      results.find(({ window }) => window),
      results.find(({ rows }) => rows),
    ];
    return (
      ofQuality &&
      ofPool &&
      ofRows &&
      ({
        machine: ofQuality.machine,
        quality: ofQuality.quality,
        window: ofPool.window,
        rows: ofRows.rows,
      } as MeasuredQuality)
    );
  },
  write: compressionText,
});
