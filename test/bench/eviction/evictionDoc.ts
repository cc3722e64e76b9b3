/** `node test/bench/eviction/evictionDoc.ts DIR [--out docs]`: writes OUT/eviction.md and its charts from DIR/eviction.json (../keptDocument.ts). */
import { first, writeDocument } from '../keptDocument.ts';
import type { Machine } from '../performanceTargets.ts';
import type { EvictionBench } from './evictionBench.ts';
import { evictionCharts } from './evictionReport.ts';
import { evictionText } from './evictionText.ts';

writeDocument<EvictionBench & { machine: Machine }>({
  name: 'eviction',
  suite: 'eviction',
  keep: first,
  write: (measured, before) => ({
    text: evictionText(measured, measured.machine, before),
    charts: evictionCharts(measured),
  }),
});
