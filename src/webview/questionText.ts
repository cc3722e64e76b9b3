/** A question as its author wrote it: plain text with line breaks kept, but code between backticks shown as code. Pure. */

export type QuestionPart = { kind: 'text'; text: string } | { kind: 'code'; text: string } | { kind: 'block'; text: string; language: string };

export function questionParts(text: string): QuestionPart[] {
  const parts: QuestionPart[] = [];
  let end = 0;
  for (const match of text.matchAll(/^```([\w+#-]*)[^\n]*\n([\s\S]*?)(?:^```[ \t]*(?:\n|$)|(?![\s\S]))/gm)) {
    inline(parts, text.slice(end, match.index).replace(/\n$/, ''));
    parts.push({ kind: 'block', language: match[1] ?? '', text: match[2] ?? '' });
    end = match.index + match[0].length;
  }
  inline(parts, text.slice(end));
  return parts;
}

function inline(parts: QuestionPart[], text: string): void {
  for (const [i, piece] of text.split(/`([^`\n]+)`/).entries()) if (piece) parts.push(i % 2 ? { kind: 'code', text: piece } : { kind: 'text', text: piece });
}
