/**
 * Messages that say no more than others in words that a model knows better: that only greet, or that ask in Portuguese for what a file is
 * about. Small models answer to other words in any language, or to something else. Pure.
 */
import type { Manifest } from '../text/format/manifest.ts';

const GREETINGS: Readonly<Record<keyof Manifest['chat']['greetings'], RegExp>> = {
  en: /^(?:hi|hello|hey|howdy|greetings|good (?:morning|afternoon|evening|day))(?:[ ,]+(?:there|kvasir|you|all|again))?$/i,
  pt: /^(?:oi|olá|ola|bom dia|boa tarde|boa noite|e aí)(?:[ ,]+(?:kvasir|tudo bem))?$/i,
};

const bareOf = (message: string) =>
  message
    .trim()
    .replace(/[\s.,!?]+$/, '')
    .replace(/\s+/g, ' ');

const TALK =
  /^(?:(?:ok(?:ay)?|great|nice|good|perfect|cool|thanks?(?: (?:you|a lot|so much))?|thank you|thx|bye|goodbye|see you|obrigad[oa]|muito obrigad[oa]|valeu|boa|perfeito|legal|tchau|até logo|adeus)[ ,!.]*)+$/i;
const ABOUT =
  /^(?:(?:what|how) can you (?:do|help(?: me)?)|help|what are you (?:good at)?|who are you|(?:which|what) model (?:are you|is this)|o que (?:você|tu) (?:pode|consegue|sabe) fazer|o que sabes fazer|quem (?:é você|és tu)|ajuda|que modelo (?:é este|é você|você é))$/i;

/** What asks who is answering, and what it can do. */
export const isAbout = (message: string): boolean => ABOUT.test(bareOf(message));

/** Greetings, thanks and goodbyes: nothing that is about code. */
export const isTalk = (message: string): boolean => isGreeting(message) || TALK.test(message.trim());

export function isGreeting(message: string): boolean {
  return Object.values(GREETINGS).some((greeting) => greeting.test(bareOf(message)));
}

/** The message as it is, where it says anything else or the model has no words for it. */
export function knownGreeting(message: string, words: Manifest['chat']['greetings']): string {
  const bare = bareOf(message);
  for (const language of Object.keys(GREETINGS) as (keyof typeof GREETINGS)[])
    if (words[language] && GREETINGS[language].test(bare)) return words[language];
  return message;
}

const SUMMARY =
  /^(?:\/(?:summarize|explain)|(?:por favor,? )?(?:(?:me )?(?:resuma|resume|resumir|explique|explica|explicar|descreva|descreve)(?: (?:para|pra) mim)? (?:(?:o|este|esse)(?: meu)? (?:arquivo|código|codigo|módulo|modulo)|isso|isto|tudo)|(?:faça|faz|quero|escreva) um resumo(?: (?:do|deste|desse) (?:arquivo|código|codigo|módulo|modulo))?|o que faz (?:o|este|esse) (?:arquivo|código|codigo|módulo|modulo))(?: por favor)?)$/i;

/** The question that sums a file up, where that is what is asked for. */
export function knownSummary(message: string, fileQuestion: string): string {
  return SUMMARY.test(bareOf(message)) ? fileQuestion : message;
}
