// `npm run test:desktop`: runs the packaged Kvasir in a desktop VS Code, which @vscode/test-electron downloads into
// .cache. test/desktop/inHost.cjs contains the checks. If the download fails, it prints one sentence and fails.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import {
  downloadAndUnzipVSCode,
  resolveCliArgsFromVSCodeExecutablePath,
  runTests,
  SilentReporter,
} from '@vscode/test-electron';

const folder = mkdtempSync(path.join(tmpdir(), 'kvasir-desktop-'));

async function download() {
  const cachePath = path.resolve('.cache/vscode-desktop');
  console.log(`downloading VS Code into ${cachePath}, unless it is there`);
  try {
    return await downloadAndUnzipVSCode({ cachePath, timeout: 30_000, reporter: new SilentReporter() });
  } catch (error) {
    const reason =
      [error, ...(error.errors ?? []), error.cause].map((each) => each?.message).find(Boolean) ??
      error.code ??
      'no reason given';
    throw new Error(
      `the desktop tests did not run, because VS Code could not be downloaded: ${String(reason).split('\n', 1)[0]}`,
    );
  }
}

async function main() {
  const executable = await download();
  const vsix = path.join(folder, 'kvasir.vsix');
  const packaged = spawnSync(process.execPath, ['scripts/package.mjs', '--out', vsix], { encoding: 'utf8' });
  if (packaged.status !== 0) throw new Error(`Kvasir could not be packaged: ${packaged.stderr.trim()}`);
  const workspace = path.join(folder, 'workspace');
  mkdirSync(workspace);
  mkdirSync(path.join(folder, 'user/User'), { recursive: true });
  writeFileSync(
    path.join(folder, 'user/User/settings.json'),
    JSON.stringify({
      'security.workspace.trust.enabled': false,
      'telemetry.telemetryLevel': 'off',
      'workbench.startupEditor': 'none',
    }),
  );
  const profile = [
    `--user-data-dir=${path.join(folder, 'user')}`,
    `--extensions-dir=${path.join(folder, 'extensions')}`,
  ];
  const [cli, ...args] = resolveCliArgsFromVSCodeExecutablePath(executable, { reuseMachineInstall: true });
  const installed = spawnSync(cli, [...args, ...profile, '--install-extension', vsix], {
    encoding: 'utf8',
    shell: process.platform === 'win32',
  });
  if (installed.status !== 0)
    throw new Error(
      `Kvasir could not be installed: ${`${installed.stdout}${installed.stderr}`.trim().split('\n').at(-1)}`,
    );

  let failure;
  await runTests({
    vscodeExecutablePath: executable,
    extensionDevelopmentPath: path.resolve('test/desktop'),
    extensionTestsPath: path.resolve('test/desktop/inHost.cjs'),
    launchArgs: [
      workspace,
      ...profile,
      '--disable-updates',
      '--skip-welcome',
      '--skip-release-notes',
      ...(process.platform === 'linux' ? ['--disable-gpu'] : []),
    ],
  }).catch((error) => {
    failure = error;
  });
  // @vscode/test-electron reports success when the extension host crashes.
  let results;
  try {
    results = JSON.parse(readFileSync(path.join(workspace, 'desktop-results.json'), 'utf8'));
  } catch {
    throw new Error(`VS Code ended without running the checks${failure ? `: ${failure.message}` : ''}`);
  }
  for (const { name, problem } of results.ended) console.log(problem === null ? `✓ ${name}` : `× ${name}: ${problem}`);
  const numFailed =
    results.ended.filter(({ problem }) => problem !== null).length + results.expected - results.ended.length;
  console.log(`${results.expected - numFailed} passed, ${numFailed} failed`);
  if (numFailed > 0 || failure) process.exitCode = 1;
}

await main()
  .catch((error) => {
    console.error(`test:desktop: ${error.message}`);
    process.exitCode = 1;
  })
  .finally(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 }));
