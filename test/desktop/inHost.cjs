// Checks that run inside the extension host of a desktop VS Code with the packaged Kvasir installed. Each result is
// written to desktop-results.json in the opened folder at once, so that earlier results survive a crash.
const assert = require('node:assert/strict');
const { writeFileSync } = require('node:fs');
const path = require('node:path');
const vscode = require('vscode');

const PATIENCE_MS = 60_000;
const SOURCE =
  'export function add(a: number, b: number): number {\n  return a + b;\n}\n\nexport function subtract(a: number, b: number): number {\n  return \n}\n';

async function until(what, condition) {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await new Promise((resolve) => setTimeout(resolve, 250)))
    if (await condition()) return;
  assert.fail(`${what}: not within ${PATIENCE_MS / 1000} s`);
}

const kvasir = () => vscode.extensions.getExtension('kvasir.kvasir');

/** The order matters: later checks need the state that earlier ones leave. */
const CHECKS = {
  async 'the installed package is activated'() {
    assert.ok(kvasir(), 'kvasir.kvasir is not installed');
    await kvasir().activate();
    assert.ok(kvasir().isActive);
  },
  async 'every command that the package contributes exists'() {
    const registered = new Set(await vscode.commands.getCommands(true));
    assert.deepEqual(
      kvasir()
        .packageJSON.contributes.commands.map(({ command }) => command)
        .filter((command) => !registered.has(command)),
      [],
    );
  },
  async 'a completion is shown and accepted'() {
    const document = await vscode.workspace.openTextDocument({ language: 'typescript', content: SOURCE });
    const editor = await vscode.window.showTextDocument(document);
    const position = new vscode.Position(5, 9);
    editor.selection = new vscode.Selection(position, position);
    await until('a completion', async () => {
      await vscode.commands.executeCommand('kvasir.triggerCompletion');
      await new Promise((resolve) => setTimeout(resolve, 500));
      await vscode.commands.executeCommand('editor.action.inlineSuggest.commit');
      return document.getText() !== SOURCE;
    });
    // Only the accepted text is new.
    const inserted = document.getText().length - SOURCE.length;
    assert.equal(
      document.getText().slice(0, document.offsetAt(position)) +
        document.getText().slice(document.offsetAt(position) + inserted),
      SOURCE,
    );
  },
  async 'the chat view opens'() {
    await vscode.commands.executeCommand('kvasir.openChat');
  },
  async 'the language model counts tokens'() {
    if (!kvasir().packageJSON.contributes.languageModelChatProviders) return;
    let model;
    await until('a language model of the vendor kvasir', async () => {
      [model] = await vscode.lm.selectChatModels({ vendor: 'kvasir' });
      return model !== undefined;
    });
    assert.ok((await model.countTokens(SOURCE)) > 10);
  },
  async 'switched off, its commands are gone'() {
    await vscode.workspace.getConfiguration('kvasir').update('enable', false, vscode.ConfigurationTarget.Global);
    await until('no command', async () => !(await vscode.commands.getCommands(true)).includes('kvasir.clearCache'));
    await vscode.workspace.getConfiguration('kvasir').update('enable', undefined, vscode.ConfigurationTarget.Global);
  },
};

exports.run = async () => {
  const file = path.join(vscode.workspace.workspaceFolders[0].uri.fsPath, 'desktop-results.json');
  const results = { expected: Object.keys(CHECKS).length, ended: [] };
  for (const [name, check] of Object.entries(CHECKS)) {
    const problem = await check().then(
      () => null,
      (error) => String(error?.message ?? error),
    );
    results.ended.push({ name, problem });
    writeFileSync(file, JSON.stringify(results));
  }
  const failed = results.ended.filter(({ problem }) => problem !== null);
  if (failed.length) throw new Error(failed.map(({ name, problem }) => `${name}: ${problem}`).join('\n'));
};
