/** Downloads from a hub on the loopback: from the list to an answer, cut, interrupted, gated, and nothing unasked. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Faults, Seen } from '../support/hub/fakeHub.ts';
import { PATIENCE, setText } from './editor.ts';
import { ownServer } from './ownServer.ts';
import type { EditorServerAddress } from './server.ts';
import { INVENTORY, ownEditorSuite } from './suite.ts';

ownEditorSuite('download', { 'src/inventory.ts': INVENTORY }, (editor) => {
  const server = ownServer() as EditorServerAddress;
  let hubProcess: ChildProcess;
  let answers: AsyncIterator<string>;
  let cache: string;

  /** Changes faults, and returns what the hub has been asked for so far. */
  async function hub(change: Partial<Faults> & { cut?: boolean } = {}): Promise<Seen[]> {
    hubProcess.stdin!.write(`${JSON.stringify(change)}\n`);
    return JSON.parse((await answers.next()).value as string) as Seen[];
  }
  const loads = async () => (await hub()).filter(({ server: which }) => which === 'cdn');
  const row = (text: RegExp) => editor().page.locator('.quick-input-list .monaco-list-row', { hasText: text });
  const toast = (text: string | RegExp) => editor().page.locator('.notification-toast', { hasText: text });
  const button = (text: string) => editor().page.locator('.notification-toast .monaco-button', { hasText: text });
  const hover = async () => {
    const text = await editor().statusHover();
    await editor().unhover();
    return text;
  };
  const machine = () =>
    JSON.parse(readFileSync(path.join(server.folder, 'user/Machine/settings.json'), 'utf8')) as Record<string, unknown>;
  /** The repositories of the cache that have a whole model. */
  const whole = () =>
    existsSync(cache) ? readdirSync(cache).filter((name) => existsSync(path.join(cache, name, 'snapshots'))) : [];

  beforeAll(() => {
    if (typeof server === 'string') return;
    cache = path.join(server.folder, 'home/.cache/huggingface/hub');
    const [command = '', ...args] = [
      ...server.enter,
      process.execPath,
      '--disable-warning=MODULE_TYPELESS_PACKAGE_JSON',
      'test/support/hub/serveHub.ts',
      String(server.hubPort),
    ];
    hubProcess = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    answers = createInterface({ input: hubProcess.stdout! })[Symbol.asyncIterator]();
  });
  afterAll(() => {
    if (typeof server === 'string') return;
    hubProcess.stdin!.end();
    editor()?.configureMachine({ 'kvasir.model': undefined });
    rmSync(cache, { recursive: true, force: true });
  });

  async function openList(filter: string): Promise<void> {
    await editor().runCommand('Kvasir: Choose Model');
    await editor().page.locator('.quick-input-title', { hasText: 'can run here' }).waitFor();
    await setText(editor().page.locator('.quick-input-widget input'), filter);
  }

  async function downloadOther(repository: string): Promise<void> {
    await openList('another');
    await row(/Download another model/).click();
    const input = editor().page.locator('.quick-input-widget input');
    await editor().page.locator('.quick-input-title', { hasText: 'from the Hugging Face hub' }).waitFor();
    await setText(input, repository);
    await editor().press('Enter');
  }

  test('nothing is asked of the hub before the user has chosen a download', async () => {
    await hub();
    await editor().openFile('src/inventory.ts');
    await editor().runCommand('Kvasir: Open Chat');
    const answer = await editor().ask('What is this file for?');
    await expect.poll(() => answer.getAttribute('data-state'), { timeout: 2 * PATIENCE }).toBe('done');
    await openList('Qwen2.5-Coder 0.5B');
    await row(/Download Qwen2\.5-Coder 0\.5B \(about 680 MB\)/).waitFor();
    await editor().screenshot('download-list');
    await editor().press('Escape');
    expect(await hub()).toEqual([]);
  });

  test('from the list to an answer in three clicks: open it, choose a model, ask', async () => {
    await hub({ delayMs: 25 });
    // The first click.
    await editor().runCommand('Kvasir: Choose Model');
    // The second click.
    await row(/Download Qwen2\.5-Coder 0\.5B/).click();
    await toast('Downloading Qwen2.5-Coder 0.5B').waitFor();
    await expect.poll(() => toast('Downloading').innerText(), { timeout: PATIENCE }).toMatch(/MB\/s · \d+ s left/);
    await editor().screenshot('download-running');
    // After the cut the server is busy for a while.
    await hub({ cut: true, statuses: [503, 503], delayMs: 10 });
    await expect.poll(() => toast('Downloading').innerText(), { timeout: PATIENCE }).toContain('trying again');
    await editor().screenshot('download-cut');
    await expect.poll(() => toast('Downloading').innerText(), { timeout: PATIENCE }).toMatch(/B\/s · \d+ s left/);
    await editor().screenshot('download-resumed');
    await hub({ delayMs: 0 });
    await expect.poll(hover, { timeout: 2 * PATIENCE, interval: 500 }).toContain('downloaded-model');
    expect(await toast('Downloading').count()).toBe(0);
    expect(machine()['kvasir.model']).toContain('models--Qwen--Qwen2.5-Coder-0.5B-Instruct-GGUF');
    // The third click.
    await editor().runCommand('Kvasir: Open Chat');
    const answer = await editor().ask('What is this file for?');
    await expect.poll(() => answer.getAttribute('data-state'), { timeout: 2 * PATIENCE }).toBe('done');
    await editor().screenshot('download-done');
    const [first, ...later] = await loads();
    expect(first!.range).toBeUndefined();
    for (const { range, ifRange } of later) {
      expect(range).toMatch(/^bytes=[1-9]\d*-$/);
      expect(ifRange).toMatch(/^"cdn-/);
    }
    expect(whole()).toEqual(['models--Qwen--Qwen2.5-Coder-0.5B-Instruct-GGUF']);
  });

  test('a download that a reload interrupts is offered again, and continues where it was', async () => {
    await hub({ delayMs: 25 });
    await downloadOther('kvasir-test/other');
    await expect.poll(() => toast('Downloading').innerText(), { timeout: PATIENCE }).toMatch(/MB\/s/);
    const before = (await loads()).length;
    await editor().reload();
    await toast('was interrupted').waitFor();
    await editor().screenshot('download-interrupted');
    await hub({ delayMs: 0 });
    expect(await loads()).toHaveLength(before);
    await button('Continue').click();
    await expect.poll(() => machine()['kvasir.model'], { timeout: 2 * PATIENCE }).toContain('kvasir-test--other');
    expect((await loads()).slice(before)).toMatchObject([{ range: expect.stringMatching(/^bytes=[1-9]\d*-$/) }]);
    expect(whole()).toContain('models--kvasir-test--other');
  });

  test('a cancelled download stops, and its part stays', async () => {
    await hub({ delayMs: 25 });
    await downloadOther('kvasir-test/third');
    await expect.poll(() => toast('Downloading').innerText(), { timeout: PATIENCE }).toMatch(/MB\/s/);
    await button('Cancel').click();
    await toast('Downloading').waitFor({ state: 'hidden' });
    const blobs = (ending: string) =>
      readdirSync(path.join(cache, 'models--kvasir-test--third/blobs')).filter((name) => name.endsWith(ending));
    expect(blobs('.incomplete')).toHaveLength(1);
    // The notification is gone before the file is.
    await expect.poll(() => blobs('.lock'), { timeout: PATIENCE }).toEqual([]);
  });

  test('a gated repository asks for an access token, which only the hub gets', async () => {
    await hub({ delayMs: 0, token: 'my-token' });
    await downloadOther('kvasir-test/gated');
    await toast('only to accounts with access').waitFor();
    await editor().screenshot('download-gated');
    await button('Enter Access Token').click();
    await editor().page.locator('.quick-input-title', { hasText: 'Access token for' }).waitFor();
    await setText(editor().page.locator('.quick-input-widget input'), 'my-token');
    await editor().press('Enter');
    await expect.poll(() => machine()['kvasir.model'], { timeout: 2 * PATIENCE }).toContain('kvasir-test--gated');
    const seen = await hub({ token: null });
    expect(seen.filter(({ authorization }) => authorization === 'Bearer my-token').length).toBeGreaterThan(0);
    expect(seen.filter(({ server: which, authorization }) => which === 'cdn' && authorization !== undefined)).toEqual(
      [],
    );
  });
});
