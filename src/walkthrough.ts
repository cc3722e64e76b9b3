/**
 * Ticks the steps of the walkthrough that no command or view can tick: an answer has come. The editor keeps the ticks.
 * Does not open the walkthrough.
 */
import type { Task } from '../engine/protocol/tasks.ts';
import * as vscode from './vscode.ts';

/**
 * Must be called with each answered task. The key is true for a moment only: a key that is true when the editor reads
 * the walkthrough counts as seen, and its step would never be ticked.
 */
export async function tickStep(task: Task): Promise<void> {
  const step = stepOf(task);
  if (!step) return;
  await vscode.commands.executeCommand('setContext', step, true);
  await vscode.commands.executeCommand('setContext', step, false);
}

/** The context key in package.json. A question without a file does not count: that step is about the open file. */
function stepOf(task: Task): string | undefined {
  if (task.kind === 'summarize' || task.kind === 'summarizeFolder') return 'kvasir.summarized';
  const isAboutFile = task.kind === 'chat' && (task.docIds.length > 0 || (task.snippets?.length ?? 0) > 0);
  return isAboutFile ? 'kvasir.asked' : undefined;
}
