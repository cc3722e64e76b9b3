/**
 * Simulates the part of the editor that ghost text needs: documents with versions, cursors, change events, tokens,
 * settings and commands. This line replaces the editor:
 * `vi.mock('../../src/vscode.ts', async () => (await import('./fakeEditor.ts')).vscodeApi)`.
 */
import { matchesGlob } from 'node:path/posix';

type Listener<T> = (event: T) => void;

class Emitter<T = unknown> {
  readonly listeners = new Set<Listener<T>>();
  readonly event = (listener: Listener<T>) => {
    this.listeners.add(listener);
    return { dispose: () => this.listeners.delete(listener) };
  };
  fire(event: T): void {
    for (const listener of [...this.listeners]) listener(event);
  }
  dispose(): void {
    this.listeners.clear();
  }
}

class Position {
  readonly line: number;
  readonly character: number;
  constructor(line: number, character: number) {
    this.line = line;
    this.character = character;
  }
}

class Range {
  readonly start: Position;
  readonly end: Position;
  constructor(start: Position | number, end: Position | number, endLine?: number, endCharacter?: number) {
    this.start = typeof start === 'number' ? new Position(start, end as number) : start;
    this.end = typeof start === 'number' ? new Position(endLine as number, endCharacter as number) : (end as Position);
  }
}

export interface FakeChange {
  offset: number;
  deleted: number;
  text: string;
}

export class FakeDocument {
  readonly uri: { scheme: string; path: string; toString(): string };
  languageId = 'typescript';
  isClosed = false;
  version = 1;
  text: string;
  numRead = 0;

  constructor(text: string, path = '/w/b.ts', scheme = 'file') {
    this.text = text;
    this.uri = { scheme, path, toString: () => `${scheme}://${path}` };
  }

  get eol(): number {
    return this.text.includes('\r\n') ? 2 : 1;
  }

  get lineCount(): number {
    return this.text.split('\n').length;
  }

  getText(range?: Range): string {
    this.numRead++;
    return range ? this.text.slice(this.offsetAt(range.start), this.offsetAt(range.end)) : this.text;
  }

  lineAt(line: number): { text: string; range: Range } {
    const text = (this.text.split('\n')[line] as string).replace(/\r$/, '');
    return { text, range: new Range(new Position(line, 0), new Position(line, text.length)) };
  }

  offsetAt({ line, character }: { line: number; character: number }): number {
    const lines = this.text.split('\n');
    if (line >= lines.length) return this.text.length;
    const start = lines.slice(0, line).reduce((sum, text) => sum + text.length + 1, 0);
    return start + Math.min(character, (lines[line] as string).replace(/\r$/, '').length);
  }

  positionAt(offset: number): Position {
    const before = this.text.slice(0, offset).split('\n');
    return new Position(before.length - 1, (before.at(-1) as string).length);
  }

  /** Applies changes as one version and notifies the listeners. The changes must be in order from last to first. */
  change(...changes: FakeChange[]): void {
    const contentChanges = changes.map(({ offset, deleted, text }) => ({
      rangeOffset: offset,
      rangeLength: deleted,
      text,
      range: new Range(this.positionAt(offset), this.positionAt(offset + deleted)),
    }));
    for (const { offset, deleted, text } of changes)
      this.text = this.text.slice(0, offset) + text + this.text.slice(offset + deleted);
    this.version++;
    editor.changed.fire({ document: this, contentChanges });
  }
}

/** The editor's state. Call `reset` before each test. */
export const editor = {
  changed: new Emitter<unknown>(),
  saved: new Emitter<unknown>(),
  closed: new Emitter<unknown>(),
  selected: new Emitter<unknown>(),
  activated: new Emitter<unknown>(),
  active: undefined as
    | { document: FakeDocument; selection: { active: Position }; selections: { active: Position }[] }
    | undefined,
  documents: [] as FakeDocument[],
  tabs: [] as FakeDocument[],
  /** Providers of completions, registered besides the one under test. */
  providers: new Set<unknown>(),
  notebooks: [] as { uri: { toString(): string }; cells: FakeDocument[] }[],
  /** Executed commands with their first arguments. */
  commands: [] as unknown[][],
  contexts: {} as Record<string, unknown>,
  /** The command ends when the returned promise does. */
  onCommand: (_name: string): unknown => undefined,
  /** Paths of the workspace folders. */
  folders: ['/w'],
  picks: undefined as unknown,
  messages: [] as string[],
  reset(): void {
    for (const emitter of [this.changed, this.saved, this.closed, this.selected, this.activated]) emitter.dispose();
    Object.assign(this, {
      active: undefined,
      documents: [],
      tabs: [],
      providers: new Set(),
      notebooks: [],
      commands: [],
      contexts: {},
      onCommand: () => {},
      folders: ['/w'],
      picks: undefined,
      messages: [],
    });
  },
  /** Number of listeners of all events. */
  get numListeners(): number {
    return [this.changed, this.saved, this.closed, this.selected, this.activated].reduce(
      (sum, { listeners }) => sum + listeners.size,
      0,
    );
  },
  /** Puts the cursors at these offsets and notifies the listeners. */
  select(document: FakeDocument, ...offsets: number[]): void {
    this.selectRanges(document, ...offsets.map((offset) => [offset, offset] as [number, number]));
  },
  /** Selects these ranges, with the cursor at the end of each, and notifies the listeners. */
  selectRanges(document: FakeDocument, ...ranges: [number, number][]): void {
    const selections = ranges.map(([start, end]) => ({ active: document.positionAt(end), isEmpty: start === end }));
    const textEditor = { document, selection: selections[0] as { active: Position }, selections };
    const other = this.active?.document !== document;
    this.active = textEditor;
    if (other) this.activated.fire(textEditor);
    this.selected.fire({ textEditor });
  },
};

class TabInputNotebook {
  readonly uri: unknown;
  constructor(uri: unknown) {
    this.uri = uri;
  }
}

class TabInputText {
  readonly uri: unknown;
  constructor(uri: unknown) {
    this.uri = uri;
  }
}

export const vscodeApi = {
  EndOfLine: { LF: 1, CRLF: 2 },
  InlineCompletionTriggerKind: { Invoke: 0, Automatic: 1 },
  ConfigurationTarget: { Global: 1, Workspace: 2 },
  Position,
  Range,
  EventEmitter: Emitter,
  TabInputText,
  TabInputTextDiff: class {},
  TabInputNotebook,
  l10n: { t: (text: string, ...values: unknown[]) => text.replace(/\{(\d)\}/g, (_, i) => String(values[Number(i)])) },
  languages: {
    registerInlineCompletionItemProvider: (_: unknown, provider: unknown) => {
      editor.providers.add(provider);
      return { dispose: () => editor.providers.delete(provider) };
    },
    match: (
      selector: { pattern?: string; scheme?: string } | { pattern?: string; scheme?: string }[],
      { uri }: FakeDocument,
    ) =>
      Number(
        [selector]
          .flat()
          .some(
            ({ pattern, scheme }) =>
              (pattern === undefined || matchesGlob(uri.path, pattern)) &&
              (scheme === undefined || scheme === uri.scheme),
          ),
      ),
  },
  commands: {
    executeCommand: async (...command: unknown[]) => {
      if (command[0] === 'setContext') {
        editor.contexts[command[1] as string] = command[2];
        return;
      }
      editor.commands.push(command);
      await editor.onCommand(command[0] as string);
    },
  },
  window: {
    get activeTextEditor() {
      return editor.active;
    },
    get visibleTextEditors() {
      return editor.active ? [editor.active] : [];
    },
    get tabGroups() {
      return {
        all: [
          {
            tabs: [
              ...editor.tabs.map(({ uri }) => ({ input: new TabInputText(uri) })),
              ...editor.notebooks.map(({ uri }) => ({ input: new TabInputNotebook(uri) })),
            ],
          },
        ],
      };
    },
    onDidChangeTextEditorSelection: editor.selected.event,
    onDidChangeActiveTextEditor: editor.activated.event,
    showQuickPick: async (items: { minutes?: number }[]) => items.find(({ minutes }) => minutes === editor.picks),
    showInformationMessage: async (message: string) => void editor.messages.push(message),
  },
  workspace: {
    getWorkspaceFolder: ({ path }: { path: string }) => editor.folders.find((folder) => path.startsWith(`${folder}/`)),
    asRelativePath: ({ path }: { path: string }) => path.split('/').at(-1),
    get textDocuments() {
      return editor.documents;
    },
    get notebookDocuments() {
      return editor.notebooks.map(({ uri, cells }) => ({
        uri,
        getCells: () => cells.map((document) => ({ document })),
      }));
    },
    onDidChangeTextDocument: editor.changed.event,
    onDidSaveTextDocument: editor.saved.event,
    onDidCloseTextDocument: editor.closed.event,
  },
};
