/**
 * Fixed replies to some messages, and rewording of others for the model: greetings, questions about Kvasir, and
 * questions about files that are empty or do not fit. Does not run the model.
 */
import { t } from '@vscode/l10n';
import { fromFiles, type KnownAnswer } from '../facts/ask.ts';
import { hasFacts } from '../facts/extract/facts.ts';
import { FACT_COMMANDS } from '../facts/questions.ts';
import type { ChatMessage, Snippet } from '../protocol/tasks.ts';
import type { Manifest } from '../text/format/manifest.ts';
import type { Layout } from '../text/prompt/layout.ts';
import type { SourceDocument } from '../text/syntax/sourceDocument.ts';
import { plainName, stemOf } from './plainName.ts';

const GREETINGS: Readonly<Record<keyof Manifest['chat']['greetings'], RegExp>> = {
  en: /^(?:hi|hello|hey|howdy|greetings|good (?:morning|afternoon|evening|day))(?:[ ,]+(?:there|kvasir|you|all|again))?$/i,
  pt: /^(?:oi|olá|ola|bom dia|boa tarde|boa noite|e aí)(?:[ ,]+(?:kvasir|tudo bem))?$/i,
};

const bareOf = (message: string) =>
  message
    .trim()
    .replace(/[\s.,!?]+$/, '')
    .replace(/\s+/g, ' ');

export function isGreeting(message: string): boolean {
  return Object.values(GREETINGS).some((greeting) => greeting.test(bareOf(message)));
}

/** Replaces a greeting by one that the model knows. Does not change other messages. */
export function knownGreeting(message: string, words: Manifest['chat']['greetings']): string {
  const bare = bareOf(message);
  for (const language of Object.keys(GREETINGS) as (keyof typeof GREETINGS)[])
    if (words[language] && GREETINGS[language].test(bare)) return words[language];
  return message;
}

const SUMMARIZE_PT = '(?:(?:me )?(?:resuma|resume|explique|explica|descreva) )';
const FILE_PT = '(?:(?:o|este|esse) (?:arquivo|código|módulo)|isso|isto|tudo)';
/** Questions for the summary of the file that the model knows as they are. */
const FILE_EN = '(?:this|it|everything|(?:this|the) (?:file|code|module))';
const SUMMARY_EN = new RegExp(
  `^(?:(?:please )?(?:summari[sz]e|explain|describe)(?: ${FILE_EN})?` +
    `|what is ${FILE_EN}(?: for| about)?|what does ${FILE_EN} (?:do|define|contain))$`,
  'i',
);
const SUMMARY = new RegExp(`^(?:/(?:summarize|explain)|what is (?:this|it)|${SUMMARIZE_PT}${FILE_PT})$`, 'i');

/** Replaces a question for the summary of the file by one that the model knows. Does not change other messages. */
export function knownSummary(message: string, fileQuestion: string): string {
  return SUMMARY.test(bareOf(message)) ? fileQuestion : message;
}

/** Whether a message asks for the summary of the file. */
export function asksForSummary(message: string, fileQuestion: string): boolean {
  const bare = bareOf(message);
  return bareOf(fileQuestion) === bare || SUMMARY.test(bare) || SUMMARY_EN.test(bare);
}

/** Whether a question is about the file even if a part of it is selected. */
export const namesFile = (message: string): boolean => /\b(?:file|module|arquivo|módulo)\b/iu.test(message);

const ABOUT = {
  en: /^(?:(?:what|how) can you (?:do|help(?: me)?)|\/?help|who are you|(?:which|what) model (?:are you|is this))$/i,
  pt: /^(?:o que (?:você|tu) (?:pode|consegue|sabe) fazer|quem (?:é você|és tu)|ajuda|que modelo (?:é este|é você|você é))$/i,
};
const HELP = {
  en:
    'I am a small model that runs on this machine. I complete code as you type and answer short questions about the ' +
    'open file, often wrongly. `/outline`, `/where NAME`, `/signature NAME`, `/callers NAME` and `/imports` are ' +
    'answered from the code itself, without the model.',
  pt:
    'Sou um modelo pequeno que roda nesta máquina. Completo código enquanto você digita e respondo a perguntas curtas ' +
    'sobre o arquivo aberto, muitas vezes errado. `/outline`, `/where NOME`, `/signature NOME`, `/callers NOME` e ' +
    '`/imports` são respondidos a partir do próprio código, sem o modelo.',
};

/** The chat's commands, in the order of its list. */
const COMMANDS = ['explain', 'fix', 'tests', 'doc', 'summarize', ...Object.keys(FACT_COMMANDS)];

/** The reply to a question about the assistant, or to an unknown command. Undefined for any other message. */
export function helpReply(message: string): KnownAnswer | undefined {
  const bare = bareOf(message);
  const language = (['en', 'pt'] as const).find((each) => ABOUT[each].test(bare));
  if (language) return { text: HELP[language], source: 'stock' };
  const [, command] = /^\/([a-z]+)$/i.exec(bare) ?? [];
  if (command === undefined || COMMANDS.includes(command.toLowerCase())) return undefined;
  const list = COMMANDS.map((name) => `\`/${name}\``).join(', ');
  return { text: t('There is no command {0}. The commands are {1}.', `\`/${command}\``, list), source: 'stock' };
}

/** Longer messages may contain the code that they are about. */
const MAX_QUESTION = 200;

/** Whether the user or the model wrote a message. Fixed replies and answers from the files bring no code of their own. */
const isWritten = ({ role, source }: ChatMessage): boolean => role !== 'system' && source === undefined;

/**
 * Whether the last message can only be about the files, because the user wrote no code, neither in it nor before. A
 * small model that has written code cannot answer about that either.
 */
export function leansOnFiles(messages: readonly ChatMessage[]): boolean {
  const last = messages.at(-1)?.content.trim() ?? '';
  return (
    last.length <= MAX_QUESTION &&
    !last.includes('\n') &&
    !isGreeting(last) &&
    !messages.slice(0, -1).some((each) => each.role === 'user' && isWritten(each) && each.content.includes('\n'))
  );
}

/** The reply if no part of the files at `paths` fits in the prompt. Undefined if `paths` is empty. */
export function unreadReply(
  { contextTokens, text: { manifest } }: Layout,
  paths: readonly string[],
): KnownAnswer | undefined {
  if (paths.length === 0) return undefined;
  const text =
    paths.length === 1
      ? t(
          '{0} was not read: no part of it fits in the {1} tokens that {2} reads.',
          paths[0] as string,
          contextTokens,
          manifest.name,
        )
      : t(
          '{0} were not read: no part of them fits in the {1} tokens that {2} reads.',
          paths.join(', '),
          contextTokens,
          manifest.name,
        );
  return { text, note: t('not written by the model'), source: 'files' };
}

/**
 * The reply of a model that answers about files only, to a short question that neither they nor the model can answer.
 * Undefined for small talk, and for a message of several lines, which may contain the code that it is about.
 * @param docs the model sums up files of the languages that it was trained on
 * @param isSummary whether the question asks what the files, or the selected code, are for. Of code, it only guesses
 */
export function refusedReply(
  layout: Layout,
  messages: readonly ChatMessage[],
  { docs, snippets = [] }: { docs: readonly SourceDocument[]; snippets?: readonly Snippet[] },
  isSummary: boolean,
): KnownAnswer | undefined {
  const last = bareOf(messages.at(-1)?.content ?? '');
  const { fileQuestion } = layout.text.manifest.summary;
  const isOfFile = isSummary || asksForSummary(last, fileQuestion);
  const isOfSelection = snippets.some(({ startLine }) => startLine !== undefined) && !namesFile(last);
  if ((isOfFile && !isOfSelection && docs.every(hasFacts)) || !leansOnFiles(messages) || THANKS.test(last))
    return undefined;
  return tooSmall(layout);
}

/** Part of a question: a name, in backticks or before empty brackets if it is marked as code. */
const NAME = /^(`?)([\p{L}_$][\p{L}\p{N}_$]*)(\(\))?\1[?.!,;:]*$/u;
/** A wish for code that may have a new name. */
const WISH = new RegExp(
  '(?<!\\p{L})(?:' +
    'write|create|generate|implement|add|make|build|draft|propose|suggest|insert|rename|convert|' +
    'escreva|escreve|crie|cria|gere|gera|implemente|adicione|faça|sugira|insira|renomeie|converta)(?!\\p{L})',
  'iu',
);
/** Ways to write names, and products, whose own name looks like code. */
const NO_NAME = /^(?:(?:camel|snake|pascal|kebab)_?case|(?:java|type)script|git(?:hub|lab)|nodejs)$/i;
/** Neither a word nor a product, as `JavaScript` and `macOS` are. */
const SURELY_CODE = /^(?:[\p{Ll}_$][\p{L}\p{N}$]*\p{Ll}\p{Lu}\p{Ll}|[\p{L}$]+_)[\p{L}\p{N}_$]*$/u;
/**
 * The reply to a short question about a name that stands nowhere: neither in the files, nor in what was said. Undefined
 * if it names nothing that is surely code, or if one of its names stands anywhere.
 */
export function absentReply(
  messages: readonly ChatMessage[],
  docs: readonly SourceDocument[],
  snippets: readonly Snippet[] = [],
): KnownAnswer | undefined {
  const last = messages.at(-1)?.content ?? '';
  const files = [...docs.map(({ lf: text, path }) => ({ text, path })), ...snippets];
  // Of the file of a selection only a part may be known.
  const isPart = snippets.some(
    ({ startLine, path }) => startLine !== undefined && !docs.some((doc) => doc.path === path),
  );
  if (files.length === 0 || isPart || !leansOnFiles(messages) || WISH.test(last)) return undefined;
  const names = last.split(/\s+/).flatMap((word) => {
    const [, mark, name = '', call] = NAME.exec(word) ?? [];
    return (mark || call || SURELY_CODE.test(name)) && !NO_NAME.test(name) ? [name] : [];
  });
  const paths = [...new Set(files.map(({ path }) => path))];
  const plain = names.length === 0 ? plainName(last, paths) : undefined;
  if (plain !== undefined) names.push(plain);
  // A question that was answered without the model says nothing of what there is. It may be asked again.
  const said = messages.slice(0, -1).filter((each, i) => isWritten(each) && isWritten(messages[i + 1] as ChatMessage));
  const known = [...files.flatMap(({ text, path }) => [text, path]), ...said.map((each) => each.content)];
  const isKnown = (name: string) => known.some((text) => text.toLowerCase().includes(name.toLowerCase()));
  // "Who calls payments?" may mean `payment`.
  const isInflected = plain !== undefined && isKnown(stemOf(plain));
  if (names[0] === undefined || isInflected || names.some(isKnown)) return undefined;
  const text = t('`{0}` does not appear in {1}.', names[0], paths.map((path) => `\`${path}\``).join(', '));
  return fromFiles(
    text,
    paths.map((path) => ({ path })),
  );
}

export const tooSmall = ({ text }: Layout): KnownAnswer => ({
  text: t('{0} is too small for this: choose a larger model.', text.manifest.name),
  source: 'refused',
});

/** Signs that stand in code and not in a question: a block, an assignment, braces, a call with arguments. */
const CODE = /```|[=;{}]|\w\([^()]*\w[^()]*\)/;
const CODE_SPAN = /`([^`\n]+)`/g;
const hasCode = (text: string): boolean =>
  CODE.test(text) || [...text.matchAll(CODE_SPAN)].some(([, span = '']) => /[\s([]/.test(span));

const THANKS = /^(?:thanks|thank you|thx|ok(?:ay)?|great|cool|bye|obrigad[oa]|valeu|tchau)\b.{0,20}$/i;

/**
 * The reply of a model that answers about files only, if none is attached. Without it such a model invents a file.
 * Undefined for small talk, and if the user has written code that the question may be about.
 */
export function unattachedReply(
  { text: { manifest } }: Layout,
  messages: readonly ChatMessage[],
  numAttached: number,
): KnownAnswer | undefined {
  const last = bareOf(messages.at(-1)?.content ?? '');
  const written = messages.filter((each) => each.role === 'user' && isWritten(each));
  if (numAttached > 0 || written.some(({ content }) => hasCode(content)) || isGreeting(last) || THANKS.test(last))
    return undefined;
  return {
    text: t('No file is attached, and {0} answers only about files. Attach one, and ask again.', manifest.name),
    source: 'unattached',
  };
}

/** A message is about the files if it has a word of `about` or the name of a file, and no word of `wanted`. */
const FILE_KEYWORDS: Readonly<Record<'en' | 'pt', { about: string; wanted: string }>> = {
  en: {
    about:
      'this it here file files module code script functions function classes class methods types variables ' +
      'imports exports bugs errors explain describe summarize summarise review check',
    wanted:
      'write create generate implement add make build draft give propose suggest complete continue fill start begin ' +
      'put insert translate convert example how',
  },
  pt: {
    about:
      'isso isto aqui arquivo arquivos módulo código script funções função classes classe métodos tipos variáveis ' +
      'importa exporta erros ele explique explica descreva resuma resume revise',
    wanted:
      'escreva escreve escrever crie cria criar gere gera gerar implemente adicione faça dê sugira complete continue ' +
      'preencha comece traduza converta exemplo como',
  },
};

/** The reply to a question about files that are all empty. Undefined if the question may be about something else. */
export function emptyReply(
  messages: readonly ChatMessage[],
  docs: readonly SourceDocument[],
  snippets: readonly Snippet[] = [],
): KnownAnswer | undefined {
  const isEmpty = [...docs.map(({ lf }) => lf), ...snippets.map(({ text }) => text)].every(
    (text) => text.trim() === '',
  );
  if (docs.length === 0 || !isEmpty || !leansOnFiles(messages)) return undefined;
  const message = messages.at(-1)?.content.toLowerCase() ?? '';
  const words = [...message.matchAll(/[\p{L}\p{N}_/-]+(?:\.[\p{L}\p{N}]+)*/gu)].map(([word]) => word);
  const has = (list: string): boolean => list.split(' ').some((word) => words.includes(word));
  const isNamed = docs.some(({ path }) => words.includes(path.slice(path.lastIndexOf('/') + 1).toLowerCase()));
  const language =
    (['en', 'pt'] as const).find((each) => has(FILE_KEYWORDS[each].about)) ?? (isNamed ? 'en' : undefined);
  if (language === undefined || has(FILE_KEYWORDS[language].wanted)) return undefined;
  const paths = docs.map(({ path }) => `\`${path}\``).join(', ');
  const isOne = docs.length === 1;
  const text =
    language === 'en'
      ? `${paths} ${isOne ? 'is empty: there is nothing in it' : 'are empty: there is nothing in them'} to answer from.`
      : `${paths} ${isOne ? 'está vazio: não há nele' : 'estão vazios: não há neles'} de onde tirar uma resposta.`;
  return { text, note: t('not written by the model'), source: 'files' };
}
