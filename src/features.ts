/**
 * Creates, registers and disposes every feature that `kvasir.enable` switches on. Does not start the engine: the first
 * request does.
 */
import * as vscode from './vscode.ts';
import { registerChatCommands, registerChatCodeActions } from './chat/chatCommands.ts';
import { CHAT_VIEW, ChatView } from './chat/chatView.ts';
import { DOCUMENTS, mayBeKept, toggleLanguage } from './completion/filter.ts';
import {
  ACCEPTED_COMMAND,
  DISMISS_COMMAND,
  type CompletionProvider,
  createCompletionProvider,
} from './completion/completionProvider.ts';
import { explain } from './completion/record.ts';
import { Snooze } from './completion/snooze.ts';
import { CommitMessage } from './edit/commitMessage.ts';
import type { Settings } from './config.ts';
import { crossFileContext } from './context/crossFileContext.ts';
import { Folders } from './context/folders.ts';
import { Packages } from './context/packages.ts';
import { ProjectFiles } from './context/projectFiles.ts';
import { SnippetSource } from './context/snippetSource.ts';
import { DocumentMirror } from './client/documentMirror.ts';
import { EngineHost } from './client/engineHost.ts';
import { onNewlyExcluded } from './client/newlyExcluded.ts';
import { EditPreview } from './edit/editPreview.ts';
import { EditSelection } from './edit/editSelection.ts';
import { reportProblem, Explanation, exportTrace } from './monitor/diagnostics.ts';
import { Participant } from './lm/participant.ts';
import { LanguageModelProvider } from './lm/languageModelProvider.ts';
import type { Log } from './log.ts';
import { chooseModel } from './models/chooseModel.ts';
import { DOWNLOAD_COMMAND } from './models/downloadLines.ts';
import { Downloads } from './models/downloads.ts';
import { builtInModel } from './models/locate.ts';
import { CACHE_VIEW, CacheView } from './monitor/cacheView.ts';
import { Figures } from './monitor/figures.ts';
import { pauseOf, StatusItem, showStatusMenu, STATUS_MENU } from './monitor/statusItem.ts';
import { speech } from './speech.ts';
import { Summaries, summarizeFile, summarizeSelection } from './summary/summaries.ts';
import { tellOfWrongSettings } from './wrongSettings.ts';

/** Extension id and walkthrough id, as in package.json. */
const WALKTHROUGH = 'kvasir.kvasir#start';

export class Features {
  readonly #host: EngineHost;
  readonly #disposables: vscode.Disposable[];

  constructor(context: vscode.ExtensionContext, settings: Settings, log: Log) {
    const host = new EngineHost(context, settings, log);
    const mirror = new DocumentMirror(host.client, (document) => !mayBeKept(document, settings.current.completion));
    const snooze = new Snooze();
    const snippets = new SnippetSource(host.client, settings);
    const project = new ProjectFiles(host.client, settings);
    const packages = new Packages();
    const folders = new Folders();
    const completion = createCompletionProvider({
      client: host.client,
      mirror,
      settings,
      log,
      snooze,
      crossFile: crossFileContext({ snippets, project, packages, folders }, host.client, mirror, settings),
    });
    const edits = new EditPreview();
    const summaries = new Summaries(context, host, mirror, settings, log);
    const chat = new ChatView(context, host, mirror, settings, edits, log);
    const explanation = new Explanation(() => explain(completion.last, speech()));
    const participant = new Participant(context.extensionUri, host, mirror, settings);
    const languageModel = new LanguageModelProvider(context.extensionPath, host, settings, log);
    const figures = new Figures(host, context.globalState);
    const status = new StatusItem(host, figures, pauseOf(snooze, settings, figures));
    const cache = new CacheView(context.extensionUri, host, figures);
    const downloads = new Downloads(context, host, settings);
    void downloads.offerRest();
    const commanded = {
      host,
      downloads,
      mirror,
      completion,
      snooze,
      edits,
      chat,
      explanation,
      summaries,
      figures,
      cache,
    };
    this.#host = host;
    this.#disposables = [
      // The disk cache does not record which file an entry belongs to. So everything is cleared, and what is still
      // allowed is computed again.
      onNewlyExcluded(context.workspaceState, settings, () => {
        mirror.reviewSecrets();
        project.forget();
        summaries.forget();
        completion.forget();
        host.clearCache({ pinned: true });
      }),
      tellOfWrongSettings(settings, log),
      completion,
      snippets,
      packages,
      folders,
      project,
      snooze,
      chat,
      mirror,
      edits,
      summaries,
      explanation,
      cache,
      status,
      languageModel,
      participant,
      figures,
      downloads,
      vscode.languages.registerInlineCompletionItemProvider(DOCUMENTS, completion),
      vscode.window.registerWebviewViewProvider(CHAT_VIEW, chat),
      vscode.window.registerWebviewViewProvider(CACHE_VIEW, cache),
      registerChatCodeActions(DOCUMENTS),
      ...registerChatCommands(chat),
      ...commands(context, settings, log, commanded),
    ];
  }

  /**
   * Unregisters everything, then stops the engine. Resolves when the engine has freed its memory and the conversations
   * are written.
   */
  async stop(): Promise<void> {
    const written = Promise.allSettled(this.#disposables.map((disposable) => disposable.dispose() as unknown));
    await this.#host.stop();
    await written;
  }
}

/** The features that have commands. */
interface Commanded {
  host: EngineHost;
  downloads: Downloads;
  mirror: DocumentMirror;
  completion: CompletionProvider;
  snooze: Snooze;
  edits: EditPreview;
  chat: ChatView;
  explanation: Explanation;
  summaries: Summaries;
  figures: Figures;
  cache: CacheView;
}

/** Registers the commands that do not belong to a single feature. */
function commands(
  context: vscode.ExtensionContext,
  settings: Settings,
  log: Log,
  { host, downloads, mirror, completion, snooze, edits, chat, explanation, summaries, figures, cache }: Commanded,
): vscode.Disposable[] {
  const command = (name: string, run: (...args: never[]) => unknown) => vscode.commands.registerCommand(name, run);
  const editSelection = new EditSelection(context.workspaceState, host, mirror, edits);
  const commitMessage = new CommitMessage(host, settings);
  return [
    command(ACCEPTED_COMMAND, () => completion.accepted()),
    command(DISMISS_COMMAND, () => completion.dismiss()),
    command('kvasir.snooze', () => snooze.choose()),
    command('kvasir.endSnooze', () => snooze.end()),
    command('kvasir.toggleLanguage', () => toggleLanguage(settings)),
    command('kvasir.triggerCompletion', () => vscode.commands.executeCommand('editor.action.inlineSuggest.trigger')),
    command('kvasir.editSelection', () => editSelection.run()),
    command('kvasir.acceptEdit', () => edits.accept()),
    command('kvasir.rejectEdit', () => edits.reject()),
    command('kvasir.commitMessage', (source?: { rootUri?: vscode.Uri }) => commitMessage.run(source)),
    command('kvasir.explainLastCompletion', () => explanation.show()),
    command('kvasir.summarizeFile', (uri?: vscode.Uri) => summarizeFile(chat, uri)),
    command('kvasir.summarizeSelection', () => summarizeSelection(chat)),
    command('kvasir.clearCache', () => clearCache(summaries, completion, host, figures)),
    command('kvasir.chooseModel', () =>
      chooseModel(builtInModel(context.extensionPath), { host, settings, downloads }),
    ),
    command(DOWNLOAD_COMMAND, (id?: unknown) => downloads.known(typeof id === 'string' ? id : undefined)),
    command('kvasir.reportProblem', () => reportProblem(context, host, completion.last)),
    command('kvasir.getStarted', () =>
      vscode.commands.executeCommand('workbench.action.openWalkthrough', WALKTHROUGH, false),
    ),
    command('kvasir.showCache', () => cache.open()),
    command('kvasir.exportTrace', () => exportTrace(host.client)),
    command(STATUS_MENU, () => showStatusMenu(snooze.active)),
    command('kvasir.restartEngine', () => host.restart().catch(() => {})),
    command('kvasir.showLog', () => log.show()),
  ];
}

function clearCache(summaries: Summaries, completion: CompletionProvider, host: EngineHost, figures: Figures): void {
  summaries.forget();
  completion.forget();
  host.clearCache();
  figures.refresh();
  const t = vscode.l10n.t;
  void vscode.window.showInformationMessage(
    figures.stats?.files.some(({ pinned }) => pinned)
      ? t('Kvasir: the cache is cleared, except for pinned files. Other open files will be read again.')
      : t('Kvasir: the cache is cleared. Open files will be read again.'),
  );
}
