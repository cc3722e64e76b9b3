/**
 * Sends requests to a server at their times and records the times of their tokens. As in the worker, messages arrive
 * between steps, so a request that is due during a step is sent late. Its times count from when it was due.
 */
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { MixedRequest } from './requests.ts';
import type { Server } from './server.ts';

/** Times in milliseconds since the start of the replay. */
export interface Record {
  id: string;
  priority: MixedRequest['priority'];
  due: number;
  /** Time of each token. */
  tokens: number[];
  ended: number;
  /** The author typed on before a completion could be seen, so it may have been aborted. Its times measure nothing. */
  unseen: boolean;
}

export interface Replay {
  records: Record[];
  /** Time from the first request to the end of the last. */
  makespanMs: number;
  /** Background requests by class: computed prompt tokens, answer tokens, number of completed requests. */
  background: { [priority: string]: { promptTokens?: number; tokens: number; ended: number } };
}

export interface ReplayOptions {
  /** Speed relative to the recording. */
  speed: number;
  /** One request of each list is always running during the session. The next one starts when it ends. */
  background?: readonly (readonly MixedRequest[])[];
}

interface Event {
  at: number;
  run(): void;
}

/** @throws Error if a request that was not aborted gets a wrong number of tokens. */
export async function replay(
  server: Server,
  requests: readonly MixedRequest[],
  { speed, background = [] }: ReplayOptions,
): Promise<Replay> {
  const origin = requests[0]?.atMs ?? 0;
  const records: Record[] = [];
  let numOpen = requests.length;
  const start = performance.now();
  const now = (): number => performance.now() - start;

  const events: Event[] = [];
  for (const request of requests) {
    const { id, priority, promptIds, prefill, numTokens, abortMs } = request;
    const due = (request.atMs - origin) / speed;
    const record: Record = { id, priority, due, tokens: [], ended: Number.NaN, unseen: abortMs !== undefined };
    records.push(record);
    const onEnd = (): void => {
      record.ended = now();
      numOpen--;
    };
    events.push({
      at: due,
      run: () =>
        server.add({ id, priority, promptIds, prefill, numTokens, onToken: () => record.tokens.push(now()), onEnd }),
    });
    if (abortMs !== undefined) events.push({ at: (abortMs - origin) / speed, run: () => server.abort(id) });
  }
  events.sort((a, b) => a.at - b.at);

  const running = new Set<string>();
  const got: Replay['background'] = {};
  const keepRunning = (list: readonly MixedRequest[], round: number): void => {
    const { priority, promptIds, prefill, numTokens } = list[round % list.length]!;
    const id = `background ${priority} ${round}`;
    const had = got[priority] ?? { promptTokens: 0, tokens: 0, ended: 0 };
    got[priority] = had;
    const onEnd = (): void => {
      running.delete(id);
      if (numOpen === 0) return;
      had.promptTokens! += server.computed(id);
      had.ended++;
      keepRunning(list, round + 1);
    };
    const onToken = (): void => {
      if (numOpen > 0) had.tokens++;
    };
    running.add(id);
    // Tokens after the first one differ between rounds, so a round reuses nothing of an earlier one.
    server.add({
      id,
      priority,
      promptIds: priority === 'summary' ? [promptIds[0]!, ...salt(round), ...promptIds.slice(1)] : promptIds,
      prefill,
      numTokens,
      onToken,
      onEnd,
    });
  };
  for (const list of background) if (list.length > 0) keepRunning(list, 0);

  for (let next = 0; numOpen > 0; ) {
    while (next < events.length && events[next]!.at <= now()) events[next++]!.run();
    if (server.hasWork()) await server.step();
    else if (next < events.length) await sleep(Math.max(0, events[next]!.at - now()));
    else if (numOpen > 0) throw new Error(`${numOpen} requests have not ended and the server has nothing to do.`);
    await nextTurn();
  }
  const makespanMs = Math.max(0, ...records.map(({ ended }) => ended));
  for (const id of running) {
    got[id.split(' ')[1]!]!.promptTokens! += server.computed(id);
    server.abort(id);
  }
  while (server.hasWork()) await server.step();

  const wanted = new Map(requests.map((request) => [request.id, request.numTokens]));
  for (const { id, tokens, unseen } of records)
    if (!unseen && tokens.length !== wanted.get(id))
      throw new Error(`${id} got ${tokens.length} tokens of ${wanted.get(id)}.`);
  return { records, makespanMs, background: got };
}

/** Three tokens that are unique to a round. */
function salt(round: number): number[] {
  return [round % 64, (round >> 6) % 64, 3];
}
