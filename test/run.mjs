// All tests: first the checks of the source (types, lint, import directions, dead code) and the bundles, two at a time.
// Then the packaged extension in a real VS Code, which often waits. Unit, engine and model tests use that time.
// The last line is "N passed, N failed" over everything. `node test/run.mjs unit` runs the parts whose name starts with "unit".
// `--long` runs random tests at their full length.
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { setPriority } from 'node:os';

const results = '.cache/test';
rmSync(results, { recursive: true, force: true });
mkdirSync(results, { recursive: true });
const totals = { passed: 0, failed: 0, skipped: 0 };
/** Printed again at the end: the first mention may be thousands of lines up. */
const failures = [];
/** Tests that passed at their second attempt. */
const retried = [];

/**
 * Runs a command to its end. `quiet`: prints its output when it has ended, so that two commands do not mix theirs.
 * `niceness`: of its processes, so that another command goes first.
 */
function run(name, command, args, { quiet = false, niceness = 0 } = {}) {
  return new Promise((resolve) => {
    if (!quiet) console.log(`\n== ${name}`);
    const started = performance.now();
    // On Windows the tools are .cmd files, which need a shell.
    const shell = process.platform === 'win32';
    const child = spawn(command, args, { stdio: quiet ? ['ignore', 'pipe', 'pipe'] : 'inherit', shell });
    if (niceness && child.pid) setPriority(child.pid, niceness);
    let output = '';
    for (const stream of quiet ? [child.stdout, child.stderr] : [])
      stream.setEncoding('utf8').on('data', (text) => {
        output += text;
      });
    let problem = '';
    child.on('error', (error) => {
      problem = error.message;
    });
    child.on('close', (status) => {
      if (quiet) console.log(`\n== ${name}\n${output.trimEnd()}`);
      if (problem) console.error(`${name}: ${problem}`);
      const seconds = ((performance.now() - started) / 1000).toFixed(1);
      console.log(`== ${name}: ${status === 0 ? 'passed' : 'FAILED'} in ${seconds} s`);
      resolve(status === 0);
    });
  });
}

async function check(name, command, args) {
  const ok = await run(name, command, args, { quiet: true });
  totals[ok ? 'passed' : 'failed']++;
  if (!ok) failures.push(name);
}

/** Counts a vitest run test by test. A run that ends without a report, or finds no test, is one more failure. */
async function suite(name, config, folders = [], how = {}) {
  const report = `${results}/${name.replace(/\W+/g, '-')}.json`;
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  const ok = await run(name, 'vitest', ['run', '--config', config, ...reporters, ...folders], how);
  let counted = { numPassedTests: 0, numFailedTests: 0, numPendingTests: 0, testResults: [] };
  try {
    counted = JSON.parse(readFileSync(report, 'utf8'));
  } catch {
    console.error(`${name}: no report was written`);
  }
  totals.passed += counted.numPassedTests;
  totals.failed += counted.numFailedTests;
  totals.skipped += counted.numPendingTests;
  const silent = counted.numPassedTests + counted.numPendingTests === 0;
  for (const file of counted.testResults) {
    for (const test of file.assertionResults) {
      const list = { failed: failures, passed: retried }[test.status];
      if (list && test.failureMessages.length)
        list.push(`${name}: ${test.fullName}\n${test.failureMessages.join('\n')}`);
    }
  }
  if ((!ok || silent) && counted.numFailedTests === 0) {
    totals.failed++;
    const file = counted.testResults.find(({ status, message }) => status === 'failed' && message);
    failures.push(`${name}: ${file?.message ?? 'ended without a report, or without a test'}`);
  }
}

const CHECKS = {
  types: () => check('types', 'tsc', ['--noEmit']),
  webviewTypes: () => check('webview types', 'tsc', ['--noEmit', '-p', 'src/webview/tsconfig.json']),
  lint: () => check('lint and format', 'biome', ['check', '--assist-enabled=false', '--error-on-warnings', '.']),
  imports: () => check('import directions', 'depcruise', ['--config', '.dependency-cruiser.cjs', 'src', 'engine']),
  deadCode: () => check('dead code', 'knip', []),
  build: () => check('bundles', 'node', ['esbuild.mjs', '--quiet']),
};
const FOLDERS = ['unit', 'engine', 'model'];
/** About source files that say by their contents what they are. */
const NO_WARNING = '--disable-warning=MODULE_TYPELESS_PACKAGE_JSON';

const wanted = process.argv.slice(2).filter((word) => word !== '--long');
if (process.argv.includes('--long')) process.env.KVASIR_TEST_LENGTH = 'full';
const isWanted = (name) => !wanted.length || wanted.some((word) => name.startsWith(word));

// It mostly waits for npm. If it fails, the editor tests try again and show why.
const editorIsReady =
  isWanted('vscode') && run('VS Code and browser', 'node', [NO_WARNING, 'test/vscode/prepare.mts'], { quiet: true });
const checks = Object.keys(CHECKS).filter(isWanted);
const work = async () => {
  for (let name = checks.shift(); name; name = checks.shift()) await CHECKS[name]();
};
await Promise.all([work(), work()]);
const folders = FOLDERS.filter(isWanted);
await Promise.all([
  // One run: a suite's last file would otherwise keep one processor busy alone.
  folders.length &&
    suite(
      folders.join(', '),
      'test/vitest.config.mts',
      folders.map((folder) => `test/${folder}/`),
      isWanted('vscode') ? { quiet: true, niceness: 10 } : {},
    ),
  isWanted('vscode') && editorIsReady.then(() => suite('vscode', 'test/vscode/vitest.config.mts')),
]);

for (const test of retried) console.log(`\nPASSED AT THE SECOND ATTEMPT ${test}`);
for (const failure of failures) console.log(`\nFAILED ${failure}`);
console.log(`\n${totals.passed} passed, ${totals.failed} failed${totals.skipped ? `, ${totals.skipped} skipped` : ''}`);
process.exit(totals.failed ? 1 : 0);
