/** Finds the word that a question is about though nothing marks it as a name. Does not look where the name stands. */
import { readQuestion } from '../facts/questions.ts';

/** Words that stand where a name does, as in "Who calls the function?" and "Where is that defined?". */
const NO_SUBJECT = new RegExp(
  '^(?:(?:any|every|some|no)(?:thing|one|body)?|all|both|each|they|these|this|those|that|them|it|its|one|ones|code|' +
    'classe?s?|const(?:ant|ante)s?|errors?|erros?|exceptions?|fields?|campos?|files?|arquivos?|func(?:tion|ao|oes)s?|' +
    'função|funções|imports?|interfaces?|keys?|chaves?|lines?|linhas?|main|members?|membros?|methods?|métodos?|' +
    'modules?|módulos?|names?|nomes?|objects?|objetos?|param(?:eter)?s?|parâmetros?|program|programa|propert(?:y|ies)|' +
    'propriedades?|results?|resultados?|script|tests?|testes?|types?|tipos?|values?|valor(?:es)?|variables?|' +
    'variáve(?:l|is)|tudo|nada|algo|ele|ela|eles|elas|isso|isto|est[ea]s?|ess[ea]s?|quem|' +
    // Which one: "the last function", "a função anterior".
    'above|another|base|below|child|current|entire|first|following|last|my|new|next|old|other|our|parent|previous|' +
    'same|second|selected|third|whole|whom|your|abaixo|acima|anterior|atual|mesm[oa]|minhas?|meus?|nov[oa]|outr[oa]s?|' +
    'pai|primeir[oa]|principal|próxim[oa]|segund[oa]|seguinte|selecionad[oa]|terceir[oa]|últim[oa]|' +
    // What code has under other names, or elsewhere.
    'array|callback|construc?tor(?:e?s)?|database|dict(?:ionary)?|librar(?:y|ies)|list|loop|python|recursion|state|string|user|' +
    'banco|biblioteca|dicionário|estado|lista|recursão|usuário)$',
  'iu',
);
/** Questions in which a word is surely a name. "Where is the bug?" asks for a place, too. */
const OF_A_NAME: ReadonlySet<string> = new Set(['callers', 'returns', 'signature', 'members', 'base', 'changes']);
const IS_DEFINED = /(?<!\p{L})(?:defined|declared|imported|(?:defin|declar)id[oa]|importad[oa])(?!\p{L})/iu;

/** The word that a question is about though nothing marks it as a name, as in "Who calls pay?". */
export function plainName(message: string, paths: readonly string[]): string | undefined {
  const words = new Set(message.match(/[\p{L}_$][\p{L}\p{N}_$]*/gu));
  const { intent = '', name = '' } = readQuestion(message, { paths, hasSelection: false }, words)?.query ?? {};
  const isOfName = OF_A_NAME.has(intent) || (intent === 'where' && IS_DEFINED.test(message));
  return isOfName && name !== '' && !NO_SUBJECT.test(name) ? name : undefined;
}

/** The word without an ending of English or Portuguese. */
export const stemOf = (word: string): string => word.replace(/(?<=\p{L}{3})(?:e?s|ed|ing)$/u, '');
