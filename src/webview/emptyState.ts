/** Shown before the first question: what Kvasir is, the model's note, and example questions. */
import type { Strings } from '../chat/chatMessages.ts';
import { button, element, fill } from './dom.ts';
import { mark } from './icons.ts';

export interface EmptyState {
  model: { name: string; note: string };
  questions: readonly string[];
}

export function showEmptyState(
  root: HTMLElement,
  { model, questions }: EmptyState,
  strings: Strings,
  actions: { ask(text: string): void; chooseModel(): void },
): void {
  const examples = questions.map((question) => button(question, { class: 'example' }, () => actions.ask(question)));
  const about = element(
    'div',
    { class: 'about' },
    element('strong', {}, model.name),
    element('p', { 'data-part': 'note' }, model.note),
    button(strings.chooseModel, { class: 'link' }, actions.chooseModel),
  );
  fill(
    root,
    element('div', { class: 'mark' }, mark()),
    element('h1', {}, strings.title),
    element('p', { class: 'tagline' }, strings.tagline),
    ...(model.note ? [about] : []),
    ...(examples.length
      ? [element('div', { class: 'examples' }, element('h2', {}, strings.examples), ...examples)]
      : []),
  );
}
