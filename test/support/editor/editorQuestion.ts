/** One question of the editor to a provider of ghost text: asked at a place in a document, answered once, ended by the editor at any time. */
import type { CompletionProvider } from '../../../src/completion/completionProvider.ts';
import type { FakeDocument } from './fakeEditor.ts';

export interface Shown {
  insertText: string;
  /** Offsets of the document. */
  start: number;
  end: number;
}

export interface Question {
  version: number;
  offset: number;
  /** Ends the question as the editor does. */
  cancel(): void;
  readonly cancelled: boolean;
  /** What came back; empty when it was cancelled. */
  items: Promise<Shown[]>;
}

interface Asked {
  /** By hand, not after typing. */
  explicit?: boolean;
  /** What is selected in the list of suggestions. */
  selected?: { start: number; text: string };
  /** It has been cancelled or answered; before whoever waits for its items hears of it. */
  onEnd?: () => void;
}

export function ask(
  provider: CompletionProvider,
  document: FakeDocument,
  offset: number,
  { explicit = false, selected, onEnd = () => {} }: Asked = {},
): Question {
  const position = document.positionAt(offset);
  let cancelled = false;
  const listeners = new Set<() => void>();
  const token = {
    get isCancellationRequested() {
      return cancelled;
    },
    onCancellationRequested: (listener: () => void) => {
      listeners.add(listener);
      return { dispose: () => listeners.delete(listener) };
    },
  };
  const selectedCompletionInfo = selected && {
    range: { start: document.positionAt(selected.start), end: position },
    text: selected.text,
  };
  const context = { triggerKind: explicit ? 0 : 1, selectedCompletionInfo };
  return {
    version: document.version,
    offset,
    cancel: () => {
      cancelled = true;
      onEnd();
      for (const listener of [...listeners]) listener();
    },
    get cancelled() {
      return cancelled;
    },
    items: provider
      .provideInlineCompletionItems(document as never, position as never, context as never, token as never)
      .then((items) => {
        onEnd();
        if (cancelled) return [];
        return items.map(({ insertText, range }) => ({
          insertText: String(insertText),
          start: document.offsetAt(range!.start),
          end: document.offsetAt(range!.end),
        }));
      }),
  };
}
