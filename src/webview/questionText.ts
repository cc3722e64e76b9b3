/** Renders plain text (a question, a note) with line breaks, and with code between backticks shown as code. Pure. */

export type QuestionPart =
  | { kind: 'text'; text: string }
  | { kind: 'code'; text: string }
  | { kind: 'block'; text: string; language: string };

export function questionParts(text: string): QuestionPart[] {
  const parts: QuestionPart[] = [];
  let end = 0;
  for (const match of text.matchAll(/^```([\w+#-]*)[^\n]*\n([\s\S]*?)(?:^```[ \t]*(?:\n|$)|(?![\s\S]))/gm)) {
    parts.push(...inlineParts(text.slice(end, match.index).replace(/\n$/, '')));
    parts.push({ kind: 'block', language: match[1] ?? '', text: match[2] ?? '' });
    end = match.index + match[0].length;
  }
  parts.push(...inlineParts(text.slice(end)));
  return parts;
}

/** Without blocks. */
export function inlineParts(text: string): Exclude<QuestionPart, { kind: 'block' }>[] {
  return text
    .split(/`([^`\n]+)`/)
    .flatMap((piece, i) => (piece ? [{ kind: i % 2 ? 'code' : 'text', text: piece }] : []));
}
