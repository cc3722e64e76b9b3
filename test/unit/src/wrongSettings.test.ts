/** An invalid setting is reported once, with the value in use and a button that opens it. */
import { expect, test, vi } from 'vitest';
import type { WrongSetting } from '../../../src/config.ts';
import { t } from '../../support/editor/translate.ts';

const world = vi.hoisted(() => ({
  warnings: [] as string[],
  chosen: undefined as string | undefined,
  ran: [] as unknown[][],
}));
vi.mock('../../../src/vscode.ts', () => ({
  l10n: { t: (text: string, ...values: (string | number)[]) => t(text, ...values) },
  window: {
    showWarningMessage: async (message: string) => {
      world.warnings.push(message);
      return world.chosen;
    },
  },
  env: { remoteName: undefined },
  commands: { executeCommand: async (...args: unknown[]) => void world.ran.push(args) },
}));
const { tellOfWrongSettings } = await import('../../../src/wrongSettings.ts');

const CODEC: WrongSetting = { key: 'kvasir.cache.codec', written: 'int3', used: 'int8' };
const BYTES: WrongSetting = { key: 'kvasir.cache.maxBytes', written: '1MB', used: 0 };

test('each setting is reported once, and again after it was corrected; long values are cut', async () => {
  let changed = (): unknown => undefined;
  const settings = {
    wrong: [CODEC] as WrongSetting[],
    onDidChange: (listener: () => unknown) => {
      changed = listener;
      return { dispose() {} };
    },
  };
  const logged: string[] = [];
  tellOfWrongSettings(settings as never, { warn: (text: string) => void logged.push(text) });
  const said = () => world.warnings.splice(0);
  const codec = 'The setting kvasir.cache.codec cannot be "int3"; "int8" is used instead.';
  expect(said()).toEqual([`Kvasir: ${codec}`]);
  settings.wrong = [CODEC, BYTES];
  changed();
  changed();
  expect(said()).toEqual(['Kvasir: The setting kvasir.cache.maxBytes cannot be "1MB"; 0 is used instead.']);
  expect(logged).toEqual([codec, 'The setting kvasir.cache.maxBytes cannot be "1MB"; 0 is used instead.']);
  settings.wrong = [];
  changed();
  expect(said()).toEqual([]);
  world.chosen = 'Open Setting';
  settings.wrong = [CODEC];
  changed();
  expect(said()).toHaveLength(1);
  await vi.waitFor(() =>
    expect(world.ran).toEqual([['workbench.action.openSettings', { query: '@id:kvasir.cache.codec' }]]),
  );
  settings.wrong = [{ ...CODEC, written: 'x'.repeat(1000) }];
  changed();
  expect(said()[0]!.length).toBeLessThan(200);
  settings.wrong = ['a', 'b', 'c', 'd', 'e'].map((key) => ({ ...BYTES, key }));
  changed();
  expect(said()).toEqual([expect.stringMatching(/setting a .* setting b .* setting c .* The log lists 2 more.$/)]);
});
