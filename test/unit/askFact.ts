/** A question for a fact, answered as the engine does where the tree has the answer. */
import { factAnswer } from '../../engine/tasks/factAnswer.ts';
import { factAsked } from '../../engine/tasks/factQuestion.ts';
import { SourceDocument } from '../../engine/text/sourceDocument.ts';
import { Syntax } from '../../engine/text/syntax.ts';
import { Grammars } from '../../engine/text/syntaxGrammars.ts';

export const grammars = new Grammars();
export const loadGrammars = () => Promise.all(['typescript', 'tsx', 'javascript', 'python'].map((name) => grammars.load(name)));

/** Undefined for what is for the model. */
export async function askFact(message: string, text: string, path: string): Promise<string | undefined> {
  const doc = new SourceDocument(path, path, text);
  const syntax = new Syntax(grammars);
  const asked = factAsked([{ role: 'user', content: message }], [doc]);
  await syntax.prepare(doc);
  const facts = syntax.facts(doc);
  syntax.forget();
  return asked && facts && factAnswer(asked.question, facts, doc.lf, doc.path);
}
