/**
 * A day's work as an engine sees it: a programmer with ten to forty files who goes back and forth between a few of them, reads,
 * types in bursts, takes completions, asks in the chat and has files summarised. Nobody was recorded: it is drawn from the model
 * of behaviour below, one day for each seed, over pieces of the recorded session's texts. What the requests look like is not
 * the model's: they become prompts as in use (see cacheTrace).
 *
 * Where a figure has no source it is a guess, and said to be one. What decides for a cache, and holds for other figures, too: most
 * returns to a file come soon and a few much later; what is typed past, and most places where the cursor rests, never come back.
 */
import { below, type Random, seededRandom } from '../../support/engine/workload.ts';
import { typed, normal } from '../makeSession.ts';
import { finalTexts, MIN_SAVED, LOOK_MS, pressed, type Session } from '../../support/session/session.ts';
import type { Arrival } from '../sessionArrivals.ts';

const SECOND = 1000;
const MINUTE = 60_000;

/** Presence. A guess. */
const DAY_MS = 6 * 60 * MINUTE;
/** Median and spread (of the logarithm) of what is log-normal. */
type LogNormal = readonly [median: number, spread: number];
/** Between the files of this project (77 lines) and those of the recorded session (670). */
const FILE_LINES: LogNormal = [130, 0.8];
const MIN_FILES = 10;
const MAX_FILES = 40;
/** One thing to be done, and the time away from the editor after it. Guesses. */
const TASK_MS: LogNormal = [25 * MINUTE, 0.6];
const BREAK_MS: LogNormal = [8 * MINUTE, 1];
/** Files of a task besides the first; geometric. A guess. */
const MEAN_TASK_FILES = 6;
/** The next file: one seen before in this task (the one of n visits ago by 1/n), any one of the project, else one of the task. Guesses. */
const RETURNS = 0.72;
const STRAYS = 0.06;
/** At a file, without typing. A guess. */
const READING_MS: LogNormal = [18 * SECOND, 1.2];
/** Visits in which something is written: typing then takes some 5% of the time, as Minelli et al. have it ("I Know What You Did Last Summer", ICPC 2015). */
const EDITS = 0.16;
/** Lines of a burst besides the first; geometric. Bursts in a visit likewise. Guesses. */
const MEAN_LINES = 2;
const MEAN_BURSTS = 0.4;
/** A burst is this near to the file's last one, in lines, and how often. Guesses. */
const NEAR_LINES = 12;
const NEAR = 0.75;
/** Of completions that are seen, accepted: about as Ziegler et al. (arXiv 2205.06537) report. */
const ACCEPTED = 0.25;
/** Whoever has typed within it has the place read where the cursor rests (see Warmup); places for each visit at most. */
const AT_WORK_MS = 2 * MINUTE;
const MAX_RESTS = 3;
/** Visits with a question; turns of a conversation besides the first, geometric: 2.0 in all, as in LMSYS-Chat-1M (arXiv 2309.11998). */
const ASKS = 0.05;
const MEAN_FURTHER_TURNS = 1;
/** From answer to next question: 80% within ten minutes, as of a chat's reuses in "KVCache in the Wild" (arXiv 2506.02634). */
const TURN_MS: LogNormal = [2.5 * MINUTE, 1.6];
/** Characters. LMSYS-Chat-1M: 70 and 215 tokens. */
const QUESTION: LogNormal = [150, 0.8];
const ANSWER: LogNormal = [500, 0.7];
const MAX_ANSWER = 700;
/** A file is summarised when it is first seen, or another time. Guesses. */
const SUMMARISES_NEW = 0.15;
const SUMMARISES = 0.01;
const DEBOUNCE_MS = 50;

export interface DayArrival extends Arrival {
  /** What the model writes, where a later request goes on from it. */
  answer?: string;
}

interface OpenFile {
  readonly docId: string;
  text: string;
  version: number;
  /** Line of the last burst. */
  place: number;
}

/** In order of time; the same for the same seed. @param session whose texts the files are pieces of. */
export function daySession(session: Session, seed: number): DayArrival[] {
  return new Day(session, seededRandom(seed)).arrivals();
}

class Day {
  readonly #random: Random;
  /** Lines that files, what is typed into them, questions and answers are taken from. */
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
    /** In order of their last visits, the last one first. */
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

  /** Its turns come while other things are done; what is asked is about the file as it is then. */
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
          task: { kind: 'chat', docIds: [docId], messages: [...messages] },
          priority: 'chat',
        },
        answer,
      });
      messages.push({ role: 'assistant', content: answer });
      atMs += this.#draw(TURN_MS);
    }
  }

  /** Some lines are written on a line of their own; a completion is asked for where the pause before the next key is long enough. */
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
    /** Of `text`, accepted: keys are not pressed until they are past it. */
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
    // What only reads a place writes one token.
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

  /** Below n, k as often as 1 / (k + 1). */
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

/** Of a line's start, from 0. */
function offsetOf(text: string, line: number): number {
  let offset = 0;
  for (let n = 0; n < line; n++) offset = text.indexOf('\n', offset) + 1;
  return offset;
}
