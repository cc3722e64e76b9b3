/** Replaces the editor's API in tests of the chat view: its active editor, its messages and its change events. */
/** The state of the editor, which a test sets. */
export const editor = {
  changed: (_: unknown): void => {},
  active: undefined as unknown,
  /** The URIs of the open tabs. */
  tabs: [] as { scheme: string; path: string; toString(): string }[],
  messages: [] as string[],
};

const event = () => ({ dispose() {} });

class TabInputText {
  readonly uri: unknown;
  constructor(uri: unknown) {
    this.uri = uri;
  }
}

/** The parts of the editor's API that the chat uses. */
export const vscodeApi = {
  EventEmitter: class {
    #listeners: ((value: unknown) => void)[] = [];
    event = (listener: () => void) => {
      this.#listeners.push(listener);
      return { dispose() {} };
    };
    fire(value: unknown): void {
      for (const listener of this.#listeners) listener(value);
    }
    dispose(): void {}
  },
  TabInputTextDiff: class {},
  TabInputText,
  Uri: { joinPath: () => ({}), parse: (text: string) => ({ toString: () => text }) },
  l10n: { t: (text: string, ...values: unknown[]) => text.replace(/\{(\d)\}/g, (_, i) => String(values[Number(i)])) },
  env: { language: 'en' },
  languages: { match: () => 1 },
  SymbolKind: {},
  Range: class {
    start: unknown;
    end: unknown;
    constructor(line: number, character: number, endLine: number, endCharacter: number) {
      this.start = { line, character };
      this.end = { line: endLine, character: endCharacter };
    }
    contains = () => true;
  },
  // A language's extension never answers.
  commands: {
    executeCommand: (name: string) => (name.startsWith('vscode.') ? new Promise(() => {}) : Promise.resolve()),
  },
  window: {
    showInformationMessage: async (message: string) => void editor.messages.push(message),
    get activeTextEditor() {
      return editor.active;
    },
    visibleTextEditors: [],
    get tabGroups() {
      const tabs = editor.tabs.map((uri) => ({ input: new TabInputText(uri), isActive: false }));
      return { onDidChangeTabs: event, all: [{ tabs }] };
    },
    onDidChangeActiveTextEditor: event,
    onDidChangeTextEditorSelection: event,
  },
  workspace: {
    asRelativePath: () => 'b.ts',
    openTextDocument: async () => (editor.active as { document: unknown }).document,
    get textDocuments() {
      return editor.active ? [(editor.active as { document: unknown }).document] : [];
    },
    onDidChangeTextDocument: (listener: (event: unknown) => void) => {
      editor.changed = listener;
      return { dispose() {} };
    },
  },
};
