/**
 * Runs the product's engine for suite `quality` with the messages that the editor sends. Each request has its own
 * document, which is closed afterwards, so that removed text is unknown to the next request. The cache keeps common
 * beginnings, as in an editor.
 */
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import type { ModelInfo } from '../../../engine/protocol/stats.ts';
import { MAX_COPIED, type Task } from '../../../engine/protocol/tasks.ts';
import type { Manifest } from '../../../engine/text/format/manifest.ts';
import { EngineClient } from '../../../src/client/engineClient.ts';
import type { Transport } from '../../../src/client/transport.ts';
import type { Translate } from '../../../src/format.ts';

export interface EngineOptions {
  readonly createTransport: (t: Translate) => Transport;
  readonly modelDir: string;
  /** Folder of imported models. */
  readonly cacheDir: string;
  /** 0 lets the engine choose. */
  readonly threads: number;
}

export interface Completion {
  text: string;
  /** Time from the last key to the first text. Null if nothing is offered. */
  firstMs: number | null;
}

type CompletionTask = Extract<Task, { kind: 'complete' }>;

interface OpenFile {
  readonly path: string;
  readonly text: string;
}

const plain: Translate = (text, ...values) => text.replace(/\{(\d)\}/g, (_, i) => String(values[Number(i)]));

export class QualityEngine {
  readonly #client: EngineClient;
  readonly model: ModelInfo;
  #numDocuments = 0;
  /** Open source files other than the edited one, with their document ids by path. */
  #beside = new Map<string, string>();

  private constructor(client: EngineClient, model: ModelInfo) {
    this.#client = client;
    this.model = model;
  }

  /**
   * Loads with int8 weights, like the product. Idle work is off, because it would disturb the timing.
   * @throws Error if the model cannot be loaded.
   */
  static async open({ createTransport, modelDir, cacheDir, threads }: EngineOptions): Promise<QualityEngine> {
    const client = new EngineClient({
      createTransport: () => createTransport(plain),
      loadOptions: () => ({ modelDir, cacheDir, precision: 'int8', maxBytes: 0, threads }),
      onState: () => {},
      onActivity: () => {},
      log: (level, text) => level !== 'info' && console.error(text),
      t: plain,
    });
    const model = await client.ready();
    client.notify({ type: 'configure', idleWork: false });
    return new QualityEngine(client, model);
  }

  /**
   * Returns the completion offered at an offset. First completes without the last character, so that the text around it
   * is in the cache as after earlier keys. Then types this character.
   * @param beside other open files, the nearest first.
   */
  async complete(file: string, text: string, offset: number, beside: readonly OpenFile[] = []): Promise<Completion> {
    const copySources = this.#openBeside(beside);
    const typed = text.slice(Math.max(0, offset - 1), offset);
    const docId = this.#open(file, text.slice(0, offset - typed.length) + text.slice(offset));
    try {
      if (typed !== '') {
        const read = new AbortController();
        await this.#client.generate({
          task: () => ({
            kind: 'complete',
            docId,
            offset: offset - typed.length,
            copySources,
            showLowConfidence: true,
          }),
          priority: 'completion',
          onChunk: () => read.abort(),
          signal: read.signal,
        });
      }
      const start = performance.now();
      let firstMs: number | null = null;
      if (typed !== '')
        this.#client.notify({
          type: 'documentChanged',
          docId,
          version: 2,
          edits: [{ start: offset - typed.length, end: offset - typed.length, text: typed }],
        });
      const onChunk = (chunk: string): void => {
        if (chunk !== '') firstMs ??= performance.now() - start;
      };
      const done = await this.#client.generate({
        task: () => ({ kind: 'complete', docId, offset, copySources }),
        priority: 'completion',
        onChunk,
      });
      return { text: done.text, firstMs };
    } finally {
      this.#client.notify({ type: 'documentClosed', docId });
    }
  }

  /** What is offered at an offset, without a question before it. Not timed. */
  async offer(
    file: string,
    text: string,
    offset: number,
    {
      beside,
      ...more
    }: Pick<CompletionTask, 'packages' | 'folders' | 'showLowConfidence'> & { beside: readonly OpenFile[] },
  ): Promise<string> {
    const copySources = this.#openBeside(beside);
    const docId = this.#open(file, text);
    try {
      const task = (): Task => ({ kind: 'complete', docId, offset, copySources, ...more });
      return (await this.#client.generate({ task, priority: 'completion' })).text;
    } finally {
      this.#client.notify({ type: 'documentClosed', docId });
    }
  }

  /** The chat's answer to a question about a file. */
  ask(file: string, text: string, question: string): Promise<string> {
    return this.#answer(file, text, (docId) => ({
      kind: 'chat',
      docIds: [docId],
      messages: [{ role: 'user', content: question }],
    }));
  }

  summarize(file: string, text: string, range: { start: number; end: number; label: string }): Promise<string> {
    return this.#answer(file, text, (docId) => ({ kind: 'summarize', docId, range }));
  }

  dispose(): Promise<unknown> {
    return this.#client.dispose('the benchmark has ended');
  }

  async #answer(file: string, text: string, task: (docId: string) => Task): Promise<string> {
    const docId = this.#open(file, text);
    try {
      return (await this.#client.generate({ task: () => task(docId), priority: 'chat' })).text;
    } finally {
      this.#client.notify({ type: 'documentClosed', docId });
    }
  }

  /** Opens these files and closes all others. A file stays open while further calls name it. */
  #openBeside(files: readonly OpenFile[]): string[] {
    const wanted = new Set(files.map((file) => file.path));
    for (const [name, docId] of this.#beside) {
      if (wanted.has(name)) continue;
      this.#client.notify({ type: 'sourceClosed', docId });
      this.#beside.delete(name);
    }
    for (const { path: name, text } of files)
      if (!this.#beside.has(name)) this.#beside.set(name, this.#source(name, text));
    return files.map((file) => this.#beside.get(file.path)!);
  }

  #source(file: string, text: string): string {
    const docId = `source ${++this.#numDocuments}`;
    this.#client.notify({ type: 'sourceChanged', docId, path: file, text: text.slice(0, MAX_COPIED) });
    return docId;
  }

  #open(file: string, text: string): string {
    const docId = `quality ${++this.#numDocuments}`;
    this.#client.notify({ type: 'documentChanged', docId, version: 1, path: file, text });
    return docId;
  }
}

export type PromptLayout = 'blockAndTail' | 'tail';

/** The product's layout for this model, and the other layout if the model supports it. */
export function layoutsOf(modelDir: string): { shipped: PromptLayout; other: PromptLayout | undefined } {
  const manifest = manifestOf(modelDir);
  const shipped = manifest.completion?.layout ?? 'tail';
  // In a chat template, the file block is in the first turn, so nothing can be completed after it.
  return {
    shipped,
    other: manifest.fileBlock === 'fileSeparator' ? (shipped === 'tail' ? 'blockAndTail' : 'tail') : undefined,
  };
}

/** Copies the model into `folder` with another layout in its manifest. */
export function withLayout(modelDir: string, layout: PromptLayout, folder: string): string {
  return withCompletion(modelDir, { layout }, folder);
}

/**
 * Copies the model into `folder` with other rules for completions in its manifest. Uses hard links where the file
 * system supports them.
 */
export function withCompletion(modelDir: string, completion: Partial<Manifest['completion']>, folder: string): string {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const entry of readdirSync(modelDir, { withFileTypes: true })) {
    if (!entry.isFile() || entry.name === 'kvasir.json') continue;
    const [from, to] = [path.join(modelDir, entry.name), path.join(folder, entry.name)];
    try {
      linkSync(from, to);
    } catch {
      copyFileSync(from, to);
    }
  }
  const manifest = manifestOf(modelDir);
  writeFileSync(
    path.join(folder, 'kvasir.json'),
    JSON.stringify({ ...manifest, completion: { ...manifest.completion, ...completion } }),
  );
  return folder;
}

export function manifestOf(modelDir: string): {
  fileBlock?: Manifest['fileBlock'];
  completion?: Partial<Manifest['completion']>;
} {
  const file = path.join(modelDir, 'kvasir.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
}
