// `npm start`: runs Kvasir in a separate VS Code, on a sample folder (see sample.mjs). Uses desktop VS Code if
// `code` is on the PATH. Otherwise, or with `-- --browser`, uses code-server (VS Code in a browser, installed from npm
// on first use, which needs the network). Does not touch your own VS Code and leaves nothing behind.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { prepareCodeServer } from '../test/vscode/setup.ts';
import { writeSample } from './sample.mjs';

const SETTINGS = {
  'workbench.startupEditor': 'none',
  'security.workspace.trust.enabled': false,
  'telemetry.telemetryLevel': 'off',
  'extensions.autoUpdate': false,
  // VS Code's own chat would be shown there, without a model.
  'workbench.secondarySideBar.defaultVisibility': 'hidden',
};

/** The user's desktop VS Code, or undefined. In WSL, `code` opens a Windows window, which cannot see these folders. */
function desktop() {
  const noScreen = process.platform === 'linux' && !process.env.DISPLAY && !process.env.WAYLAND_DISPLAY;
  if (noScreen || process.env.WSL_DISTRO_NAME) return undefined;
  return spawnSync('code', ['--version'], { shell: process.platform === 'win32' }).status === 0 ? 'code' : undefined;
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}

/** Runs a command to its end. If it fails, throws its last line of output. */
function run(command, args, options = {}) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8', ...options });
  if (status !== 0)
    throw new Error(
      `${path.basename(command)} ${args[0]}: ${error?.message ?? `${stdout}${stderr}`.trim().split('\n').at(-1)}`,
    );
}

async function main() {
  const { values } = parseArgs({ options: { browser: { type: 'boolean' }, vsix: { type: 'string' } } });
  const workspace = path.join(folder, 'kvasir-sample');
  const front = writeSample(workspace);
  for (const name of ['user/User', 'extensions']) mkdirSync(path.join(folder, name), { recursive: true });
  writeFileSync(path.join(folder, 'user/User/settings.json'), JSON.stringify(SETTINGS));
  let { vsix } = values;
  if (!vsix) {
    console.log('packaging Kvasir');
    vsix = path.join(folder, 'kvasir.vsix');
    run(process.execPath, ['scripts/package.mjs', '--out', vsix]);
  }
  const profile = ['--user-data-dir', path.join(folder, 'user'), '--extensions-dir', path.join(folder, 'extensions')];
  const code = values.browser ? undefined : desktop();
  if (code) startDesktop(code, profile, vsix, { workspace, front });
  else await startServer(profile, vsix, { workspace, front });
}

function startDesktop(code, profile, vsix, { workspace, front }) {
  const shell = process.platform === 'win32';
  run(code, [...profile, '--install-extension', vsix], { shell });
  console.log(`VS Code is opening on ${workspace}; close its window, or press Ctrl+C here, to end`);
  start(code, [...profile, '--new-window', '--wait', workspace, front], { stdio: 'ignore', shell });
}

async function startServer(profile, vsix, { workspace, front }) {
  const { entry: codeServer } = await prepareCodeServer(path.resolve('.cache'));
  const port = await freePort();
  const config = path.join(folder, 'config.yaml');
  writeFileSync(config, `bind-addr: 127.0.0.1:${port}\nauth: none\ncert: false\n`);
  // Inside a terminal of VS Code, code-server would open a tab there instead of starting.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('VSCODE_')));
  env.EXTENSIONS_GALLERY = '{"serviceUrl":""}';
  const common = [codeServer, '--config', config, ...profile];
  run(process.execPath, [...common, '--install-extension', vsix], { env });
  const flags = ['--disable-telemetry', '--disable-update-check', '--disable-getting-started-override', '-e'];
  // Runs in its own process group, together with everything that it starts.
  const server = start(process.execPath, [...common, ...flags, workspace], { env, detached: true, stdio: 'ignore' });
  const address = `http://127.0.0.1:${port}`;
  for (let answered = false; !answered && server.exitCode === null; ) {
    await new Promise((resolve) => setTimeout(resolve, 200));
    answered = await fetch(`${address}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    );
  }
  const opened = JSON.stringify([['openFile', `vscode-remote://127.0.0.1:${port}${front}`]]);
  const query = new URLSearchParams({ folder: workspace, payload: opened });
  console.log(`Kvasir is at ${address}/?${query} (for this machine only); press Ctrl+C to end`);
}

const folder = mkdtempSync(path.join(tmpdir(), 'kvasir-start-'));
/** What must end together with this program, and the process id for signals to it. */
let child;
let target = 0;
let ending = false;

function start(command, args, options) {
  child = spawn(command, args, options);
  target = options.detached && process.platform !== 'win32' ? -child.pid : child.pid;
  child.once('error', (error) => fail(error));
  child.once('exit', (code) => end(code ?? 1));
  return child;
}

async function end(status) {
  if (ending) return;
  ending = true;
  if (child?.pid && child.exitCode === null && child.signalCode === null) {
    const exited = once(child, 'exit');
    process.kill(target, 'SIGTERM');
    const timer = setTimeout(() => process.kill(target, 'SIGKILL'), 8000);
    await exited;
    clearTimeout(timer);
  }
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  process.exit(status);
}

function fail(error) {
  if (!ending) console.error(`npm start: ${error.message}`);
  return end(1);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => end(0));
await main().catch(fail);
