/**
 * Downloads a model that the user has asked for, shows the progress, and loads the model when it is whole. Offers to go
 * on with a download that the end of the editor has interrupted. How files are brought: engine/download/.
 */
import { type Choice, choiceNamed, choicesOf } from '../../engine/download/choices.ts';
import { download } from '../../engine/download/download.ts';
import { Hub, type Listing } from '../../engine/download/hub.ts';
import { CachedRepository, hubFolder, thisMachine } from '../../engine/download/hubCache.ts';
import { FIRST_MODEL, KNOWN_MODELS, type KnownModel } from '../../engine/download/knownModels.ts';
import { DownloadError, describeProblem } from '../../engine/download/problem.ts';
import { inRepository } from '../../engine/find/hubModels.ts';
import { folderName } from '../../engine/find/names.ts';
import type { EngineHost } from '../client/engineHost.ts';
import { withoutLinks } from '../client/failure.ts';
import type { Settings } from '../config.ts';
import { messageOf } from '../format.ts';
import { speech } from '../speech.ts';
import * as vscode from '../vscode.ts';
import { ProgressLine } from './downloadLines.ts';
import { useModel } from './useModel.ts';

/** What to download. */
interface Wanted {
  repository: string;
  revision: string;
  /** "Q8_0", or a file; asked for if left out and there are several. */
  format?: string;
  /** For display. */
  title: string;
}

/** Before the repository in the global state while a download runs: left there only if the editor ends meanwhile. */
const RUNNING = 'kvasir.download:';
const MIN_REPORT_MS = 250;

export class Downloads implements vscode.Disposable {
  readonly #context: Pick<vscode.ExtensionContext, 'globalState' | 'secrets'>;
  readonly #host: EngineHost;
  readonly #settings: Settings;
  /** By repository. */
  readonly #running = new Map<string, AbortController>();
  #disposed = false;

  constructor(context: Pick<vscode.ExtensionContext, 'globalState' | 'secrets'>, host: EngineHost, settings: Settings) {
    this.#context = context;
    this.#host = host;
    this.#settings = settings;
  }

  /** Stops what runs. Its parts and the record of it stay. */
  dispose(): void {
    this.#disposed = true;
    for (const stop of this.#running.values()) stop.abort();
  }

  /** A model of the list, by default FIRST_MODEL. Asks first if it needs more memory than is free. */
  async known(id?: string): Promise<void> {
    const model = KNOWN_MODELS.find((each) => each.id === id) ?? FIRST_MODEL;
    const [here] = await inRepository(folder(), model.repository);
    if (here) return useModel(here, folderName(here), this.#host, this.#settings);
    if (await this.#fits(model)) await this.start(wantedOf(model));
  }

  /** Asks for a repository. */
  async other(): Promise<void> {
    const t = vscode.l10n.t;
    const name = await vscode.window.showInputBox({
      title: t('Download a model from the Hugging Face hub'),
      prompt: t('The name of its repository, as in Qwen/Qwen2.5-Coder-3B-Instruct-GGUF'),
      placeHolder: t('owner/name'),
      validateInput: (value) =>
        value === '' || /^[^\s/]+\/[^\s/]+$/.test(value.trim()) ? undefined : t('It has the form owner/name.'),
    });
    const repository = name?.trim();
    if (repository) await this.start({ repository, revision: 'main', title: repository });
  }

  async start(wanted: Wanted): Promise<void> {
    const { repository, title } = wanted;
    if (this.#running.has(repository)) {
      const message = vscode.l10n.t('Kvasir: the download of {0} is running already.', title);
      return void vscode.window.showInformationMessage(withoutLinks(message));
    }
    const stop = new AbortController();
    this.#running.set(repository, stop);
    let modelDir: string | undefined;
    let isRecorded = false;
    try {
      const { hub, listing, choice } = await this.#chosen(wanted, stop);
      if (choice) {
        isRecorded = true;
        await this.#record(repository, { ...wanted, format: choice.path || choice.format });
        modelDir = await this.#bring(wanted, hub, listing, choice, stop);
      }
    } catch (error) {
      if (!stop.signal.aborted) void this.#tell(error, wanted).catch(tellFailure);
    } finally {
      this.#running.delete(repository);
      if (isRecorded && !this.#disposed) await this.#record(repository, undefined);
    }
    if (modelDir !== undefined) await useModel(modelDir, title, this.#host, this.#settings);
  }

  async #record(repository: string, wanted: Wanted | undefined): Promise<void> {
    await this.#context.globalState.update(RUNNING + repository, wanted);
  }

  /** Offers to go on with what was interrupted, unless another window is at it. Loads nothing by itself. */
  async offerRest(): Promise<void> {
    const { globalState } = this.#context;
    const keys = globalState.keys().filter((key) => key.startsWith(RUNNING));
    await Promise.all(keys.map((key) => this.#offer(globalState.get<Wanted>(key)).catch(tellFailure)));
  }

  async #offer(wanted: Wanted | undefined): Promise<void> {
    if (!wanted || typeof wanted.repository !== 'string') return;
    const cache = new CachedRepository(folder(), wanted.repository);
    if (await cache.isBusy()) return;
    const t = vscode.l10n.t;
    const [resume, discard] = [t('Continue'), t('Discard')];
    const message = t('Kvasir: the download of {0} was interrupted.', wanted.title);
    const chosen = await vscode.window.showInformationMessage(withoutLinks(message), resume, discard);
    if (this.#disposed || chosen === undefined) return;
    // Meanwhile it may have been started from the list.
    if (this.#running.has(wanted.repository)) return;
    await this.#record(wanted.repository, undefined);
    if (chosen === resume) await this.start(wanted);
    else if (!(await cache.isBusy())) await cache.discardParts();
  }

  async #hub(): Promise<Hub> {
    const { HF_ENDPOINT: endpoint, HF_TOKEN } = process.env;
    // The editor sends it through its own proxies.
    const open = new Hub({ endpoint, fetch: (url, init) => fetch(url, init) });
    const token = (await this.#context.secrets.get(secretOf(open))) ?? HF_TOKEN;
    return token ? new Hub({ endpoint, token, fetch: (url, init) => fetch(url, init) }) : open;
  }

  /** Lists the repository. `choice` is undefined if the user has dismissed the question which file. */
  async #chosen(
    { repository, revision, format, title }: Wanted,
    stop: AbortController,
  ): Promise<{ hub: Hub; listing: Listing; choice: Choice | undefined }> {
    const hub = await this.#hub();
    const listing = await vscode.window.withProgress(
      {
        location: vscode.ProgressLocation.Notification,
        cancellable: true,
        title: vscode.l10n.t('Kvasir: looking for {0}', title),
      },
      (_, cancel) => {
        cancel.onCancellationRequested(() => stop.abort());
        return hub.list(repository, revision, stop.signal);
      },
    );
    const choices = choicesOf(listing.files);
    if (choices.length === 0) throw new DownloadError({ kind: 'noModel', repository });
    const named = format === undefined ? undefined : choiceNamed(choices, format);
    return { hub, listing, choice: named ?? (choices.length === 1 ? choices[0] : await pick(choices, title)) };
  }

  async #bring(
    { revision, title }: Wanted,
    hub: Hub,
    listing: Listing,
    choice: Choice,
    stop: AbortController,
  ): Promise<string> {
    const line = new ProgressLine(speech());
    const options = {
      location: vscode.ProgressLocation.Notification,
      cancellable: true,
      title: vscode.l10n.t('Downloading {0}', title),
    };
    return vscode.window.withProgress(options, (progress, cancel) => {
      cancel.onCancellationRequested(() => stop.abort());
      let [reported, next] = [0, 0];
      return download({
        hub,
        folder: folder(),
        listing,
        revision,
        choice,
        signal: stop.signal,
        onProgress: (step) => {
          const now = performance.now();
          const message = line.line(step);
          if (now < next && step.doneBytes < step.totalBytes) return;
          next = now + MIN_REPORT_MS;
          const percent = step.totalBytes ? (100 * step.doneBytes) / step.totalBytes : 100;
          progress.report({ increment: percent - reported, message });
          reported = percent;
        },
      });
    });
  }

  async #tell(error: unknown, wanted: Wanted): Promise<void> {
    const { t, numbers } = speech();
    const problem = error instanceof DownloadError ? error.problem : undefined;
    const words = problem ? describeProblem(problem, t, numbers.bytes) : messageOf(error);
    const needsToken = problem?.kind === 'gated' || problem?.kind === 'badToken';
    const [again, token, page] = [t('Try Again'), t('Enter Access Token'), t('Open Its Page')];
    const chosen = await vscode.window.showErrorMessage(
      `Kvasir: ${withoutLinks(words)}`,
      ...(needsToken ? [token, page] : [again]),
    );
    if (this.#disposed || chosen === undefined) return;
    if (chosen === page) {
      const hub = await this.#hub();
      await vscode.env.openExternal(vscode.Uri.parse(hub.pageOf(wanted.repository)));
    } else if (chosen === again || (await this.#askToken())) await this.start(wanted);
  }

  /** Keeps the token in the editor's secret storage, for this hub alone. */
  async #askToken(): Promise<boolean> {
    const hub = await this.#hub();
    const token = await vscode.window.showInputBox({
      title: vscode.l10n.t('Access token for {0}', hub.host),
      prompt: vscode.l10n.t('It is kept in the editor’s secret storage and sent to {0} alone.', hub.host),
      password: true,
      ignoreFocusOut: true,
    });
    if (!token?.trim()) return false;
    await this.#context.secrets.store(secretOf(hub), token.trim());
    return true;
  }

  async #fits({ title, residentBytes, cacheBytes }: KnownModel): Promise<boolean> {
    const { t, numbers } = speech();
    const machine = await this.#host.client.machine().catch(() => null);
    const needed = residentBytes[this.#settings.current.precision] + cacheBytes;
    if (!machine || needed <= machine.memory.availableBytes) return true;
    const anyway = t('Download Anyway');
    const message = t(
      '{0} needs {1} of memory, and {2} are free.',
      title,
      numbers.bytes(needed),
      numbers.bytes(machine.memory.availableBytes),
    );
    return (await vscode.window.showWarningMessage(message, { modal: true }, anyway)) === anyway;
  }
}

const wantedOf = ({ repository, revision, format, title }: KnownModel): Wanted => ({
  repository,
  revision,
  format,
  title,
});

/** What has failed on the way to a question, such as the editor's secret storage. */
function tellFailure(error: unknown): void {
  void vscode.window.showErrorMessage(`Kvasir: ${withoutLinks(messageOf(error))}`);
}

const folder = (): string => hubFolder(thisMachine());

const secretOf = (hub: Hub): string => `kvasir.hubToken:${hub.endpoint.origin}`;

async function pick(choices: readonly Choice[], title: string): Promise<Choice | undefined> {
  const { numbers } = speech();
  const items = choices.map((choice) => ({
    label: choice.path || '*.safetensors',
    description: numbers.bytes(choice.bytes),
    choice,
  }));
  const chosen = await vscode.window.showQuickPick(items, {
    title: vscode.l10n.t('{0}: which file?', title),
    ignoreFocusOut: true,
  });
  return chosen?.choice;
}
