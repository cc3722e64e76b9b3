/** The draft of a page that has just been made, and one that is given back, while the user types. */
import { expect, test } from 'vitest';
import { PageDraft } from '../../../../src/webview/pageDraft.ts';

function setUp() {
  const told: string[] = [];
  return { told, draft: new PageDraft((text) => told.push(text)) };
}

test('a key before the kept draft arrives does not take its place: it comes after it', () => {
  const { told, draft } = setUp();
  draft.typed('g');
  draft.typed('gh');
  expect(told).toEqual([]);
  expect(draft.given('half a thou', 'gh')).toBe('half a though');
  draft.typed('half a thought');
  expect(told).toEqual(['half a though', 'half a thought']);
});

test('a question that is sent before the kept draft arrives leaves that as it is', () => {
  const { told, draft } = setUp();
  draft.typed('Why?');
  draft.typed('');
  expect(draft.given('half a thou', '')).toBe('half a thou');
  expect(told).toEqual([]);
});

test('what is given back later comes before what was typed since', () => {
  const { told, draft } = setUp();
  expect(draft.given('', '')).toBe('');
  draft.typed('x');
  expect(draft.given('Why? ', 'x')).toBe('Why? x');
  draft.typed('');
  expect(told).toEqual(['x', 'Why? x', '']);
});
