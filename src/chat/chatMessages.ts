/**
 * Messages between the two halves of the chat view: chatView.ts in the extension host and the page's script
 * (src/webview). Plain data only. The host holds the conversations; the page shows what it is sent and keeps only what
 * is being edited.
 */
import type { AnswerSource } from '../../engine/protocol/tasks.ts';
import type { Remedy } from '../client/remedy.ts';

/** Zero-based, as in the editor's API. */
export interface TextRange {
  startLine: number;
  startCharacter: number;
  endLine: number;
  endCharacter: number;
}

/** One item that a question is about. */
export interface ContextRef {
  kind: 'file' | 'selection' | 'folder';
  uri: string;
  /** Short, for a chip: "store.ts", "store.ts:12-20", "flush". */
  name: string;
  /** Relative to the workspace. */
  path: string;
  /** Of a selection. */
  range?: TextRange;
  /** Name of the selected definition. */
  symbol?: string;
}

export interface UserTurn {
  id: string;
  role: 'user';
  /** As the user wrote it. */
  text: string;
  context: ContextRef[];
  /** The prompt, if it differs from `text` (a slash command). */
  prompt?: string;
}

interface Reasoning {
  text: string;
  /** Its tokens, once the answer has ended. */
  tokens?: number;
}

export interface AssistantTurn {
  id: string;
  role: 'assistant';
  text: string;
  state: 'streaming' | 'done' | 'error';
  /** What the model reasoned before its answer. Not part of the conversation that the model reads. */
  reasoning?: Reasoning;
  /** "8,112 of 8,164 tokens reused · first token 61 ms · 44 tok/s" */
  footer?: string;
  /** Reused share of the prompt, 0..1; drawn next to the footer. */
  reused?: number;
  /** Left out where the model wrote the text. */
  source?: AnswerSource;
  /** The file whose lines the text names. */
  linesOf?: Pick<ContextRef, 'uri' | 'path'>;
  /** Notes about the answer: text left out, stopped early. */
  notes: string[];
  /** Under the first model answer of a conversation: how reliable the model's answers are. */
  modelNote?: string;
  /** Set in state "error". */
  error?: string;
  /** What the user can do about it. */
  remedy?: Remedy;
  /** Instead of an answer: the name of the model, which is too small and was not asked. */
  refused?: string;
  /** Open files to attach, because the question needs a file and none was attached. */
  offers?: ContextRef[];
}

export type Turn = UserTurn | AssistantTurn;

/** An item that is attached to the next question or can be attached. */
export interface Chip {
  id: string;
  kind: ContextRef['kind'];
  name: string;
  path: string;
  attached: boolean;
  /** "1,320 tokens"; null until the engine has counted them. */
  tokens: string | null;
  /** "4,210 left out" */
  omitted: string | null;
}

/** Size of the next question's prompt. */
export interface Meter {
  /** "1,320 of 4,096 tokens" */
  label: string;
  /** Shares of the context, 0..1. */
  prompt: number;
  answer: number;
  /** What will be left out, or why the question does not fit. */
  notes: string[];
  /** The question does not fit. */
  over: boolean;
  /** Describes the bar for screen readers. */
  title: string;
}

/** An entry of the list that `@` opens. */
export interface Found {
  kind: 'file' | 'folder';
  uri: string;
  name: string;
  /** Its folder, relative to the workspace. */
  detail: string;
}

/** A name in the attached files, which `/where ` and its like offer. */
export interface FoundName {
  name: string;
  /** The file's name. */
  detail: string;
}

export type CodeAction = 'insert' | 'apply' | 'newFile';

export type ToPage =
  /** Another conversation, or one whose list of turns has changed. */
  | { type: 'conversation'; id: string; turns: Turn[] }
  /** A turn has changed. */
  | { type: 'turn'; turn: AssistantTurn }
  /** The text of an answer, or what the model reasons before it, has grown. */
  | { type: 'append'; id: string; text: string; reasoning?: true }
  | { type: 'context'; chips: Chip[]; questions: string[] }
  | { type: 'meter'; meter: Meter | null }
  | { type: 'found'; query: string; items: Found[] }
  | { type: 'foundNames'; query: string; names: FoundName[] }
  | { type: 'model'; name: string; note: string; status: string }
  /**
   * A draft kept from an earlier page, or a question that could not be asked. Inserted before what has been typed
   * since.
   */
  | { type: 'draft'; text: string }
  | { type: 'focus'; draft?: string };

export type ToHost =
  /** The page has started or restarted. */
  | { type: 'ready' }
  | { type: 'ask'; text: string }
  /** The draft of the question, to be measured and stored. */
  | { type: 'draft'; text: string }
  | { type: 'stop' }
  /** Asks the last question again. `anyway`: although the model is too small. */
  | { type: 'regenerate'; anyway: boolean }
  /** Asks an earlier question in other words. The turns after it are dropped. */
  | { type: 'resend'; id: string; text: string }
  | { type: 'attach'; id: string; attached: boolean }
  /** Attaches an open file and asks the last question again. */
  | { type: 'attachAndAsk'; ref: ContextRef }
  | { type: 'openContext'; id: string }
  | { type: 'openRef'; ref: ContextRef }
  | { type: 'find'; query: string }
  | { type: 'findNames'; query: string }
  | { type: 'pick'; item: Found }
  | { type: 'addContext' }
  | { type: 'copy'; text: string }
  | { type: 'code'; action: CodeAction; text: string; language: string }
  | { type: 'chooseModel' }
  | { type: 'downloadModel' }
  | { type: 'remedy'; remedy: Remedy }
  | { type: 'showLog' }
  | { type: 'restart' };

interface SlashHint {
  name: string;
  description: string;
}

/** The page's texts in the user's language. */
type StringName =
  | 'ask'
  | 'hint'
  | 'send'
  | 'stop'
  | 'copy'
  | 'copied'
  | 'copyAnswer'
  | 'insert'
  | 'apply'
  | 'newFile'
  | 'attach'
  | 'detach'
  | 'addContext'
  | 'noFile'
  | 'you'
  | 'title'
  | 'tagline'
  | 'examples'
  | 'answering'
  | 'thinking'
  | 'thought'
  | 'answered'
  | 'failed'
  | 'showLog'
  | 'restart'
  | 'retry'
  | 'regenerate'
  | 'edit'
  | 'editing'
  | 'cancel'
  | 'chooseModel'
  | 'downloadModel'
  | 'openSetting'
  | 'tryAnyway'
  | 'refused'
  | 'files'
  | 'commands'
  | 'names'
  | 'nothingFound'
  | 'found'
  | 'conversation'
  | 'context'
  | 'codeIn'
  | 'code';
export type Strings = Record<StringName, string> & { slash: SlashHint[] };
