/**
 * `Kvasir: Choose Model`: lists the built-in model, those found on this machine with the engine's verdict on each, and
 * larger ones to download. Fills while it is open. Does not act on the choice: useModel.ts and downloads.ts do.
 */
import { messageOf } from '../format.ts';
import { homedir } from 'node:os';
import path from 'node:path';
import type { InspectedModel } from '../../engine/protocol/stats.ts';
import { speech } from '../speech.ts';
import * as vscode from '../vscode.ts';
import type { Settings } from '../config.ts';
import type { EngineHost } from '../client/engineHost.ts';
import { CachedRepository, expandHome, hubFolder } from '../../engine/download/hubCache.ts';
import { KNOWN_MODELS } from '../../engine/download/knownModels.ts';
import { findModels, folderName } from './discover.ts';
import { type Downloads, repositoryOf } from './downloads.ts';
import { describeInspected, describePending, describeRecommended, describeRefused } from './modelItems.ts';
import { recommend } from './recommend.ts';
import { browseForModel, useModel } from './useModel.ts';

interface ModelItem extends vscode.QuickPickItem {
  /** Stable while the line's words change. */
  id?: string;
  run?: () => Promise<void>;
}

interface Candidate {
  modelDir: string;
  name: string;
  /** For `kvasir.model`. */
  setting: string;
  current: boolean;
}

/** What is known so far, by candidate. */
interface Known {
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
  const candidates = findCandidates(builtInDir, settings);
  const known: Known = { models: new Map(), machine: null, partBytes: new Map() };
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
    pick.items = items(candidates, known, chooser);
    // Late results do not move the cursor.
    const again = pick.items.find(({ id }) => id !== undefined && id === before);
    if (again) pick.activeItems = [again];
  };
  refresh();
  pick.show();
  // An engine that is down for good is restarted: its message advises choosing another model.
  const { state } = host.client;
  if (state.kind === 'failed' && !state.retry) await host.client.stop(vscode.l10n.t('the engine was restarted'));
  const { native } = settings.current;
  await Promise.all([
    inspectAll(candidates, known, host, native, () => open, refresh),
    describeMachine(known, host, refresh),
    describeParts(known, refresh),
  ]);
  if (!open) return;
  pick.busy = false;
  pick.title = titleOf(...summary(known));
}

function findCandidates(builtInDir: string, settings: Settings): Candidate[] {
  const { model, modelFolders } = settings.current;
  const home = homedir();
  const current = model ? path.resolve(expandHome(model, home)) : builtInDir;
  const found = findModels(modelFolders, { env: process.env, home }).map(({ modelDir, name }) => ({
    modelDir,
    name,
    setting: modelDir,
    current: modelDir === current,
  }));
  const builtIn = { modelDir: builtInDir, name: vscode.l10n.t('built-in model'), setting: '', current: !model };
  // The model in use is always listed, wherever it is and even if it cannot run any more.
  const other =
    model && !found.some((each) => each.current)
      ? [{ modelDir: current, name: folderName(current), setting: model, current: true }]
      : [];
  return [builtIn, ...other, ...found];
}

/** One model after another, because the engine may be busy with a completion. */
async function inspectAll(
  candidates: Candidate[],
  { models }: Known,
  host: EngineHost,
  native: boolean,
  wanted: () => boolean,
  refresh: () => void,
): Promise<void> {
  for (const candidate of candidates) {
    if (!wanted()) return;
    models.set(
      candidate,
      await host.client.inspect(candidate.modelDir, native).catch((error: unknown) => ({ reason: messageOf(error) })),
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
  const hub = hubFolder({ env: process.env, home: homedir() });
  for (const { id, repository } of KNOWN_MODELS)
    partBytes.set(id, await new CachedRepository(hub, repository).partBytes());
  if ([...partBytes.values()].some((bytes) => bytes > 0)) refresh();
}

function items(
  candidates: Candidate[],
  { models, machine, partBytes }: Known,
  { host, settings, downloads }: Chooser,
): ModelItem[] {
  const { precision } = settings.current;
  const language = speech();
  const separator = (label: string): ModelItem => ({ label, kind: vscode.QuickPickItemKind.Separator });
  const [here, refused]: [ModelItem[], ModelItem[]] = [[], []];
  for (const candidate of candidates) {
    const { name, setting, current } = candidate;
    const found = {
      name,
      current,
      builtIn: setting === '',
      availableBytes: machine?.availableBytes ?? null,
      precision,
    };
    const answer = models.get(candidate);
    const id = candidate.modelDir;
    if (!answer) here.push({ ...describePending(found, language), id });
    else if ('reason' in answer) refused.push({ ...describeRefused(answer.reason, found, language), id });
    else
      here.push({
        ...describeInspected(answer, found, language),
        id,
        run: () => useModel(setting, answer.name, host, settings),
      });
  }
  const repositories = new Set(candidates.flatMap(({ modelDir, name }) => [name, repositoryOf(modelDir) ?? name]));
  const present = KNOWN_MODELS.filter((each) => repositories.has(each.id) || repositories.has(each.repository));
  const larger = machine ? recommend(machine, precision, new Set(present.map(({ id }) => id))) : [];
  return [
    separator(vscode.l10n.t('here')),
    ...here,
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

function summary({ models, machine }: Known): string[] {
  const numRefused = [...models.values()].filter((answer) => 'reason' in answer).length;
  const found = vscode.l10n.t('can run here: {0}', models.size - numRefused);
  const not = numRefused ? vscode.l10n.t('cannot run: {0}', numRefused) : '';
  const { numbers } = speech();
  const free = machine ? vscode.l10n.t('{0} of memory free', numbers.bytes(machine.availableBytes)) : '';
  return [found, not, free].filter((part) => part !== '');
}
