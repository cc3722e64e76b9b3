/** Settings from hand-edited files: any value is read as a valid one. */
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';

/** `own`: the folders' own settings, by URI. */
const world = vi.hoisted(() => ({
  values: new Map<string, unknown>(),
  defaults: new Map<string, unknown>(),
  own: new Map<string, Map<string, unknown>>(),
  foldersChanged: () => {},
}));
vi.mock('../../../src/vscode.ts', () => ({
  EventEmitter: class {
    readonly #listeners = new Set<(value: unknown) => void>();
    readonly event = (listener: (value: unknown) => void) => this.#listeners.add(listener);
    fire(value: unknown): void {
      for (const listener of this.#listeners) listener(value);
    }
  },
  workspace: {
    get workspaceFolders() {
      return [...world.own.keys()].map((uri) => ({ uri }));
    },
    getConfiguration: (_: string, folder: string | null) => ({
      get: (key: string) =>
        [world.own.get(folder ?? '') ?? new Map<string, unknown>(), world.values, world.defaults]
          .find((values) => values.has(key))
          ?.get(key),
      inspect: (key: string) => ({ defaultValue: world.defaults.get(key) }),
    }),
    onDidChangeConfiguration: () => ({ dispose() {} }),
    onDidChangeWorkspaceFolders: (listener: () => void) => {
      world.foldersChanged = listener;
      return { dispose() {} };
    },
  },
}));
const { Settings } = await import('../../../src/config.ts');

const properties = (
  JSON.parse(readFileSync('package.json', 'utf8')) as {
    contributes: { configuration: { properties: Record<string, { default: unknown; type: string }> } };
  }
).contributes.configuration.properties;
for (const [name, { default: value }] of Object.entries(properties))
  world.defaults.set(name.replace('kvasir.', ''), value);

function read(values: Record<string, unknown> = {}) {
  world.values = new Map(Object.entries(values));
  return new Settings().current;
}

test('a value of the wrong type counts as not set: secrets stay excluded, completions stay on', () => {
  const wrong: Record<string, unknown> = { string: [7], array: { a: 1 }, boolean: 'yes', integer: [1], number: '3' };
  expect(
    read(
      Object.fromEntries(
        Object.entries(properties).map(([name, { type }]) => [name.replace('kvasir.', ''), wrong[type]]),
      ),
    ),
  ).toEqual(read());
  expect(read()).toMatchObject({
    enable: true,
    unloadAfterMinutes: 15,
    completion: { enable: true, debounceMs: 50, languages: ['*'] },
  });
  expect(read().completion.exclude).toContain('**/.env*');
});

test('numbers are clamped to their range, and list entries that are not texts are left out', () => {
  expect(
    read({
      'completion.debounceMs': -1,
      'engine.threads': 1e9,
      'cache.maxBytes': 12.7,
      'engine.unloadAfterMinutes': 0.5,
      'engine.precision': 'float32',
      model: ' /m ',
    }),
  ).toMatchObject({
    threads: 256,
    cacheMaxBytes: 12,
    unloadAfterMinutes: 0.5,
    precision: 'int8',
    model: '/m',
    completion: { debounceMs: 0 },
  });
  expect(read({ 'completion.languages': [1, 'go', null, ''] }).completion.languages).toEqual(['go']);
  expect(read({ 'engine.precision': 'int4' }).precision).toBe('int4');
});

test('invalid values are reported with the value in use; cleaned values are not', () => {
  const wrong = (values: Record<string, unknown>): Record<string, unknown> => {
    world.values = new Map(Object.entries(values));
    return Object.fromEntries(new Settings().wrong.map(({ key, used }) => [key.replace('kvasir.', ''), used]));
  };
  expect(wrong({})).toEqual({});
  expect(
    wrong({
      'cache.codec': 'auto',
      'cache.maxBytes': 12.7,
      model: ' /m ',
      'engine.precision': ' int4 ',
      'completion.languages': [1, 'go'],
    }),
  ).toEqual({});
  expect(
    wrong({
      'cache.codec': 'int3',
      'cache.maxBytes': '1MB',
      'cache.diskBytes': -1,
      'engine.precision': 7,
      'completion.exclude': 'x',
      enable: 'yes',
      model: null,
    }),
  ).toEqual({
    enable: true,
    model: '',
    'cache.maxBytes': 0,
    'cache.diskBytes': 0,
    'cache.codec': 'int8',
    'engine.precision': 'int8',
    'completion.exclude': world.defaults.get('completion.exclude'),
  });
});

test('workspace folders may have their own globs, also folders that are added later', () => {
  world.own = new Map([
    ['file:///alike', new Map()],
    ['file:///own', new Map([['completion.exclude', ['private/', 7]]])],
    ['file:///wrong', new Map([['completion.exclude', 'private/']])],
  ]);
  const { exclude, excludeIn } = read({ 'completion.exclude': ['**/*.key'] }).completion;
  expect([exclude, [...excludeIn!]]).toEqual([
    ['**/*.key'],
    [
      ['file:///own', ['private/']],
      ['file:///wrong', world.defaults.get('completion.exclude')],
    ],
  ]);

  world.own = new Map();
  const settings = new Settings();
  expect(settings.current.completion.excludeIn).toBeUndefined();
  const heard: unknown[] = [];
  settings.onDidChange(({ before, now }) => heard.push([before.completion.excludeIn, now.completion.excludeIn]));
  world.own = new Map([['file:///own', new Map([['completion.exclude', ['private/']]])]]);
  world.foldersChanged();
  expect(heard).toEqual([[undefined, new Map([['file:///own', ['private/']]])]]);
  world.own = new Map();
});

test('any JSON value is read as a valid setting', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom(...world.defaults.keys()), fc.jsonValue()), (values) => {
      const { threads, cacheMaxBytes, unloadAfterMinutes, completion, chat } = read(values);
      for (const value of [threads, cacheMaxBytes, completion.debounceMs, completion.maxTokens, chat.maxTokens])
        expect(Number.isSafeInteger(value) && value >= 0).toBe(true);
      expect(unloadAfterMinutes >= 0 && unloadAfterMinutes <= 1440).toBe(true);
      for (const entry of [...completion.languages, ...completion.exclude]) expect(typeof entry).toBe('string');
    }),
  );
});
