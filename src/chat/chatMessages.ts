/**
 * What the chat view's two halves say to each other: chatView.ts in the extension host, src/webview/chat.ts in the page.
 * Plain data only. The host's conversation is the truth; the page keeps a copy (setState) for a reload of the window.
 */

interface UserTurn {
  id: string;
  role: 'user';
  text: string;
  /** Name of the file that the question was about. */
  file?: string;
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
  /** What the user should know of the answer: text left out, stopped early. */
  notes: string[];
  /** Set in state "error". */
  error?: string;
}

export type Turn = UserTurn | AssistantTurn;

/** The file attached to the next question. */
export interface ContextChip {
  name: string;
  path: string;
  attached: boolean;
  /** Tokens of its file block; null until the engine runs. */
  tokens: string | null;
}

export type ToPage =
  | { type: 'turns'; turns: Turn[] }
  | { type: 'turn'; turn: Turn }
  | { type: 'append'; id: string; text: string }
  | { type: 'context'; chip: ContextChip | null; questions: string[] }
  | { type: 'model'; name: string; note: string; status: string }
  | { type: 'focus' };

export type ToHost =
  /** The page has (re)started; `turns` is what it had kept. */
  | { type: 'ready'; turns: Turn[] }
  | { type: 'ask'; text: string }
  | { type: 'stop' }
  | { type: 'clear' }
  | { type: 'attach'; attached: boolean }
  | { type: 'copy'; text: string }
  | { type: 'insert'; text: string }
  | { type: 'openFile' }
  | { type: 'showLog' }
  | { type: 'restart' };

/** The page's texts in the user's language. */
export type Strings = Record<
  'ask' | 'send' | 'stop' | 'copy' | 'copied' | 'insert' | 'attach' | 'detach' | 'noFile' | 'you' | 'title' | 'tagline' | 'examples' | 'answering' | 'answered' | 'failed' | 'showLog' | 'restart' | 'hint' | 'tokens',
  string
>;
