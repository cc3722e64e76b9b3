/**
 * Draws a synthetic day of work as an engine sees it, one day per seed, from the behaviour model below and pieces of
 * the recorded session's texts. No real person was recorded. cacheTrace turns the requests into the product's own
 * prompts.
 */
import { below, type Random, seededRandom } from '../../support/engine/workload.ts';
import { typed, normal } from '../makeSession.ts';
import { finalTexts, MIN_SAVED, LOOK_MS, pressed, type Session } from '../../support/session/session.ts';
import type { Arrival } from '../sessionArrivals.ts';

const SECOND = 1000;
const MINUTE = 60_000;

/** Time at work. A guess. */
const DAY_MS = 6 * 60 * MINUTE;
/** Parameters of a log-normal distribution: the median, and the spread of the logarithm. */
type LogNormal = readonly [median: number, spread: number];
/** Lies between the files of this project (77 lines) and those of the recorded session (670 lines). */
const FILE_LINES: LogNormal = [130, 0.8];
const MIN_FILES = 10;
const MAX_FILES = 40;
/** Duration of one task, and of the break after it. Guesses. */
const TASK_MS: LogNormal = [25 * MINUTE, 0.6];
const BREAK_MS: LogNormal = [8 * MINUTE, 1];
/** Mean number of further files in a task, geometric. A guess. */
const MEAN_TASK_FILES = 6;
/**
 * Probabilities of the next file. RETURNS: one seen before in this task, the file of n visits ago with weight 1/n.
 * STRAYS: any file of the project. Otherwise: any file of the task. Guesses.
 */
const RETURNS = 0.72;
const STRAYS = 0.06;
/** Time at a file without typing. A guess. */
const READING_MS: LogNormal = [18 * SECOND, 1.2];
/**
 * Share of visits with typing. Typing then takes about 5% of the time, as in Minelli et al., "I Know What You Did Last
 * Summer", ICPC 2015.
 */
const EDITS = 0.16;
/** Mean number of further lines in a burst of typing, and of further bursts in a visit. Both geometric. Guesses. */
const MEAN_LINES = 2;
const MEAN_BURSTS = 0.4;
/** A burst is within NEAR_LINES lines of the file's last burst with probability NEAR. Guesses. */
const NEAR_LINES = 12;
const NEAR = 0.75;
/** Share of seen completions that are accepted, about as Ziegler et al. report (arXiv 2205.06537). */
const ACCEPTED = 0.25;
/**
 * For this time after typing, the engine reads the text at a resting cursor (see Warmup). MAX_RESTS limits the places
 * per visit.
 */
const AT_WORK_MS = 2 * MINUTE;
const MAX_RESTS = 3;
/**
 * Share of visits with a question, and mean number of further turns of a conversation, geometric.
 * That is 2.0 turns in all, as in LMSYS-Chat-1M (arXiv 2309.11998).
 */
const ASKS = 0.05;
const MEAN_FURTHER_TURNS = 1;
/**
 * Time from an answer to the next question. 80% are below ten minutes, like reuses of a chat in "KVCache in the Wild"
 * (arXiv 2506.02634).
 */
const TURN_MS: LogNormal = [2.5 * MINUTE, 1.6];
/** Characters. LMSYS-Chat-1M has 70 tokens in a question and 215 in an answer. */
const QUESTION: LogNormal = [150, 0.8];
const ANSWER: LogNormal = [500, 0.7];
const MAX_ANSWER = 700;
/** Probability of a summary on the first visit to a file, and on a later visit. Guesses. */
const SUMMARISES_NEW = 0.15;
const SUMMARISES = 0.01;
const DEBOUNCE_MS = 50;

export interface DayArrival extends Arrival {
  /** Text that the model writes. Set if a later request continues it. */
  answer?: string;
}

interface OpenFile {
  readonly docId: string;
  text: string;
  version: number;
  /** Line of the last burst. */
  place: number;
}

/**
 * A programmer has ten to forty files and goes back and forth between a few of them: reads, types in bursts, accepts
 * completions, asks in the chat and requests summaries. The result is in order of time and the same for the same seed.
 * A figure without a source is a guess and says so. Two properties decide the result for a cache and also hold with
 * other figures: most returns to a file come soon and a few much later; text that is typed over and most resting places
 * of the cursor never come back.
 * @param session gives the texts that the files are pieces of.
 */
export function daySession(session: Session, seed: number): DayArrival[] {
  return new Day(session, seededRandom(seed)).arrivals();
}

class Day {
  readonly #random: Random;
  /** Source of the lines of files, typed text, questions and answers. */
  readonly #lines: string[];
  readonly #files: OpenFile[] = [];
  readonly #arrivals: DayArrival[] = [];
  #atMs = 0;
  #typedAt = Number.NEGATIVE_INFINITY;
  #numRequests = 0;

  constructor(session: Session, random: Random) {
    this.#random = random;
    this.#lines = [...finalTexts(session).values()].join('\n').split('\n');
    const numFiles = MIN_FILES + below(random, MAX_FILES - MIN_FILES + 1);
    for (let i = 0; i < numFiles; i++)
      this.#files.push({
        docId: `src/part${i}.ts`,
        text: this.#someLines(Math.round(this.#draw(FILE_LINES))),
        version: 0,
        place: 0,
      });
  }

  arrivals(): DayArrival[] {
    while (this.#atMs < DAY_MS) {
      this.#task();
      this.#atMs += this.#draw(BREAK_MS);
    }
    return this.#arrivals.sort((a, b) => a.atMs - b.atMs);
  }

  #task(): void {
    const end = this.#atMs + this.#draw(TASK_MS);
    const files = new Set<OpenFile>();
    const numFiles = Math.min(this.#files.length, 1 + this.#geometric(MEAN_TASK_FILES));
    while (files.size < numFiles) files.add(this.#files[this.#zipf(this.#files.length)]!);
    const task = [...files];
    /** Files in order of their last visits, the latest first. */
    const seen: OpenFile[] = [];
    while (this.#atMs < end) {
      const draw = this.#random();
      const pool = draw < STRAYS ? this.#files : task;
      const file =
        draw < STRAYS + RETURNS && draw >= STRAYS && seen.length > 1
          ? seen[1 + this.#zipf(seen.length - 1)]!
          : pool[below(this.#random, pool.length)]!;
      if (seen.includes(file)) seen.splice(seen.indexOf(file), 1);
      seen.unshift(file);
      this.#visit(file);
    }
  }

  #visit(file: OpenFile): void {
    const isNew = file.version === 0;
    if (isNew)
      this.#send({
        type: 'documentChanged',
        docId: file.docId,
        version: ++file.version,
        path: file.docId,
        text: file.text,
      });
    const rests = this.#atMs - this.#typedAt < AT_WORK_MS ? 1 + below(this.#random, MAX_RESTS) : 0;
    const reading = this.#draw(READING_MS);
    for (let i = 0; i < rests; i++) {
      this.#atMs += reading / (rests + 1);
      this.#complete(file, offsetOf(file.text, below(this.#random, numLines(file.text))), 'summary');
    }
    this.#atMs += reading / (rests + 1);
    if (this.#random() < (isNew ? SUMMARISES_NEW : SUMMARISES))
      this.#send({
        type: 'generate',
        requestId: this.#nextId(),
        task: { kind: 'summarize', docId: file.docId },
        priority: 'summary',
      });
    if (this.#random() < ASKS) this.#converse(file);
    if (this.#random() < EDITS) for (let n = this.#geometric(MEAN_BURSTS); n >= 0; n--) this.#burst(file);
  }

  /** The turns overlap with other work. A question is about the file as it is at that time. */
  #converse({ docId }: OpenFile): void {
    const messages: { role: 'user' | 'assistant'; content: string }[] = [];
    let atMs = this.#atMs;
    for (let turns = this.#geometric(MEAN_FURTHER_TURNS); turns >= 0; turns--) {
      messages.push({ role: 'user', content: this.#someText(this.#draw(QUESTION)) });
      const answer = this.#someText(Math.min(MAX_ANSWER, this.#draw(ANSWER)));
      this.#arrivals.push({
        atMs,
        message: {
          type: 'generate',
          requestId: this.#nextId(),
          task: { kind: 'chat', docIds: [docId], messages: [...messages], anyway: true },
          priority: 'chat',
        },
        answer,
      });
      messages.push({ role: 'assistant', content: answer });
      atMs += this.#draw(TURN_MS);
    }
  }

  /** Types some lines on a line of their own. Asks for a completion if the pause before the next key is long enough. */
  #burst(file: OpenFile): void {
    const lines = numLines(file.text);
    const near = file.place + below(this.#random, 2 * NEAR_LINES + 1) - NEAR_LINES;
    file.place = Math.max(0, Math.min(lines - 1, this.#random() < NEAR ? near : below(this.#random, lines)));
    const start = offsetOf(file.text, file.place);
    const text = `${this.#someLines(1 + this.#geometric(MEAN_LINES))}\n`;
    const [before, after] = [file.text.slice(0, start), file.text.slice(start)];
    let written = '';
    let line = -1;
    const keys = typed(this.#random, text, false);
    /** The accepted beginning of `text`. Its keys are not pressed. */
    let ahead = '';
    for (const [i, key] of keys.entries()) {
      written = pressed(written, key);
      if (written.length <= ahead.length) continue;
      this.#atMs += key[0];
      ahead = '';
      this.#change(file, before + written + after);
      this.#typedAt = this.#atMs;
      const lineNow = written.split('\n').length;
      const pause = keys[i + 1]?.[0] ?? Number.POSITIVE_INFINITY;
      if (pause < (lineNow === line ? DEBOUNCE_MS : 0)) continue;
      line = lineNow;
      const rest = text.startsWith(written) ? /^[^\n]*/.exec(text.slice(written.length))![0] : '';
      const accepted = pause >= LOOK_MS && rest.length >= MIN_SAVED && this.#random() < ACCEPTED;
      this.#complete(file, start + written.length, 'completion', accepted ? rest : undefined);
      if (!accepted) continue;
      ahead = written + rest;
      this.#atMs += LOOK_MS;
      this.#change(file, before + ahead + after);
    }
  }

  #change(file: OpenFile, text: string): void {
    const shorter = Math.min(file.text.length, text.length);
    let start = 0;
    while (start < shorter && file.text[start] === text[start]) start++;
    let same = 0;
    while (same < shorter - start && file.text.at(-1 - same) === text.at(-1 - same)) same++;
    const edit = { start, end: file.text.length - same, text: text.slice(start, text.length - same) };
    file.text = text;
    this.#send({ type: 'documentChanged', docId: file.docId, version: ++file.version, edits: [edit] });
  }

  #complete({ docId }: OpenFile, offset: number, priority: 'completion' | 'summary', answer?: string): void {
    // A request that only warms the cache writes one token.
    this.#send(
      {
        type: 'generate',
        requestId: this.#nextId(),
        task: { kind: 'complete', docId, offset },
        priority,
        ...(priority === 'summary' ? { sampling: { maxTokens: 1 } } : {}),
      },
      answer,
    );
  }

  #send(message: Arrival['message'], answer?: string): void {
    this.#arrivals.push({ atMs: this.#atMs, message, ...(answer === undefined ? {} : { answer }) });
  }

  #nextId(): string {
    return `day-${++this.#numRequests}`;
  }

  #someLines(count: number): string {
    const n = Math.max(1, Math.min(count, this.#lines.length));
    const first = below(this.#random, this.#lines.length - n + 1);
    return this.#lines.slice(first, first + n).join('\n');
  }

  #someText(length: number): string {
    return (
      this.#someLines(Math.ceil(length / 20))
        .slice(0, Math.ceil(length))
        .trim() || 'why?'
    );
  }

  #draw([median, spread]: LogNormal): number {
    return median * Math.exp(spread * normal(this.#random));
  }

  #geometric(mean: number): number {
    return Math.floor(Math.log(1 - this.#random()) / Math.log(mean / (1 + mean)));
  }

  /** A number k below n, with probability proportional to 1 / (k + 1). */
  #zipf(n: number): number {
    let total = 0;
    for (let k = 1; k <= n; k++) total += 1 / k;
    let left = this.#random() * total;
    for (let k = 1; k < n; k++) {
      left -= 1 / k;
      if (left < 0) return k - 1;
    }
    return n - 1;
  }
}

function numLines(text: string): number {
  return text.split('\n').length;
}

/** Offset of the start of a line. Lines count from 0. */
function offsetOf(text: string, line: number): number {
  let offset = 0;
  for (let n = 0; n < line; n++) offset = text.indexOf('\n', offset) + 1;
  return offset;
}
