/** The line of an answer that folds away what the model reasoned. A page of few lines stands for the browser's. */
import { beforeEach, expect, test, vi } from 'vitest';
import type { AssistantTurn, Strings } from '../../../../src/chat/chatMessages.ts';
import { reasoningDisclosure } from '../../../../src/webview/reasoningFold.ts';

/** Keeps what is set. `textContent` is text, so it has no children. */
class FakeElement {
  textContent = '';
  hidden = false;
  open = false;
  readonly children: FakeElement[] = [];
  readonly attributes = new Map<string, string>();
  readonly tag: string;

  constructor(tag: string) {
    this.tag = tag;
  }

  setAttribute(name: string, value: string): void {
    this.attributes.set(name, value);
    if (name === 'hidden') this.hidden = true;
  }

  append(...children: FakeElement[]): void {
    this.children.push(...children);
  }
}

beforeEach(() => {
  vi.stubGlobal('document', {
    documentElement: { lang: 'en' },
    createElement: (tag: string) => new FakeElement(tag),
  });
  return () => void vi.unstubAllGlobals();
});

const STRINGS = { thinking: 'Thinking', thought: 'Thought for {0} tokens' } as Strings;

function fold() {
  const { root, show } = reasoningDisclosure();
  const page = root as unknown as FakeElement;
  const [label, text] = page.children as [FakeElement, FakeElement];
  return { page, label, text, show: (turn: Partial<AssistantTurn>) => show(turn as AssistantTurn, STRINGS) };
}

test('an answer without reasoning has no line', () => {
  const { page, show } = fold();
  show({ state: 'streaming' });
  expect(page.hidden).toBe(true);
  show({ state: 'done' });
  expect(page.hidden).toBe(true);
});

test('the line says that the model thinks, then for how many tokens, and is closed', () => {
  const { page, label, text, show } = fold();
  show({ state: 'streaming', reasoning: { text: 'The user' } });
  expect([page.tag, page.hidden, page.open, label.tag]).toEqual(['details', false, false, 'summary']);
  expect(page.attributes.has('open')).toBe(false);
  expect([label.textContent, text.textContent]).toEqual(['Thinking…', 'The user']);
  show({ state: 'streaming', reasoning: { text: 'The user asks.', tokens: 1234 } });
  expect([label.textContent, text.textContent]).toEqual(['Thought for 1,234 tokens', 'The user asks.']);
});

test('an answer that was stopped while the model thought is not waited for', () => {
  const { label, show } = fold();
  show({ state: 'done', reasoning: { text: 'The user' } });
  expect(label.textContent).toBe('Thinking');
});

test('reasoning is shown as text, and what is open stays open', () => {
  const { page, text, show } = fold();
  show({ state: 'streaming', reasoning: { text: '<img src=x>\n# no' } });
  page.open = true;
  show({ state: 'done', reasoning: { text: '<img src=x>\n# no heading', tokens: 9 } });
  expect([page.open, text.textContent, text.children]).toEqual([true, '<img src=x>\n# no heading', []]);
});
