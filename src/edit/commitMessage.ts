/**
 * `Kvasir: Write Commit Message`: streams a message for the staged diff, else the working tree's, into the repository's
 * input box. Restores the former text on cancel, on failure and on request. Keeps what the user types in the meantime.
 */
import { answerTokens } from '../../engine/protocol/tasks.ts';
import { speech } from '../speech.ts';
import * as vscode from '../vscode.ts';
import { isSecret } from '../completion/filter.ts';
import type { Settings } from '../config.ts';
import { followsInstructions } from './ability.ts';
import type { EngineHost } from '../client/engineHost.ts';
import { failureOf } from '../client/failure.ts';
import { diffFiles, chooseRepository, openRepositories, type Repository } from './git.ts';

/** Number of recent commits that show a project's style. */
const NUM_SUBJECTS = 8;

interface Change {
  diff: string;
  /** Notes for the user: not staged, files left out. */
  notes: string[];
}

export class CommitMessage {
  readonly #host: EngineHost;
  readonly #settings: Settings;
  /** Roots of the repositories whose message is being written. */
  readonly #writing = new Set<string>();

  constructor(host: EngineHost, settings: Settings) {
    this.#host = host;
    this.#settings = settings;
  }

  /** `source` comes from the button of a repository. */
  async run(source?: { rootUri?: vscode.Uri }): Promise<void> {
    const tell = failureOf(this.#host);
    try {
      if (
        !(await followsInstructions(this.#host, (name) =>
          vscode.l10n.t('{0} is too small to write commit messages. Choose a larger model for that.', name),
        ))
      )
        return;
      const repositories = await openRepositories();
      if (!repositories.length) throw new Error(vscode.l10n.t('There is no Git repository in this window.'));
      const repository = await chooseRepository(repositories, source?.rootUri);
      if (!repository) return;
      const change = await this.#changeOf(repository);
      await this.#write(repository, change);
    } catch (error) {
      tell(error);
    }
  }

  /** Throws an Error for the user when there is nothing to write about. */
  async #changeOf(repository: Repository): Promise<Change> {
    const staged = await repository.diff(true);
    const whole = staged.trim() ? staged : await repository.diff(false);
    if (!whole.trim()) throw new Error(vscode.l10n.t('There are no changes to describe. Stage new files first.'));
    const files = diffFiles(whole);
    const secret = (name: string) =>
      isSecret(
        { uri: vscode.Uri.joinPath(repository.rootUri, name), languageId: '' },
        this.#settings.current.completion,
      );
    const shown = files.filter(({ names }) => !names.some(secret));
    const hidden = files.filter((file) => !shown.includes(file)).map(({ path }) => path);
    if (!shown.length)
      throw new Error(vscode.l10n.t('kvasir.completion.exclude leaves out all changed files: {0}.', hidden.join(', ')));
    const notes: string[] = [];
    if (!staged.trim()) notes.push(vscode.l10n.t('nothing is staged, so the message covers all changes'));
    if (hidden.length) notes.push(vscode.l10n.t('left out by kvasir.completion.exclude: {0}', hidden.join(', ')));
    return { diff: shown.map(({ text }) => text).join(''), notes };
  }

  async #write(repository: Repository, { diff, notes }: Change): Promise<void> {
    const { inputBox } = repository;
    const root = repository.rootUri.toString();
    if (this.#writing.has(root)) return;
    this.#writing.add(root);
    const before = inputBox.value;
    const abort = new AbortController();
    let written = before;
    let text = '';
    const put = (value: string) => {
      // The user has typed into the box, so it is not written to any more.
      if (!isOurs(inputBox.value, written)) abort.abort();
      else inputBox.value = written = value;
    };
    const restore = () => {
      if (isOurs(inputBox.value, written)) inputBox.value = before;
    };
    const said = [...notes];
    try {
      const subjects = await recentSubjects(repository);
      const done = await vscode.window.withProgress(
        {
          location: vscode.ProgressLocation.Notification,
          title: vscode.l10n.t('Kvasir is writing a commit message'),
          cancellable: true,
        },
        (_, token) => {
          token.onCancellationRequested(() => abort.abort());
          return this.#host.client.generate({
            task: () => ({ kind: 'commitMessage', diff, subjects }),
            priority: 'chat',
            onChunk: (piece) => {
              text += piece;
              if (!abort.signal.aborted) put(text);
            },
            signal: abort.signal,
          });
        },
      );
      if (!abort.signal.aborted && !done.text)
        throw new Error(done.diagnostics.join('; ') || vscode.l10n.t('the model gave no message'));
      if (!abort.signal.aborted) put(done.text);
      if (abort.signal.aborted) {
        restore();
        said.length = 0;
      } else {
        if (done.finishReason === 'length' && answerTokens(done.usage) > 0)
          said.push(
            vscode.l10n.t('the message is cut off after {0} tokens', speech().numbers.count(answerTokens(done.usage))),
          );
        said.push(...done.diagnostics);
      }
    } catch (error) {
      restore();
      throw error;
    } finally {
      this.#writing.delete(root);
    }
    await offerBefore(said, before, inputBox);
  }
}

/** First lines of the last commits; empty for a repository without commits. */
async function recentSubjects(repository: Repository): Promise<string[]> {
  const commits = await repository.log({ maxEntries: NUM_SUBJECTS }).catch(() => []);
  return commits.map(({ message }) => message.split('\n', 1)[0] as string);
}

/** Shows the notes, and offers to restore the former text of the box if it was replaced. */
async function offerBefore(notes: readonly string[], before: string, inputBox: Repository['inputBox']): Promise<void> {
  const again = vscode.l10n.t('Restore Previous Message');
  const replaced = before.trim() !== '' && inputBox.value !== before;
  const said = replaced ? [...notes, vscode.l10n.t('the text in the box was replaced')] : notes;
  if (!said.length) return;
  const message = `Kvasir: ${said.join('; ')}.`;
  const chosen = replaced
    ? await vscode.window.showInformationMessage(message, again)
    : await vscode.window.showInformationMessage(message);
  if (chosen === again) inputBox.value = before;
}

/**
 * Whether the box still holds what was written. The editor reports the content with a delay, so it may be an earlier
 * part. It also changes line ends and drops control characters, so only visible text is compared.
 */
function isOurs(value: string, written: string): boolean {
  const read = (text: string) => text.replace(/[^\p{L}\p{N}\p{P}\p{S}]/gu, '');
  return read(value) === read(written) || (read(value) !== '' && read(written).startsWith(read(value)));
}
