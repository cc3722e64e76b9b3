/**
 * The only reader of settings. Defaults are those of package.json. Invalid values, for example from a hand-edited file,
 * are clamped or replaced by the default, so that other code need not check them.
 */
import { CACHE_CODECS, type CacheCodec } from '../engine/protocol/messages.ts';
import * as vscode from './vscode.ts';

/** Precisions of the model's weights. */
const PRECISIONS = ['int8', 'int4'] as const;
export type WeightPrecision = (typeof PRECISIONS)[number];

export interface Config {
  enable: boolean;
  /** Folder of a model; empty is the built-in one. */
  model: string;
  /** Folders searched for models, besides the Hugging Face cache. */
  modelFolders: string[];
  /** Memory budget of the KV pool and the KV store in bytes; 0 lets the engine choose. */
  cacheMaxBytes: number;
  /** Limit of the disk cache in bytes; 0 keeps nothing on disk. */
  cacheDiskBytes: number;
  cacheCodec: CacheCodec;
  /** Whether tokens after an edit may be approximated by those computed before it. */
  cacheReuseShifted: boolean;
  /** 0 lets the engine choose. */
  threads: number;
  precision: WeightPrecision;
  native: boolean;
  /** Minutes; 0 keeps the model loaded. */
  unloadAfterMinutes: number;
  completion: {
    enable: boolean;
    debounceMs: number;
    /** 0 is the model's own limit. */
    maxTokens: number;
    /** Language ids or globs. */
    languages: string[];
    /** Globs of files that reach the model only when the user attaches them. */
    exclude: string[];
    /** The lists of workspace folders that have their own, by the folder's URI. */
    excludeIn?: ReadonlyMap<string, readonly string[]>;
    /** Whether other open editors and recent edits are offered to the model. */
    snippets: boolean;
    pauseOnBattery: boolean;
  };
  chat: {
    /** 0 is the model's own limit. */
    maxTokens: number;
  };
  summary: { codeLens: boolean; hover: boolean };
}

/** A setting with an invalid value. */
export interface WrongSetting {
  /** With "kvasir.". */
  key: string;
  written: unknown;
  used: unknown;
}

/** Time limit for `until`: a setting overruled in another scope never gets the written value. */
const MAX_CHANGE_MS = 5000;

/** The current settings. Read once, and again after each change. */
export class Settings implements vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<{ before: Config; now: Config }>();
  readonly #subscriptions: readonly vscode.Disposable[];
  #current: Config;
  #wrong: readonly WrongSetting[];

  constructor() {
    ({ config: this.#current, wrong: this.#wrong } = read());
    this.#subscriptions = [
      vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration('kvasir') && this.#readAgain()),
      // A new folder may have its own settings.
      vscode.workspace.onDidChangeWorkspaceFolders(() => this.#readAgain()),
    ];
  }

  get current(): Config {
    return this.#current;
  }

  /** Settings with invalid values; `current` has the values used instead. */
  get wrong(): readonly WrongSetting[] {
    return this.#wrong;
  }

  get onDidChange(): vscode.Event<{ before: Config; now: Config }> {
    return this.#changed.event;
  }

  /** Resolves when `holds` is true of the settings. The editor announces changes with a delay. */
  async until(holds: (config: Config) => boolean): Promise<void> {
    if (holds(this.#current)) return;
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(
        () => end(() => reject(new Error(vscode.l10n.t('the editor has not applied the changed setting')))),
        MAX_CHANGE_MS,
      );
      const subscription = this.onDidChange(({ now }) => holds(now) && end(resolve));
      const end = (settle: () => void) => {
        clearTimeout(timer);
        subscription.dispose();
        settle();
      };
    });
  }

  dispose(): void {
    for (const subscription of this.#subscriptions) subscription.dispose();
    this.#changed.dispose();
  }

  #readAgain(): void {
    const before = this.#current;
    ({ config: this.#current, wrong: this.#wrong } = read());
    this.#changed.fire({ before, now: this.#current });
  }
}

/** A value of the wrong type counts as not set. The default applies, which for `exclude` keeps secrets out. */
function validIn<T>(
  settings: vscode.WorkspaceConfiguration,
  key: string,
  fits: (value: unknown) => value is T,
  otherwise: T,
): T {
  return [settings.get(key), settings.inspect(key)?.defaultValue].find(fits) ?? otherwise;
}

function textsIn(settings: vscode.WorkspaceConfiguration, key: string): string[] {
  return validIn(settings, key, (value): value is unknown[] => Array.isArray(value), []).filter(
    (entry): entry is string => typeof entry === 'string' && entry !== '',
  );
}

/** The lists of workspace folders that differ from the window's. */
function excludeIn(exclude: readonly string[]): Pick<Config['completion'], 'excludeIn'> {
  const own = new Map<string, readonly string[]>();
  for (const { uri } of vscode.workspace.workspaceFolders ?? []) {
    const globs = textsIn(vscode.workspace.getConfiguration('kvasir', uri), 'completion.exclude');
    if (globs.length !== exclude.length || globs.some((glob, i) => glob !== exclude[i])) own.set(uri.toString(), globs);
  }
  return own.size > 0 ? { excludeIn: own } : {};
}

function read(): { config: Config; wrong: WrongSetting[] } {
  // Not for a certain file: the folders' own values are read separately.
  const settings = vscode.workspace.getConfiguration('kvasir', null);
  const wrong: WrongSetting[] = [];
  /** Returns the value in use and records the setting if the written value differs. */
  const told = <T>(key: string, used: T, fits: (written: unknown) => boolean): T => {
    const written: unknown = settings.get(key);
    if (written !== undefined && !fits(written)) wrong.push({ key: `kvasir.${key}`, written, used });
    return used;
  };
  const valid = <T>(key: string, fits: (value: unknown) => value is T, otherwise: T): T =>
    told(key, validIn(settings, key, fits, otherwise), fits);
  const flag = (key: string) => valid(key, (value) => typeof value === 'boolean', false);
  const text = (key: string) => valid(key, (value) => typeof value === 'string', '').trim();
  const oneOf = <T extends string>(key: string, names: readonly [T, ...T[]]): T => {
    const given = validIn(settings, key, (value) => typeof value === 'string', '').trim();
    return told(
      key,
      names.find((name) => name === given) ?? names[0],
      (written) => typeof written === 'string' && names.some((name) => name === written.trim()),
    );
  };
  /** Fractions are kept: minutes may be less than one. */
  const amount = (key: string, max: number) => {
    const within = Math.min(
      max,
      Math.max(0, validIn(settings, key, Number.isFinite as (value: unknown) => value is number, 0)),
    );
    return told(key, within, (written) => written === within);
  };
  const count = (key: string, max: number) => Math.floor(amount(key, max));
  const texts = (key: string) => told(key, textsIn(settings, key), Array.isArray);
  const exclude = texts('completion.exclude');
  const config: Config = {
    enable: flag('enable'),
    model: text('model'),
    modelFolders: texts('modelFolders'),
    cacheMaxBytes: count('cache.maxBytes', Number.MAX_SAFE_INTEGER),
    cacheDiskBytes: count('cache.diskBytes', Number.MAX_SAFE_INTEGER),
    cacheCodec: oneOf('cache.codec', CACHE_CODECS),
    cacheReuseShifted: flag('cache.reuseShifted'),
    threads: count('engine.threads', 256),
    precision: oneOf('engine.precision', PRECISIONS),
    native: flag('engine.native'),
    unloadAfterMinutes: amount('engine.unloadAfterMinutes', 1440),
    completion: {
      enable: flag('completion.enable'),
      debounceMs: count('completion.debounceMs', 2000),
      maxTokens: count('completion.maxTokens', 1024),
      languages: texts('completion.languages'),
      exclude,
      ...excludeIn(exclude),
      snippets: flag('completion.snippets'),
      pauseOnBattery: flag('completion.pauseOnBattery'),
    },
    chat: { maxTokens: count('chat.maxTokens', 8192) },
    summary: { codeLens: flag('summary.codeLens'), hover: flag('summary.hover') },
  };
  return { config, wrong };
}
