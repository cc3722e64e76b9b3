/** Which language a message that is no known question is in, by its words. Pure. */
import type { QuestionLanguage } from './factKinds.ts';

const PORTUGUESE = /(?<!\p{L})(?:que|qual|quais|quem|quando|como|por|para|você|meu|minha|um|uma|não|isso|isto|este|esse|esta|essa|há|tem|está|são|é|faz|faça|resuma|explique|explica|descreva|escreva|crie|corrija|conserte|traduza|reescreva|conte|onde|arquivo|código)(?!\p{L})/iu;

export function languageOf(message: string): QuestionLanguage {
  return PORTUGUESE.test(message) ? 'pt' : 'en';
}
