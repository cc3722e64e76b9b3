/**
 * The only reader of settings. Defaults are those of package.json; values that make no sense (they may come from a
 * hand-edited file) are brought into range or replaced by the default here, so that nothing behind this file has to doubt them.
 */
import { CACHE_CODECS, type CacheCodec } from '../engine/protocol.ts';
import * as vscode from './vscode.ts';

/** How the engine is reached; each has its entry in engineHost.ts. */
const TRANSPORTS = ['thread', 'process'] as const;
export type TransportName = (typeof TRANSPORTS)[number];
/** Of the model's weights. */
const PRECISIONS = ['int8', 'int4'] as const;
export type WeightPrecision = (typeof PRECISIONS)[number];

export interface Config {
  enable: boolean;
  /** Folder of a model; empty is the built-in one. */
  model: string;
  /** Folders searched for models, besides the Hugging Face cache. */
  modelFolders: string[];
  /** Ceiling of window + store in bytes; 0 lets the engine choose. */
  cacheMaxBytes: number;
  /** Of the available memory, where the engine chooses. */
  cacheMemoryShare: number;
  /** Cap of what is kept on disk, in bytes; 0 keeps nothing. */
  cacheDiskBytes: number;
  cacheCodec: CacheCodec;
  /** Whether tokens behind an edit may be approximated by those of before it. */
  cacheReuseShifted: boolean;
  /** 0 lets the engine choose. */
  threads: number;
  precision: WeightPrecision;
  transport: TransportName;
  /** 0 keeps the model loaded. */
  unloadAfterMinutes: number;
  completion: {
    enable: boolean;
    debounceMs: number;
    /** 0 is the model's own limit. */
    maxTokens: number;
    /** Language ids or globs. */
    languages: string[];
    /** Globs of files that never reach the model by themselves. */
    exclude: string[];
    /** The same of workspace folders that have globs of their own, by the folder's address. */
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

/** A setting that is written as something that it cannot be. */
export interface WrongSetting {
  /** With "kvasir.". */
  key: string;
  written: unknown;
  used: unknown;
}

/** A setting that another place overrules is never as it was written. */
const CHANGE_MS = 5000;

/** The settings as they are now, read once and again after each change. */
export class Settings implements vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<{ before: Config; now: Config }>();
  readonly #subscriptions: readonly vscode.Disposable[];
  #current: Config;
  #wrong: readonly WrongSetting[];

  constructor() {
    ({ config: this.#current, wrong: this.#wrong } = read());
    this.#subscriptions = [
      vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration('kvasir') && this.#readAgain()),
      // One that comes may have settings of its own.
      vscode.workspace.onDidChangeWorkspaceFolders(() => this.#readAgain()),
    ];
  }

  get current(): Config {
    return this.#current;
  }

  /** What is used in their place is in `current`. */
  get wrong(): readonly WrongSetting[] {
    return this.#wrong;
  }

  get onDidChange(): vscode.Event<{ before: Config; now: Config }> {
    return this.#changed.event;
  }

  /** Settles when the settings are so: the editor announces a change on its own time. */
  async until(holds: (config: Config) => boolean): Promise<void> {
    if (holds(this.#current)) return;
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(
        () => end(() => reject(new Error(vscode.l10n.t('the editor has not taken the changed setting over')))),
        CHANGE_MS,
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

/** A value of another type counts as not set: the default, which for `exclude` is what keeps secrets out. */
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

/** Of the workspace's folders those whose globs are others than the window's. */
function excludeIn(exclude: readonly string[]): Pick<Config['completion'], 'excludeIn'> {
  const own = new Map<string, readonly string[]>();
  for (const { uri } of vscode.workspace.workspaceFolders ?? []) {
    const globs = textsIn(vscode.workspace.getConfiguration('kvasir', uri), 'completion.exclude');
    if (globs.length !== exclude.length || globs.some((glob, i) => glob !== exclude[i])) own.set(uri.toString(), globs);
  }
  return own.size > 0 ? { excludeIn: own } : {};
}

function read(): { config: Config; wrong: WrongSetting[] } {
  // Of no file in particular: what each folder may have of its own is asked for by itself.
  const settings = vscode.workspace.getConfiguration('kvasir', null);
  const wrong: WrongSetting[] = [];
  /** As it is used, having told where it is not what is written. */
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
  /** A fraction is taken as such: minutes may be less than one. */
  const amount = (key: string, most: number, least = 0) => {
    const within = Math.min(
      most,
      Math.max(least, validIn(settings, key, Number.isFinite as (value: unknown) => value is number, 0)),
    );
    return told(key, within, (written) => written === within);
  };
  const count = (key: string, most: number) => Math.floor(amount(key, most));
  const texts = (key: string) => told(key, textsIn(settings, key), Array.isArray);
  const exclude = texts('completion.exclude');
  const config: Config = {
    enable: flag('enable'),
    model: text('model'),
    modelFolders: texts('modelFolders'),
    cacheMaxBytes: count('cache.maxBytes', Number.MAX_SAFE_INTEGER),
    cacheMemoryShare: amount('cache.memoryShare', 0.9, 0.1),
    cacheDiskBytes: count('cache.diskBytes', Number.MAX_SAFE_INTEGER),
    cacheCodec: oneOf('cache.codec', CACHE_CODECS),
    cacheReuseShifted: flag('cache.reuseShifted'),
    threads: count('engine.threads', 256),
    precision: oneOf('engine.precision', PRECISIONS),
    transport: oneOf('engine.transport', TRANSPORTS),
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
