/** Converts a conversation to Markdown and makes its title. Pure. */
import type { Turn } from './chatMessages.ts';
import type { SavedConversation } from './conversation.ts';

const TITLE_LENGTH = 64;

/** The first line of the first question, shortened at a word boundary. */
export function titleOf(turns: readonly Turn[]): string {
  const first = turns.find((turn) => turn.role === 'user');
  if (first?.role !== 'user') return '';
  const line = first.text.trim().split('\n')[0]!.trim();
  const about =
    line.startsWith('/') && !line.includes(' ') && first.context.length
      ? ` ${(first.context.find(({ kind }) => kind === 'selection') ?? first.context[0]!).name}`
      : '';
  const title = `${line}${about}`;
  return title.length <= TITLE_LENGTH ? title : `${title.slice(0, TITLE_LENGTH).replace(/\s+\S*$/, '')}…`;
}

/** Questions become headings; answers stay as they are; context and cost are in small print. */
export function toMarkdown(conversation: SavedConversation, heading: string, errorLabel: string): string {
  const parts = [
    `# ${heading}`,
    `*${new Date(conversation.createdAt).toISOString().slice(0, 16).replace('T', ' ')} UTC*`,
  ];
  for (const turn of conversation.turns) {
    if (turn.role === 'user') {
      const [first = '', ...rest] = turn.text.trim().split('\n');
      parts.push(`## ${first}`);
      if (rest.join('').trim()) parts.push(rest.join('\n').trim());
      if (turn.context.length) parts.push(turn.context.map(({ path }) => `\`${path}\``).join(', '));
    } else {
      if (turn.text) parts.push(closed(turn.text));
      if (turn.error !== undefined) parts.push(`> ${errorLabel} ${turn.error}`);
      for (const note of turn.notes) parts.push(`> ${note}`);
      if (turn.modelNote !== undefined) parts.push(`> ${turn.modelNote}`);
      if (turn.footer !== undefined) parts.push(`<sub>${turn.footer}</sub>`);
    }
  }
  return `${parts.join('\n\n')}\n`;
}

/** An answer that was cut off inside a code block must not swallow the text after it. */
function closed(text: string): string {
  let fence = '';
  for (const [, mark = ''] of text.matchAll(/^ {0,3}(`{3,}|~{3,})/gm)) {
    if (!fence) fence = mark;
    else if (mark[0] === fence[0] && mark.length >= fence.length) fence = '';
  }
  return fence ? `${text}\n${fence}` : text;
}
