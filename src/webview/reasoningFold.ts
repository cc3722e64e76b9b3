/** What a model reasoned before its answer, folded into one line of the chat. Does not show the answer. */
import type { AssistantTurn, Strings } from '../chat/chatMessages.ts';
import { numbersIn } from '../format.ts';
import { element } from './dom.ts';

/** One line that opens to what the model reasoned. That is shown as plain text, not as Markdown. */
export function reasoningDisclosure(): { root: HTMLElement; show(turn: AssistantTurn, strings: Strings): void } {
  const label = element('summary', {});
  const text = element('div', { class: 'thought' });
  const root = element('details', { class: 'reasoning', 'data-part': 'reasoning', hidden: '' }, label, text);
  return {
    root,
    show: ({ reasoning, state }, { thinking, thought }) => {
      root.hidden = reasoning === undefined;
      if (reasoning === undefined) return;
      const { count } = numbersIn(document.documentElement.lang || 'en');
      const { tokens } = reasoning;
      label.textContent =
        tokens === undefined ? `${thinking}${state === 'streaming' ? '…' : ''}` : thought.replace('{0}', count(tokens));
      if (text.textContent !== reasoning.text) text.textContent = reasoning.text;
    },
  };
}
