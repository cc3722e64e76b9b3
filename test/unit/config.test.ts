/** Settings as people write them into files: whatever stands there, what is read makes sense. */
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';

const world = vi.hoisted(() => ({ values: new Map<string, unknown>(), defaults: new Map<string, unknown>() }));
vi.mock('../../src/vscode.ts', () => ({
  EventEmitter: class {},
  workspace: {
    getConfiguration: () => ({
      get: (key: string) => (world.values.has(key) ? world.values.get(key) : world.defaults.get(key)),
      inspect: (key: string) => ({ defaultValue: world.defaults.get(key) }),
    }),
    onDidChangeConfiguration: () => ({ dispose() {} }),
  },
}));
const { Settings } = await import('../../src/config.ts');

const properties = (JSON.parse(readFileSync('package.json', 'utf8')) as { contributes: { configuration: { properties: Record<string, { default: unknown; type: string }> } } }).contributes.configuration.properties;
for (const [name, { default: value }] of Object.entries(properties)) world.defaults.set(name.replace('kvasir.', ''), value);

function read(values: Record<string, unknown> = {}) {
  world.values = new Map(Object.entries(values));
  return new Settings().current;
}

test('a value of another type counts as not set: secrets stay out, completions stay on', () => {
  const wrong: Record<string, unknown> = { string: [7], array: { a: 1 }, boolean: 'yes', integer: [1], number: '3' };
  expect(read(Object.fromEntries(Object.entries(properties).map(([name, { type }]) => [name.replace('kvasir.', ''), wrong[type]])))).toEqual(read());
  expect(read()).toMatchObject({ enable: true, transport: 'thread', unloadAfterMinutes: 15, completion: { enable: true, debounceMs: 50, languages: ['*'] } });
  expect(read().completion.exclude).toContain('**/.env*');
});

test('what is out of range is brought into it, entries that are no text are left out', () => {
  expect(read({ 'completion.debounceMs': -1, 'engine.threads': 1e9, 'cache.maxBytes': 12.7, 'cache.memoryShare': 7, 'engine.unloadAfterMinutes': 0.5, 'engine.transport': 'pigeon', 'engine.precision': 'float32', model: ' /m ' })).toMatchObject({
    threads: 256, cacheMaxBytes: 12, cacheMemoryShare: 0.9, unloadAfterMinutes: 0.5, transport: 'thread', precision: 'int8', model: '/m', completion: { debounceMs: 0 },
  });
  expect(read({ 'completion.languages': [1, 'go', null, ''] }).completion.languages).toEqual(['go']);
  expect(read({ 'engine.transport': 'process' }).transport).toBe('process');
  expect(read({ 'engine.precision': 'int4' }).precision).toBe('int4');
});

test('any JSON at all', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom(...world.defaults.keys()), fc.jsonValue()), (values) => {
      const { threads, cacheMaxBytes, cacheMemoryShare, unloadAfterMinutes, completion, chat } = read(values);
      for (const value of [threads, cacheMaxBytes, completion.debounceMs, completion.maxTokens, chat.maxTokens]) expect(Number.isSafeInteger(value) && value >= 0).toBe(true);
      expect(cacheMemoryShare >= 0.1 && cacheMemoryShare <= 0.9).toBe(true);
      expect(unloadAfterMinutes >= 0 && unloadAfterMinutes <= 1440).toBe(true);
      for (const entry of [...completion.languages, ...completion.exclude]) expect(typeof entry).toBe('string');
    }),
  );
});
