/**
 * Questions about files in which nothing stands: that is the answer, where a small model would tell of a file that it has made up. A whole
 * message has to be about the files; what asks for a new text, or for something else, is for the model. Pure.
 */
import type { ChatMessage, Snippet } from '../protocol/tasks.ts';
import type { SourceDocument } from '../text/syntax/sourceDocument.ts';
import type { QuestionLanguage } from './factKinds.ts';
import { names } from './factQuestion.ts';
import { WORDS } from './factWords.ts';
import { languageOf } from './questionLanguage.ts';

/** Longer ones say more than a question about a file does. */
const LONGEST = 200;

interface Wordings {
  /** What stands in the files, or they themselves. */
  about: RegExp;
  /** A whole message: nothing else can be meant. */
  bare: RegExp;
  /** A text is asked for that there is not yet, */
  wanted: RegExp;
  /** or one that says what is there. */
  of: RegExp;
}

const LANGUAGES: Readonly<Record<QuestionLanguage, Wordings>> = {
  en: {
    about:
      /(?<!\p{L})(?:(?:this|that|the|these|those|both|my|current|open|attached)(?: \p{L}+)? (?:files?|modules?|code|scripts?|documents?|programs?)|(?:which|any|all|how many|list)(?: of)?(?: the)? (?:files?|functions?|class(?:es)?|methods?|types?|variables?|imports?|exports?|bugs?|errors?|problems?)|here|(?:this|it) (?:do|does|mean|work|for|about|define|declare|import|export|contain|have|return))(?!\p{L})/iu,
    bare: /^(?:please )?(?:(?:explain|describe|summari[sz]e|review|check)(?: (?:this|it))?|what(?: is|'s|’s) (?:this|it))(?: please)?[\s.!?]*$/iu,
    wanted:
      /(?<!\p{L})(?:write|create|generate|implement|add|make|build|draft|give|propose|suggest|complete|continue|fill|start|begin|put|insert|translate|convert|example|how (?:do|can|could|should|would|to))(?!\p{L})/iu,
    of: /(?<!\p{L})(?:of|for|about) (?:this|the|that|these|both|all)(?: the)? (?:files?|modules?|code|scripts?|documents?)(?!\p{L})/iu,
  },
  pt: {
    about:
      /(?<!\p{L})(?:(?:[nd]?(?:este|esse|esta|essa|estes|esses|[oa]s?)|meu|ambos os)(?: \p{L}+)? (?:arquivos?|módulos?|código|scripts?|documentos?|programas?)|(?:quais|quantas|quantos|alguma?|tod[ao]s)(?: são)?(?: [ao]s)? (?:arquivos?|funç(?:ão|ões)|classes?|métodos?|tipos?|variáve(?:l|is)|erros?|problemas?)|aqui|(?:isso|isto|ele) (?:faz|define|importa|exporta|contém|tem|serve|significa))(?!\p{L})/iu,
    bare: /^(?:por favor,? )?(?:(?:explique|explica|descreva|resuma|resume|revise)(?: (?:isso|isto|ele))?|o que é (?:isso|isto))(?:,? por favor)?[\s.!?]*$/iu,
    wanted:
      /(?<!\p{L})(?:escrev\p{L}*|cri(?:e|a|ar)|ger(?:e|a|ar)|implement\p{L}*|adicion\p{L}*|faça|dê|sugir\p{L}*|sugere|complet\p{L}*|continu\p{L}*|preench\p{L}*|come[cç]\p{L}*|traduz\p{L}*|convert\p{L}*|exemplo|como (?:eu|faço|fazer|posso|se|criar|escrever))(?!\p{L})/iu,
    of: /(?<!\p{L})(?:d|para |sobre )(?:este|esse|estes|esses|o|os|ambos os|todos os) (?:arquivos?|módulos?|código|scripts?|documentos?)(?!\p{L})/iu,
  },
};

/** @param docs all files that the question may be about. Undefined where one has a text, or the question may be about something else. */
export function emptyAnswer(
  messages: readonly ChatMessage[],
  docs: readonly SourceDocument[],
  snippets: readonly Snippet[] = [],
): string | undefined {
  const last = messages.at(-1);
  if (
    last?.role !== 'user' ||
    last.content.length > LONGEST ||
    docs.length === 0 ||
    [...docs.map(({ lf }) => lf), ...snippets.map(({ text }) => text)].some((text) => text.trim() !== '')
  )
    return undefined;
  // Code that was said before may be meant.
  if (messages.slice(0, -1).some(({ content }) => content.includes('\n'))) return undefined;
  const language = languageAbout(last.content, docs);
  return language && WORDS[language].noAnswer(docs.map(({ path }) => path));
}

/** The language of a message that asks what stands in the files. */
function languageAbout(message: string, docs: readonly SourceDocument[]): QuestionLanguage | undefined {
  const said = message.trim().replace(/\s+/g, ' ');
  const own = (['en', 'pt'] as const).find(
    (each) => LANGUAGES[each].about.test(said) || LANGUAGES[each].bare.test(said),
  );
  const language = own ?? (docs.some(({ path }) => names(said, path)) ? languageOf(said) : undefined);
  return language && (!LANGUAGES[language].wanted.test(said) || LANGUAGES[language].of.test(said))
    ? language
    : undefined;
}
