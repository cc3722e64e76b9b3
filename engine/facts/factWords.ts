/** The words that answers to questions for facts are made of, by language. Pure. */
import type { QuestionLanguage } from './factKinds.ts';
import { ENGLISH_WORDS } from './factWordsEn.ts';
import { PORTUGUESE_WORDS } from './factWordsPt.ts';

export const WORDS: Readonly<Record<QuestionLanguage, typeof ENGLISH_WORDS>> = {
  en: ENGLISH_WORDS,
  pt: PORTUGUESE_WORDS,
};
