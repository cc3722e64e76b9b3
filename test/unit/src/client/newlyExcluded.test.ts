/**
 * Globs that are added to kvasir.completion.exclude clear the stored state of files, also when they were added in
 * another session.
 */
import { expect, test } from 'vitest';
import { onNewlyExcluded } from '../../../../src/client/newlyExcluded.ts';

/** A workspace that is opened repeatedly, with these globs. */
function workspace() {
  const state = new Map<string, unknown>();
  let numCleared = 0;
  const memento = {
    keys: () => [...state.keys()],
    get: (key: string, otherwise?: unknown) => (state.has(key) ? state.get(key) : otherwise),
    update: async (key: string, value: unknown) => void state.set(key, value),
  };
  return {
    cleared: () => numCleared,
    state,
    open(exclude: string[], excludeIn?: Map<string, string[]>) {
      let listener: (change: unknown) => void = () => {};
      const onDidChange = (heard: (change: never) => void) => {
        listener = heard as typeof listener;
        return { dispose: () => {} };
      };
      onNewlyExcluded(
        memento as never,
        { current: { completion: { exclude, excludeIn } }, onDidChange } as never,
        () => numCleared++,
      );
      return (now: string[], nowIn?: Map<string, string[]>) => {
        listener({
          before: { completion: { exclude, excludeIn } },
          now: { completion: { exclude: now, excludeIn: nowIn } },
        });
        [exclude, excludeIn] = [now, nowIn];
      };
    },
  };
}

test('adding a glob clears while the window is open; removing one does not', () => {
  const { open, cleared } = workspace();
  const change = open(['**/.env']);
  expect(cleared()).toBe(0);
  change(['**/.env', '*.key']);
  expect(cleared()).toBe(1);
  change(['*.key']);
  expect(cleared()).toBe(1);
  change(['*.key', '**/.env']);
  expect(cleared()).toBe(2);
});

test('a glob that was added while the window was closed clears once at the next start', () => {
  const { open, cleared } = workspace();
  open(['**/.env'])(['**/.env', '*.pem']);
  expect(cleared()).toBe(1);
  open(['**/.env', '*.pem']);
  expect(cleared()).toBe(1);
  open(['**/.env', '*.pem', 'private/']);
  expect(cleared()).toBe(2);
  open(['private/']);
  open(['private/']);
  expect(cleared()).toBe(2);
});

test('a new glob of one folder clears even if another folder had it, at once and at the next start', () => {
  const { open, cleared } = workspace();
  const change = open(['**/.env'], new Map([['file:///a', ['**/.env', 'private/']]]));
  expect(cleared()).toBe(0);
  change(
    ['**/.env'],
    new Map([
      ['file:///a', ['**/.env', 'private/']],
      ['file:///b', ['private/']],
    ]),
  );
  expect(cleared()).toBe(1);
  change(['**/.env'], new Map([['file:///b', ['private/']]]));
  expect(cleared()).toBe(1);
  open(['**/.env'], new Map([['file:///b', ['private/', 'more/']]]));
  expect(cleared()).toBe(2);
  open(['**/.env'], new Map([['file:///b', ['private/', 'more/']]]));
  expect(cleared()).toBe(2);
});

test("a folder that loses its own list gets the window's list, whose other globs clear, at once and at the next start", () => {
  const own = (globs: string[]) => new Map([['file:///a', globs]]);
  const { open, cleared } = workspace();
  const change = open(['**/.env', 'private/'], own([]));
  expect(cleared()).toBe(0);
  change(['**/.env', 'private/'], own(['private/']));
  expect(cleared()).toBe(1);
  change(['**/.env', 'private/']);
  expect(cleared()).toBe(2);
  change(['**/.env', 'private/'], own(['private/', '**/.env']));
  change(['**/.env', 'private/'], own(['**/.env']));
  expect(cleared()).toBe(2);
  open(['**/.env', 'private/']);
  expect(cleared()).toBe(3);
  open(['**/.env', 'private/']);
  expect(cleared()).toBe(3);
  // While a folder has its own list, the window's list does not apply to it.
  open(['**/.env'], own(['**/.env']))(['**/.env'], own([]));
  expect(cleared()).toBe(3);
});

test("the one list that earlier versions stored still detects the window's new globs", () => {
  const { open, cleared, state } = workspace();
  state.set('kvasir.excluded', ['**/.env', 'file:///a private/']);
  open(['**/.env']);
  expect(cleared()).toBe(0);
  state.set('kvasir.excluded', ['**/.env']);
  open(['**/.env', '*.pem']);
  expect(cleared()).toBe(1);
});
