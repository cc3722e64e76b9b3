/** Asks a question about files, as the engine does where the files answer it. */
import { factsAsked } from '../../../engine/facts/ask.ts';
import { readFacts } from '../../../engine/facts/extract/facts.ts';
import type { Language } from '../../../engine/facts/intents.ts';
import type { ChatMessage, Snippet } from '../../../engine/protocol/tasks.ts';
import { SourceDocument } from '../../../engine/text/syntax/sourceDocument.ts';
import { Syntax } from '../../../engine/text/syntax/syntax.ts';
import { GRAMMARS, Grammars } from '../../../engine/text/syntax/syntaxTrees.ts';

const grammars = new Grammars();
export const loadGrammars = () =>
  Promise.all(['typescript', 'tsx', 'javascript', 'python', 'go'].map((name) => grammars.load(name)));
export const loadAllGrammars = () => Promise.all(Object.keys(GRAMMARS).map((name) => grammars.load(name)));

interface Around {
  snippets?: readonly Snippet[];
  earlier?: readonly ChatMessage[];
  language?: Language;
}

/**
 * The answer, with its source and note; undefined for what is for the model.
 * @param files texts by path
 */
export async function known(message: string, files: Readonly<Record<string, string>>, around: Around = {}) {
  const { snippets = [], earlier = [], language = 'en' } = around;
  const docs = Object.entries(files).map(([path, text]) => new SourceDocument(path, path, text));
  const syntax = new Syntax(grammars);
  const asked = factsAsked(
    { messages: [...earlier, { role: 'user', content: message }], docs, snippets },
    language,
    true,
  );
  for (const doc of asked?.documents ?? []) await syntax.prepare(doc);
  const answer = asked?.answer(asked.documents, (doc) => readFacts(syntax, doc));
  syntax.forget();
  return answer;
}

/** The text of the answer. */
export async function ask(message: string, files: Readonly<Record<string, string>>, around: Around = {}) {
  return (await known(message, files, around))?.text;
}
