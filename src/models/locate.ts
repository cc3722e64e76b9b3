/**
 * Which model is in use, what its manifest says before it is loaded, and where imported models are kept. Does
 * not check whether the model can run: the engine does.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { ggufManifest } from '../../engine/protocol/ggufName.ts';
import { oneLine } from '../../engine/protocol/oneLine.ts';
import * as vscode from '../vscode.ts';
import { expandHome, thisMachine } from '../../engine/download/hubCache.ts';
import { modelNamed, NameError } from '../../engine/find/byName.ts';
import { folderName } from '../../engine/find/names.ts';
import { nameProblemText } from '../../engine/find/texts.ts';
import type { Config } from '../config.ts';

export interface ModelLocation {
  /** A folder, or a GGUF file. */
  modelDir: string;
  builtIn: boolean;
  /** By which the setting names it, as lists show it. */
  name?: string;
}

/** Whether a setting is a path. Otherwise it is a name. */
export function isPath(setting: string): boolean {
  return path.isAbsolute(expandHome(setting, homedir()));
}

/** What `kvasir.model` names by its path or its name, or the built-in model. Throws an Error for the user if it is no model. */
export async function locateModel(
  { model, modelFolders }: Pick<Config, 'model' | 'modelFolders'>,
  extensionPath: string,
): Promise<ModelLocation> {
  if (!model) return { modelDir: builtInModel(extensionPath), builtIn: true };
  if (isPath(model)) return { modelDir: checkedPath(expandHome(model, homedir())), builtIn: false };
  try {
    const { modelDir, name } = await modelNamed(model, modelFolders, thisMachine());
    return { modelDir, builtIn: false, name };
  } catch (error) {
    if (!(error instanceof NameError)) throw error;
    throw new Error(`kvasir.model: ${nameProblemText(error.problem, vscode.l10n.t)}`);
  }
}

export function builtInModel(extensionPath: string): string {
  return path.join(extensionPath, 'model');
}

function checkedPath(modelDir: string): string {
  const found = statSync(modelDir, { throwIfNoEntry: false });
  if (found?.isFile()) return modelDir;
  if (!found?.isDirectory())
    throw new Error(vscode.l10n.t('The setting kvasir.model does not name a folder or a file: {0}', modelDir));
  if (!existsSync(path.join(modelDir, 'config.json'))) {
    throw new Error(
      [
        vscode.l10n.t('{0} contains no model: config.json is missing.', modelDir),
        vscode.l10n.t('Choose the folder with config.json, tokenizer.json and the .safetensors files, or a GGUF file.'),
      ].join(' '),
    );
  }
  return modelDir;
}

/** Where the engine keeps its cache between sessions. */
export function keptCacheDir(globalStorage: vscode.Uri): string {
  return path.join(globalStorage.fsPath, 'kv');
}

/** Where the engines of all windows register, to share one memory budget. */
export function liveEnginesDir(globalStorage: vscode.Uri): string {
  return path.join(globalStorage.fsPath, 'engines');
}

/** Where the engine keeps imported models. */
export function modelCacheDir(globalStorage: vscode.Uri): string {
  return path.join(globalStorage.fsPath, 'models');
}

/** The manifest of a model; empty if there is none. A GGUF file has its own beside it. */
export function readManifest(modelDir: string): Record<string, unknown> {
  const isFile = statSync(modelDir, { throwIfNoEntry: false })?.isFile() ?? false;
  return readJson(
    isFile
      ? path.join(path.dirname(modelDir), ggufManifest(path.basename(modelDir)))
      : path.join(modelDir, 'kvasir.json'),
  );
}

/** Name and note of the manifest, if there is one. The note is in the user's language if available. */
export function describeModel({ modelDir, name: found }: { modelDir: string; name?: string }): {
  name: string;
  note: string;
} {
  const { name, note } = readManifest(modelDir);
  return {
    name: typeof name === 'string' ? oneLine(name) : (found ?? folderName(modelDir).split('/').at(-1)!),
    note: shownNote(note),
  };
}

/**
 * A model's note, from its manifest (one text, or one per language) or the engine: in the user's language, else in
 * English, else in any. Empty for anything that is not a note.
 */
export function shownNote(note: unknown): string {
  const texts: Record<string, unknown> = typeof note === 'object' && note !== null ? { ...note } : { en: note };
  return (
    [texts[vscode.env.language.split('-', 1)[0]!.toLowerCase()], texts.en, ...Object.values(texts)].find(
      (text): text is string => typeof text === 'string' && text !== '',
    ) ?? ''
  );
}

/**
 * A JSON object of a model's file; empty if it cannot be read. The engine reports what is wrong when it loads the
 * model.
 */
export function readJson(file: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'));
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
