/**
 * What the chat view's two halves say to each other: chatView.ts in the extension host, src/webview/chat.ts in the page.
 * Plain data only. The host holds the conversations; the page shows what it is told and keeps no more than what is being changed in it.
 */
import type { Remedy } from '../client/remedy.ts';

/** Zero-based, as the editor counts. */
export interface TextRange {
  startLine: number;
  startCharacter: number;
  endLine: number;
  endCharacter: number;
}

/** Something that a question is about. */
export interface ContextRef {
  kind: 'file' | 'selection' | 'folder';
  uri: string;
  /** Short, for a chip: "store.ts", "store.ts:12-20", "flush". */
  name: string;
  /** Relative to the workspace. */
  path: string;
  /** Of a selection. */
  range?: TextRange;
  /** Name of the definition that the selection is. */
  symbol?: string;
}

export interface UserTurn {
  id: string;
  role: 'user';
  /** As the user wrote it. */
  text: string;
  context: ContextRef[];
  /** What the model is asked, where that is not `text` (a slash command). */
  prompt?: string;
}

export interface AssistantTurn {
  id: string;
  role: 'assistant';
  text: string;
  state: 'streaming' | 'done' | 'error';
  /** "8,112 of 8,164 tokens reused · first token 61 ms · 44 tok/s" */
  footer?: string;
  /** Reused share of the prompt, 0..1; drawn beside the footer. */
  reused?: number;
  /** The file whose lines the text names. */
  linesOf?: Pick<ContextRef, 'uri' | 'path'>;
  /** What the user should know of the answer: text left out, stopped early. */
  notes: string[];
  /** Under the first answer of a conversation that the model wrote: what its answers are worth. */
  modelNote?: string;
  /** Set in state "error". */
  error?: string;
  /** What can be done about it. */
  remedy?: Remedy;
  /** In the place of an answer: the name of the model, which was not asked because it is too small for this. */
  refused?: string;
}

export type Turn = UserTurn | AssistantTurn;

/** One thing attached to the next question, or offered to be. */
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

/** What the next question's prompt would take. */
export interface Meter {
  /** "1,320 of 4,096 tokens" */
  label: string;
  /** Shares of the context, 0..1. */
  prompt: number;
  answer: number;
  /** What will be left out, or why the question does not fit. */
  notes: string[];
  /** It does not fit at all. */
  over: boolean;
  /** Says what the bar shows. */
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

export type CodeAction = 'insert' | 'apply' | 'newFile';

export type ToPage =
  /** Another conversation, or one whose turns are no longer those that the page has. */
  | { type: 'conversation'; id: string; turns: Turn[] }
  /** A turn has changed. */
  | { type: 'turn'; turn: AssistantTurn }
  | { type: 'append'; id: string; text: string }
  | { type: 'context'; chips: Chip[]; questions: string[] }
  | { type: 'meter'; meter: Meter | null }
  | { type: 'found'; query: string; items: Found[] }
  | { type: 'model'; name: string; note: string; status: string }
  /** What was being written when there was a page last, or could not be asked: comes before what has been typed since. */
  | { type: 'draft'; text: string }
  | { type: 'focus'; draft?: string };

export type ToHost =
  /** The page has (re)started. */
  | { type: 'ready' }
  | { type: 'ask'; text: string }
  /** What is being written: measured, and kept. */
  | { type: 'draft'; text: string }
  | { type: 'stop' }
  /** Asks the last question again; `anyway` although the model is too small. */
  | { type: 'regenerate'; anyway: boolean }
  /** Asks an earlier question in other words; what follows it is dropped. */
  | { type: 'resend'; id: string; text: string }
  | { type: 'attach'; id: string; attached: boolean }
  | { type: 'openContext'; id: string }
  | { type: 'openRef'; ref: ContextRef }
  | { type: 'find'; query: string }
  | { type: 'pick'; item: Found }
  | { type: 'addContext' }
  | { type: 'copy'; text: string }
  | { type: 'code'; action: CodeAction; text: string; language: string }
  | { type: 'chooseModel' }
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
  | 'openSetting'
  | 'tryAnyway'
  | 'refused'
  | 'files'
  | 'commands'
  | 'nothingFound'
  | 'found'
  | 'conversation'
  | 'context'
  | 'codeIn'
  | 'code';
export type Strings = Record<StringName, string> & { slash: SlashHint[] };
