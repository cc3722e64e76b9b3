/** Which language a message that is no known question is in, by its words. Pure. */
import type { QuestionLanguage } from './factKinds.ts';

/** Code and paths are in no language. */
const NAMES = /`[^`]*`|[\w./-]*[./]\w[\w./-]*/g;
const PORTUGUESE =
  /[ãõçáéíóúâêô]|(?<!\p{L})(?:que|qual|quais|quem|quando|como|por|para|o|os|da|das|dos|de|em|ao|um|uma|meu|minha|isso|isto|este|esse|esta|essa|faz|onde|algum|alguma|existe|quero|preciso|arquivo|conserta|conserte|corrige|corrija|refatore|refatora|liste|lista|adicione|adiciona|otimize|otimiza|simplifique|simplifica|documente|documenta|mostre|mostra|gere|gera|crie|cria|escreva|escreve|explique|explica|resuma|traduza|traduz|reescreva|reescreve|descreva|descreve|remova|renomeie|conte|arrume|arruma|ajuda|ajude)(?!\p{L})/giu;
const ENGLISH =
  /(?<!\p{L})(?:an|the|is|are|it|this|that|what|which|who|how|why|where|when|does|can|you|in|of|to|for|and|there|any|my|fix|write|show|make|explain)(?!\p{L})/giu;

export function languageOf(message: string): QuestionLanguage {
  const said = message.replace(NAMES, ' ');
  const count = (words: RegExp): number => said.match(words)?.length ?? 0;
  return count(PORTUGUESE) > count(ENGLISH) ? 'pt' : 'en';
}
