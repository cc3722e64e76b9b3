/**
 * Turns the recorded session into prompts with the product's layout, the time of each request and the time of the next
 * key. Uses the built-in model's tokens for every shape, because the time of a step does not depend on token ids.
 */
import { Documents } from '../../../engine/server/documents.ts';
import type { TokenRange } from '../../../engine/kv/laneIds.ts';
import type { Priority } from '../../../engine/protocol/tasks.ts';
import { prepareChat } from '../../../engine/tasks/chatTask.ts';
import { prepareComplete } from '../../../engine/tasks/completeTask.ts';
import type { PreparedRequest } from '../../../engine/tasks/preparedRequest.ts';
import { prepareSummarize } from '../../../engine/tasks/summarizeTask.ts';
import { Fim } from '../../../engine/text/format/fim.ts';
import { Layout } from '../../../engine/text/prompt/layout.ts';
import { ModelText } from '../../../engine/text/format/modelText.ts';
import { below, seededRandom } from '../../support/engine/workload.ts';
import { LOOK_MS, type Session } from '../../support/session/session.ts';
import { sessionArrivals } from '../sessionArrivals.ts';

/** Tokens of a completion, about the rest of a line. */
const MIN_COMPLETION = 4;
const MAX_COMPLETION = 24;
const DEBOUNCE_MS = 50;

export interface MixedRequest {
  id: string;
  priority: Exclude<Priority, 'idle'>;
  /** Time since the start of the session, as recorded. */
  atMs: number;
  promptIds: number[];
  /** Ranges of the prompt for the prefill lane. */
  prefill: readonly TokenRange[];
  /** Exact number of tokens to generate. */
  numTokens: number;
  /** Time of the next key, for a completion that nobody saw. Other requests run to their end. */
  abortMs?: number;
}

export interface MixedWorkload {
  /** In order of time. */
  requests: MixedRequest[];
  /** File blocks that are computed in idle time before they are needed. */
  blocks: number[][];
}

export interface MixedOptions {
  contextTokens: number;
  vocabSize: number;
  /** Parameters of the model. A large model does not read the file block for a completion. */
  numParameters: number;
  /** Minimum number of tokens of a text that goes through the prefill lane. */
  fewestPrefill?: number;
  /**
   * Whether a prompt ends with the text before the cursor, so that typing only appends to it. Prompts of Qwen end with
   * the text after the cursor.
   */
  suffixFirst: boolean;
  seed: number;
  /** Keeps only requests up to this time. Default: all. */
  untilMs?: number;
}

export async function mixedWorkload(session: Session, options: MixedOptions): Promise<MixedWorkload> {
  const layout = new Layout(await builtInText(options.suffixFirst), options);
  const documents = new Documents();
  const random = seededRandom(options.seed);
  const untilMs = options.untilMs ?? Number.POSITIVE_INFINITY;
  const requests = new Map<string, MixedRequest>();
  const blocks = new Map<string, number[]>();
  const inVocabulary = (tokenIds: readonly number[]): number[] => tokenIds.map((id) => id % options.vocabSize);
  const add = (
    id: string,
    priority: MixedRequest['priority'],
    atMs: number,
    { promptIds, prefill, blockTokens, sampling }: PreparedRequest,
  ): void => {
    const numTokens =
      priority === 'completion'
        ? MIN_COMPLETION + below(random, MAX_COMPLETION - MIN_COMPLETION + 1)
        : sampling.maxTokens;
    const ids = inVocabulary(promptIds);
    requests.set(id, { id, priority, atMs, promptIds: ids, prefill, numTokens });
    if (priority !== 'completion' && blockTokens > 0)
      blocks.set(String(ids.slice(0, blockTokens)), ids.slice(0, blockTokens));
  };
  for (const { atMs, message } of sessionArrivals(session, { debounceMs: DEBOUNCE_MS })) {
    if (message.type === 'documentChanged') {
      if ('text' in message) documents.open(message.docId, message.version, message.path, message.text);
      else documents.edit(message.docId, message.version, message.edits);
    } else if (message.type === 'abort') {
      const request = requests.get(message.requestId);
      if (request && atMs - request.atMs < LOOK_MS - DEBOUNCE_MS) request.abortMs = atMs;
    } else if (message.type === 'generate' && atMs <= untilMs) {
      const { requestId, task } = message;
      if (task.kind === 'complete')
        add(requestId, 'completion', atMs, prepareComplete(layout, documents.get(task.docId), { offset: task.offset }));
      if (task.kind === 'chat')
        add(
          requestId,
          'chat',
          atMs,
          prepareChat(layout, { messages: task.messages, docs: task.docIds.map((id) => documents.get(id)) }),
        );
      if (task.kind === 'summarize')
        add(requestId, 'summary', atMs, prepareSummarize(layout, documents.get(task.docId)));
    }
  }
  return { requests: [...requests.values()], blocks: [...blocks.values()] };
}

/** Requests that run to their end: chats, summaries, and completions in pauses long enough to see them. */
export function seen(requests: readonly MixedRequest[]): MixedRequest[] {
  return requests.filter(({ abortMs }) => abortMs === undefined);
}

async function builtInText(suffixFirst: boolean): Promise<ModelText> {
  const text = await ModelText.load('model');
  if (suffixFirst) return text;
  const fim = Fim.of(text.tokenizer, { bosTokenId: text.bosTokenId });
  return Object.assign(Object.create(ModelText.prototype) as ModelText, text, { fim });
}
