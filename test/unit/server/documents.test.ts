/** The mirror of the host's documents. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Documents } from '../../../engine/server/documents.ts';
import { SourceDocument, shortPath } from '../../../engine/text/syntax/sourceDocument.ts';

describe('edits', () => {
  it('keep the mirror equal to the host', () => {
    const text = fc.array(fc.constantFrom('a', 'b\n', 'c\r\n', '🙂', ' ')).map((parts) => parts.join(''));
    const change = fc.array(fc.record({ at: fc.nat(), remove: fc.nat(4), insert: text }), { maxLength: 4 });
    fc.assert(
      fc.property(text, fc.array(change, { maxLength: 6 }), (start, changes) => {
        const documents = new Documents();
        documents.open('a', 1, 'a.ts', start);
        let host = start;
        let version = 1;
        for (const spans of changes) {
          const edits = [];
          let limit = host.length;
          for (const { at, remove, insert } of spans) {
            const end = limit === 0 ? 0 : at % (limit + 1);
            const from = Math.max(0, end - remove);
            edits.push({ start: from, end, text: insert });
            limit = from;
          }
          for (const edit of edits) host = host.slice(0, edit.start) + edit.text + host.slice(edit.end);
          documents.edit('a', ++version, edits);
          expect(documents.get('a').text).toBe(host);
          expect(documents.get('a').lf).toBe(host.replaceAll('\r\n', '\n'));
        }
      }),
    );
  });

  it.each([
    ['an old version', 3, [], /version 3 of a do not follow version 3/],
    ['a version that skips one', 5, [], /version 5 of a do not follow version 3/],
    ['an edit outside the text', 4, [{ start: 0, end: 99, text: '' }], /outside its text/],
    [
      'edits in the wrong order',
      4,
      [
        { start: 0, end: 1, text: '' },
        { start: 1, end: 2, text: '' },
      ],
      /not ordered last to first/,
    ],
  ])('%s makes the document unusable until its whole text comes', (_, version, edits, message) => {
    const documents = new Documents();
    documents.open('a', 3, 'a.ts', 'abc');
    expect(() => documents.edit('a', version, edits)).toThrow(message);
    expect(() => documents.get('a')).toThrow(message);
    expect(documents.find('a')).toBeUndefined();
    documents.open('a', 9, 'a.ts', 'new');
    expect(documents.get('a').text).toBe('new');
  });

  it('of a document that is not open are refused', () => {
    const documents = new Documents();
    expect(() => documents.edit('a', 1, [])).toThrow(expect.objectContaining({ code: 'unknownDocument' }));
    documents.open('a', 1, 'a.ts', '');
    documents.close('a');
    expect(() => documents.get('a')).toThrow(expect.objectContaining({ code: 'unknownDocument' }));
  });
});

describe('removed passages', () => {
  it('recently deleted passages are kept for a while, newest last, with LF line ends; a few deleted characters are not', () => {
    const documents = new Documents();
    const document = documents.open('a', 1, 'a.ts', 'const first = 1;\r\nconst second = 2;\r\nrest');
    documents.edit('a', 2, [
      { start: 18, end: 37, text: '' },
      { start: 0, end: 15, text: 'x' },
    ]);
    expect(document.removed).toEqual(['const first = 1', 'const second = 2;\n']);
    documents.edit('a', 3, [{ start: 0, end: 3, text: '' }]);
    expect(document.removed).toHaveLength(2);
    expect(document.withInserted(0, 'y').removed).toEqual(document.removed);
  });

  it('deleted passages are bounded: older ones go, long ones are not kept, and a replaced document resets them', () => {
    const documents = new Documents();
    const document = documents.open('a', 1, 'a.ts', 'b'.repeat(10_000));
    for (let version = 2; version <= 6; version++) documents.edit('a', version, [{ start: 0, end: 600, text: '' }]);
    expect(document.removed.map(({ length }) => length)).toEqual([600, 600, 600]);
    documents.edit('a', 7, [{ start: 0, end: 5000, text: '' }]);
    expect(document.removed.map(({ length }) => length)).toEqual([600, 600, 600]);
    documents.open('a', 8, 'a.ts', 'c');
    expect(document.removed).toEqual([]);
  });
});

describe('positions', () => {
  it('of CRLF text map to LF text', () => {
    const part = fc.array(fc.constantFrom('a', '\n', '\r\n', '\r', 'é', '🙂')).map((parts) => parts.join(''));
    fc.assert(
      fc.property(part, part, (before, after) => {
        fc.pre(!(before.endsWith('\r') && after.startsWith('\n')));
        const document = new SourceDocument('a', 'a', before + after);
        const lf = before.replaceAll('\r\n', '\n');
        expect(document.toLf(before.length)).toBe(lf.length);
        expect(document.lineAt(lf.length)).toBe(lf.split('\n').length - 1);
        expect(document.lineStart(document.lineAt(lf.length))).toBe(lf.lastIndexOf('\n') + 1);
      }),
    );
  });

  it('inside a line break count as before it', () => {
    expect(new SourceDocument('a', 'a', 'x\r\ny').toLf(2)).toBe(1);
  });

  it.each([
    ['/home/u/project/src/add.ts', 'src/add.ts'],
    ['C:\\project\\src\\add.ts', 'src/add.ts'],
    ['add.ts', 'add.ts'],
  ])('path %s is shown as %s', (path, shown) => expect(shortPath(path)).toBe(shown));
});
