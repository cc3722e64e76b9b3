/**
 * Write Commit Message with a scripted engine and repository: what is read, what is left out, and what happens to the
 * input box.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { Task } from '../../../../engine/protocol/tasks.ts';
import { t } from '../../../support/editor/translate.ts';

const editor = vi.hoisted(() => ({
  messages: [] as string[],
  choose: undefined as string | undefined,
  repositories: [] as unknown[],
  executed: [] as string[],
  cancel: () => {},
  onSay: undefined as (() => string) | undefined,
}));
vi.mock('../../../../src/vscode.ts', () => {
  const say = async (message: string, ...buttons: string[]) => {
    editor.messages.push(message);
    const chosen = editor.onSay?.() ?? editor.choose;
    return buttons.find((button) => button === chosen);
  };
  return {
    env: { language: 'en' },
    l10n: { t },
    ProgressLocation: { Window: 10, Notification: 15 },
    Uri: { joinPath: (root: string, name: string) => `${root}/${name}` },
    languages: {
      match: ({ pattern }: { pattern: string }, { uri }: { uri: string }) =>
        uri.endsWith(pattern.replace('**/', '/')) ? 1 : 0,
    },
    commands: { executeCommand: async (name: string) => void editor.executed.push(name) },
    extensions: {
      getExtension: () => ({
        activate: async () => ({ enabled: true, getAPI: () => ({ repositories: editor.repositories }) }),
      }),
    },
    window: {
      showInformationMessage: say,
      showErrorMessage: say,
      withProgress: (_: unknown, run: (progress: unknown, token: unknown) => unknown) =>
        run(
          {},
          {
            onCancellationRequested: (listener: () => void) => {
              editor.cancel = listener;
            },
          },
        ),
    },
  };
});
const { CommitMessage } = await import('../../../../src/edit/commitMessage.ts');
const { diffFiles } = await import('../../../../src/edit/git.ts');

beforeEach(() => {
  Object.assign(editor, { messages: [], choose: undefined, executed: [], onSay: undefined });
});

const fileDiff = (name: string) =>
  `diff --git a/${name} b/${name}\nindex 1..2 100644\n--- a/${name}\n+++ b/${name}\n@@ -1 +1 @@\n-one\n+two\n`;

function setUp({
  staged = '',
  working = '',
  before = '',
  canEdit = true,
  pieces = ['Add ', 'two'],
  finishReason = 'stop',
  onPiece = (_: number): unknown => undefined,
} = {}) {
  const repository = {
    rootUri: '/work',
    inputBox: { value: before },
    diff: async (cached?: boolean) => (cached ? staged : working),
    log: async () => [{ message: 'Add one\n\nBody' }, { message: 'Fix zero' }],
  };
  editor.repositories = [repository];
  const tasks: Task[] = [];
  const seen: string[] = [];
  const client = {
    state: { kind: 'ready' },
    ready: async () => ({ name: 'scripted', canEdit }),
    generate: async ({
      task,
      onChunk,
      signal,
    }: {
      task: () => Task;
      onChunk: (text: string) => void;
      signal: AbortSignal;
    }) => {
      tasks.push(task());
      for (const [i, piece] of pieces.entries()) {
        if (signal.aborted) break;
        onChunk(piece);
        seen.push(repository.inputBox.value);
        await onPiece(i);
      }
      return {
        text: pieces.join(''),
        finishReason: signal.aborted ? 'abort' : finishReason,
        usage: { completionTokens: 2 },
        diagnostics: [],
      };
    },
  };
  const command = new CommitMessage(
    { client } as never,
    { current: { completion: { exclude: ['**/.env'] } } } as never,
  );
  return { repository, tasks, seen, run: () => command.run() };
}

test('the request has the staged diff and the last subjects, and the message streams into the box', async () => {
  const { repository, tasks, seen, run } = setUp({ staged: fileDiff('a.ts'), working: fileDiff('b.ts') });
  await run();
  expect(tasks).toEqual([{ kind: 'commitMessage', diff: fileDiff('a.ts'), subjects: ['Add one', 'Fix zero'] }]);
  expect(seen).toEqual(['Add ', 'Add two']);
  expect(repository.inputBox.value).toBe('Add two');
  expect(editor.messages).toEqual([]);
});

test('with nothing staged the message covers all changes, and a note says so', async () => {
  const { tasks, run } = setUp({ working: fileDiff('b.ts') });
  await run();
  expect(tasks[0]).toMatchObject({ diff: fileDiff('b.ts') });
  expect(editor.messages).toEqual(['Kvasir: nothing is staged, so the message covers all changes.']);
});

test('secret files do not reach the model, also when renamed, and a note names them', async () => {
  const renamed =
    'diff --git a/.env b/settings.txt\nsimilarity index 90%\nrename from .env\nrename to settings.txt\n--- a/.env\n+++ b/settings.txt\n@@ -1 +1 @@\n-a\n+b\n';
  const { tasks, run } = setUp({ staged: fileDiff('src/.env') + fileDiff('a.ts') + renamed });
  await run();
  expect(tasks[0]).toMatchObject({ diff: fileDiff('a.ts') });
  expect(editor.messages).toEqual(['Kvasir: left out by kvasir.completion.exclude: src/.env, settings.txt.']);
});

test.each(['\r', '\u2028'])('a secret file that contains the line break %j counts as one file', async (lineBreak) => {
  const { run } = setUp({ staged: `${fileDiff('.env')}+a${lineBreak}diff --git a/x.ts b/x.ts${lineBreak}TOKEN\n` });
  await run();
  expect(editor.messages).toEqual(['Kvasir: kvasir.completion.exclude leaves out all changed files: .env.']);
});

test.each([
  ['nothing has changed', {}, 'Kvasir: There are no changes to describe. Stage new files first.'],
  [
    'all is secret',
    { staged: fileDiff('.env') },
    'Kvasir: kvasir.completion.exclude leaves out all changed files: .env.',
  ],
  ['the model gave nothing', { staged: fileDiff('a.ts'), pieces: [] }, 'Kvasir: the model gave no message'],
])('one error message is shown when %s', async (_, options, message) => {
  const { repository, run } = setUp({ ...options, before: 'mine' });
  await run();
  expect(editor.messages).toEqual([message]);
  expect(repository.inputBox.value).toBe('mine');
});

test('a model that does not follow instructions is not asked, and the message offers to choose another', async () => {
  editor.choose = 'Choose Model';
  const { tasks, run } = setUp({ staged: fileDiff('a.ts'), canEdit: false });
  await run();
  expect(tasks).toEqual([]);
  expect(editor.messages).toEqual([
    'Kvasir: scripted is too small to write commit messages. Choose a larger model for that.',
  ]);
  expect(editor.executed).toEqual(['kvasir.chooseModel']);
});

describe('the input box', () => {
  test('has its earlier text again after a cancellation', async () => {
    const { repository, run } = setUp({ staged: fileDiff('a.ts'), before: 'mine', onPiece: () => editor.cancel() });
    await run();
    expect(repository.inputBox.value).toBe('mine');
    expect(editor.messages).toEqual([]);
  });

  test('has its earlier text again on request', async () => {
    editor.choose = 'Restore Previous Message';
    const { repository, run } = setUp({ staged: fileDiff('a.ts'), before: 'mine' });
    await run();
    expect(editor.messages).toEqual(['Kvasir: the text in the box was replaced.']);
    expect(repository.inputBox.value).toBe('mine');
  });

  test('holds the whole message although the editor reports its content late', async () => {
    const { repository, run } = setUp({
      staged: fileDiff('a.ts'),
      pieces: ['Fix ', 'the ', 'rope'],
      onPiece: (i) => {
        if (i === 1) repository.inputBox.value = 'Fix';
      },
    });
    await run();
    expect(repository.inputBox.value).toBe('Fix the rope');
  });

  test('keeps what the user types during streaming', async () => {
    const { repository, run } = setUp({
      staged: fileDiff('a.ts'),
      pieces: ['a', 'b', 'c'],
      onPiece: (i) => {
        if (i === 0) repository.inputBox.value = 'typed';
      },
    });
    await run();
    expect(repository.inputBox.value).toBe('typed');
    expect(editor.messages).toEqual([]);
  });

  test('gets its earlier text back after the user has typed during streaming', async () => {
    editor.choose = 'Restore Previous Message';
    const { repository, run } = setUp({
      staged: fileDiff('a.ts'),
      before: 'mine',
      pieces: ['a', 'b'],
      onPiece: (i) => {
        if (i === 0) repository.inputBox.value += '!';
      },
    });
    await run();
    expect(editor.messages).toEqual(['Kvasir: the text in the box was replaced.']);
    expect(repository.inputBox.value).toBe('mine');
  });

  test('gets its earlier text back after the user has edited the new message', async () => {
    const { repository, run } = setUp({ staged: fileDiff('a.ts'), before: 'mine' });
    editor.onSay = () => {
      repository.inputBox.value += ' and three';
      return 'Restore Previous Message';
    };
    await run();
    expect(repository.inputBox.value).toBe('mine');
  });

  test('gets back the text from before the first of two simultaneous commands', async () => {
    const { repository, tasks, run } = setUp({
      staged: fileDiff('a.ts'),
      before: 'mine',
      onPiece: () => (tasks.length === 1 ? run() : undefined),
    });
    editor.choose = 'Restore Previous Message';
    await run();
    expect(tasks).toHaveLength(1);
    expect(repository.inputBox.value).toBe('mine');
  });
});

test.skipIf(spawnSync('git', ['--version']).status !== 0)(
  'the diff of a real git repository is split into files: new, deleted, renamed, binary, unusual names',
  () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'kvasir-git-'));
    const git = (...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=k', '-c', 'user.email=k@example.org', ...args], {
        cwd: folder,
        encoding: 'utf8',
      });
    try {
      git('init', '--quiet');
      for (const name of ['deleted.ts', 'old name.ts', 'a b.ts', 'käse.ts'])
        writeFileSync(path.join(folder, name), `${'one\n'.repeat(20)}${name}\n`);
      writeFileSync(path.join(folder, 'image.bin'), Buffer.from([0, 1, 2]));
      git('add', '.');
      git('commit', '--quiet', '-m', 'First');
      git('mv', 'old name.ts', 'new name.ts');
      git('rm', '--quiet', 'deleted.ts');
      for (const name of ['a b.ts', 'käse.ts', 'added.ts'])
        writeFileSync(path.join(folder, name), '--- a/not/a/name\n+++ b/not/a/name\n');
      writeFileSync(path.join(folder, 'image.bin'), Buffer.from([0, 3, 2]));
      git('add', '.');
      for (const options of [[], ['-c', 'diff.mnemonicPrefix=true'], ['-c', 'diff.noprefix=true']]) {
        const files = diffFiles(git(...options, 'diff', '--cached', '-M'));
        expect(files.map((file) => file.path).sort(), options.join()).toEqual(
          ['a b.ts', 'added.ts', 'deleted.ts', 'image.bin', 'käse.ts', 'new name.ts'].sort(),
        );
        expect(files.find((file) => file.path === 'new name.ts')?.names).toContain('old name.ts');
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
