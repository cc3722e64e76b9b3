/**
 * `npm start` and `npm run test:desktop` for a new developer: what opens, what is printed, and that nothing remains.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, inject, test } from 'vitest';
import { ownServer } from './ownServer.ts';
import { processesWith } from './processes.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'kvasir-start-test-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
/** The environment variable that identifies the started processes. Their temporary folder is inside this test's. */
const MARK = 'KVASIR_START_TEST';

function start(env: NodeJS.ProcessEnv, ...args: string[]) {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> };
  const [, ...words] = (scripts.start ?? '').split(' ');
  const child = spawn(process.execPath, [...words, '--vsix', inject('vsix'), ...args], {
    env: { ...process.env, TMPDIR: folder, [MARK]: folder, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said = { text: '' };
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      said.text += text;
    });
  return { child, said };
}

const runs = typeof ownServer() !== 'string';

test.skipIf(!runs)(
  'npm start without a desktop VS Code prints the address of a running server, and Ctrl+C leaves nothing behind',
  async () => {
    const { child, said } = start({}, '--browser');
    await expect.poll(() => said.text, { timeout: 60_000 }).toMatch(/http:\/\/127\.0\.0\.1:\d+/);
    const [url = ''] = /http:\S+/.exec(said.text) ?? [];
    const page = await fetch(url);
    expect(page.status).toBe(200);
    expect(await page.text()).toContain('workbench');
    const workspace = new URL(url).searchParams.get('folder') ?? '';
    expect(new URL(url).searchParams.get('payload')).toContain(`${workspace}/engine/text/syntax/sourceDocument.ts`);
    expect(readdirSync(path.join(workspace, 'engine/text/syntax'))).toEqual(['sourceDocument.ts']);
    expect(
      readdirSync(path.join(path.dirname(workspace), 'extensions')).some((name) => name.startsWith('kvasir.kvasir-')),
    ).toBe(true);
    expect(processesWith(MARK, folder).length).toBeGreaterThan(1);
    child.kill('SIGINT');
    await once(child, 'exit');
    expect(child.exitCode).toBe(0);
    expect(processesWith(MARK, folder)).toEqual([]);
    expect(readdirSync(folder).filter((name) => name.startsWith('kvasir-start-'))).toEqual([]);
    expect(said.text.trim().split('\n')).toHaveLength(1);
  },
);

test.skipIf(!runs)(
  'npm start with a desktop VS Code installs Kvasir in a separate profile, opens the sample, and cleans up when the window closes',
  async () => {
    const calls = path.join(folder, 'calls');
    rmSync(calls, { force: true });
    writeFileSync(path.join(folder, 'code'), `#!/bin/sh\necho "$@" >> '${calls}'\n`, { mode: 0o755 });
    const { child, said } = start({ PATH: `${folder}:${process.env.PATH}`, DISPLAY: ':0', WSL_DISTRO_NAME: '' });
    await once(child, 'exit');
    const [version, install = '', open = ''] = readFileSync(calls, 'utf8').trim().split('\n');
    expect([child.exitCode, version]).toEqual([0, '--version']);
    const profile = /^--user-data-dir (\S+)\/user --extensions-dir \1\/extensions /;
    expect(install.replace(profile, '')).toBe(`--install-extension ${inject('vsix')}`);
    expect(open.replace(profile, '')).toMatch(
      /^--new-window --wait (\S+\/kvasir-sample) \1\/engine\/text\/syntax\/sourceDocument\.ts$/,
    );
    expect(said.text).toMatch(/^VS Code is opening on \S+; close its window, or press Ctrl\+C here, to end\n$/);
    expect(readdirSync(folder).filter((name) => name.startsWith('kvasir-start-'))).toEqual([]);
  },
);

const offline = [['--net'], ['--map-root-user', '--net']].find(
  (flags) => spawnSync('unshare', [...flags, 'true']).status === 0,
);
test.skipIf(!offline || existsSync('.cache/vscode-desktop'))(
  'npm run test:desktop fails with one sentence if VS Code cannot be downloaded',
  () => {
    const { status, stderr } = spawnSync('unshare', [...(offline ?? []), process.execPath, 'scripts/desktop.mjs'], {
      encoding: 'utf8',
      env: { ...process.env, TMPDIR: folder },
    });
    expect(stderr).toMatch(
      /^test:desktop: the desktop tests did not run, because VS Code could not be downloaded: .+\n$/,
    );
    expect(status).toBe(1);
    rmSync('.cache/vscode-desktop', { recursive: true, force: true });
  },
);
