/** What became of the last completion, for the log and for `Kvasir: Explain Last Completion`. Pure. */
import type { Timings, Usage } from '../../engine/protocol.ts';

/** Why nothing was returned to the editor. */
export type SilentReason =
  | 'automatic completions are off (kvasir.completion.enable)'
  | 'the language is not in kvasir.completion.languages'
  | 'the file matches kvasir.completion.exclude'
  | 'not a document that is completed (scheme)'
  | 'the engine is down'
  | 'superseded by further typing'
  | 'nothing decoded before the editor stops waiting; shown when it is ready'
  | 'the answer came after the cursor had moved'
  | 'the model has nothing to add here'
  | 'it does not go on as the selected suggestion does'
  | 'the model cannot complete'
  | 'the request failed';

export interface CompletionRecord {
  /** Path and position, 1-based as the editor shows it. */
  place: string;
  at: Date;
  trigger: 'typing' | 'explicit' | 'refresh';
  source?: 'typed as suggested' | 'engine' | 'engine, first part';
  reason?: SilentReason;
  detail?: string;
  shown?: string;
  accepted?: boolean;
  waitedMs: number;
  totalMs: number;
  usage?: Usage;
  timings?: Timings;
  diagnostics: string[];
}

/** One line for the log. */
export function logLine(record: CompletionRecord): string {
  const what = record.reason ? `nothing shown: ${record.reason}${record.detail ? ` (${record.detail})` : ''}` : `${JSON.stringify(clip(record.shown ?? ''))} from ${record.source}`;
  const cost = record.usage ? `; ${record.usage.cachedTokens} of ${record.usage.promptTokens} tokens reused` : '';
  return `completion at ${record.place} (${record.trigger}): ${what}; ${Math.round(record.totalMs)} ms${cost}`;
}

/** A page of Markdown. */
export function explain(record: CompletionRecord | undefined): string {
  if (!record) return '# Last completion\n\nNone has been asked for since Kvasir started.\n';
  const lines = ['# Last completion', '', `- Where: \`${record.place}\``, `- When: ${record.at.toLocaleTimeString()}, ${record.trigger === 'explicit' ? 'asked for' : record.trigger === 'typing' ? 'after typing' : 'when a late answer was ready'}`];
  if (record.reason) lines.push(`- **Nothing was shown: ${record.reason}.**${record.detail ? ` ${record.detail}` : ''}`);
  else lines.push(`- Returned to the editor from: ${record.source}${record.accepted ? '; accepted' : ''}`);
  lines.push(`- Time: ${Math.round(record.totalMs)} ms, of which ${Math.round(record.waitedMs)} ms waiting for a pause in typing`);
  const { timings, usage } = record;
  if (timings) lines.push(`- Engine: ${timings.queueMs.toFixed(0)} ms queued, first token after ${timings.ttftMs.toFixed(0)} ms, ${timings.tpotMs.toFixed(1)} ms for each further token`);
  if (usage) lines.push(`- Prompt: ${usage.promptTokens} tokens, ${usage.cachedTokens} of them reused from the cache, ${usage.blockTokens} from the file block; ${usage.completionTokens} tokens written`);
  for (const note of record.diagnostics) lines.push(`- Note: ${note}`);
  if (record.shown) lines.push('', '```', record.shown, '```');
  return `${lines.join('\n')}\n`;
}

function clip(text: string): string {
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
