/** The draft of a new page, and a draft that the host sends back while the user types. */
import { expect, test } from 'vitest';
import { PageDraft } from '../../../../src/webview/pageDraft.ts';

function setUp() {
  const told: string[] = [];
  return { told, draft: new PageDraft((text) => told.push(text)) };
}

test('text typed before the stored draft arrives is appended to it', () => {
  const { told, draft } = setUp();
  draft.typed('g');
  draft.typed('gh');
  expect(told).toEqual([]);
  expect(draft.given('half a thou', 'gh')).toBe('half a though');
  draft.typed('half a thought');
  expect(told).toEqual(['half a though', 'half a thought']);
});

test('a question sent before the stored draft arrives leaves the draft unchanged', () => {
  const { told, draft } = setUp();
  draft.typed('Why?');
  draft.typed('');
  expect(draft.given('half a thou', '')).toBe('half a thou');
  expect(told).toEqual([]);
});

test('a text that the host sends back is put before the text typed since', () => {
  const { told, draft } = setUp();
  expect(draft.given('', '')).toBe('');
  draft.typed('x');
  expect(draft.given('Why? ', 'x')).toBe('Why? x');
  draft.typed('');
  expect(told).toEqual(['x', 'Why? x', '']);
});
