/** `node test/bench/long/longDoc.ts DIR [--out docs]`: writes OUT/long-contexts.md from DIR/long.json (../keptDocument.ts). */
import { first, writeDocument } from '../keptDocument.ts';
import { longText, type MeasuredLong } from './longText.ts';

writeDocument<MeasuredLong>({
  name: 'long-contexts',
  suite: 'long',
  keep: first,
  write: (result, before) => ({ text: longText(result, before) }),
});
