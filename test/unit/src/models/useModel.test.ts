/** Choosing a model: writes the setting, then loads; a failure gives one message and a way back. */
import { beforeEach, expect, test, vi } from 'vitest';

const world = vi.hoisted(() => ({
  model: '',
  told: [] as string[],
  offered: [] as string[],
  answer: undefined as string | undefined,
  changed: () => {},
  overruled: false,
}));
vi.mock('../../../../src/vscode.ts', () => ({
  EventEmitter: class {
    #listeners = new Set<(value: unknown) => void>();
    event = (listener: (value: unknown) => void) => {
      this.#listeners.add(listener);
      return { dispose: () => this.#listeners.delete(listener) };
    };
    fire(value: unknown): void {
      for (const listener of [...this.#listeners]) listener(value);
    }
    dispose(): void {}
  },
  ConfigurationTarget: { Global: 1 },
  ProgressLocation: { Notification: 15 },
  env: {
    language: 'en',
  },
  l10n: { t: (text: string, ...values: unknown[]) => text.replace(/\{(\d)\}/g, (_, i) => String(values[Number(i)])) },
  window: {
    setStatusBarMessage: (text: string) => world.told.push(text),
    showErrorMessage: async (text: string, ...buttons: string[]) => {
      world.told.push(text);
      world.offered = buttons;
      return world.answer;
    },
    showInformationMessage: async (text: string, ...buttons: string[]) => {
      world.told.push(text);
      world.offered = buttons;
      return world.answer;
    },
    withProgress: (_: unknown, work: (progress: unknown) => unknown) => work({ report() {} }),
  },
  workspace: {
    getConfiguration: () => ({
      get: (key: string) => (key === 'model' ? world.model : undefined),
      inspect: () => undefined,
      update: async (_: string, value: string | undefined) => {
        if (world.overruled) return;
        world.model = value ?? '';
        setTimeout(() => world.changed(), 5);
      },
    }),
    onDidChangeWorkspaceFolders: () => ({ dispose: () => {} }),
    onDidChangeConfiguration: (listener: (event: unknown) => void) => {
      world.changed = () => listener({ affectsConfiguration: () => true });
      return { dispose() {} };
    },
  },
}));
const { Settings } = await import('../../../../src/config.ts');
const { useModel } = await import('../../../../src/models/useModel.ts');

beforeEach(() =>
  Object.assign(world, {
    model: '',
    told: [],
    offered: [],
    answer: undefined,
    overruled: false,
  }),
);

function setUp(fails: (model: string) => string | undefined = () => undefined) {
  const settings = new Settings();
  const loads: string[] = [];
  let quiet = 0;
  const host = {
    client: {
      state: { kind: 'stopped' },
      stop: async () => {},
      ready: async () => {
        loads.push(`${settings.current.model || 'built-in'}${quiet ? '' : ', told by the host'}`);
        const failure = fails(settings.current.model);
        if (failure) throw new Error(failure);
      },
    },
    onState: () => ({ dispose() {} }),
    quietly: async (work: () => Promise<unknown>) => {
      quiet++;
      try {
        return await work();
      } finally {
        quiet--;
      }
    },
  };
  return { settings, host: host as never, loads };
}

test('the model is loaded after the editor has applied the setting', async () => {
  const { settings, host, loads } = setUp();
  await useModel('/models/a', 'A', host, settings);
  expect([world.model, loads, world.told]).toEqual(['/models/a', ['/models/a'], ['Kvasir uses A now.']]);
});

test('the built-in model is an empty setting', async () => {
  world.model = '/models/a';
  const { settings, host, loads } = setUp();
  await useModel('', 'starter', host, settings);
  expect([world.model, loads]).toEqual(['', ['built-in']]);
});

test('a failed model gives one message, whose button restores the former model', async () => {
  world.model = '/models/good';
  world.answer = 'Back to good';
  const { settings, host, loads } = setUp((model) =>
    model === '/models/bad' ? 'config.json: hidden_size is missing. See [x](command:y)' : undefined,
  );
  await useModel('/models/bad', 'Bad', host, settings);
  expect(world.told).toEqual(['Kvasir: Bad cannot be used: config.json: hidden_size is missing. See [x] (command:y)']);
  expect(world.offered).toEqual(['Back to good']);
  expect(loads).toEqual(['/models/bad', '/models/good, told by the host']);
  expect(world.model).toBe('/models/good');
});

test('a former model that was named is offered by its name', async () => {
  world.model = 'qwen2.5-coder:1.5b';
  const { settings, host } = setUp(() => 'no');
  await useModel('/models/bad', 'Bad', host, settings);
  expect(world.offered).toEqual(['Back to qwen2.5-coder:1.5b']);
});

test('without the click the setting stays', async () => {
  const { settings, host } = setUp(() => 'no');
  await useModel('/models/bad', 'Bad', host, settings);
  expect([world.model, world.offered]).toEqual(['/models/bad', ['Back to the built-in model']]);
});

test('if the current model fails again, the button leads to the built-in model', async () => {
  world.model = '/models/bad';
  world.answer = 'Use the Built-in Model';
  const { settings, host, loads } = setUp((model) => (model ? 'no' : undefined));
  await useModel('/models/bad', 'Bad', host, settings);
  expect(loads.at(-1)).toBe('built-in, told by the host');
});

test('an overruled setting is reported, and nothing is loaded', async () => {
  vi.useFakeTimers();
  world.overruled = true;
  const { settings, host, loads } = setUp();
  const used = useModel('/models/a', 'A', host, settings);
  await vi.advanceTimersByTimeAsync(6000);
  await used;
  vi.useRealTimers();
  expect(world.told).toEqual(['Kvasir: A cannot be used: the editor has not applied the changed setting']);
  expect(loads).toEqual([]);
});
