/**
 * The engine in a process of its own: a crash in native code ends that process alone, and unlike a thread it may be killed at
 * any moment. The process exists from construction to `dispose`; it ends by itself when this one is gone (engine/worker.ts).
 */
import { type ChildProcess, fork } from 'node:child_process';
import type { EngineMessage, HostMessage } from '../../engine/protocol/messages.ts';
import type { Translate } from '../translate.ts';
import { MAX_YOUNG_MB, type Transport } from './transport.ts';

/** Where programs, libraries, temporary files and the home folder are, and the language. Nothing else of the editor's is the engine's business: tokens, its debug flags, its own channel. */
const PASSED_ON =
  /^(path|pathext|home|userprofile|home(drive|path)|(local)?appdata|tmpdir|temp|tmp|systemroot|systemdrive|windir|comspec|psmodulepath|processor_\w+|number_of_processors|(dy)?ld_\w+|lang|lc_\w+|tz|kvasir_\w+)$/i;

export class ProcessTransport implements Transport {
  readonly #child: ChildProcess;
  readonly #t: Translate;
  #disposed = false;

  /** `onOutput` takes what the engine and its libraries print. */
  constructor(script: string, t: Translate, onOutput: (text: string) => void) {
    this.#t = t;
    this.#child = fork(script, [], {
      serialization: 'advanced',
      execArgv: [`--max-semi-space-size=${Math.floor(MAX_YOUNG_MB / 3)}`],
      env: engineEnvironment(process.env, process.versions),
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      windowsHide: true,
    });
    this.#child.stdout?.setEncoding('utf8').on('data', onOutput);
    this.#child.stderr?.setEncoding('utf8').on('data', onOutput);
  }

  /** Undefined when the process could not be started. */
  get pid(): number | undefined {
    return this.#child.pid;
  }

  send(message: HostMessage): void {
    // Without a callback a closed channel would be an `error` event; `exit` says it already.
    this.#child.send(message, () => {});
  }

  onMessage(listener: (message: EngineMessage) => void): void {
    this.#child.on('message', (message) => {
      if (!this.#disposed) listener(message as EngineMessage);
    });
  }

  onExit(listener: (reason: string) => void): void {
    let told = false;
    const tell = (reason: string) => {
      if (!this.#disposed && !told) listener(reason);
      told = true;
    };
    this.#child.on('error', (error) => tell(error.message));
    this.#child.on('exit', (code, signal) =>
      tell(
        signal === null
          ? this.#t('its process ended with code {0}', code ?? '?')
          : this.#t('its process was ended by {0}', signal),
      ),
    );
  }

  /** Kills the process: that is safe in the middle of native work, too, and what it writes to disk is renamed into place when complete. */
  dispose(): void {
    this.#disposed = true;
    this.#child.kill('SIGKILL');
  }
}

/** Has glibc ask for large pages: a step reads all weights, and with small ones the processor spends a tenth of it on their addresses. */
const LARGE_PAGES = { GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1' };

/** The part of `env` that the engine's process gets. Inside Electron its executable is told to be Node. */
export function engineEnvironment(
  env: NodeJS.ProcessEnv,
  versions: NodeJS.Dict<string>,
  platform = process.platform,
): NodeJS.ProcessEnv {
  const kept = Object.entries(env).filter(([name]) => PASSED_ON.test(name));
  return {
    ...Object.fromEntries(kept),
    ...(versions.electron === undefined ? {} : { ELECTRON_RUN_AS_NODE: '1' }),
    ...(platform === 'linux' ? LARGE_PAGES : {}),
  };
}
