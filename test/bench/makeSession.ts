/**
 * Makes the recorded editing session. Types the passages of the plan with the pauses, bursts, slips and corrections of
 * a person, all drawn from one seed. The same seed and texts give the same trace.
 *
 * node test/bench/makeSession.ts            uses the texts in the published trace
 * node test/bench/makeSession.ts COMMIT     uses the texts of that commit of this repository
 */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { type Random, seededRandom } from '../support/engine/workload.ts';
import {
  finalTexts,
  type Key,
  readSession,
  type Session,
  type SessionEvent,
  type SessionFile,
  TRACE,
  printSession,
  type WriteEvent,
} from '../support/session/session.ts';
import { FILES, PLAN, type PlanStep } from './sessionPlan.ts';

/** Median in milliseconds, and spread of the logarithm, of the wait before a key, by kind of key. */
const WAITS = {
  within: [112, 0.3],
  wordStart: [165, 0.4],
  symbol: [185, 0.4],
  enter: [260, 0.4],
  /** At the start of a line, where the author thinks about the next words. */
  lineStart: [800, 0.5],
  /** Sometimes before a word. */
  thought: [750, 0.5],
  /** Time until the author notices a slip. */
  noticed: [330, 0.3],
  backspace: [95, 0.2],
  undo: [900, 0.3],
  /** Between two actions: the author reads and finds the next place. */
  between: [1800, 0.4],
} as const;
const THOUGHT_SHARE = 0.15;
const SLIP_SHARE = 0.022;
const MIN_WAIT = 38;
const MAX_WAIT = 4000;

/** Adjacent keys of each letter. */
const NEIGHBOURS: Record<string, string> = {
  q: 'wa',
  w: 'qes',
  e: 'wrd',
  r: 'etf',
  t: 'ryg',
  y: 'tuh',
  u: 'yij',
  i: 'uok',
  o: 'ipl',
  p: 'ol',
  a: 'qsz',
  s: 'adw',
  d: 'sfe',
  f: 'dgr',
  g: 'fht',
  h: 'gjy',
  j: 'hku',
  k: 'jli',
  l: 'ko',
  z: 'xa',
  x: 'zcs',
  c: 'xvd',
  v: 'cbf',
  b: 'vng',
  n: 'bmh',
  m: 'nj',
};

/**
 * Makes a trace of the plan.
 * @param texts final text of each file.
 */
export function makeSession(header: { seed: number; commit: string }, texts: ReadonlyMap<string, string>): Session {
  const random = seededRandom(header.seed);
  const passages = findPassages(texts);
  const current = new Map(texts);
  for (const passage of passages.values()) current.set(passage.file, without(current.get(passage.file) ?? '', passage));
  const files: SessionFile[] = [...current].map(([file, text]) => ({ file, text }));

  const events: SessionEvent[] = [];
  const between = (): number => draw(random, 'between');
  for (const step of PLAN) {
    if ('open' in step) events.push({ wait: between(), do: 'open', file: step.open });
    else if ('ask' in step) events.push({ wait: between(), do: 'ask', text: step.ask });
    else if ('summarize' in step) events.push({ wait: between(), do: 'summarize' });
    else {
      const passage = passages.get(step)!;
      events.push(write(random, current, passage, between(), 'undo' in step), {
        wait: draw(random, 'lineStart'),
        do: 'save',
      });
    }
  }
  return { session: 1, ...header, files, events };
}

interface Passage {
  file: string;
  /** Text of the passage. It occurs once after `before` and nowhere else. */
  text: string;
  before: string;
  after: string;
}

/**
 * Finds each passage in the final texts. Keeps enough text around it to find its place while other passages are
 * missing.
 */
function findPassages(texts: ReadonlyMap<string, string>): Map<PlanStep, Passage> {
  const passages = new Map<PlanStep, Passage>();
  let file = '';
  for (const step of PLAN) {
    if ('open' in step) file = step.open;
    if (!('lines' in step || 'line' in step)) continue;
    const lines = (texts.get(file) ?? '').split('\n');
    const find = (line: string, from = 0): number => {
      const at = lines.findIndex((each, i) => i >= from && each.trim() === line);
      if (at < 0) throw new Error(`${file} has no line "${line}"`);
      return at;
    };
    const first = find('lines' in step ? step.lines[0] : step.line);
    const last = 'lines' in step ? find(step.lines[1], first) : first;
    const start =
      lines.slice(0, first).join('\n').length + ('lines' in step ? 0 : 1 + lines[first]!.indexOf(step.rest));
    const end = lines.slice(0, last + 1).join('\n').length;
    const text = lines.join('\n');
    passages.set(step, { file, text: text.slice(start, end), before: text.slice(0, start), after: text.slice(end) });
  }
  return passages;
}

/** Removes a passage from a text that contains it completely. Other passages may already be missing. */
function without(text: string, { before, text: passage, after }: Passage): string {
  // The removal of other passages leaves at least this many characters around this one unchanged.
  const around = before.slice(-20) + passage + after.slice(0, 20);
  const at = text.indexOf(around) + 20;
  if (at < 20 || text.indexOf(around, at) >= 0)
    throw new Error(`the passage "${passage.trim().split('\n')[0]}" has no place of its own`);
  return text.slice(0, at) + text.slice(at + passage.length);
}

/** Types a passage where it is missing, and inserts it into `current`. */
function write(
  random: Random,
  current: Map<string, string>,
  passage: Passage,
  wait: number,
  undo: boolean,
): WriteEvent {
  const { file, text, before, after } = passage;
  const now = current.get(file) ?? '';
  const around = before.slice(-20) + after.slice(0, 20);
  const at = now.indexOf(around) + 20;
  if (at < 20 || now.indexOf(around, at) >= 0)
    throw new Error(`the place of "${text.trim().split('\n')[0]}" is not unique`);
  current.set(file, now.slice(0, at) + text + now.slice(at));
  const line = now.slice(0, at).split('\n').length;
  return { wait, do: 'write', line, column: at - now.lastIndexOf('\n', at - 1), text, keys: typed(random, text, undo) };
}

/** The keys that write `text`, with slips. With `undo`, the author also undoes some words. */
export function typed(random: Random, text: string, undo: boolean): Key[] {
  const units = text.match(/\n[ \t]*|[^\n]/g) ?? [];
  const keys: Key[] = [];
  let position = 0;
  let undoAt = undo ? Math.floor(text.length * (0.55 + 0.2 * random())) : Number.POSITIVE_INFINITY;
  for (let i = 0; i < units.length; i++) {
    const unit = units[i]!;
    keys.push([waitBefore(random, units, i), unit]);
    position += unit.length;
    if (random() < SLIP_SHARE) slip(random, units, i + 1, keys);
    if (position >= undoAt && /\w$/.test(unit)) {
      undoAt = Number.POSITIVE_INFINITY;
      const to = wordStartBefore(text, position - 12);
      keys.push([draw(random, 'undo'), 'Undo', to]);
      // The author changes their mind again and writes the same text.
      while (position > to) position -= units[i--]!.length;
    }
  }
  return keys;
}

/**
 * Types a wrong key instead of units[at]. Some right keys may follow before the author notices. Then Backspace removes
 * them all.
 */
function slip(random: Random, units: readonly string[], at: number, keys: Key[]): void {
  const wrong = NEIGHBOURS[units[at] ?? ''];
  if (!wrong) return;
  const late = units.slice(at + 1, at + 1 + Math.floor(random() * 3)).filter((unit) => !unit.startsWith('\n'));
  const pressed = [wrong[Math.floor(random() * wrong.length)]!, ...late];
  for (const key of pressed) keys.push([draw(random, 'within'), key]);
  for (const [i] of pressed.entries()) keys.push([draw(random, i === 0 ? 'noticed' : 'backspace'), 'Backspace']);
}

function waitBefore(random: Random, units: readonly string[], i: number): number {
  const unit = units[i]!;
  const previous = units[i - 1] ?? '\n';
  if (unit.startsWith('\n')) return draw(random, 'enter');
  if (previous.startsWith('\n')) return draw(random, 'lineStart');
  if (!/[\w\s]/.test(unit)) return draw(random, 'symbol');
  if (!/\w/.test(unit) || /\w/.test(previous)) return draw(random, 'within');
  return draw(random, random() < THOUGHT_SHARE ? 'thought' : 'wordStart');
}

function wordStartBefore(text: string, position: number): number {
  return [...text.slice(0, Math.max(0, position)).matchAll(/\b\w/g)].at(-1)?.index ?? 0;
}

/** Draws whole milliseconds from a log-normal distribution. */
function draw(random: Random, what: keyof typeof WAITS): number {
  const [median, spread] = WAITS[what];
  return Math.round(Math.min(MAX_WAIT, Math.max(MIN_WAIT, median * Math.exp(spread * normal(random)))));
}

/** Draws from a normal distribution with mean 0 and variance 1. */
export function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** The session's files at a commit. */
function textsOf(commit: string): Map<string, string> {
  const show = (path: string): string => execFileSync('git', ['show', `${commit}:${path}`], { encoding: 'utf8' });
  // In the joined file, imports would appear in the middle.
  const body = (path: string): string => show(path).replace(/^import .*;\n+/gm, '');
  return new Map(FILES.map(({ file, parts }) => [file, parts ? parts.map(body).join('\n') : show(file)]));
}

if (process.argv[1] === import.meta.filename) {
  const [commit] = process.argv.slice(2);
  const full = commit && execFileSync('git', ['rev-parse', commit], { encoding: 'utf8' }).trim();
  const published = full ? { seed: 1, commit: full } : readSession();
  const session = makeSession(
    { seed: published.seed, commit: published.commit },
    full ? textsOf(full) : finalTexts(readSession()),
  );
  writeFileSync(TRACE, printSession(session));
}
