/**
 * Ghost text is never stale or misplaced, for random actions of the user and the engine. Every offered text is one that
 * the engine wrote for the current document, and accepting it gives that document with the text at the cursor.
 */
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { part } from '../../../support/testLength.ts';
import { editor, type FakeDocument } from '../../../support/editor/fakeEditor.ts';
import type { ScriptedRequest } from '../../../support/editor/scriptedEngine.ts';

vi.mock('../../../../src/vscode.ts', async () => (await import('../../../support/editor/fakeEditor.ts')).vscodeApi);
const { Harness } = await import('../../../support/editor/completionHarness.ts');
type Editing = InstanceType<typeof Harness>;

const ACTIONS = [
  'type along',
  'type along',
  'type',
  'type',
  'type closed',
  'backspace',
  'undo',
  'jump',
  'two cursors',
  'edit elsewhere',
  'accept',
  'accept part',
  'by hand',
  'list',
  'escape',
  'chunk',
  'chunk',
  'done',
  'done',
  'fail',
  'wait',
  'wait',
  'wait long',
  'answer',
  'answer',
  'answer',
  'answer',
  'first part',
] as const;
interface Step {
  action: (typeof ACTIONS)[number];
  /** Selects one of the possible variants of the action. */
  n: number;
}
const step: fc.Arbitrary<Step> = fc.record({ action: fc.constantFrom(...ACTIONS), n: fc.nat(1000) });

const KEYS = ['a', 'b', '(', ')', ' ', '\n'];
const ANSWERS = ['a', 'ab', 'b(a)', '(a, b)', ')', ' a\n  b', '(\n)', 'aab', ''];

/** Counts of offered texts by kind, to show that the test covers all kinds. */
const seen = {
  offered: 0,
  withoutRequest: 0,
  accepted: 0,
  parts: 0,
  covering: 0,
  inList: 0,
  candidates: 0,
  refreshed: 0,
};

class Session {
  readonly h: Editing;
  readonly #answers = new Map<ScriptedRequest, string>();
  #undo: { text: string; offset: number }[] = [];
  #ghost: Awaited<ReturnType<Editing['ask']>['items']> = [];

  constructor(marked: string) {
    this.h = new Harness(marked);
    this.h.engine.loadMs = 200;
    editor.onCommand = (name) => {
      if (name !== 'editor.action.inlineSuggest.trigger') return;
      const question = this.h.trigger();
      if (!question) return;
      seen.refreshed++;
      this.#look(question);
    };
    this.h.engine.onRequest = (request) => this.#answers.set(request, ANSWERS[this.#answers.size % ANSWERS.length]!);
  }

  async run({ action, n }: Step): Promise<void> {
    const { h } = this;
    const { document } = h;
    const running = h.engine.running;
    const request = running[n % Math.max(1, running.length)];
    const ghost = this.#ghost[n % Math.max(1, this.#ghost.length)];
    switch (action) {
      case 'type along':
        if (ghost && ghost.end === ghost.start && document.eol === 1) this.#edited(() => h.type(ghost.insertText[0]!));
        break;
      case 'type':
        this.#edited(() => h.type(KEYS[n % KEYS.length]!.replace('\n', document.eol === 2 ? '\r\n' : '\n')));
        break;
      case 'type closed':
        this.#edited(() => h.type('(', ')'));
        break;
      case 'backspace':
        if (h.cursor > 1)
          this.#edited(() => h.backspace(document.text[h.cursor - 1] === '\n' && document.eol === 2 ? 2 : 1));
        break;
      case 'undo': {
        const before = this.#undo.pop();
        if (before)
          this.#change(
            () => document.change({ offset: 0, deleted: document.text.length, text: before.text }),
            before.offset,
          );
        break;
      }
      case 'jump':
        this.#ghost = [];
        h.asked?.cancel();
        editor.select(document, place(document, n));
        if (n % 3 === 0) this.#look(h.ask());
        break;
      case 'two cursors': {
        const [first, second] = [h.cursor, place(document, n)].sort((a, b) => a - b) as [number, number];
        if (first === second) break;
        this.#remember();
        document.change({ offset: second, deleted: 0, text: 'a' }, { offset: first, deleted: 0, text: 'a' });
        editor.select(document, first + 1, second + 2);
        this.#look(h.ask());
        break;
      }
      case 'edit elsewhere': {
        const at = place(document, n);
        const change = () => document.change({ offset: at, deleted: 0, text: 'b' });
        // The editor does not always ask again or cancel.
        if (n % 2) this.#change(change, at <= h.cursor ? h.cursor + 1 : h.cursor);
        else if (at > h.cursor) change();
        break;
      }
      case 'accept':
        if (ghost) {
          seen.accepted++;
          this.#edited(() => h.accept(ghost));
        }
        break;
      case 'accept part':
        if (ghost && ghost.start === h.cursor && document.eol === 1)
          this.#edited(() => h.accept(ghost, 1 + (n % ghost.insertText.length)));
        break;
      case 'by hand':
        this.#look(h.ask({ explicit: true }));
        break;
      case 'list': {
        const start = Math.max(document.text.lastIndexOf('\n', h.cursor - 1) + 1, h.cursor - (n % 3));
        this.#look(
          h.ask({ selected: { start, text: document.text.slice(start, h.cursor) + ['', 'a', 'ab', 'b('][n % 4] } }),
        );
        break;
      }
      case 'escape':
        this.#ghost = [];
        h.asked?.cancel();
        break;
      case 'chunk':
        if (request) this.#write(request, 1 + (n % 2));
        break;
      case 'done':
        if (request) request.done(this.#answers.get(request)!.slice(request.written.length));
        break;
      case 'answer':
        await vi.advanceTimersByTimeAsync(60);
        for (const each of h.engine.running) each.done(this.#answers.get(each)!.slice(each.written.length));
        break;
      case 'first part':
        await vi.advanceTimersByTimeAsync(60);
        for (const each of h.engine.running) this.#write(each, 1);
        await vi.advanceTimersByTimeAsync(700);
        break;
      case 'fail':
        if (n % 5 === 0) request?.fail('out of memory');
        else if (n % 5 < 3 && request?.written === '') request.fail('unknown document', 'unknownDocument');
        break;
      default:
        await vi.advanceTimersByTimeAsync(action === 'wait' ? n % 120 : 700);
    }
    await vi.advanceTimersByTimeAsync(0);
  }

  #write(request: ScriptedRequest, length: number): void {
    const text = this.#answers.get(request)!.slice(request.written.length, request.written.length + length);
    if (text) request.chunk(text);
  }

  #remember(): void {
    this.#undo.push({ text: this.h.document.text, offset: this.h.cursor });
  }

  #edited(edit: () => ReturnType<Editing['ask']>): void {
    this.#remember();
    this.#look(edit());
  }

  #change(change: () => void, cursor: number): void {
    this.#ghost = [];
    this.h.asked?.cancel();
    change();
    editor.select(this.h.document, cursor);
    this.#look(this.h.ask());
  }

  /** Checks the answer, and shows it if nothing has happened since. */
  #look(question: ReturnType<Editing['ask']>): void {
    const { h } = this;
    this.#ghost = [];
    const numRequests = h.asks.length;
    void question.items
      .then((items) => {
        if (question.cancelled || items.length === 0) return;
        expect(h.document.version).toBe(question.version);
        expect(h.cursor).toBe(question.offset);
        for (const item of items) this.#check(item);
        expect(new Set(items.map(({ insertText }) => insertText)).size).toBe(items.length);
        seen.offered++;
        if (h.asks.length === numRequests) seen.withoutRequest++;
        if (items.length > 1) seen.candidates++;
        this.#ghost = items;
      })
      .catch((error: unknown) => this.failures.push(error));
  }

  readonly failures: unknown[] = [];

  #check({ insertText, start, end }: { insertText: string; start: number; end: number }): void {
    const { document, cursor } = this.h;
    const { text } = document;
    expect(start).toBeLessThanOrEqual(cursor);
    expect(end).toBeGreaterThanOrEqual(cursor);
    // The replaced characters stay visible: those before the cursor at the start of the text, those after it in order.
    expect(insertText.startsWith(text.slice(start, cursor))).toBe(true);
    const covered = text.slice(cursor, end);
    expect(covered).toMatch(/^[)]*$/);
    expect(insertText.split(')').length).toBeGreaterThan(covered.length);
    expect(insertText.length).toBeGreaterThan(end - start);
    const after = text.slice(0, start) + insertText + text.slice(end);
    const written = this.h.engine.requests.filter((request) => this.#wrote(request, after));
    expect(
      written.length,
      `no request wrote ${JSON.stringify(after)} (shown at ${JSON.stringify(this.h.marked)})`,
    ).toBeGreaterThan(0);
    if (covered) seen.covering++;
    if (start < cursor) seen.inList++;
    if (written.every((request) => request.written !== this.#answers.get(request))) seen.parts++;
  }

  /** Whether `text` is the request's document with the written text inserted. */
  #wrote(request: ScriptedRequest, text: string): boolean {
    const { offset, inserted = '' } = request.task;
    const before = request.text.slice(0, offset) + inserted;
    const after = request.text.slice(offset);
    if (text.length < before.length + after.length || !text.startsWith(before) || !text.endsWith(after)) return false;
    const written = request.text.includes('\r\n') ? request.written.replace(/\n/g, '\r\n') : request.written;
    return written.startsWith(text.slice(before.length, text.length - after.length));
  }
}

/** Some place between two characters; never within a CRLF. */
function place({ text }: FakeDocument, n: number): number {
  const at = n % (text.length + 1);
  return text.slice(at - 1, at + 1) === '\r\n' ? at - 1 : at;
}

beforeEach(() => {
  editor.reset();
  vi.useFakeTimers();
});
afterEach(() => void vi.useRealTimers());

test('after any steps, an offered text is one that the engine wrote for the current text', async () => {
  let numSteps = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('a = |;\nb\n', '|', 'f(|)\r\nb\r\n', 'if (a) {\n  |\n}\n'),
      fc.array(step, { minLength: 5, maxLength: 60, size: 'max' }),
      async (marked, steps) => {
        editor.reset();
        const session = new Session(marked);
        for (const one of steps) {
          numSteps++;
          await session.run(one);
          if (session.failures.length) throw session.failures[0];
        }
        const closing = session.h.dispose();
        await vi.advanceTimersByTimeAsync(1000);
        await closing;
        expect(session.h.engine.running.length, 'requests left').toBe(0);
        expect(vi.getTimerCount(), 'timers left').toBe(0);
        expect(editor.numListeners, 'listeners left').toBe(0);
      },
    ),
    { numRuns: part(1800), seed: 20 },
  );
  expect(numSteps).toBeGreaterThan(part(20_000));
  for (const [kind, count] of Object.entries(seen)) expect(count, kind).toBeGreaterThanOrEqual(part(10));
}, 60_000);
