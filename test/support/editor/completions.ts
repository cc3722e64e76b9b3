/**
 * Sets up a completion provider over the fake editor with fake timers, for the tests of its behaviour. Mock the editor
 * before importing this file.
 */
import { afterEach, beforeEach, expect, vi } from 'vitest';
import { Harness } from './completionHarness.ts';
import { editor } from './fakeEditor.ts';
import type { ScriptedRequest } from './scriptedEngine.ts';

let open: Harness[] = [];
export function harness(...options: ConstructorParameters<typeof Harness>) {
  const h = new Harness(...options);
  open.push(h);
  return h;
}

/** Resets the editor before each test. Checks after each test that no timer and no listener is left. */
export function useCompletions(): void {
  beforeEach(() => {
    editor.reset();
    vi.useFakeTimers();
  });
  afterEach(async () => {
    const closing = Promise.all(open.map((h) => h.dispose()));
    await vi.advanceTimersByTimeAsync(1000);
    await closing;
    open = [];
    expect(vi.getTimerCount(), 'timers left').toBe(0);
    expect(editor.numListeners, 'listeners left').toBe(0);
    vi.useRealTimers();
  });
}

export const wait = (ms: number) => vi.advanceTimersByTimeAsync(ms);
export const texts = async (question: { items: Promise<{ insertText: string }[]> }) =>
  (await question.items).map(({ insertText }) => insertText);
/** Answers each request at once. */
export const answers = (text: string | ((request: ScriptedRequest) => string)) => (request: ScriptedRequest) =>
  queueMicrotask(() => request.done(typeof text === 'string' ? text : text(request)));

/** Shows `text` at the cursor. */
export async function show(h: Harness, text: string) {
  const question = h.ask();
  await wait(60);
  h.engine.running[0]!.done(text);
  await wait(1);
  expect(await texts(question)).toEqual([text]);
  return (await question.items)[0]!;
}
