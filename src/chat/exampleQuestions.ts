/**
 * Example questions about a file, of the kinds that are answered best, in the user's language. The shown text is asked
 * as it is, so each translation must be one that the engine recognizes (engine/facts).
 */
import * as vscode from '../vscode.ts';

/** Definitions at the start of a line in common languages. Nested ones are less interesting. */
const FUNCTION =
  /^(?:export\s+)?(?:default\s+)?(?:pub\s+)?(?:async\s+)?(?:function\*?|def|func|fn)\s+([A-Za-z_]\w{2,})/m;
const CLASS = /^(?:export\s+)?(?:default\s+)?(?:abstract\s+)?(?:public\s+)?(?:class|struct)\s+([A-Za-z_]\w{2,})/m;
const TYPE = /^(?:export\s+)?(?:public\s+)?(?:interface|type|enum|trait)\s+([A-Za-z_]\w{2,})/m;
/** Limits the search in huge files. */
const MAX_CHARACTERS = 50_000;

/** Languages, by the editor's ids, whose files define nothing. */
const WITHOUT_DEFINITIONS = new Set([
  'markdown',
  'plaintext',
  'restructuredtext',
  'latex',
  'log',
  'json',
  'jsonc',
  'jsonl',
  'yaml',
  'toml',
  'ini',
  'properties',
  'dotenv',
  'csv',
  'xml',
  'html',
  'css',
  'diff',
  'git-commit',
  'ignore',
]);

/** Languages whose questions the engine answers from the code. An empty id is an unknown one. */
const WITH_FACTS = new Set(['', 'typescript', 'typescriptreact', 'javascript', 'javascriptreact', 'python']);

/** Up to `max` questions about a file in a language; `null` is no open file. */
export function exampleQuestions(text: string | null, language = '', max = 4): string[] {
  if (text === null) return [];
  const { t } = vscode.l10n;
  const questions = [t('Summarize this file')];
  if (WITHOUT_DEFINITIONS.has(language)) return questions;
  const source = text.slice(0, MAX_CHARACTERS);
  const functionName = FUNCTION.exec(source)?.[1];
  const className = CLASS.exec(source)?.[1];
  const typeName = TYPE.exec(source)?.[1];
  if (functionName) questions.push(t('What does {0} do?', `${functionName}()`));
  if (!WITH_FACTS.has(language)) return questions;
  if (functionName) questions.push(t('What are the parameters of {0}?', `${functionName}()`));
  if (className) questions.push(t('What does {0} do?', className), t('What methods does {0} have?', className));
  if (typeName && !className) questions.push(t('Where is {0} used?', typeName));
  if (questions.length < max) questions.push(t('Which functions does this file define?'));
  return questions.slice(0, max);
}
