/**
 * A completion provider between the fake editor and a scripted engine, and a user at the keyboard. Mock the editor
 * before importing this file.
 */
import type { Config, Settings } from '../../../src/config.ts';
import {
  type CompletionProvider,
  type CompletionServices,
  createCompletionProvider,
} from '../../../src/completion/completionProvider.ts';
import type { SilentReason } from '../../../src/completion/record.ts';
import { Snooze } from '../../../src/completion/snooze.ts';
import { crossFileContext } from '../../../src/context/crossFileContext.ts';
import { SnippetSource } from '../../../src/context/snippetSource.ts';
import { DocumentMirror } from '../../../src/client/documentMirror.ts';
import type { Log } from '../../../src/log.ts';
import { ask, type Question, type Shown } from './editorQuestion.ts';
import { editor, FakeDocument } from './fakeEditor.ts';
import { ScriptedEngine } from './scriptedEngine.ts';

/** The selected entry of the list. */
type Selected = { start: number; text: string };

export class Harness {
  readonly engine = new ScriptedEngine();
  readonly client = this.engine.client();
  readonly snooze = new Snooze();
  readonly completion: Config['completion'];
  readonly settings: Settings;
  readonly document: FakeDocument;
  readonly provider: CompletionProvider;
  readonly snippets: SnippetSource;
  readonly mirror = new DocumentMirror(this.client);
  readonly logged: string[] = [];
  /** The editor's open question: not yet answered or cancelled. */
  asked: Question | undefined;
  /** Where and how the editor asked last, and which providers there were. */
  #last: { place: string; explicit: boolean; providers: ReadonlySet<unknown> } | undefined;
  /** Requests that answer the editor. Requests ahead of time and requests for other candidates are not counted. */
  get asks() {
    return this.engine.requests.filter(
      ({ message }) => message.priority === 'completion' && !message.sampling?.temperature,
    );
  }

  /**
   * @param marked text of the document, with a bar as the cursor.
   * @param create makes the provider.
   */
  constructor(
    marked: string,
    completion: Partial<Config['completion']> = {},
    create: (services: CompletionServices) => CompletionProvider = createCompletionProvider,
  ) {
    const offset = marked.indexOf('|');
    this.document = new FakeDocument(marked.slice(0, offset) + marked.slice(offset + 1));
    this.completion = {
      enable: true,
      debounceMs: 50,
      maxTokens: 0,
      languages: ['*'],
      exclude: ['**/*.key'],
      snippets: true,
      pauseOnBattery: false,
      ...completion,
    };
    this.settings = { current: { completion: this.completion } } as unknown as Settings;
    const log = { info: (line: string) => this.logged.push(line), debug: () => {} } as unknown as Log;
    this.snippets = new SnippetSource(this.client, this.settings);
    this.provider = create({
      client: this.client,
      mirror: this.mirror,
      settings: this.settings,
      log,
      snooze: this.snooze,
      crossFile: crossFileContext(
        {
          snippets: this.snippets,
          project: { near: () => [] },
          packages: { of: () => undefined },
          folders: { of: () => undefined },
        },
        this.client,
        this.mirror,
        this.settings,
      ),
    });
    editor.documents = [this.document];
    editor.tabs = [this.document];
    editor.onCommand = (name) => {
      if (name === 'editor.action.inlineSuggest.trigger') this.trigger();
    };
    editor.select(this.document, offset);
  }

  get cursor(): number {
    return this.document.offsetAt(editor.active!.selection.active);
  }

  /** Text of the document, with a bar as the cursor. */
  get marked(): string {
    return `${this.document.text.slice(0, this.cursor)}|${this.document.text.slice(this.cursor)}`;
  }

  get reason(): SilentReason | undefined {
    return this.provider.last?.reason;
  }

  /** Acts as the editor after an edit: cancels the last question and asks a new one. */
  ask({ explicit = false, selected }: { explicit?: boolean; selected?: Selected } = {}): Question {
    this.asked?.cancel();
    this.#last = { place: this.#placeWith(selected), explicit, providers: new Set(editor.providers) };
    const question = ask(this.provider, this.document, this.cursor, {
      explicit,
      ...(selected && { selected }),
      onEnd: () => {
        if (this.asked === question) this.asked = undefined;
      },
    });
    this.asked = question;
    return question;
  }

  /**
   * Acts as the editor's command to ask by hand: does not ask again where it has asked by hand, unless there is a
   * provider that it has not asked there.
   */
  trigger(selected?: Selected): Question | undefined {
    const { place, explicit, providers } = this.#last ?? {};
    const isKnown = place === this.#placeWith(selected) && [...editor.providers].every((each) => providers?.has(each));
    return isKnown && explicit ? undefined : this.ask({ explicit: true, ...(selected && { selected }) });
  }

  #placeWith(selected?: Selected): string {
    return `${this.document.version} ${this.cursor} ${selected?.text ?? ''}`;
  }

  /**
   * Types at the cursor and asks.
   * @param closing text that appears after the cursor, such as a bracket that the editor closes.
   */
  type(text: string, closing = ''): Question {
    const at = this.cursor;
    this.document.change({ offset: at, deleted: 0, text: text + closing });
    editor.select(this.document, at + text.length);
    return this.ask();
  }

  backspace(count = 1): Question {
    const at = this.cursor - count;
    this.document.change({ offset: at, deleted: count, text: '' });
    editor.select(this.document, at);
    return this.ask();
  }

  /** Accepts the suggestion, or its first `count` characters, as the editor does. Then asks. */
  accept({ insertText, start, end }: Shown, count = insertText.length): Question {
    const covered = count === insertText.length ? end - start : this.cursor - start;
    this.document.change({ offset: start, deleted: covered, text: insertText.slice(0, count) });
    editor.select(this.document, start + count);
    if (count === insertText.length) this.provider.accepted();
    return this.ask();
  }

  async dispose(): Promise<void> {
    this.asked?.cancel();
    this.provider.dispose();
    this.snippets.dispose();
    this.snooze.dispose();
    this.mirror.dispose();
    await this.client.dispose('end of the test');
  }
}
