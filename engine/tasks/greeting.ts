/** A message that only greets, in the words of its language that the model knows best: small models answer others in any language. Pure. */
import type { Manifest } from '../text/manifest.ts';

const GREETINGS: Readonly<Record<keyof Manifest['chat']['greetings'], RegExp>> = {
  en: /^(?:hi|hello|hey|howdy|greetings|good (?:morning|afternoon|evening|day))(?:[ ,]+(?:there|kvasir|you|all|again))?$/i,
  pt: /^(?:oi|olá|ola|bom dia|boa tarde|boa noite|e aí)(?:[ ,]+(?:kvasir|tudo bem))?$/i,
};

const bareOf = (message: string) => message.trim().replace(/[\s.,!?]+$/, '').replace(/\s+/g, ' ');

export function isGreeting(message: string): boolean {
  return Object.values(GREETINGS).some((greeting) => greeting.test(bareOf(message)));
}

/** The message as it is, where it says anything else or the model has no words for it. */
export function knownGreeting(message: string, words: Manifest['chat']['greetings']): string {
  const bare = bareOf(message);
  for (const language of Object.keys(GREETINGS) as (keyof typeof GREETINGS)[]) if (words[language] && GREETINGS[language].test(bare)) return words[language];
  return message;
}
