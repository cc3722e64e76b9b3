/**
 * One question of the editor to a provider of ghost text. It is asked at a place in a document and answered once. The
 * editor can end it at any time.
 */
import type { CompletionProvider } from '../../../src/completion/completionProvider.ts';
import type { FakeDocument } from './fakeEditor.ts';

export interface Shown {
  insertText: string;
  /** Offsets in the document. */
  start: number;
  end: number;
}

export interface Question {
  version: number;
  offset: number;
  /** Ends the question as the editor does. */
  cancel(): void;
  readonly cancelled: boolean;
  /** The provider's answer; empty after a cancellation. */
  items: Promise<Shown[]>;
}

interface Asked {
  /** Whether the user asked by a command instead of by typing. */
  explicit?: boolean;
  /** The selected entry in the list of suggestions. */
  selected?: { start: number; text: string };
  /** Called when the question is cancelled or answered, before the promise `items` resolves. */
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
