// All tests, in the order of their cost: types, lint, import directions, dead code, bundles, then the suites (unit, engine,
// model, then the packaged extension in a real VS Code). The last line is "N passed, N failed" over everything.
// `node test/run.mjs unit` runs the parts whose name starts with "unit", and so on.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';

const results = '.cache/test';
rmSync(results, { recursive: true, force: true });
mkdirSync(results, { recursive: true });
const totals = { passed: 0, failed: 0, skipped: 0 };
/** What failed, told again at the end: the place itself may be thousands of lines up. */
const failures = [];

function run(name, command, args) {
  console.log(`\n== ${name}`);
  const started = performance.now();
  // On Windows the tools are .cmd files, which need a shell.
  const { status, error } = spawnSync(command, args, { stdio: 'inherit', shell: process.platform === 'win32' });
  if (error) console.error(`${name}: ${error.message}`);
  console.log(
    `== ${name}: ${status === 0 ? 'passed' : 'FAILED'} in ${((performance.now() - started) / 1000).toFixed(1)} s`,
  );
  return status === 0;
}

function check(name, command, args) {
  const ok = run(name, command, args);
  totals[ok ? 'passed' : 'failed']++;
  if (!ok) failures.push(name);
}

/** A vitest suite counts test by test; a run that dies without a report, or finds no test, is one failure more. */
function suite(name, config, folders = []) {
  const report = `${results}/${name}.json`;
  const ok = run(name, 'vitest', [
    'run',
    '--config',
    config,
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${report}`,
    ...folders,
  ]);
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
    for (const test of file.assertionResults)
      if (test.status === 'failed') failures.push(`${name}: ${test.fullName}\n${test.failureMessages.join('\n')}`);
  }
  if ((!ok || silent) && counted.numFailedTests === 0) {
    totals.failed++;
    failures.push(
      `${name}: ${counted.testResults.find(({ status, message }) => status === 'failed' && message)?.message ?? 'ended without a report, or without a test'}`,
    );
  }
}

const steps = {
  types: () => check('types', 'tsc', ['--noEmit']),
  webviewTypes: () => check('webview types', 'tsc', ['--noEmit', '-p', 'src/webview/tsconfig.json']),
  lint: () => check('lint and format', 'biome', ['check', '--assist-enabled=false', '--error-on-warnings', '.']),
  imports: () => check('import directions', 'depcruise', ['--config', '.dependency-cruiser.cjs', 'src', 'engine']),
  deadCode: () => check('dead code', 'knip', []),
  build: () => check('bundles', 'node', ['esbuild.mjs', '--quiet']),
  unit: () => suite('unit', 'test/vitest.config.mts', ['test/unit']),
  engine: () => suite('engine', 'test/vitest.config.mts', ['test/engine']),
  model: () => suite('model', 'test/vitest.config.mts', ['test/model']),
  vscode: () => suite('vscode', 'test/vscode/vitest.config.mts'),
};
const wanted = process.argv.slice(2);
for (const [name, step] of Object.entries(steps)) if (!wanted.length || wanted.some((w) => name.startsWith(w))) step();

for (const failure of failures) console.log(`\nFAILED ${failure}`);
console.log(`\n${totals.passed} passed, ${totals.failed} failed${totals.skipped ? `, ${totals.skipped} skipped` : ''}`);
process.exit(totals.failed ? 1 : 0);
