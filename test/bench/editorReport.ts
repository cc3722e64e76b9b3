/** Formats the editor suite's result as a Markdown table, with the target of each figure. */
import type { EditorBench } from './editorBench.ts';

const percent = (share: number): string => `${(100 * share).toFixed(0)}%`;
const ms = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} ms`;

export function editorReport({ withKvasir, without }: EditorBench): string {
  const { figures, eventLoop, quiet } = withKvasir;
  const within = (limit: string): string => {
    const pauses = figures.within[limit]!;
    return `${percent(pauses.share)} (${pauses.shownInTime} of ${pauses.count - pauses.nothingToAdd}; in ${pauses.nothingToAdd} more the model had nothing to add that it was sure of)`;
  };
  const rows: [string, string, string][] = [
    ['completion shown within 300 ms, in pauses at least that long', within('300'), '≥ 60%'],
    ['completion shown within 750 ms, in pauses at least that long', within('750'), '≥ 90%'],
    [
      'from a key to the completion on the screen',
      `${ms(figures.latencyMs.p50)} median, ${ms(figures.latencyMs.p90)} P90 (${figures.latencyMs.count} completions)`,
      '',
    ],
    [
      'keys typed through a shown completion without a new request',
      `${percent(figures.typedThrough.share)} (${figures.typedThrough.withoutRequest} of ${figures.typedThrough.keys})`,
      '',
    ],
    [
      'accepted',
      `${figures.accepted} completions, ${figures.acceptedCharacters} characters; ${figures.strokes} keys pressed`,
      '',
    ],
    ['texts wrong after an accept, an undo or a save', String(figures.wrong), '0'],
    ['completions computed; answered without computing', `${figures.computed}; ${figures.answeredWithout}`, ''],
    [
      "extension host's event loop delay, P99 (without Kvasir)",
      `${ms(eventLoop.p99Ms)} (${ms(without.eventLoop.p99Ms)})`,
      '< 20 ms',
    ],
    [
      'the same, median and longest (without Kvasir)',
      `${ms(eventLoop.p50Ms)}, ${ms(eventLoop.maxMs)} (${ms(without.eventLoop.p50Ms)}, ${ms(without.eventLoop.maxMs)})`,
      '',
    ],
    [
      "after the session: processor time of the engine's threads in the first 5 s, queued idle work included",
      `${quiet.engineFirstMs} ms`,
      '',
    ],
    [
      `the same in the ${quiet.seconds - 5} s after that`,
      `${quiet.engineLaterMs} ms (${((100 * quiet.engineLaterMs) / (quiet.seconds - 5) / 1000).toFixed(2)}%)`,
      '0',
    ],
    [
      "extension host's processor use in that time, of one processor (without Kvasir)",
      `${quiet.laterPercent.toFixed(2)}% (${without.quiet.laterPercent.toFixed(2)}%)`,
      'the same',
    ],
    [
      "extension host's processor time over the session (without Kvasir)",
      `${withKvasir.cpuSeconds.toFixed(0)} s of ${figures.seconds.toFixed(0)} s (${without.cpuSeconds.toFixed(0)} s)`,
      '',
    ],
  ];
  return ['| | measured | target |', '|---|---|---|', ...rows.map((row) => `| ${row.join(' | ')} |`)].join('\n');
}
