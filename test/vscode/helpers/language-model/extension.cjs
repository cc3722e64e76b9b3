// An extension that uses the model through the editor's API and writes the results into the opened folder.
const { renameSync, writeFileSync } = require('node:fs');
const path = require('node:path');
const vscode = require('vscode');

const models = () => vscode.lm.selectChatModels({ vendor: 'kvasir' });
const user = (text) => vscode.LanguageModelChatMessage.User(text);

function write(name, value) {
  const file = path.join(vscode.workspace.workspaceFolders[0].uri.fsPath, name);
  // Renames the finished file, so that a waiting reader never sees a part of it.
  writeFileSync(`${file}.part`, JSON.stringify(value));
  renameSync(`${file}.part`, file);
}

const failure = (error) => ({
  languageModelError: error instanceof vscode.LanguageModelError,
  code: error.code,
  message: error.message,
});

async function listModels() {
  const listed = await models();
  write(
    'models.json',
    listed.map(({ id, vendor, family, version, name, maxInputTokens }) => ({
      id,
      vendor,
      family,
      version,
      name,
      maxInputTokens,
    })),
  );
}

async function useModel() {
  const [model] = await models();
  const found = { chunks: [] };
  const neverCancelled = new vscode.CancellationTokenSource().token;
  try {
    found.count = await model.countTokens('export class Inventory {\n  private readonly entries = new Map();\n}\n');
    found.countMessage = await model.countTokens(
      user('export class Inventory {\n  private readonly entries = new Map();\n}\n'),
    );
    const question = 'def area(width, height):\n    return width * height\n\nWhat does `area` do?';
    const response = await model.sendRequest([user(question)], { modelOptions: { maxTokens: 40 } }, neverCancelled);
    for await (const text of response.text) found.chunks.push(text);
    // A second request, which is cancelled at its first text.
    const source = new vscode.CancellationTokenSource();
    const cancelled = await model.sendRequest([user('Write a long text about stock. '.repeat(20))], {}, source.token);
    const begun = Date.now();
    try {
      for await (const _ of cancelled.text) source.cancel();
      found.cancelled = 'ended';
    } catch (error) {
      found.cancelled = failure(error);
    }
    found.cancelMs = Date.now() - begun;
    try {
      const long = await model.sendRequest([user('word '.repeat(model.maxInputTokens + 100))], {}, neverCancelled);
      for await (const _ of long.text);
    } catch (error) {
      found.tooLong = failure(error);
    }
  } catch (error) {
    found.failure = failure(error);
  }
  write('used.json', found);
}

exports.activate = (context) => {
  context.subscriptions.push(
    vscode.commands.registerCommand('kvasirTest.listModels', listModels),
    vscode.commands.registerCommand('kvasirTest.useModel', useModel),
  );
};
