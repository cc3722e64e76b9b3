/**
 * The only reader of settings. Defaults are those of package.json; values that make no sense (they may come from a
 * hand-edited file) are brought into range here, so that nothing behind this file has to doubt them.
 */
import * as vscode from './vscode.ts';

/** How the engine is reached; each has its entry in engineHost.ts. */
const TRANSPORTS = ['thread', 'process'] as const;
export type TransportName = (typeof TRANSPORTS)[number];

export interface Config {
  enable: boolean;
  /** Folder of a model; empty is the built-in one. */
  model: string;
  /** Folders searched for models, besides the Hugging Face cache. */
  modelFolders: string[];
  /** Ceiling of window + store in bytes; 0 lets the engine choose. */
  cacheMaxBytes: number;
  /** 0 lets the engine choose. */
  threads: number;
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

/** A setting that another place overrules is never as it was written. */
const CHANGE_MS = 5000;

/** The settings as they are now, read once and again after each change. */
export class Settings implements vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<{ before: Config; now: Config }>();
  readonly #subscription: vscode.Disposable;
  #current = read();

  constructor() {
    this.#subscription = vscode.workspace.onDidChangeConfiguration((event) => {
      if (!event.affectsConfiguration('kvasir')) return;
      const before = this.#current;
      this.#current = read();
      this.#changed.fire({ before, now: this.#current });
    });
  }

  get current(): Config {
    return this.#current;
  }

  get onDidChange(): vscode.Event<{ before: Config; now: Config }> {
    return this.#changed.event;
  }

  /** Settles when the settings are so: the editor announces a change on its own time. */
  async until(holds: (config: Config) => boolean): Promise<void> {
    if (holds(this.#current)) return;
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => end(() => reject(new Error(vscode.l10n.t('the editor has not taken the changed setting over')))), CHANGE_MS);
      const subscription = this.onDidChange(({ now }) => holds(now) && end(resolve));
      const end = (settle: () => void) => {
        clearTimeout(timer);
        subscription.dispose();
        settle();
      };
    });
  }

  dispose(): void {
    this.#subscription.dispose();
    this.#changed.dispose();
  }
}

function read(): Config {
  const settings = vscode.workspace.getConfiguration('kvasir');
  const flag = (key: string) => settings.get(key) !== false;
  const text = (key: string) => {
    const value = settings.get(key);
    return typeof value === 'string' ? value.trim() : '';
  };
  const count = (key: string, most: number) => {
    const value = Number(settings.get(key));
    return Number.isFinite(value) ? Math.min(most, Math.max(0, Math.floor(value))) : 0;
  };
  /** May be a fraction: a test unloads after seconds. */
  const minutes = (key: string, most: number) => {
    const value = Number(settings.get(key));
    return Number.isFinite(value) ? Math.min(most, Math.max(0, value)) : 0;
  };
  const texts = (key: string) => {
    const value = settings.get(key);
    return Array.isArray(value) ? value.filter((entry): entry is string => typeof entry === 'string' && entry !== '') : [];
  };
  return {
    enable: flag('enable'),
    model: text('model'),
    modelFolders: texts('modelFolders'),
    cacheMaxBytes: count('cache.maxBytes', Number.MAX_SAFE_INTEGER),
    threads: count('engine.threads', 256),
    transport: TRANSPORTS.find((name) => name === text('engine.transport')) ?? TRANSPORTS[0],
    unloadAfterMinutes: minutes('engine.unloadAfterMinutes', 1440),
    completion: {
      enable: flag('completion.enable'),
      debounceMs: count('completion.debounceMs', 2000),
      maxTokens: count('completion.maxTokens', 1024),
      languages: texts('completion.languages'),
      exclude: texts('completion.exclude'),
      snippets: flag('completion.snippets'),
      pauseOnBattery: settings.get('completion.pauseOnBattery') === true,
    },
    chat: { maxTokens: count('chat.maxTokens', 8192) },
    summary: { codeLens: settings.get('summary.codeLens') === true, hover: flag('summary.hover') },
  };
}
