// All tests, in the order of their cost: types, lint, import directions, dead code, bundles, then the suites (unit, engine,
// then the packaged extension in a real VS Code, and over the model what needs no editor: in the time that the editor's tests wait).
// The last line is "N passed, N failed" over everything.
// `node test/run.mjs unit` runs the parts whose name starts with "unit", and so on.
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { constants, setPriority } from 'node:os';

const results = '.cache/test';
rmSync(results, { recursive: true, force: true });
mkdirSync(results, { recursive: true });
const totals = { passed: 0, failed: 0, skipped: 0 };
/** What failed, told again at the end: the place itself may be thousands of lines up. */
const failures = [];

/** `beside`: others run meanwhile, which go first; what it prints is shown when it has ended. */
async function run(name, command, args, beside = false) {
  if (!beside) console.log(`\n== ${name}`);
  const started = performance.now();
  // On Windows the tools are .cmd files, which need a shell.
  const child = spawn(command, args, { stdio: beside ? ['ignore', 'pipe', 'pipe'] : 'inherit', shell: process.platform === 'win32' });
  const printed = [];
  if (beside) {
    try {
      setPriority(child.pid, constants.priority.PRIORITY_LOW);
    } catch {
      // It could not be started, which is told below, or has ended already.
    }
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => printed.push(data));
  }
  const status = await new Promise((resolve) => {
    child.on('error', (error) => {
      console.error(`${name}: ${error.message}`);
      resolve(null);
    });
    child.on('close', resolve);
  });
  if (beside) console.log(`\n== ${name}\n${Buffer.concat(printed)}`);
  console.log(`== ${name}: ${status === 0 ? 'passed' : 'FAILED'} in ${((performance.now() - started) / 1000).toFixed(1)} s`);
  return status === 0;
}

async function check(name, command, args) {
  const ok = await run(name, command, args);
  totals[ok ? 'passed' : 'failed']++;
  if (!ok) failures.push(name);
}

/** A vitest suite counts test by test; a run that dies without a report, or finds no test, is one failure more. */
async function suite(name, config, folders = [], beside = false) {
  const report = `${results}/${name}.json`;
  const ok = await run(name, 'vitest', ['run', '--config', config, '--reporter=default', '--reporter=json', `--outputFile.json=${report}`, ...(beside ? ['--maxWorkers=1'] : []), ...folders], beside);
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
    for (const test of file.assertionResults) if (test.status === 'failed') failures.push(`${name}: ${test.fullName}\n${test.failureMessages.join('\n')}`);
  }
  if ((!ok || silent) && counted.numFailedTests === 0) {
    totals.failed++;
    failures.push(`${name}: ${counted.testResults.find(({ status, message }) => status === 'failed' && message)?.message ?? 'ended without a report, or without a test'}`);
  }
}

const steps = {
  types: () => check('types', 'tsc', ['--noEmit']),
  webviewTypes: () => check('webview types', 'tsc', ['--noEmit', '-p', 'src/webview/tsconfig.json']),
  lint: () => check('lint', 'biome', ['lint', '--error-on-warnings', '.']),
  imports: () => check('import directions', 'depcruise', ['--config', '.dependency-cruiser.cjs', 'src', 'engine']),
  deadCode: () => check('dead code', 'knip', []),
  build: () => check('bundles', 'node', ['esbuild.mjs', '--quiet']),
  unit: () => suite('unit', 'test/vitest.config.mts', ['test/unit']),
  engine: () => suite('engine', 'test/vitest.config.mts', ['test/engine']),
  model: () => suite('model', 'test/vitest.config.mts', ['test/model'], isWanted('vscode')),
  vscode: () => suite('vscode', 'test/vscode/vitest.config.mts'),
};
const wanted = process.argv.slice(2);
const isWanted = (name) => !wanted.length || wanted.some((w) => name.startsWith(w));
let beside = Promise.resolve();
for (const [name, step] of Object.entries(steps)) {
  if (!isWanted(name)) continue;
  if (name === 'model' && isWanted('vscode')) beside = step();
  else await step();
}
await beside;

for (const failure of failures) console.log(`\nFAILED ${failure}`);
console.log(`\n${totals.passed} passed, ${totals.failed} failed${totals.skipped ? `, ${totals.skipped} skipped` : ''}`);
process.exit(totals.failed ? 1 : 0);
