/**
 * `Kvasir: Choose Model`: lists the built-in model, those found on this machine with the engine's verdict on each, and
 * larger ones to download. Fills while it is open. Does not act on the choice: useModel.ts and downloads.ts do.
 */
import { messageOf } from '../format.ts';
import type { InspectedModel } from '../../engine/protocol/stats.ts';
import { speech } from '../speech.ts';
import * as vscode from '../vscode.ts';
import type { Settings } from '../config.ts';
import type { EngineHost } from '../client/engineHost.ts';
import { CachedRepository, hubFolder, thisMachine } from '../../engine/download/hubCache.ts';
import { KNOWN_MODELS } from '../../engine/download/knownModels.ts';
import type { Source } from '../../engine/find/found.ts';
import { repositoryOf } from '../../engine/find/names.ts';
import { sourceText } from '../../engine/find/texts.ts';
import { builtInCandidate, type Candidate, findCandidates } from './candidates.ts';
import type { Downloads } from './downloads.ts';
import { describeInspected, describePending, describeRecommended, describeRefused } from './modelItems.ts';
import { recommend } from './recommend.ts';
import { browseForModel, useModel } from './useModel.ts';

interface ModelItem extends vscode.QuickPickItem {
  /** Stable while the line's words change. */
  id?: string;
  run?: () => Promise<void>;
}

/** What is known so far, by candidate. */
interface Known {
  candidates: Candidate[];
  /** There are more than are listed. */
  isCut: boolean;
  models: Map<Candidate, InspectedModel | { reason: string }>;
  machine: { availableBytes: number; readBytesPerSecond: number | null } | null;
  /** What earlier downloads have left, by id of the known model. */
  partBytes: Map<string, number>;
}

/** What acts on a choice. */
export interface Chooser {
  host: EngineHost;
  settings: Settings;
  downloads: Downloads;
}

export async function chooseModel(builtInDir: string, chooser: Chooser): Promise<void> {
  const { host, settings } = chooser;
  const candidates = [builtInCandidate(builtInDir, settings.current)];
  const known: Known = { candidates, isCut: false, models: new Map(), machine: null, partBytes: new Map() };
  const pick = vscode.window.createQuickPick<ModelItem>();
  let open = true;
  // Not in the placeholder: the editor shows that again as a tooltip, which covers the list below the mouse.
  pick.title = titleOf(vscode.l10n.t('checking the models on this machine…'));
  pick.matchOnDescription = true;
  pick.matchOnDetail = true;
  pick.busy = true;
  pick.onDidHide(() => {
    open = false;
    pick.dispose();
  });
  pick.onDidAccept(() => {
    const run = pick.selectedItems[0]?.run;
    if (!run) return;
    pick.hide();
    void run();
  });
  const refresh = () => {
    if (!open) return;
    const before = pick.activeItems[0]?.id;
    pick.items = items(known, chooser);
    // Late results do not move the cursor.
    const again = pick.items.find(({ id }) => id !== undefined && id === before);
    if (again) pick.activeItems = [again];
  };
  refresh();
  pick.show();
  // An engine that is down for good is restarted: its message advises choosing another model.
  const { state } = host.client;
  if (state.kind === 'failed' && !state.retry) await host.client.stop(vscode.l10n.t('the engine was restarted'));
  await Promise.all([
    describeAll(known, chooser, () => open, refresh),
    describeMachine(known, host, refresh),
    describeParts(known, refresh),
  ]);
  if (!open) return;
  pick.busy = false;
  pick.title = titleOf(...summary(known));
}

/** One model after another, because the engine may be busy with a completion. */
async function describeAll(
  known: Known,
  { host, settings }: Chooser,
  wanted: () => boolean,
  refresh: () => void,
): Promise<void> {
  const { candidates, isCut } = await findCandidates(settings.current);
  known.candidates.push(...candidates);
  known.isCut = isCut;
  refresh();
  for (const candidate of known.candidates) {
    if (!wanted()) return;
    const { modelDir, reason } = candidate;
    known.models.set(
      candidate,
      reason === undefined
        ? await host.client
            .inspect(modelDir, settings.current.native)
            .catch((error: unknown) => ({ reason: messageOf(error) }))
        : { reason },
    );
    refresh();
  }
}

async function describeMachine(known: Known, host: EngineHost, refresh: () => void): Promise<void> {
  try {
    const { memory, readBytesPerSecond } = await host.client.machine({ speed: true });
    known.machine = { availableBytes: memory.availableBytes, readBytesPerSecond };
    refresh();
  } catch {
    // Nothing is recommended if the machine's facts are unknown. Its models can still be chosen.
  }
}

async function describeParts({ partBytes }: Known, refresh: () => void): Promise<void> {
  const hub = hubFolder(thisMachine());
  for (const { id, repository } of KNOWN_MODELS)
    partBytes.set(id, await new CachedRepository(hub, repository).partBytes());
  if ([...partBytes.values()].some((bytes) => bytes > 0)) refresh();
}

function items({ candidates, models, machine, partBytes }: Known, { host, settings, downloads }: Chooser): ModelItem[] {
  const { precision } = settings.current;
  const language = speech();
  const separator = (label: string): ModelItem => ({ label, kind: vscode.QuickPickItemKind.Separator });
  const refused: ModelItem[] = [];
  const here = new Map<Source | undefined, ModelItem[]>();
  const add = (source: Source | undefined, item: ModelItem) => here.set(source, [...(here.get(source) ?? []), item]);
  for (const candidate of candidates) {
    const { name, setting, current, source, bytes } = candidate;
    const found = {
      name,
      current,
      builtIn: setting === '',
      ...(source === undefined ? {} : { source: sourceText(source, vscode.l10n.t) }),
      availableBytes: machine?.availableBytes ?? null,
      bytes,
      precision,
    };
    const answer = models.get(candidate);
    const id = candidate.modelDir;
    if (!answer) add(source, { ...describePending(found, language), id });
    else if ('reason' in answer) refused.push({ ...describeRefused(answer.reason, found, language), id });
    else
      add(source, {
        ...describeInspected(answer, found, language),
        id,
        run: () => useModel(setting, answer.name, host, settings),
      });
  }
  const repositories = new Set(
    candidates.flatMap(({ modelDir, name, aliases }) => [name, ...aliases, repositoryOf(modelDir) ?? name]),
  );
  const present = KNOWN_MODELS.filter((each) => repositories.has(each.id) || repositories.has(each.repository));
  const larger = machine ? recommend(machine, precision, new Set(present.map(({ id }) => id))) : [];
  return [
    ...[...here].flatMap(([source, found]) => [
      separator(source === undefined ? vscode.l10n.t('here') : sourceText(source, vscode.l10n.t)),
      ...found,
    ]),
    separator(vscode.l10n.t('another place')),
    {
      id: 'folder',
      label: `$(folder-opened) ${vscode.l10n.t('Choose a folder…')}`,
      detail: vscode.l10n.t('config.json, tokenizer.json and *.safetensors'),
      run: () => browseForModel('folder', host, settings),
    },
    {
      id: 'file',
      label: `$(file) ${vscode.l10n.t('Choose a GGUF file…')}`,
      detail: vscode.l10n.t('A model in one file, or in parts'),
      run: () => browseForModel('file', host, settings),
    },
    separator(vscode.l10n.t('to download')),
    ...larger.map((each) => ({
      ...describeRecommended(
        each,
        precision,
        machine?.readBytesPerSecond ?? null,
        partBytes.get(each.model.id) ?? 0,
        language,
      ),
      id: each.model.id,
      run: () => downloads.known(each.model.id),
    })),
    {
      id: 'download',
      label: `$(cloud-download) ${vscode.l10n.t('Download another model…')}`,
      detail: vscode.l10n.t('From the Hugging Face hub, by owner/name'),
      run: () => downloads.other(),
    },
    ...(refused.length ? [separator(vscode.l10n.t('cannot run'))] : []),
    ...refused,
  ];
}

const titleOf = (...parts: string[]): string => [vscode.l10n.t('Kvasir: Choose Model'), ...parts].join(' · ');

function summary({ models, machine, isCut }: Known): string[] {
  const numRefused = [...models.values()].filter((answer) => 'reason' in answer).length;
  const found = vscode.l10n.t('can run here: {0}', models.size - numRefused);
  const more = isCut ? vscode.l10n.t('there are more than are listed') : '';
  const not = numRefused ? vscode.l10n.t('cannot run: {0}', numRefused) : '';
  const { numbers } = speech();
  const free = machine ? vscode.l10n.t('{0} of memory free', numbers.bytes(machine.availableBytes)) : '';
  return [found, not, more, free].filter((part) => part !== '');
}
