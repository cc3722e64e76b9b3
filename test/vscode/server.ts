/**
 * Runs one code-server and one browser, where possible in a network namespace with loopback only: then each test also
 * shows that it needs no network. Every process has RUN_VARIABLE in its environment; `stop` finds remaining processes
 * by it. Test files open windows through editor.ts.
 */
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { type BrowserStart, closeBrowser } from './browser.ts';
import { commandLine, processesWith } from './processes.ts';
import type { EditorFiles } from './setup.ts';

/** All processes that the server and the browser start inherit this variable. */
export const RUN_VARIABLE = 'KVASIR_EDITOR_TEST_RUN';

/** What a test file needs to open a window. Plain data, because vitest sends it to another process. */
export interface EditorServerAddress {
  url: string;
  browser: BrowserStart;
  /** Value of RUN_VARIABLE. */
  runId: string;
  /** The folder of this run. Workspaces are created in it. */
  folder: string;
  /** Whether the extension is installed. If not, only the tests' helpers are. */
  installed: boolean;
  /** `true` if the server and the browser can reach loopback only. Otherwise the reason why they can reach more. */
  isolated: true | string;
  /** Command that starts a process in the network of the server and the browser; empty without one. */
  enter: string[];
  /** Port that HF_ENDPOINT names, on the loopback. Nobody listens there unless a test does. */
  hubPort: number;
}

const SETTINGS = {
  'telemetry.telemetryLevel': 'off',
  'workbench.startupEditor': 'none',
  'workbench.tips.enabled': false,
  'workbench.secondarySideBar.defaultVisibility': 'hidden',
  'workbench.colorTheme': 'Default Dark Modern',
  'chat.commandCenter.enabled': false,
  'extensions.autoCheckUpdates': false,
  'extensions.autoUpdate': false,
  'update.mode': 'none',
  'npm.fetchOnlinePackageInfo': false,
  'typescript.disableAutomaticTypeAcquisition': true,
  'typescript.tsserver.useSyntaxServer': 'never',
  'editor.minimap.enabled': false,
  'problems.decorations.enabled': false,
  'workbench.editor.enablePreviewFromQuickOpen': true,
  'editor.fontFamily': "'DejaVu Sans Mono', KaTeX_Typewriter, monospace",
  // The editor must not change typed text.
  'editor.autoClosingBrackets': 'never',
  'editor.autoClosingQuotes': 'never',
  'editor.autoIndent': 'none',
  'editor.formatOnType': false,
  // An open suggestion list hides ghost text that does not continue its selected entry.
  'editor.quickSuggestions': { other: 'off', comments: 'off', strings: 'off' },
  'editor.suggestOnTriggerCharacters': false,
  'window.restoreWindows': 'none',
  'editor.cursorBlinking': 'solid',
  'workbench.reduceMotion': 'on',
  'files.autoSave': 'off',
};

/** VS Code's extensions in the tests. Each window would load the others with a tenth of its processor time. */
const BUILT_IN = (
  'configuration-editing cpp csharp css diff git git-base go html ipynb java javascript json json-language-features ' +
  'log markdown-basics markdown-language-features notebook-renderers php powershell python ruby rust shellscript ' +
  'sql theme-defaults theme-seti typescript-basics typescript-language-features xml yaml node_modules'
).split(' ');

/** The tests' own extensions, installed beside the product. They do nothing by themselves. */
const HELPERS = path.resolve('test/vscode/helpers');

/**
 * Starts the server and the browser, with `vsix` installed or with the helpers only. `stop` ends everything. It fails
 * and names the processes if it had to kill any.
 */
export async function startServer(
  files: EditorFiles,
  vsix?: string,
): Promise<{ address: EditorServerAddress; stop(): Promise<void> }> {
  const folder = mkdtempSync(path.join(tmpdir(), 'kvasir-editor-'));
  const runId = path.basename(folder);
  for (const name of ['user/User', 'builtIn', 'extensions', 'home', 'workspaces'])
    mkdirSync(path.join(folder, name), { recursive: true });
  writeFileSync(path.join(folder, 'user/User/settings.json'), JSON.stringify(SETTINGS));
  // With this file and no locale in it, each window uses its browser's language. An extension's texts are translated if
  // any language pack for that language exists. This one translates nothing of VS Code.
  writeFileSync(path.join(folder, 'user/User/argv.json'), '{}');
  const messages = path.join(folder, 'user/empty.i18n.json');
  writeFileSync(messages, '{"contents":{}}');
  writeFileSync(
    path.join(folder, 'user/languagepacks.json'),
    JSON.stringify({
      'pt-br': {
        hash: 'empty',
        label: 'Português (Brasil)',
        extensions: [{ extensionIdentifier: { id: 'kvasir-test.portuguese' }, version: '1.0.0' }],
        translations: { vscode: messages },
      },
    }),
  );
  const [port, hubPort] = [await freePort(), await freePort()];
  writeFileSync(path.join(folder, 'config.yaml'), `bind-addr: 127.0.0.1:${port}\nauth: none\ncert: false\n`);

  // Nothing of the outer editor, test runner or npm may leak in. Inside a VS Code terminal, code-server would open a
  // tab there instead.
  const kept = ['PATH', 'LANG', 'LC_ALL', 'USER', 'LOGNAME', 'SHELL', 'TMPDIR'].filter(
    (name) => process.env[name] !== undefined,
  );
  const env = {
    ...Object.fromEntries(kept.map((name) => [name, process.env[name] as string])),
    HOME: path.join(folder, 'home'),
    HF_ENDPOINT: `http://127.0.0.1:${hubPort}`,
    EXTENSIONS_GALLERY: '{"serviceUrl":""}',
    [RUN_VARIABLE]: runId,
  };
  const builtIn = path.resolve(files.codeServer, '../../../lib/vscode/extensions');
  for (const name of BUILT_IN) symlinkSync(path.join(builtIn, name), path.join(folder, 'builtIn', name), 'junction');
  const common = [
    files.codeServer,
    '--builtin-extensions-dir',
    path.join(folder, 'builtIn'),
    '--config',
    path.join(folder, 'config.yaml'),
    '--user-data-dir',
    path.join(folder, 'user'),
    '--extensions-dir',
    path.join(folder, 'extensions'),
  ];
  const started: ChildProcess[] = [];

  // Nobody calls `stop` when the tests are interrupted.
  const abandon = () => {
    for (const pid of processesWith(RUN_VARIABLE, runId)) process.kill(pid, 'SIGKILL');
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  process.once('exit', abandon);
  const stop = async () => {
    process.off('exit', abandon);
    await closeBrowser().catch(() => {});
    for (const child of started.reverse()) await end(child);
    const left = await waitUntilNone(() => processesWith(RUN_VARIABLE, runId), 10_000);
    const names = left.map((pid) => `${pid} ${commandLine(pid).slice(0, 150)}`);
    for (const pid of left) process.kill(pid, 'SIGKILL');
    if (process.env.KVASIR_EDITOR_KEEP) console.log(`editor tests: kept ${folder}`);
    else rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    if (names.length)
      throw new Error(`editor tests: left running after the editor had been stopped: ${names.join('; ')}`);
  };

  try {
    for (const helper of readdirSync(HELPERS))
      cpSync(path.join(HELPERS, helper), path.join(folder, 'extensions', `kvasir-test.${helper}-1.0.0`), {
        recursive: true,
      });
    if (vsix) await run(process.execPath, [...common, '--install-extension', vsix], env);
    const namespace = await loopbackOnly(env);
    if (namespace.holder) started.push(namespace.holder);
    const flags = [
      '--auth',
      'none',
      '--disable-telemetry',
      '--disable-update-check',
      '--disable-getting-started-override',
      '--disable-proxy',
      '--reconnection-grace-time',
      '2',
      '-e',
    ];
    const [command = '', ...args] = [
      ...namespace.enter,
      process.execPath,
      ...common,
      ...flags,
      path.join(folder, 'workspaces'),
    ];
    const server = spawn(command, args, { env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    started.push(server);
    await output(server, /HTTP server listening on/, 60_000, 'code-server');

    // Playwright can start only one file: this script, which enters the namespace first.
    const launcher = path.join(folder, 'chromium.sh');
    writeFileSync(
      launcher,
      `#!/bin/sh\nexec ${[...namespace.enter, files.chromium].map((word) => `'${word}'`).join(' ')} "$@"\n`,
      { mode: 0o755 },
    );
    return {
      address: {
        url: `http://127.0.0.1:${port}`,
        browser: { executablePath: launcher, env: { ...env, ...files.chromiumEnv } },
        runId,
        folder,
        installed: vsix !== undefined,
        isolated: namespace.isolated,
        enter: namespace.enter,
        hubPort,
      },
      stop,
    };
  } catch (error) {
    await stop().catch(() => {});
    throw error;
  }
}

/**
 * Routes every address to loopback, where nothing answers. An attempt to reach one hangs, so that it can be seen,
 * instead of failing at once.
 */
const LOOPBACK_ONLY = 'ip link set lo up && ip route add default dev lo';

/**
 * Starts a process that holds a network namespace with loopback only. It ends with this process, when its input closes.
 * Also returns the command that starts another process in the namespace. For an ordinary user the network namespace
 * needs a user namespace around it.
 */
async function loopbackOnly(
  env: NodeJS.ProcessEnv,
): Promise<{ holder?: ChildProcess; enter: string[]; isolated: true | string }> {
  const ways = [
    { unshare: ['--net'], nsenter: ['--net'] },
    { unshare: ['--map-root-user', '--net'], nsenter: ['--user', '--preserve-credentials', '--net'] },
  ];
  for (const way of ways) {
    if (spawnSync('unshare', [...way.unshare, 'sh', '-c', LOOPBACK_ONLY]).status !== 0) continue;
    const holder = spawn('unshare', [...way.unshare, 'sh', '-c', `${LOOPBACK_ONLY} && echo ready && exec cat`], {
      env,
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    await output(holder, /ready/, 10_000, 'unshare');
    const enter = ['nsenter', ...way.nsenter, '--target', String(holder.pid), '--'];
    if (spawnSync(enter[0] as string, [...enter.slice(1), 'true']).status === 0)
      return { holder, enter, isolated: true };
    holder.kill('SIGKILL');
  }
  return { enter: [], isolated: 'this machine permits no network namespace (unshare, ip and nsenter are needed)' };
}

async function run(command: string, args: string[], env: NodeJS.ProcessEnv): Promise<void> {
  try {
    await promisify(execFile)(command, args, { env, timeout: 120_000 });
  } catch (error) {
    const { stderr, stdout, message } = error as Error & { stderr?: string; stdout?: string };
    throw new Error(
      `editor tests: installing the extension failed: ${(stderr || stdout || message).trim().split('\n').at(-1)}`,
    );
  }
}

/** Resolves when the child has written `pattern`. Later output is read and dropped, so that the child never blocks. */
function output(child: ChildProcess, pattern: RegExp, timeoutMs: number, name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let seen = '';
    const fail = (reason: string) =>
      reject(new Error(`editor tests: ${name} ${reason}: ${seen.trim().split('\n').at(-1) ?? ''}`));
    const timer = setTimeout(() => fail(`was not ready within ${timeoutMs / 1000} s`), timeoutMs);
    const read = (data: Buffer) => {
      if (seen.length < 100_000) seen += data.toString();
      if (pattern.test(seen)) {
        clearTimeout(timer);
        resolve();
      }
    };
    child.stdout?.on('data', read);
    child.stderr?.on('data', read);
    child.once('error', (error) => fail(error.message));
    child.once('exit', (code, signal) => {
      clearTimeout(timer);
      fail(`ended with ${code ?? signal}`);
    });
  });
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.stdin?.destroy();
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), 10_000);
  await exited;
  clearTimeout(timer);
}

async function waitUntilNone(list: () => number[], timeoutMs: number): Promise<number[]> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const left = list();
    if (!left.length || performance.now() > deadline) return left;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}
