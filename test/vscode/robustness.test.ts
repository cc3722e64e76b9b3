/**
 * Faults of the engine, the model, the disk and the settings during work. Each gives at most one clear message, loses
 * no text and can be recovered from.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Locator } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PATIENCE } from './editor.ts';
import { cursorOf, unfinishedLine } from './places.ts';
import type { EditorServerAddress } from './server.ts';
import { ownServer } from './ownServer.ts';
import { INVENTORY, ownEditorSuite } from './suite.ts';

const SETTINGS = ['kvasir.engine.unloadAfterMinutes', 'kvasir.engine.threads', 'kvasir.model', 'kvasir.cache.maxBytes'];
const QUESTION = 'What is this file for?';
/** An answer that ended without an error. Its correctness is not checked. */
const DONE = /^done: This file/;
/** A place where any model suggests text. */
const UNFINISHED = unfinishedLine('let total = ');

ownEditorSuite(
  'robustness',
  {
    'src/inventory.ts': INVENTORY,
    'src/unfinished.ts': UNFINISHED.before + UNFINISHED.after,
  },
  (editor) => {
    const server = ownServer() as EditorServerAddress;
    const cacheDir = () => path.join(server.folder, 'user/User/globalStorage/kvasir.kvasir/models');
    const copy = () => path.join(server.folder, 'model-copy');

    beforeAll(async () => {
      await editor().openFile('src/inventory.ts');
      await editor().runCommand('Kvasir: Open Chat');
    });
    afterAll(() => {
      if (typeof server === 'string') return;
      editor().configureMachine(Object.fromEntries(SETTINGS.map((name) => [name, undefined])));
      rmSync(copy(), { recursive: true, force: true });
    });

    const stateOf = (answer: Locator, timeout = 2 * PATIENCE) =>
      expect.poll(() => answer.getAttribute('data-state'), { timeout });
    async function askToTheEnd(question = QUESTION): Promise<string> {
      const answer = await editor().ask(question);
      await stateOf(answer).not.toBe('streaming');
      return `${await answer.getAttribute('data-state')}: ${await answer.textContent()}`;
    }
    async function expectWorking(): Promise<void> {
      expect(await askToTheEnd()).toMatch(DONE);
      expect(await editor().toasts()).toEqual([]);
    }
    async function dismissToasts(): Promise<void> {
      await editor().runCommand('Notifications: Clear All Notifications');
      await expect.poll(() => editor().toasts()).toEqual([]);
    }

    test('the chat answers before any fault', expectWorking);

    test('after the model is unloaded, the conversation stays and continues', async () => {
      const numAnswers = await editor().answers.count();
      editor().configureMachine({ 'kvasir.engine.unloadAfterMinutes': 0.03 });
      await expect.poll(() => editor().statusItem.innerHTML(), { timeout: PATIENCE }).toContain('not loaded');
      editor().configureMachine({ 'kvasir.engine.unloadAfterMinutes': undefined });
      await expectWorking();
      expect(await editor().answers.count()).toBe(numAnswers + 1);
    });

    test('a model folder that is deleted during or before the load gives one message', async () => {
      cpSync('model', copy(), { recursive: true });
      editor().configureMachine({ 'kvasir.model': copy() });
      try {
        // The changed setting stops the engine.
        await expect.poll(() => editor().statusItem.innerHTML(), { timeout: PATIENCE }).toContain('not loaded');
        await expect.poll(() => askToTheEnd(), { timeout: 2 * PATIENCE }).toMatch(DONE);
        rmSync(copy(), { recursive: true });
        await expectWorking();
        await editor().runCommand('Kvasir: Restart Engine');
        await expect
          .poll(() => editor().toasts(), { timeout: PATIENCE })
          .toEqual([expect.stringContaining(`The setting kvasir.model does not name a folder or a file: ${copy()}`)]);
        await editor().screenshot('model-deleted');
        expect(await askToTheEnd()).toContain('error: ');
        expect(await editor().toasts()).toHaveLength(1);
        await dismissToasts();
      } finally {
        editor().configureMachine({ 'kvasir.model': undefined });
      }
      await expect.poll(() => askToTheEnd(), { timeout: 2 * PATIENCE }).toMatch(DONE);
      expect(await editor().toasts()).toEqual([]);
    });

    test('a truncated model file gives a message with its place and remedy, which offers another model', async () => {
      cpSync('test/fixtures/bad/st_truncated', copy(), { recursive: true });
      editor().configureMachine({ 'kvasir.model': copy() });
      try {
        await expect
          .poll(() => askToTheEnd(), { timeout: 2 * PATIENCE })
          .toMatch(/error: .*model-copy: model\.safetensors: .* cut off or its header is wrong: download it again\./);
        await editor().screenshot('model-cut-off');
        await editor().answers.last().getByRole('button', { name: 'Choose Model' }).click();
        await editor().page.locator('.quick-input-widget:visible .quick-input-list').waitFor();
        await editor().press('Escape');
        await dismissToasts();
      } finally {
        editor().configureMachine({ 'kvasir.model': undefined });
        rmSync(copy(), { recursive: true, force: true });
      }
      await expect.poll(() => askToTheEnd(), { timeout: 2 * PATIENCE }).toMatch(DONE);
    });

    const mayMount =
      typeof server !== 'string' &&
      spawnSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'tmpfs', '/tmp']).status === 0;
    test.skipIf(!mayMount)(
      `disk full${mayMount ? '' : ' (this machine permits no mount)'}: the message says what is needed and where; no incomplete file is left`,
      async () => {
        mkdirSync(cacheDir(), { recursive: true });
        expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', cacheDir()]).status).toBe(0);
        try {
          await editor().runCommand('Kvasir: Restart Engine');
          await expect
            .poll(() => editor().toasts(), { timeout: PATIENCE })
            .toEqual([
              expect.stringMatching(
                /The disk with the cache folder .*models is full\. This model needs \d+ MB there\. Free some space\./,
              ),
            ]);
          await editor().screenshot('disk-full');
          // The hashes of the model's files are whole, and small enough.
          expect(readdirSync(cacheDir()).filter((name) => name !== '.contents.json')).toEqual([]);
          await dismissToasts();
        } finally {
          spawnSync('umount', [cacheDir()]);
        }
        await expectWorking();
      },
    );

    test('with damaged kernels onnxruntime computes; if it is damaged too, there is one message, and all works after the repair', async () => {
      const extensions = path.join(server.folder, 'extensions');
      const [kvasir = ''] = readdirSync(extensions).filter((name) => name.startsWith('kvasir.kvasir-'));
      const [kernels, onnxruntime] = [
        'dist/native/linux-x64.node',
        'node_modules/onnxruntime-node/bin/napi-v6/linux/x64/onnxruntime_binding.node',
      ].map((file) => path.join(extensions, kvasir, file)) as [string, string];
      const damaged: string[] = [];
      // The extension host keeps a loaded library, so this needs a new host.
      const damage = async (library: string): Promise<void> => {
        renameSync(library, `${library}.whole`);
        damaged.push(library);
        writeFileSync(library, 'damaged');
        const numAnswers = await editor().answers.count();
        await editor().reload();
        await editor().statusItem.waitFor();
        // The conversation appears late. A question before that would be taken for one of its turns.
        await expect.poll(() => editor().answers.count(), { timeout: PATIENCE }).toBe(numAnswers);
      };
      try {
        await damage(kernels);
        await expectWorking();
        expect(await editor().statusHover()).toContain('onnxruntime');
        await editor().screenshot('kernels-damaged');
        await editor().unhover();
        await damage(onnxruntime);
        await editor().runCommand('Kvasir: Restart Engine');
        await expect
          .poll(() => editor().toasts(), { timeout: PATIENCE })
          .toEqual([
            expect.stringMatching(
              /onnxruntime could not be loaded on linux-x64: .*Install the Kvasir package for this platform\./,
            ),
          ]);
        await editor().screenshot('library-damaged');
        expect(await askToTheEnd()).toContain('error: ');
        expect(await editor().toasts()).toHaveLength(1);
        await dismissToasts();
      } finally {
        for (const library of damaged) renameSync(`${library}.whole`, library);
      }
      await expectWorking();
      expect(await editor().statusHover()).toContain('native kernels (');
      await editor().screenshot('kernels-repaired');
      await editor().unhover();
    });

    test('invalid settings are treated as unset', async () => {
      editor().configureMachine({
        'kvasir.engine.threads': 'many',
        'kvasir.engine.unloadAfterMinutes': {},
        'kvasir.cache.maxBytes': -5,
        'kvasir.model': 7,
      });
      editor().configure({
        'kvasir.enable': 'yes',
        'kvasir.completion.debounceMs': 'soon',
        'kvasir.completion.maxTokens': null,
        'kvasir.completion.languages': 5,
        'kvasir.completion.exclude': { a: 1 },
        'kvasir.chat.maxTokens': [1],
        'kvasir.summary.codeLens': 'sometimes',
        'kvasir.summary.hover': 3,
        'kvasir.completion.snippets': {},
        'kvasir.completion.pauseOnBattery': 'x',
      });
      // Each invalid setting is reported once, a few of them by name.
      await expect
        .poll(async () => (await editor().toasts()).join('\n'), { timeout: PATIENCE })
        .toMatch(/kvasir\.cache\.maxBytes cannot be -5; 0 is used instead/);
      await expect
        .poll(async () => (await editor().toasts()).join('\n'), { timeout: PATIENCE })
        .toMatch(/kvasir\.enable cannot be "yes"; true is used instead/);
      await editor().screenshot('wrong-settings');
      await dismissToasts();
      // Completions would copy lines from another open editor with the same text.
      await editor().runCommand('View: Close All Editors');
      await editor().openFile('src/inventory.ts');
      await expectWorking();
      const { line, column } = cursorOf(UNFINISHED);
      await editor().openFile('src/unfinished.ts', line, column);
      await editor().runCommand('Kvasir: Trigger Completion');
      await expect.poll(() => editor().ghostText(), { timeout: PATIENCE }).not.toBe('');
      await editor().press('Escape');
      await editor().openFile('src/inventory.ts');
      expect(await editor().toasts()).toEqual([]);
    });

    test('switched off, there is no status item; switched on, Kvasir works', async () => {
      editor().configure({ 'kvasir.enable': false });
      await editor().statusItem.waitFor({ state: 'hidden' });
      editor().configure({ 'kvasir.enable': undefined });
      await editor().statusItem.waitFor();
      await editor().runCommand('Kvasir: Open Chat');
      await expectWorking();
    });

    test('the extension reported no error, and no text has changed', async () => {
      // Messages that are shown to the user are also in the console.
      expect(editor().problems.filter((problem) => !problem.startsWith('Kvasir: '))).toEqual([]);
      expect(await editor().savedText('src/inventory.ts')).toBe(INVENTORY);
    });
  },
);
