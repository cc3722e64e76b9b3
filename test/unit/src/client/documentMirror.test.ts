/** The engine's copy of a document equals the editor's, for random edits and events. */
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { Documents } from '../../../../engine/server/documents.ts';
import type { HostMessage } from '../../../../engine/protocol/messages.ts';
import type { DocumentMirror as Mirror } from '../../../../src/client/documentMirror.ts';
import type { EngineClient } from '../../../../src/client/engineClient.ts';

const listeners = vi.hoisted(() => ({
  changed: new Set<(event: unknown) => void>(),
  saved: new Set<(document: unknown) => void>(),
  closed: new Set<(document: unknown) => void>(),
  open: [] as unknown[],
}));
vi.mock('../../../../src/vscode.ts', () => {
  const event = (all: Set<(value: unknown) => void>) => (listener: (value: unknown) => void) => {
    all.add(listener);
    return { dispose: () => all.delete(listener) };
  };
  return {
    l10n: { t: (text: string, ...values: unknown[]) => text.replace(/\{(\d)\}/g, (_, i) => String(values[Number(i)])) },
    workspace: {
      textDocuments: listeners.open,
      onDidChangeTextDocument: event(listeners.changed),
      onDidSaveTextDocument: event(listeners.saved),
      onDidCloseTextDocument: event(listeners.closed),
    },
  };
});
const { DocumentMirror } = await import('../../../../src/client/documentMirror.ts');

interface Change {
  rangeOffset: number;
  rangeLength: number;
  text: string;
}

/** The parts of a document and its editor that the mirror uses. */
class FakeDocument {
  readonly uri = { toString: () => 'file:///a/b.ts', path: '/a/b.ts' };
  text: string;
  version = 1;
  isDirty = false;
  eol = 1;

  constructor(text: string) {
    this.text = text;
  }

  getText = () => this.text;
  lineCount = 1;
  lineAt = () => ({ range: { end: this.text.length } });
  offsetAt = (offset: number) => offset;

  /** Applies `changes` one after the other and reports them in one event, `skip` versions later. */
  change(changes: Change[], skip = 1): void {
    for (const { rangeOffset, rangeLength, text } of changes)
      this.text = this.text.slice(0, rangeOffset) + text + this.text.slice(rangeOffset + rangeLength);
    this.version += skip;
    for (const listener of listeners.changed) listener({ document: this, contentChanges: changes });
  }
}

function mirrorOf(document: FakeDocument, isSecret: () => boolean = () => false) {
  listeners.changed.clear();
  listeners.saved.clear();
  listeners.closed.clear();
  listeners.open.splice(0, listeners.open.length, document);
  const documents = new Documents();
  const sent: HostMessage[] = [];
  const client = {
    epoch: 1,
    notify(message: HostMessage) {
      sent.push(message);
      if (message.type === 'documentClosed') documents.close(message.docId);
      else if (message.type === 'documentChanged') {
        if ('text' in message) documents.open(message.docId, message.version, message.path, message.text);
        else documents.edit(message.docId, message.version, message.edits);
      }
    },
  };
  const mirror: Mirror = new DocumentMirror(client as unknown as EngineClient, isSecret);
  const sync = () => mirror.sync(document as never);
  return { client, mirror, sync, sent, mirrored: () => documents.get(document.uri.toString()).text };
}

const place = fc.record({
  at: fc.nat(100),
  length: fc.nat(4),
  text: fc.constantFrom('', 'x', 'ab', '\n', '\r\n', '😀'),
});
const step = fc.oneof(
  fc.record({ kind: fc.constant('cursors' as const), places: fc.array(place, { minLength: 1, maxLength: 3 }) }),
  fc.record({
    kind: fc.constant('undo' as const),
    places: fc.array(place, { minLength: 1, maxLength: 3 }),
    skip: fc.integer({ min: 2, max: 3 }),
  }),
  fc.record({ kind: fc.constant('eol' as const) }),
  fc.record({ kind: fc.constant('nothing' as const) }),
  fc.record({ kind: fc.constant('sync' as const) }),
);

test('the texts stay equal with several cursors, merged undo steps, other line ends and skipped versions', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      const document = new FakeDocument('one\ntwo\nthree\n');
      const { sync, mirrored } = mirrorOf(document);
      sync();
      const within = ({ at, length, text }: { at: number; length: number; text: string }): Change => {
        const rangeOffset = Math.min(at, document.text.length);
        return { rangeOffset, rangeLength: Math.min(length, document.text.length - rangeOffset), text };
      };
      for (const step of steps) {
        if (step.kind === 'sync') sync();
        else if (step.kind === 'nothing') document.change([]);
        else if (step.kind === 'eol') {
          document.eol = 3 - document.eol;
          document.text =
            document.eol === 2 ? document.text.replace(/\r?\n/g, '\r\n') : document.text.replace(/\r\n/g, '\n');
          document.change([]);
        } else if (step.kind === 'cursors') {
          const changes = step.places.map(within).sort((a, b) => b.rangeOffset - a.rangeOffset);
          document.change(
            changes.filter((change, i) =>
              changes.slice(0, i).every((later) => change.rangeOffset + change.rangeLength <= later.rangeOffset),
            ),
          );
        } else {
          // The offsets of each step refer to the text after the step before.
          const changes: Change[] = [];
          const whole = document.text;
          for (const each of step.places) {
            const change = within(each);
            changes.push(change);
            document.text =
              document.text.slice(0, change.rangeOffset) +
              change.text +
              document.text.slice(change.rangeOffset + change.rangeLength);
          }
          document.text = whole;
          document.change(changes, step.skip);
        }
        expect(mirrored()).toBe(document.text);
      }
    }),
    { numRuns: 500 },
  );
});

test('after the engine has lost a document, the next request sends the whole text, and no edit is sent before', () => {
  const document = new FakeDocument('abc');
  const { client, sync, sent } = mirrorOf(document);
  sync();
  client.epoch++;
  document.change([{ rangeOffset: 0, rangeLength: 1, text: 'x' }]);
  expect(sent.length).toBe(1);
  sync();
  document.change([{ rangeOffset: 0, rangeLength: 1, text: 'y' }]);
  expect(sent.slice(1)).toMatchObject([{ text: 'xbc' }, { edits: [{ start: 0, end: 1, text: 'y' }] }]);
});

test('the language of an untitled file or a notebook cell is sent, because its path does not tell it', () => {
  const document = Object.assign(new FakeDocument('x = 1'), { languageId: 'python' });
  const { sync, sent } = mirrorOf(document);
  sync();
  Object.assign(document.uri, { scheme: 'untitled' });
  Object.assign(document, { version: 5 });
  sync();
  expect(sent.map((message) => ('language' in message ? message.language : null))).toEqual([null, 'python']);
  const documents = new Documents();
  const first = documents.open('u', 1, 'Untitled-1', '', 'python');
  expect(documents.open('u', 2, 'Untitled-1', '', 'python')).toBe(first);
  expect(documents.open('u', 3, 'Untitled-1', '', 'go').language).toBe('go');
});

test('a document that is or becomes too large is not sent, and the error says so in one sentence', () => {
  const document = new FakeDocument('a'.repeat(10_000_000));
  const { sync, sent } = mirrorOf(document);
  sync();
  document.change([{ rangeOffset: 0, rangeLength: 0, text: 'b' }]);
  expect(sent.map((message) => message.type)).toEqual(['documentChanged', 'documentClosed']);
  expect(sync).toThrow(/^b\.ts is too large for Kvasir: 11 million characters, the limit is 10 million\.$/);
  document.change([{ rangeOffset: 0, rangeLength: 1, text: '' }]);
  sync();
  expect(sent.slice(2).map((message) => message.type)).toEqual(['documentChanged']);
});

test('a document that becomes secret is sent again at once as secret, and stays secret after edits', () => {
  const document = new FakeDocument('const key = 1;');
  let secret = false;
  const { mirror, sync, sent } = mirrorOf(document, () => secret);
  // The engine does not have it yet.
  mirror.reviewSecrets();
  expect(sent).toEqual([]);
  sync();
  mirror.reviewSecrets();
  expect(sent).toHaveLength(1);
  secret = true;
  mirror.reviewSecrets();
  expect(sent).toHaveLength(2);
  expect(sent[1]).toMatchObject({ text: 'const key = 1;', secret: true });
  document.change([{ rangeOffset: 0, rangeLength: 5, text: 'let' }]);
  mirror.reviewSecrets();
  expect(sent.slice(2)).toMatchObject([{ type: 'documentChanged', version: 2, edits: [expect.anything()] }]);
});

test('unsaved text is marked as unsaved, in any order of events, until it is saved', () => {
  const document = new FakeDocument('let a = 1;');
  const { sync, sent } = mirrorOf(document);
  const save = (): void => {
    for (const listener of listeners.saved) listener(document);
  };
  sync();
  // The first edit is reported before the editor marks the document as dirty.
  document.change([{ rangeOffset: 0, rangeLength: 3, text: 'var' }]);
  document.isDirty = true;
  document.change([], 0);
  document.change([], 0);
  expect(sent.slice(1)).toEqual([
    expect.not.objectContaining({ unsaved: true }),
    { type: 'documentSaved', docId: 'file:///a/b.ts', saved: false },
  ]);
  document.change([{ rangeOffset: 0, rangeLength: 3, text: 'let' }]);
  expect(sent.at(-1)).toMatchObject({ type: 'documentChanged', unsaved: true });
  // Changes that are discarded with their window: the document is neither dirty nor saved.
  document.isDirty = false;
  document.change([], 0);
  document.change([{ rangeOffset: 0, rangeLength: 0, text: ' ' }]);
  expect(sent.slice(4)).toMatchObject([{ type: 'documentChanged', unsaved: true }]);
  // Edited during the save.
  document.isDirty = true;
  save();
  expect(sent).toHaveLength(5);
  document.isDirty = false;
  save();
  save();
  expect(sent.slice(5)).toEqual([{ type: 'documentSaved', docId: 'file:///a/b.ts', saved: true }]);
  // Another program wrote the file.
  document.change([{ rangeOffset: 0, rangeLength: 1, text: '' }]);
  expect(sent.slice(6)).toEqual([expect.not.objectContaining({ unsaved: true })]);
});
