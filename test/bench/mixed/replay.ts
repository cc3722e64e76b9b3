/**
 * Sends requests to a server at their times and records when their tokens come. Messages get in between steps, as in the
 * worker, so a request that comes while a step runs is sent late; its times count from when it was due.
 */
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { MixedRequest } from './requests.ts';
import type { Server } from './server.ts';

/** Milliseconds since the replay's start. */
export interface Record {
  id: string;
  priority: MixedRequest['priority'];
  due: number;
  /** Of each token. */
  tokens: number[];
  ended: number;
  /** Its author typed on before anybody could have looked, so it may have been given up: no measure of anything. */
  unseen: boolean;
}

export interface Replay {
  records: Record[];
  /** From the first request's time to the last one's end. */
  makespanMs: number;
  /** What those had that always ran, by class: tokens of their prompts computed and of their answers, and how many have ended. */
  background: { [priority: string]: { promptTokens?: number; tokens: number; ended: number } };
}

export interface ReplayOptions {
  /** How many times faster than recorded. */
  speed: number;
  /** One of each of these lists is always running while the session lasts: when it has ended, the next begins. */
  background?: readonly (readonly MixedRequest[])[];
}

interface Event {
  at: number;
  run(): void;
}

/** @throws Error when a request gets other than its number of tokens without having been aborted. */
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
    // Each turn is another text from its second token on: nothing of an earlier turn's is found.
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

/** Three tokens that tell a round from the others. */
function salt(round: number): number[] {
  return [round % 64, (round >> 6) % 64, 3];
}
