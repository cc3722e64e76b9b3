/** The stored conversations: what survives a reload, how often they are written, and their bounds. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { SavedConversation } from '../../../../src/chat/conversation.ts';
import { ConversationStore } from '../../../../src/chat/conversationStore.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function memento() {
  const values = new Map<string, unknown>();
  let numWrites = 0;
  return {
    get: (key: string) => structuredClone(values.get(key)),
    update: async (key: string, value: unknown) => {
      numWrites++;
      values.set(key, structuredClone(value));
    },
    values,
    numWrites: () => numWrites,
  };
}

const conversation = (id: string, ...texts: string[]): SavedConversation => ({
  id,
  createdAt: 1,
  updatedAt: 2,
  turns: texts.flatMap((text, i) => [
    { id: `q${i}`, role: 'user', text: `Question ${i}`, context: [] } as const,
    { id: `a${i}`, role: 'assistant', text, state: 'streaming', notes: [] } as const,
  ]),
});

test('a streaming answer is stored at a limited rate, without waiting for its end', async () => {
  const state = memento();
  const store = new ConversationStore(state);
  store.put(conversation('a', ''), true);
  store.show('a');
  expect(new ConversationStore(state).all).toHaveLength(1);
  for (let i = 1; i <= 100; i++) {
    store.put(conversation('a', 'x'.repeat(i)));
    await vi.advanceTimersByTimeAsync(50);
  }
  expect(state.numWrites()).toBeLessThan(6);
  const [kept] = new ConversationStore(state).all;
  expect(kept!.turns[1]!.text.length).toBeGreaterThan(60);
  await vi.advanceTimersByTimeAsync(5000);
  const numWrites = state.numWrites();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(state.numWrites()).toBe(numWrites);
  expect(new ConversationStore(state).current).toMatchObject({ turns: [{}, { text: 'x'.repeat(100) }] });
});

test('a draft is stored at a limited rate during typing, without rewriting the conversations', async () => {
  const state = memento();
  const store = new ConversationStore(state);
  store.put(conversation('a', 'x'.repeat(1000)), true);
  const written: string[] = [];
  const { update } = state;
  state.update = async (key, value) => {
    written.push(JSON.stringify(value));
    await update(key, value);
  };
  for (let i = 1; i <= 60; i++) {
    store.draft = 'y'.repeat(i);
    await vi.advanceTimersByTimeAsync(100);
  }
  expect(new ConversationStore(state).draft.length, 'after six seconds without a pause').toBeGreaterThan(40);
  await vi.advanceTimersByTimeAsync(1500);
  expect(new ConversationStore(state).draft).toBe('y'.repeat(60));
  expect(written.length).toBeLessThan(6);
  expect(Math.max(...written.map(({ length }) => length))).toBeLessThan(100);
  expect(new ConversationStore(state).all).toHaveLength(1);
  store.draft = 'z';
  await store.flush();
  expect(new ConversationStore(state).draft).toBe('z');
  const numWrites = written.length;
  await vi.advanceTimersByTimeAsync(5000);
  expect(written).toHaveLength(numWrites);
});

test('the stored value is a copy that a continuing answer does not change', async () => {
  const values: unknown[] = [];
  const store = new ConversationStore({ get: () => undefined, update: async (_, value) => void values.push(value) });
  const live = conversation('a', 'Hel');
  store.put(live, true);
  (live.turns[1] as { text: string }).text = 'Hello';
  expect(JSON.stringify(values[0])).not.toContain('Hello');
});

test('conversations are stored newest first, without deleted and empty ones', async () => {
  const state = memento();
  const store = new ConversationStore(state);
  store.put(conversation('a', 'x'));
  store.put(conversation('b', 'y'));
  store.put(conversation('c'));
  store.put(conversation('a', 'x', 'z'));
  store.delete('b');
  await store.flush();
  expect(new ConversationStore(state).all.map(({ id, turns }) => [id, turns.length])).toEqual([['a', 4]]);
});

test('a restored conversation returns to its old position', async () => {
  const state = memento();
  const store = new ConversationStore(state);
  for (const [i, id] of ['a', 'b', 'c'].entries()) store.put({ ...conversation(id, 'x'), updatedAt: i });
  const deleted = ['a', 'b', 'c'].map((id) => store.find(id)!);
  for (const { id } of deleted) store.delete(id);
  for (const each of deleted) store.restore(each);
  await store.flush();
  expect(new ConversationStore(state).all.map(({ id }) => id)).toEqual(['c', 'b', 'a']);
});

test.each([
  [40, 'word'],
  [45, 'word '.repeat(3000)],
])('when the oldest of %d is restored, it is written at once and not dropped', async (numOthers, text) => {
  const state = memento();
  const store = new ConversationStore(state);
  const oldest = { ...conversation('oldest', text), updatedAt: 0 };
  store.put(oldest);
  for (let i = 1; i < numOthers; i++) store.put({ ...conversation(`c${i}`, text), updatedAt: i });
  store.delete('oldest');
  // Another conversation starts before the deletion is undone.
  store.put({ ...conversation('new', text), updatedAt: 100 }, true);
  store.restore(oldest);
  const reloaded = new ConversationStore(state);
  expect(reloaded.find('oldest')).toEqual(oldest);
  expect(reloaded.all[0]!.id).toBe('new');
  expect(reloaded.all.length).toBeLessThanOrEqual(40);
  expect(JSON.stringify([...state.values.values()]).length).toBeLessThan(620_000);
  store.put({ ...conversation('newer', text), updatedAt: 101 }, true);
  expect(new ConversationStore(state).all.map(({ id }) => id)).toEqual(expect.arrayContaining(['newer', 'oldest']));
});

test('of too many or too long conversations the newest are kept whole, and a huge one loses its oldest turns', async () => {
  const state = memento();
  const store = new ConversationStore(state);
  for (let i = 0; i < 100; i++) store.put(conversation(`c${i}`, 'word '.repeat(2000)));
  store.put(conversation('huge', ...Array.from({ length: 60 }, () => 'word '.repeat(3000))));
  await store.flush();
  const { all } = new ConversationStore(state);
  expect(JSON.stringify([...state.values.values()]).length).toBeLessThan(620_000);
  expect(all.slice(0, 3).map(({ id }) => id)).toEqual(['huge', 'c99', 'c98']);
  expect(all[0]!.turns[0]).toMatchObject({ role: 'user' });
  expect(all[0]!.turns.at(-1)).toMatchObject({ id: 'a59' });
  expect(all[0]!.turns.length).toBeLessThan(60);
});

test('invalid entries of the stored state are ignored', () => {
  expect(
    new ConversationStore({
      get: () => ({ conversations: [null, 3, { id: 'a' }], current: 7 }),
      update: async () => {},
    }).all,
  ).toEqual([]);
  expect(new ConversationStore({ get: () => 'x', update: async () => {} }).current).toBeUndefined();
});
