/** Conversations in files: taken over from the workspace state once, replaced as a whole, and a disk that takes nothing is told once. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ConversationStore } from '../../src/chat/conversationStore.ts';
import { JsonFiles } from '../../src/chat/jsonFiles.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'kvasir-json-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function before(values: Record<string, unknown> = {}) {
  const stored = new Map(Object.entries(values));
  return { stored, get: (key: string) => stored.get(key), update: async (key: string, value: unknown) => void (value === undefined ? stored.delete(key) : stored.set(key, value)) };
}
const folder = () => path.join(root, 'workspace', 'kvasir');
const never = (reason: string) => expect.unreachable(reason);
const conversation = (id: string, text: string) => ({ id, createdAt: 1, updatedAt: 2, turns: [{ id: 'q', role: 'user' as const, text, context: [] }] });

test('what the workspace state holds is taken over once, and then only the files count', async () => {
  const state = before({ 'kvasir.chat.conversations': { current: 'a', conversations: [conversation('a', 'old')] }, other: 1 });
  const first = new ConversationStore(new JsonFiles(folder(), state, never));
  expect(first.current?.id).toBe('a');
  first.put(conversation('b', 'new'));
  await first.flush();
  expect([...state.stored]).toEqual([['other', 1]]);
  expect(new ConversationStore(new JsonFiles(folder(), state, never)).all.map(({ id }) => id)).toEqual(['b', 'a']);
  expect(readdirSync(folder())).toEqual(['kvasir.chat.conversations.json']);
  // An older window's state, found again, is not read over the files.
  state.stored.set('kvasir.chat.conversations', { current: null, conversations: [] });
  expect(new ConversationStore(new JsonFiles(folder(), state, never)).all).toHaveLength(2);
});

test('of many values the last is kept, each written whole, and nothing is left beside it', async () => {
  const files = new JsonFiles(folder(), before(), never);
  const writes = Array.from({ length: 50 }, (_, i) => files.update('key', { i, long: 'x'.repeat(10_000 + i) }));
  await Promise.all(writes);
  expect(files.get('key')).toMatchObject({ i: 49 });
  expect(readdirSync(folder())).toEqual(['key.json']);
  // Never a part of a value for whoever reads meanwhile: the file is another one each time.
  const writing = files.update('key', { i: 50 });
  expect(JSON.parse(readFileSync(path.join(folder(), 'key.json'), 'utf8'))).toMatchObject({ i: 49 });
  await writing;
  expect(files.get('key')).toEqual({ i: 50 });
});

test('a value is as it was when it was given', async () => {
  const files = new JsonFiles(folder(), before(), never);
  const value = { text: 'Hel' };
  const writing = files.update('key', value);
  value.text = 'Hello';
  await writing;
  expect(files.get('key')).toEqual({ text: 'Hel' });
});

test('where nothing can be written it is said once, the conversation goes on, and is kept as soon as it can be', async () => {
  // A file where the folder should be: no rights are needed to be refused.
  mkdirSync(path.dirname(folder()), { recursive: true });
  writeFileSync(folder(), '');
  const told: string[] = [];
  const state = before({ 'kvasir.chat.conversations': { current: 'a', conversations: [conversation('a', 'old')] } });
  const store = new ConversationStore(new JsonFiles(folder(), state, (reason) => told.push(reason)));
  for (const text of ['one', 'two', 'three']) {
    store.put(conversation('b', text));
    await store.flush();
  }
  expect(told).toEqual([expect.stringMatching(/EEXIST|ENOTDIR/)]);
  expect(store.find('b')?.turns[0]?.text).toBe('three');
  expect(state.stored.size, 'what is kept elsewhere stays').toBe(1);
  rmSync(folder());
  store.put(conversation('b', 'four'));
  await store.flush();
  expect(new ConversationStore(new JsonFiles(folder(), state, never)).find('b')?.turns[0]?.text).toBe('four');
  expect(told).toHaveLength(1);
});

test('a damaged file is no conversation', () => {
  mkdirSync(folder(), { recursive: true });
  writeFileSync(path.join(folder(), 'kvasir.chat.conversations.json'), '{"current": nul');
  expect(new ConversationStore(new JsonFiles(folder(), before(), never)).all).toEqual([]);
});
