/**
 * Plays the recorded session in an editor window with real keystrokes at the recorded times; accepts completions as
 * session.ts says. Checks the window's text after every accept and undo, and every saved file. Reports what was done
 * and when; editorFigures.ts computes the figures.
 */
import type { Editor } from './editor.ts';
import { Author } from '../support/session/author.ts';
import { type Recording, recorded, shownNow, startRecording } from './ghostRecorder.ts';
import { LOOK_MS, offsetAt, type Session, type SessionEvent, type WriteEvent } from '../support/session/session.ts';

/** One change to the text. */
export interface Stroke {
  /** Milliseconds since the epoch. */
  at: number;
  /** The input: a character, "\n" with indentation, "Backspace", "Undo", or "Tab" for an accept. */
  key: string;
  /** Ghost text on the screen right before the stroke, if the replay looked. */
  accepted?: string;
  /** Milliseconds until the next stroke in the same passage. Absent for the last one. */
  pauseMs?: number;
}

export interface Replay {
  /** Milliseconds since the epoch. */
  startedAt: number;
  endedAt: number;
  strokes: Stroke[];
  /** Texts that differed from the expected text after an accept, an undo or a save. */
  wrong: string[];
  recording: Recording;
}

/** How long a window may take to draw a change. */
const DRAWN_MS = 5_000;

const now = (): number => performance.timeOrigin + performance.now();
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));

/**
 * `assistant`: whether the window has a chat for questions and summaries. Without one, the replay only waits for the
 * duration of those events.
 */
export async function replay(
  window: Editor,
  session: Pick<Session, 'files' | 'events'>,
  { assistant = true } = {},
): Promise<Replay> {
  const player = new Player(window, session, assistant);
  await startRecording(window.page);
  const startedAt = now();
  for (const event of session.events) await player.play(event);
  return {
    startedAt,
    endedAt: now(),
    strokes: player.strokes,
    wrong: player.wrong,
    recording: await recorded(window.page),
  };
}

class Player {
  readonly strokes: Stroke[] = [];
  readonly wrong: string[] = [];
  readonly #window: Editor;
  readonly #texts: Map<string, string>;
  readonly #assistant: boolean;
  #file = '';
  /** Time of the last action. The wait before the next action starts here. */
  #last = now();

  constructor(window: Editor, { files }: Pick<Session, 'files'>, assistant: boolean) {
    this.#window = window;
    this.#texts = new Map(files.map(({ file, text }) => [file, text]));
    this.#assistant = assistant;
  }

  async play(event: SessionEvent): Promise<void> {
    await this.#wait(event.wait);
    if (event.do === 'open') {
      await this.#window.openFile(event.file);
      this.#file = event.file;
    } else if (event.do === 'write') await this.#write(event);
    else if (event.do === 'save') await this.#save();
    else if (this.#assistant) {
      const answer = this.#window.answers.nth(await this.#window.answers.count());
      if (event.do === 'ask') {
        await this.#window.runCommand('Kvasir: Open Chat');
        await this.#window.ask(event.text);
      } else await this.#window.runCommand('Kvasir: Summarize File');
      await answer.waitFor();
      await this.#backToTheText();
    }
    this.#last = now();
  }

  /**
   * Returns the focus to the editor while the answer is written. The chat may take the focus a moment after it opens.
   */
  async #backToTheText(): Promise<void> {
    const focused = this.#window.page.locator('.editor-instance .monaco-editor.focused');
    for (const end = now() + 60_000; now() < end; ) {
      await this.#window.press('Control+1');
      await sleep(300);
      if (await focused.count()) return;
    }
    throw new Error('the keyboard does not come back from the chat to the text');
  }

  async #write(event: WriteEvent): Promise<void> {
    const { page } = this.#window;
    await this.#window.goTo(event.line, event.column);
    const text = this.#texts.get(this.#file) ?? '';
    const start = offsetAt(text, event.line, event.column);
    const withPassage = (written: string) => text.slice(0, start) + written + text.slice(start);
    const author = new Author(event);
    const first = this.strokes.length;
    this.#last = now();
    for (let act = author.next(); act; act = author.next()) {
      await this.#wait(act.wait);
      if (act.do === 'type' && act.wait >= LOOK_MS) {
        const shown = await shownNow(page);
        if (author.wants(shown)) {
          this.#stroke({ key: 'Tab', accepted: shown });
          await this.#window.press('Tab');
          author.accepted(shown);
          await this.#expectText(withPassage(author.written), `after accepting ${JSON.stringify(shown)}`);
          continue;
        }
      }
      if (act.do === 'undo') {
        author.undone(await this.#undo(withPassage, event.text, author.written, act.to));
        continue;
      }
      this.#stroke({ key: act.do === 'backspace' ? 'Backspace' : act.text });
      if (act.do === 'backspace') await this.#window.press('Backspace');
      // One change, as in an editor that indents automatically.
      else if (act.text.startsWith('\n')) await page.keyboard.insertText(act.text);
      else await page.keyboard.type(act.text);
      author.typed(act);
    }
    this.#texts.set(this.#file, withPassage(author.written));
    const strokes = this.strokes.slice(first);
    for (const [i, stroke] of strokes.entries()) if (strokes[i + 1]) stroke.pauseMs = strokes[i + 1]!.at - stroke.at;
  }

  /** Undoes until at most `to` characters of the passage are left. Returns the rest of the passage. */
  async #undo(withPassage: (written: string) => string, passage: string, written: string, to: number): Promise<string> {
    let left = written;
    for (let times = 0; left.length > to; times++) {
      if (times === 30)
        throw new Error(`${times} times undo have not led back to character ${to} of ${JSON.stringify(passage)}`);
      this.#stroke({ key: 'Undo' });
      await this.#window.press('Control+Z');
      const candidates = Array.from({ length: left.length + 1 }, (_, n) => passage.slice(0, left.length - n));
      const found = await this.#poll(async () => {
        const matches = await this.#matcher();
        const now = candidates.find((candidate) => matches(withPassage(candidate)));
        return now !== undefined && now !== left ? now : undefined;
      });
      if (found === undefined)
        throw new Error(`after undo the window shows no beginning of ${JSON.stringify(passage)}`);
      left = found;
    }
    return left;
  }

  async #save(): Promise<void> {
    const saved = await this.#window.savedText(this.#file);
    if (saved !== this.#texts.get(this.#file)) this.wrong.push(`${this.#file} as it was saved`);
  }

  async #expectText(expected: string, when: string): Promise<void> {
    const right = await this.#poll(async () => (await this.#matcher())(expected) || undefined);
    if (!right) this.wrong.push(`${this.#file} ${when}`);
  }

  /** Returns a function that tells whether a text equals what the window draws of the active file. */
  async #matcher(): Promise<(text: string) => boolean> {
    const { firstLine, lines } = await this.#window.visibleText();
    return (text) =>
      lines.length > 0 &&
      text
        .split('\n')
        .slice(firstLine - 1, firstLine - 1 + lines.length)
        .join('\n') === lines.join('\n');
  }

  async #poll<T>(look: () => Promise<T | undefined>): Promise<T | undefined> {
    for (const end = now() + DRAWN_MS; ; await sleep(10)) {
      const result = await look();
      if (result !== undefined || now() > end) return result;
    }
  }

  #stroke(stroke: Omit<Stroke, 'at'>): void {
    this.strokes.push({ at: now(), ...stroke });
    this.#last = this.strokes.at(-1)!.at;
  }

  async #wait(ms: number): Promise<void> {
    await sleep(this.#last + ms - now());
    this.#last = now();
  }
}
