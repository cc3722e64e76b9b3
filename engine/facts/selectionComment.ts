/** Finds the comment that a selection begins with, for questions about the selected code. Needs no syntax tree. */
import type { Snippet } from '../protocol/tasks.ts';
import { leadingComment } from './extract/comments.ts';
import type { Language } from './intents.ts';

const EN_IT = '(?:this|the selected code|the selection)(?: (?:code|function|method|class|part))?';
const PT_IT = '(?:isto|isso|(?:este|esse|o) (?:código|trecho)(?: selecionado)?)';

const ABOUT_SELECTION = {
  en: new RegExp(`^(?:what (?:does|is) ${EN_IT}(?: (?:do|for))?|explain ${EN_IT}|/explain)$`, 'i'),
  pt: new RegExp(
    `^(?:o que (?:este|esse) (?:código|trecho) faz|o que (?:isto|isso) faz|o que faz ${PT_IT}|expli(?:que|ca) ${PT_IT})$`,
    'i',
  ),
};

/** The comment of the one selected piece of code, if the message asks what the selection does. */
export function commentAsked(
  message: string,
  snippets: readonly Snippet[],
): { comment: string; path: string; language: Language } | undefined {
  const [selection, ...others] = snippets.filter(({ startLine }) => startLine !== undefined);
  const language = languageOf(message);
  if (!selection || others.length > 0 || language === undefined) return undefined;
  const comment = leadingComment(selection.text, selection.path);
  return comment === undefined ? undefined : { comment, path: selection.path, language };
}

function languageOf(message: string): Language | undefined {
  const said = message.trim().replace(/[\s.?!]+$/, '');
  return (['en', 'pt'] as const).find((each) => ABOUT_SELECTION[each].test(said));
}

/** Whether the message asks what selected code does. */
export const isAboutSelection = (message: string, snippets: readonly Snippet[]): boolean =>
  languageOf(message) !== undefined && snippets.some(({ startLine }) => startLine !== undefined);
