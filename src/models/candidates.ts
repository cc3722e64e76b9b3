/** The models that `Kvasir: Choose Model` lists: the built-in one, the one in use, and those found on this machine. */
import { homedir } from 'node:os';
import path from 'node:path';
import { expandHome, thisMachine } from '../../engine/download/hubCache.ts';
import { modelsCalled } from '../../engine/find/byName.ts';
import { findModels } from '../../engine/find/findModels.ts';
import type { Found, FoundModel, Place, Source } from '../../engine/find/found.ts';
import { folderName } from '../../engine/find/names.ts';
import { faultText, nameProblemText, sourceText } from '../../engine/find/texts.ts';
import type { Config } from '../config.ts';
import * as vscode from '../vscode.ts';
import { isPath } from './locate.ts';

export interface Candidate {
  modelDir: string;
  name: string;
  /** Other names and paths of it. */
  aliases: readonly string[];
  /** Left out for the built-in model, and for one that only the setting names. */
  source?: Source;
  /** Of its weights on the disk; 0 if that is not known. */
  bytes: number;
  /** For `kvasir.model`. */
  setting: string;
  current: boolean;
  /** Why it cannot run, if the engine need not be asked. */
  reason?: string;
}

/** The engine inspects one after another. */
const MAX_LISTED = 200;

/** What is known without a search. */
export function builtInCandidate(modelDir: string, { model }: Pick<Config, 'model'>): Candidate {
  return { modelDir, name: vscode.l10n.t('built-in model'), aliases: [], bytes: 0, setting: '', current: !model };
}

/** `isCut`: there are more. */
export async function findCandidates({
  model,
  modelFolders,
}: Pick<Config, 'model' | 'modelFolders'>): Promise<{ candidates: Candidate[]; isCut: boolean }> {
  const found = await findModels(modelFolders, thisMachine(), isPath(model) ? {} : { wanted: model });
  const current = model ? inUse(model, found) : undefined;
  const listed = found.models.filter((each, i) => i < MAX_LISTED || each === current);
  const candidates = listed.map((each) => candidateOf(each, each === current));
  // The model in use is always listed, wherever it is and even if it cannot run any more.
  if (model && !current) candidates.unshift(unlisted(model, found));
  const isCut = found.isCut || listed.length < found.models.length;
  return { candidates: [...candidates, ...found.denied.map(deniedPlace)], isCut };
}

function inUse(setting: string, { models }: Found): FoundModel | undefined {
  if (!isPath(setting)) {
    const called = modelsCalled(models, setting).filter(({ fault }) => fault === undefined);
    return called.length === 1 ? called[0] : undefined;
  }
  const wanted = path.resolve(expandHome(setting, homedir()));
  return models.find(({ modelDir, aliases }) => modelDir === wanted || aliases.includes(wanted));
}

/** Ollama gives a name another file when it is pulled again, so its names are kept, not its files. */
function candidateOf({ fault, ...model }: FoundModel, current: boolean): Candidate {
  return {
    ...model,
    setting: model.source === 'ollama' ? model.name : model.modelDir,
    current,
    ...(fault === undefined ? {} : { reason: faultText(fault, vscode.l10n.t) }),
  };
}

function unlisted(setting: string, { places }: Found): Candidate {
  const shared = { aliases: [], bytes: 0, setting, current: true };
  if (!isPath(setting)) {
    const reason = nameProblemText({ kind: 'unknown', name: setting, places }, vscode.l10n.t);
    return { ...shared, modelDir: setting, name: setting, reason };
  }
  const modelDir = path.resolve(expandHome(setting, homedir()));
  return { ...shared, modelDir, name: folderName(modelDir) };
}

function deniedPlace({ source, folder }: Place): Candidate {
  return {
    modelDir: folder,
    name: sourceText(source, vscode.l10n.t),
    aliases: [],
    source,
    bytes: 0,
    setting: folder,
    current: false,
    reason: vscode.l10n.t('This user must not read {0}.', folder),
  };
}
