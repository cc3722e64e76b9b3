/**
 * Turns a session into the token ids that the cache sees: one entry per request and per idle read of a file, by time.
 */
import { Documents } from '../../../engine/server/documents.ts';
import { IdlePrefill } from '../../../engine/server/idlePrefill.ts';
import { laneIds } from '../../../engine/kv/laneIds.ts';
import type { Priority } from '../../../engine/protocol/tasks.ts';
import { prepareChat } from '../../../engine/tasks/chatTask.ts';
import { prepareComplete } from '../../../engine/tasks/completeTask.ts';
import type { PreparedRequest } from '../../../engine/tasks/preparedRequest.ts';
import { prepareSummarize } from '../../../engine/tasks/summarizeTask.ts';
import { Layout } from '../../../engine/text/prompt/layout.ts';
import { ModelText } from '../../../engine/text/format/modelText.ts';
import { below, seededRandom } from '../../support/engine/workload.ts';
import type { DayArrival } from './daySession.ts';

/** Matches a model with room for whole files. */
const CONTEXT_TOKENS = 8192;
const PARAMETERS = 494e6;
const MAX_COMPLETION = 24;

export interface CacheRequest {
  atMs: number;
  priority: Priority;
  /** Prompt and answer, as the cache stores them. */
  ids: number[];
  numPrompt: number;
}

export async function cacheTrace(arrivals: readonly DayArrival[], seed = 1): Promise<CacheRequest[]> {
  const layout = new Layout(await ModelText.load('model'), {
    contextTokens: CONTEXT_TOKENS,
    numParameters: PARAMETERS,
  });
  const documents = new Documents();
  const random = seededRandom(seed);
  const trace: CacheRequest[] = [];
  /** Files whose blocks are out of date. */
  const stale = new Set<string>();
  let last = 0;
  const add = (
    { atMs, answer }: DayArrival,
    priority: Priority,
    { promptIds, prefill, sampling }: PreparedRequest,
  ): void => {
    const ids = laneIds(promptIds, prefill);
    const numAnswer = priority === 'completion' ? 1 + below(random, MAX_COMPLETION) : sampling.maxTokens;
    // A later request may continue a given answer, so the cache must see it. Any other answer may be random.
    if (answer !== undefined) ids.push(...layout.text.tokenizer.encode(answer));
    else for (let i = 0; i < numAnswer; i++) ids.push(below(random, 6000));
    trace.push({ atMs, priority, ids, numPrompt: promptIds.length });
  };
  for (const arrival of arrivals) {
    const { atMs, message } = arrival;
    if (atMs - last > IdlePrefill.DELAY_MS) {
      for (const docId of stale) {
        const { tokenIds } = layout.fileBlock(documents.get(docId), {});
        trace.push({
          atMs: last + IdlePrefill.DELAY_MS,
          priority: 'idle',
          ids: laneIds(tokenIds, [[0, tokenIds.length]]),
          numPrompt: tokenIds.length,
        });
      }
      stale.clear();
    }
    last = atMs;
    if (message.type === 'documentChanged') {
      if ('text' in message) documents.open(message.docId, message.version, message.path, message.text);
      else documents.edit(message.docId, message.version, message.edits);
      stale.add(message.docId);
    } else if (message.type === 'generate') {
      const { task, priority, sampling } = message;
      if (task.kind === 'complete')
        add(arrival, priority, prepareComplete(layout, documents.get(task.docId), { offset: task.offset }, sampling));
      if (task.kind === 'chat')
        add(
          arrival,
          priority,
          prepareChat(layout, { messages: task.messages, docs: task.docIds.map((id) => documents.get(id)) }),
        );
      if (task.kind === 'summarize') add(arrival, priority, prepareSummarize(layout, documents.get(task.docId)));
    }
  }
  return trace;
}
