/** What the manifest contributes, each with the test that shows its effect: a new command or setting without one fails. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

interface Contributes {
  commands: { command: string; title: string }[];
  configuration: { properties: Record<string, object> };
  views: Record<string, { id: string }[]>;
}
const { contributes } = JSON.parse(readFileSync('package.json', 'utf8')) as { contributes: Contributes };
const words = JSON.parse(readFileSync('package.nls.json', 'utf8')) as Record<string, string>;

/** Each command, and a file of editor tests that runs it. */
const COMMANDS: Record<string, string> = {
  'kvasir.openChat': 'test/vscode/assistant.test.ts',
  'kvasir.newChat': 'test/vscode/chat.test.ts',
  'kvasir.showConversations': 'test/vscode/commands.test.ts',
  'kvasir.exportChat': 'test/vscode/chat.test.ts',
  'kvasir.clearChat': 'test/vscode/chat.test.ts',
  'kvasir.addToChat': 'test/vscode/commands.test.ts',
  'kvasir.explain': 'test/vscode/commands.test.ts',
  'kvasir.fix': 'test/vscode/commands.test.ts',
  'kvasir.tests': 'test/vscode/commands.test.ts',
  'kvasir.doc': 'test/vscode/commands.test.ts',
  'kvasir.triggerCompletion': 'test/vscode/completion.test.ts',
  'kvasir.explainLastCompletion': 'test/vscode/commands.test.ts',
  'kvasir.snooze': 'test/vscode/commands.test.ts',
  'kvasir.endSnooze': 'test/vscode/commands.test.ts',
  'kvasir.toggleLanguage': 'test/vscode/commands.test.ts',
  'kvasir.summarizeFile': 'test/vscode/assistant.test.ts',
  'kvasir.summarizeSelection': 'test/vscode/commands.test.ts',
  'kvasir.summarizeFolder': 'test/vscode/summaries.test.ts',
  'kvasir.editSelection': 'test/vscode/edits.test.ts',
  'kvasir.acceptEdit': 'test/vscode/edits.test.ts',
  'kvasir.rejectEdit': 'test/vscode/edits.test.ts',
  'kvasir.commitMessage': 'test/vscode/edits.test.ts',
  'kvasir.showCache': 'test/vscode/cachePanel.test.ts',
  'kvasir.exportTrace': 'test/vscode/cachePanel.test.ts',
  'kvasir.clearCache': 'test/vscode/cachePanel.test.ts',
  'kvasir.chooseModel': 'test/vscode/platform.test.ts',
  'kvasir.restartEngine': 'test/vscode/robustness.test.ts',
  'kvasir.showLog': 'test/vscode/commands.test.ts',
  'kvasir.getStarted': 'test/vscode/platform.test.ts',
  'kvasir.reportProblem': 'test/vscode/platform.test.ts',
};

/** Each setting, and the words by which a test file uses it to an effect. */
const SETTINGS: Record<string, [file: string, words: string]> = {
  'kvasir.enable': ['test/vscode/disabled.test.ts', "'kvasir.enable': false"],
  'kvasir.model': ['test/vscode/robustness.test.ts', "'kvasir.model'"],
  'kvasir.modelFolders': ['test/vscode/platform.test.ts', "'kvasir.modelFolders'"],
  'kvasir.cache.maxBytes': [
    'test/unit/src/client/engineHost.test.ts',
    'a memory budget set during the load reaches the engine when it is ready, and a later one without a restart',
  ],
  'kvasir.cache.diskBytes': [
    'test/unit/src/client/engineHost.test.ts',
    'nothing is kept on disk or compressed unless the settings say so',
  ],
  'kvasir.cache.codec': [
    'test/unit/src/client/engineHost.test.ts',
    'nothing is kept on disk or compressed unless the settings say so',
  ],
  'kvasir.cache.reuseShifted': ['test/unit/src/client/engineHost.test.ts', 'shifted reuse is on only with its setting'],
  'kvasir.engine.threads': ['test/unit/src/client/engineHost.test.ts', 'the number of threads reaches the engine'],
  'kvasir.engine.precision': [
    'test/unit/src/client/engineHost.test.ts',
    'the precision of the weights reaches the engine',
  ],
  'kvasir.engine.native': [
    'test/unit/src/client/engineHost.test.ts',
    'the native kernels are used unless the setting says so',
  ],
  'kvasir.engine.unloadAfterMinutes': [
    'test/unit/src/client/idleUnload.test.ts',
    'unloaded after the time without a request',
  ],
  'kvasir.completion.enable': ['test/unit/src/completion/silentCompletions.test.ts', 'enable: false'],
  'kvasir.completion.debounceMs': [
    'test/unit/src/completion/completionProvider.test.ts',
    'the setting is the pause before a request',
  ],
  'kvasir.completion.maxTokens': [
    'test/unit/src/completion/completionProvider.test.ts',
    'kvasir.completion.maxTokens %d sends the sampling %j',
  ],
  'kvasir.completion.languages': ['test/vscode/commands.test.ts', '"kvasir.completion.languages":["*"]'],
  'kvasir.completion.exclude': [
    'test/vscode/completion.test.ts',
    'an excluded file gets no completion, although the model would have one',
  ],
  'kvasir.completion.snippets': [
    'test/unit/src/context/snippets.test.ts',
    'nothing is read or watched for a model without snippets, or while the setting is off',
  ],
  'kvasir.completion.pauseOnBattery': [
    'test/unit/src/completion/silentCompletions.test.ts',
    'on battery, the reason is logged, the battery is queried at most once a minute, and explicit requests work',
  ],
  'kvasir.chat.maxTokens': ['test/unit/src/chat/chatView.test.ts', 'kvasir.chat.maxTokens %d sends the sampling %j'],
  'kvasir.summary.codeLens': ['test/vscode/summaries.test.ts', "'kvasir.summary.codeLens': true"],
  'kvasir.summary.hover': ['test/vscode/commands.test.ts', "'kvasir.summary.hover': false"],
};

const titleOf = (command: string): string =>
  words[contributes.commands.find((each) => each.command === command)?.title.slice(1, -1) ?? ''] ?? '';

test('the tables name what the manifest contributes', () => {
  expect(Object.keys(COMMANDS).sort()).toEqual(contributes.commands.map(({ command }) => command).sort());
  expect(Object.keys(SETTINGS).sort()).toEqual(Object.keys(contributes.configuration.properties).sort());
});

describe('a test in the editor runs', () => {
  test.each(Object.entries(COMMANDS))('%s', (command, file) => {
    const text = readFileSync(file, 'utf8');
    // From the palette or from a menu, by its title; in commands.test.ts, by its name.
    const title = new RegExp(`['"\\x60=](Kvasir: )?${titleOf(command)}\\b`);
    expect(
      title.test(text) || text.includes(`'${command}'`),
      `${file} says "${titleOf(command)}" or '${command}'`,
    ).toBe(true);
  });
});

describe('a test shows the effect of', () => {
  test.each(Object.entries(SETTINGS))('%s', (_, [file, use]) => {
    expect(readFileSync(file, 'utf8')).toContain(use);
  });
});

test('each setting is read in one place, under its name', () => {
  const config = readFileSync('src/config.ts', 'utf8');
  for (const setting of Object.keys(contributes.configuration.properties))
    expect(config, setting).toContain(`'${setting.slice('kvasir.'.length)}'`);
});
