/** An answer that denies what was given is not shown; any other is, as it comes. */
import { join } from 'node:path';
import { beforeAll, describe, expect, it, test } from 'vitest';
import { prepareChat, shapeAnswer } from '../../engine/tasks/chat.ts';
import { withoutDenial } from '../../engine/tasks/denial.ts';
import { Layout } from '../../engine/text/layout.ts';
import { ModelText } from '../../engine/text/modelText.ts';
import { SourceDocument } from '../../engine/text/sourceDocument.ts';

const MODEL = join(import.meta.dirname, '../../model');
const GIVEN = [{ path: 'src/a.ts', text: 'class Store {\n  flush() {}\n  $count = `1`;\n}\n', startLine: 1 }, { path: 'src/b.ts', text: 'x();\ntotal();\n', startLine: 40 }, { path: 'src/c.ts', text: 'late();\nword();' }, { path: 'notes', text: 'loose ends, and looseEnd' }];
const shape = withoutDenial(shapeAnswer, GIVEN, 'Where are `Store.flush()`, `total`, `late` and `loose`? And word?');

/** What is shown after each character, where it changes; fails where something that was shown is taken back. */
function streamed(answer: string): string[] {
  const shown: string[] = [];
  let stopped = false;
  for (let n = 1; n <= answer.length && !stopped; n++) {
    const { text, stop } = shape(answer.slice(0, n), false);
    expect(text.startsWith(shown.at(-1) ?? '')).toBe(true);
    if (text !== (shown.at(-1) ?? '')) shown.push(text);
    stopped = stop;
  }
  const { text } = shape(answer, true);
  expect(text.startsWith(shown.at(-1) ?? '')).toBe(true);
  return text === shown.at(-1) ? shown : [...shown, text];
}

describe('denied, and there', () => {
  it.each([
    ['There is no `Store` in src/a.ts.', '`Store` stands in src/a.ts (line 1: `class Store {`). The model could not say more about it.'],
    ['There is no `Store.flush` in src/a.ts. It has none.', '`flush` stands in src/a.ts (line 2: `flush() {}`). The model could not say more about it.'],
    ['There is no `flush()`', '`flush` stands in src/a.ts (line 2: `flush() {}`). The model could not say more about it.'],
    ['There is no ` flush` in src/a.ts.', '`flush` stands in src/a.ts (line 2: `flush() {}`). The model could not say more about it.'],
    ['There is no `s flush` in src/a.ts.', '`flush` stands in src/a.ts (line 2: `flush() {}`). The model could not say more about it.'],
    ['There is no `$count` in src/a.ts.', '`$count` stands in src/a.ts (line 3). The model could not say more about it.'],
    ['There is no `total` in src/a.ts.', '`total` stands in src/b.ts (line 41: `total();`). The model could not say more about it.'],
    ['There is no `late` in src/a.ts.', '`late` stands in src/c.ts. The model could not say more about it.'],
    ['Não existe `Store` em src/a.ts.', '`Store` está em src/a.ts (linha 1: `class Store {`). Mais do que isso o modelo não soube dizer.'],
    ['Não há `Store` em src/a.ts.', '`Store` está em src/a.ts (linha 1: `class Store {`). Mais do que isso o modelo não soube dizer.'],
  ])('%s', (answer, expected) => {
    expect(streamed(answer)).toEqual([expected]);
    expect(shape(answer, true)).toEqual({ text: expected, stop: true });
  });
});

describe('anything else is shown as it is', () => {
  it.each([
    'There is no `gone` in src/a.ts.', 'There is no `Stor` in src/a.ts.', 'There is no `async flush` in src/a.ts.', 'There is no `s gone` in src/a.ts.', 'Não existe `gone` em src/a.ts.', 'There is no limit to `flush`.', 'There is no `flush` that takes a name.', 'There is no method `flush` in src/a.ts.', 'There are two.', 'There', 'There is no', 'There is no `Sto',
    // Of prose, and of what may be any word.
    'There is no `loose` in notes.', 'There is no `looseEnd` in notes.', 'There is no `word` in src/c.ts.',
    'There is no ``', 'There is no `a b` in src/a.ts.', '`Store` has no `flush`.', 'Não', 'T', '',
  ])('%s', (answer) => {
    expect(streamed(answer).at(-1) ?? '').toBe(answer);
    expect(shape(answer, true).text).toBe(answer);
  });

  it('and what cannot become a denial at once', () => {
    expect(streamed('This is it.')[0]).toBe('Thi');
    expect(streamed('There is no limit.')[0]).toBe('There is no l');
  });
});

describe('in a chat', () => {
  const doc = new SourceDocument('a', 'src/a.ts', 'class A {\r\n  b() {}\r\n}\r\n');
  const DENIAL = 'There is no `b` in src/a.ts.';
  let starter: ModelText;
  beforeAll(async () => {
    starter = await ModelText.load(MODEL);
  });
  const answerOf = (text: ModelText, snippets: { path: string; text: string; startLine?: number }[] = []) =>
    prepareChat(new Layout(text, { contextTokens: 2048, numParameters: 7e6 }), { docs: [doc], messages: [{ role: 'user', content: 'How does `b` work?' }], snippets }).shape(DENIAL, true).text;

  test('of the built-in model', () => expect(answerOf(starter)).toBe('`b` stands in src/a.ts (line 2: `b() {}`). The model could not say more about it.'));

  test('with a selection', () => {
    const { shape } = prepareChat(new Layout(starter, { contextTokens: 2048, numParameters: 7e6 }), { docs: [], messages: [{ role: 'user', content: 'How does `c` work?' }], snippets: [{ path: '/w/src/c.ts', text: '\r\nc();', startLine: 7 }] });
    expect(shape('There is no `c` in src/c.ts.', true).text).toBe('`c` stands in src/c.ts (line 8: `c();`). The model could not say more about it.');
  });

  test('of another model it is an answer, with a note', async () => {
    const other = await ModelText.load(MODEL);
    other.manifest = { ...other.manifest, chat: { ...other.manifest.chat, facts: false } };
    expect(answerOf(other)).toBe(DENIAL);
    const { shape } = prepareChat(new Layout(other, { contextTokens: 2048, numParameters: 7e6 }), { docs: [doc, new SourceDocument('r', 'README.md', 'A project.\n')], messages: [{ role: 'user', content: 'What is this `b`, and this project?' }] });
    expect(shape(DENIAL, true).note).toBe('`b` does occur in src/a.ts: the model overlooks things');
    expect(shape('There is no `project` in README.md.', true).note).toBeUndefined();
  });
});
