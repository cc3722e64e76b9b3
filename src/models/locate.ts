/**
 * Which model folder is meant, what it says of itself before it is loaded, and where imported models are kept. Whether
 * a folder's content can run is for the engine to say.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import * as vscode from '../vscode.ts';
import { expandHome, repositoryName } from './discover.ts';

export interface ModelLocation {
  modelDir: string;
  builtIn: boolean;
}

/** The folder of `kvasir.model`, or the built-in one; throws an Error for the user when it holds no model. */
export function locateModel(setting: string, extensionPath: string): ModelLocation {
  if (!setting) return { modelDir: path.join(extensionPath, 'model'), builtIn: true };
  const modelDir = expandHome(setting, homedir());
  if (!path.isAbsolute(modelDir))
    throw new Error(vscode.l10n.t('The setting kvasir.model is not an absolute path: {0}', setting));
  if (!statSync(modelDir, { throwIfNoEntry: false })?.isDirectory())
    throw new Error(vscode.l10n.t('The setting kvasir.model names no folder: {0}', modelDir));
  if (!existsSync(path.join(modelDir, 'config.json'))) {
    throw new Error(
      vscode.l10n.t(
        '{0} holds no model: there is no config.json in it. Choose the folder with config.json, tokenizer.json and the .safetensors files.',
        modelDir,
      ),
    );
  }
  return { modelDir, builtIn: false };
}

/** Where the engine keeps its cache between sessions. */
export function keptCacheDir(globalStorage: vscode.Uri): string {
  return path.join(globalStorage.fsPath, 'kv');
}

/** Where the engines of all windows tell each other that they are at work. */
export function liveEnginesDir(globalStorage: vscode.Uri): string {
  return path.join(globalStorage.fsPath, 'engines');
}

/** Where the engine keeps imported models. */
export function modelCacheDir(globalStorage: vscode.Uri): string {
  return path.join(globalStorage.fsPath, 'models');
}

/** Name and note of the manifest `kvasir.json`, as far as there is one; the note is in the user interface's language where it has that. */
export function describeModel(modelDir: string): { name: string; note: string } {
  const { name, note } = readJson(path.join(modelDir, 'kvasir.json'));
  return {
    name: typeof name === 'string' ? name : (repositoryName(modelDir)?.split('/').at(-1) ?? path.basename(modelDir)),
    note: shownNote(note),
  };
}

/** A model's note, as its manifest has it (one text, or some by language) or the engine: in the user interface's language, else in English, else in any; empty for what is no note. */
export function shownNote(note: unknown): string {
  const texts: Record<string, unknown> = typeof note === 'object' && note !== null ? { ...note } : { en: note };
  return (
    [texts[vscode.env.language.split('-', 1)[0]!.toLowerCase()], texts.en, ...Object.values(texts)].find(
      (text): text is string => typeof text === 'string' && text !== '',
    ) ?? ''
  );
}

/** An object of a model's file; empty when there is none: what is wrong with it is said by the engine when it loads the model. */
export function readJson(file: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'));
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
