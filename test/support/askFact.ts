/** A question about files, answered as the engine does where they have the answer by themselves. */
import { readFacts } from '../../engine/facts/extract/facts.ts';
import type { ChatMessage, Snippet } from '../../engine/protocol/tasks.ts';
import { askedOfFiles } from '../../engine/facts/factFiles.ts';
import { SourceDocument } from '../../engine/text/syntax/sourceDocument.ts';
import { Syntax } from '../../engine/text/syntax/syntax.ts';
import { Grammars } from '../../engine/text/syntax/syntaxGrammars.ts';

export const grammars = new Grammars();
export const loadGrammars = () =>
  Promise.all(['typescript', 'tsx', 'javascript', 'python'].map((name) => grammars.load(name)));

/** Undefined for what is for the model. */
export function askFact(message: string, text: string, path: string): Promise<string | undefined> {
  return askFiles(message, { [path]: text });
}

/** @param files texts by path */
export async function askFiles(
  message: string,
  files: Readonly<Record<string, string>>,
  { snippets = [], earlier = [] }: { snippets?: readonly Snippet[]; earlier?: readonly ChatMessage[] } = {},
): Promise<string | undefined> {
  const docs = Object.entries(files).map(([path, text]) => new SourceDocument(path, path, text));
  const syntax = new Syntax(grammars);
  const asked = askedOfFiles([...earlier, { role: 'user', content: message }], docs, snippets);
  for (const doc of asked?.documents ?? []) await syntax.prepare(doc);
  const answer = asked?.answer(asked.documents, (doc) => readFacts(syntax, doc));
  syntax.forget();
  return answer?.text;
}
