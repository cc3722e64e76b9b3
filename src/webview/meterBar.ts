/** How much of the model's context the next question takes, and what will be left out. */
import type { Meter } from '../chat/chatMessages.ts';
import { element, fill, sentence } from './dom.ts';
import { icon } from './icons.ts';

export class MeterBar {
  /** Inside the input's field. */
  readonly bar = element('div', { class: 'meter', 'data-part': 'meter' });
  /** Above the field. */
  readonly notes = element('ul', { class: 'left-out', 'data-part': 'left-out', hidden: '' });
  #shown = '';

  show(meter: Meter | null): void {
    const text = JSON.stringify(meter);
    if (text === this.#shown) return;
    this.#shown = text;
    fill(
      this.notes,
      ...(meter?.notes ?? []).map((note) =>
        element('li', { class: 'lost' }, icon('warning'), element('span', {}, ...sentence(note))),
      ),
    );
    this.notes.hidden = !meter?.notes.length;
    this.bar.classList.toggle('over', meter?.over === true);
    if (!meter) {
      this.bar.removeAttribute('title');
      return fill(this.bar);
    }
    this.bar.title = meter.title;
    const track = element(
      'span',
      { class: 'track', 'aria-hidden': 'true' },
      element('span', { class: 'prompt' }),
      element('span', { class: 'answer' }),
    );
    const [prompt, answer] = track.children as unknown as [HTMLElement, HTMLElement];
    // Set through the DOM, which the content security policy allows.
    prompt.style.width = `${Math.min(1, meter.prompt) * 100}%`;
    answer.style.width = `${Math.min(1 - Math.min(1, meter.prompt), meter.answer) * 100}%`;
    fill(this.bar, track, element('span', { class: 'label' }, meter.label));
  }
}
