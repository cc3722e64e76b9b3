/** `node test/bench/quality/qualityDoc.ts DIR [--out docs]`: writes OUT/quality.md and its chart from DIR/quality.json (../keptDocument.ts). */
import { writeDocument } from '../keptDocument.ts';
import { type MeasuredQuality, qualityText } from './qualityText.ts';
import { qualityCharts } from './report.ts';

writeDocument<MeasuredQuality>({
  name: 'quality',
  suite: 'quality',
  // Without the verdicts on the single items.
  keep: ([result]) => result && ({ ...result, items: undefined } as MeasuredQuality),
  write: (result, before) => ({ text: qualityText(result, before), charts: qualityCharts(result) }),
});
