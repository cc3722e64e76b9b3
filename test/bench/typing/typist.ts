/**
 * Runs one pass: types the passages of the recorded session into the real completion provider. The fake editor acts as
 * VS Code does at a key: the text changes, the cursor follows, the current question is cancelled and a new one is
 * asked. Does not replay saves, questions and summaries, nor the time before them.
 */
import path from 'node:path';
import type { EngineMessage, HostMessage } from '../../../engine/protocol/messages.ts';
import { EngineClient } from '../../../src/client/engineClient.ts';
import { DocumentMirror } from '../../../src/client/documentMirror.ts';
import { ThreadTransport, type Transport } from '../../../src/client/transport.ts';
import { type Policy, providerWithout } from './withoutPolicies.ts';
import type { CompletionProvider } from '../../../src/completion/completionProvider.ts';
import { Snooze } from '../../../src/completion/snooze.ts';
import type { Config, Settings } from '../../../src/config.ts';
import { crossFileContext } from '../../../src/context/crossFileContext.ts';
import { SnippetSource } from '../../../src/context/snippetSource.ts';
import type { Log } from '../../../src/log.ts';
import { ask, type Question, type Shown } from '../../support/editor/editorQuestion.ts';
import { editor, FakeDocument } from '../../support/editor/fakeEditor.ts';
import { t } from '../../support/editor/translate.ts';
import { Author } from '../../support/session/author.ts';
import { finalTexts, LOOK_MS, offsetAt, type Session, type WriteEvent } from '../../support/session/session.ts';
import type { Pass, TypedKey } from './typingFigures.ts';

export interface PassOptions {
  /** Policies that are switched off. */
  off: readonly Policy[];
  speed: number;
  threads: number;
  chat: boolean;
  /** Folder of imported models. */
  cacheDir: string;
}

/** The defaults of the settings. */
const COMPLETION: Config['completion'] = {
  enable: true,
  debounceMs: 50,
  maxTokens: 0,
  languages: ['*'],
  exclude: [],
  snippets: true,
  pauseOnBattery: false,
};

const CHAT_QUESTION = 'What does this file do, step by step?';

/** The pass waits this long for a completion after the last key. The figures include what this completion causes. */
const END_MS = 1000;

const now = (): number => performance.now();
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));

/** @throws Error if the final text differs from the session's, or if the engine fails. */
export async function typeSession(
  session: Session,
  { off, speed, threads, chat, cacheDir }: PassOptions,
): Promise<Omit<Pass, 'variant'>> {
  editor.reset();
  const requests = new CountedRequests();
  const failures: string[] = [];
  const client = new EngineClient({
    createTransport: () =>
      requests.over(new ThreadTransport(path.resolve('dist/worker.js'), t, (text) => process.stderr.write(text))),
    loadOptions: () => ({ modelDir: path.resolve('model'), cacheDir, precision: 'int8', maxBytes: 0, threads }),
    onState: (state) => state.kind === 'failed' && failures.push(state.message),
    onActivity: () => {},
    log: (level, text) => level !== 'info' && console.error(text),
    t,
  });
  const settings = { current: { completion: COMPLETION } } as Settings;
  const mirror = new DocumentMirror(client);
  const snippets = new SnippetSource(client, settings);
  const snooze = new Snooze();
  const log = { info: () => {}, debug: () => {} } as unknown as Log;
  const provider = providerWithout(off, {
    client,
    mirror,
    settings,
    log,
    snooze,
    crossFile: crossFileContext(
      { snippets, project: { near: () => [] }, packages: { of: () => undefined }, folders: { of: () => undefined } },
      client,
      mirror,
      settings,
    ),
  });
  await client.ready();
  const typist = new Typist(provider, session, speed);
  const stopChat = new AbortController();
  const before = process.cpuUsage();
  const startedAt = now();
  const chatting = chat ? answerOn(client, () => mirror.sync(typist.document as never), stopChat.signal) : undefined;
  for (const event of session.events) {
    if (event.do === 'open') typist.open(event.file);
    if (event.do === 'write') await typist.write(event);
  }
  await sleep(END_MS);
  const seconds = (now() - startedAt) / 1000;
  const { user, system } = process.cpuUsage(before);
  stopChat.abort();
  const chatTokens = (await chatting) ?? { prompt: 0, written: 0 };
  const stats = await client.stats();
  provider.dispose();
  for (const part of [snippets, snooze, mirror]) part.dispose();
  await client.dispose('end of the pass');
  for (const [file, text] of finalTexts(session))
    if (typist.textOf(file) !== text) failures.push(`${file} is not what was typed`);
  if (failures.length || !stats) throw new Error(failures.join('; ') || 'the engine gave no figures');
  return {
    seconds,
    keys: typist.keys.map(({ at, shownAt, accepted }) => ({
      at: at - startedAt,
      ...(shownAt !== undefined && { shownAt: shownAt - startedAt }),
      ...(accepted !== undefined && { accepted }),
    })),
    requests: requests.counts,
    tokens: {
      prompt: stats.tokens.promptComputed - chatTokens.prompt,
      written: stats.tokens.generated - chatTokens.written,
    },
    stepMs: stats.busyMs,
    processorMs: (user + system) / 1000,
  };
}

/** The chat answers one question after another about the active file. Returns the tokens of these answers. */
async function answerOn(client: EngineClient, docId: () => string, signal: AbortSignal): Promise<Pass['tokens']> {
  const tokens = { prompt: 0, written: 0 };
  while (!signal.aborted) {
    const { usage } = await client.generate({
      task: () => ({
        kind: 'chat',
        docIds: [docId()],
        messages: [{ role: 'user', content: CHAT_QUESTION }],
        anyway: true,
      }),
      priority: 'chat',
      signal,
    });
    tokens.prompt += usage.promptTokens - usage.cachedTokens;
    tokens.written += usage.completionTokens;
  }
  return tokens;
}

/** Counts the completion requests that go through a transport. */
class CountedRequests {
  readonly counts = { asked: 0, givenUp: 0, ahead: 0 };
  readonly #asked = new Set<string>();

  over(transport: Transport): Transport {
    return {
      send: (message) => {
        this.#sent(message);
        transport.send(message);
      },
      onMessage: (listener) =>
        transport.onMessage((message) => {
          this.#received(message);
          listener(message);
        }),
      onExit: (listener) => transport.onExit(listener),
      dispose: (acknowledged) => transport.dispose(acknowledged),
    };
  }

  #sent(message: HostMessage): void {
    if (message.type !== 'generate' || message.task.kind !== 'complete') return;
    if (message.priority === 'completion') {
      this.counts.asked++;
      this.#asked.add(message.requestId);
    } else this.counts.ahead++;
  }

  #received(message: EngineMessage): void {
    if (message.type === 'done' && message.finishReason === 'abort' && this.#asked.has(message.requestId))
      this.counts.givenUp++;
  }
}

/**
 * Types the session as its author. The provider's answer counts as shown until the next key. The author accepts it by
 * the rule in session.ts.
 */
class Typist {
  readonly keys: TypedKey[] = [];
  readonly #provider: CompletionProvider;
  readonly #speed: number;
  readonly #documents: Map<string, FakeDocument>;
  #document: FakeDocument | undefined;
  #asked: Question | undefined;
  /** The provider's answer since the last key. */
  #shown: Shown | undefined;
  #last = now();

  constructor(provider: CompletionProvider, { files }: Session, speed: number) {
    this.#provider = provider;
    this.#speed = speed;
    this.#documents = new Map(files.map(({ file, text }) => [file, new FakeDocument(text, `/w/${file}`)]));
    editor.onCommand = (name) => {
      if (name === 'editor.action.inlineSuggest.trigger') this.#ask(true);
    };
    this.open(files[0]!.file);
  }

  /** The active document. */
  get document(): FakeDocument {
    return this.#document as FakeDocument;
  }

  textOf(file: string): string | undefined {
    return this.#documents.get(file)?.text;
  }

  open(file: string): void {
    this.#last = now();
    const document = this.#documents.get(file);
    if (!document) throw new Error(`${file} is not in the session`);
    this.#document = document;
    if (!editor.documents.includes(document)) {
      editor.documents.push(document);
      editor.tabs.push(document);
    }
    editor.select(document, 0);
  }

  async write(event: WriteEvent): Promise<void> {
    const { document } = this;
    const start = offsetAt(document.text, event.line, event.column);
    await this.#wait(event.wait);
    this.#leave();
    editor.select(document, start);
    const author = new Author(event);
    for (let act = author.next(); act; act = author.next()) {
      await this.#wait(act.wait);
      const cursor = start + author.written.length;
      if (act.do === 'type' && act.wait >= LOOK_MS && this.#shown && author.wants(this.#shown.insertText)) {
        const { insertText, start: from, end } = this.#shown;
        this.#change({ offset: from, deleted: end - from, text: insertText }, insertText);
        author.accepted(insertText);
      } else if (act.do === 'undo') {
        const left = author.written.slice(0, act.to);
        if (left !== author.written)
          this.#change({ offset: start + left.length, deleted: author.written.length - left.length, text: '' });
        author.undone(left);
      } else {
        this.#change(
          act.do === 'backspace'
            ? { offset: cursor - 1, deleted: 1, text: '' }
            : { offset: cursor, deleted: 0, text: act.text },
        );
        author.typed(act);
      }
    }
  }

  #change(change: { offset: number; deleted: number; text: string }, accepted?: string): void {
    const { document } = this;
    this.keys.push({ at: now(), ...(accepted !== undefined && { accepted }) });
    document.change(change);
    editor.select(document, change.offset + change.text.length);
    if (accepted !== undefined) this.#provider.accepted();
    this.#ask();
  }

  #ask(explicit = false): void {
    if (!explicit) this.#shown = undefined;
    const key = this.keys.at(-1);
    this.#asked?.cancel();
    const document = this.document;
    const question = ask(this.#provider, document, document.offsetAt(editor.active!.selection.active), { explicit });
    this.#asked = question;
    void question.items.then(([first]) => {
      if (this.#asked !== question || !first) return;
      this.#shown = first;
      if (key) key.shownAt ??= now();
    });
  }

  /** Moves the cursor elsewhere, so the shown completion disappears. */
  #leave(): void {
    this.#asked?.cancel();
    this.#asked = undefined;
    this.#shown = undefined;
  }

  /** Waits until the recorded time after the previous key. */
  async #wait(ms: number): Promise<void> {
    await sleep(this.#last + ms / this.#speed - now());
    this.#last = now();
  }
}
