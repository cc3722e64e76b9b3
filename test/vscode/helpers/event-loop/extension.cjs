/**
 * Measures how late the event loop of its extension host runs. The extension under test shares that host. Runs only in
 * a workspace with a file `.event-loop/command`. Its lines `start …` and `stop …` begin and end a measurement. `stop`
 * also writes the result beside that file.
 */
const { readFileSync, renameSync, watch, writeFileSync } = require('node:fs');
const path = require('node:path');
const { monitorEventLoopDelay, performance } = require('node:perf_hooks');
const vscode = require('vscode');

/**
 * Milliseconds between two checks of the loop. It is the smallest delay that shows, and it is subtracted from each
 * delay.
 */
const RESOLUTION_MS = 1;

exports.activate = (context) => {
  const folder = path.join(vscode.workspace.workspaceFolders[0].uri.fsPath, '.event-loop');
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  let since = 0;
  let done = '';
  const obey = () => {
    const command = readFileSync(path.join(folder, 'command'), 'utf8').trim();
    if (command === done) return;
    done = command;
    if (command.startsWith('start')) {
      delay.reset();
      since = performance.now();
      delay.enable();
    } else if (command.startsWith('stop')) {
      delay.disable();
      const late = (nanoseconds) => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS);
      const result = {
        seconds: (performance.now() - since) / 1000,
        samples: delay.count,
        meanMs: late(delay.mean),
        p50Ms: late(delay.percentile(50)),
        p90Ms: late(delay.percentile(90)),
        p99Ms: late(delay.percentile(99)),
        p999Ms: late(delay.percentile(99.9)),
        maxMs: late(delay.max),
      };
      writeFileSync(path.join(folder, 'partial'), JSON.stringify({ command, ...result }));
      renameSync(path.join(folder, 'partial'), path.join(folder, 'result.json'));
    }
  };
  const watcher = watch(folder, obey);
  context.subscriptions.push({ dispose: () => watcher.close() }, { dispose: () => delay.disable() });
  writeFileSync(path.join(folder, 'ready'), String(process.pid));
  obey();
};
