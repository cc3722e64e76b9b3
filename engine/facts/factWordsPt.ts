/** The words that answers to questions for facts are made of, in Brazilian Portuguese. Pure. */
import type { ENGLISH_WORDS } from './factWordsEn.ts';
import type { ListKind } from './factKinds.ts';
import {
  type Defined,
  type DefinedList,
  type ExportRule,
  type Gives,
  listed,
  MAX_NAMES,
  type Nothing,
  span,
} from './factPhrases.ts';

const KINDS: Readonly<Record<Defined, readonly [none: string, one: string, many: string]>> = {
  classes: ['classe', 'a classe', 'as classes'],
  functions: ['função', 'a função', 'as funções'],
  types: ['tipo', 'o tipo', 'os tipos'],
  interfaces: ['interface', 'a interface', 'as interfaces'],
  enums: ['enum', 'o enum', 'os enums'],
  namespaces: ['namespace', 'o namespace', 'os namespaces'],
  constants: ['constante', 'a constante', 'as constantes'],
  variables: ['variável', 'a variável', 'as variáveis'],
};
/** What is none of what one file defines. */
const MANY = (kind: Defined): string => KINDS[kind][2].replace(/^[ao]s /, '');

export const PORTUGUESE_WORDS: typeof ENGLISH_WORDS = {
  line: 'linha',
  or: 'ou',
  yes: 'Sim',
  no: 'Não',
  alsoLocal: 'Variáveis ou parâmetros dentro de funções também se chamam assim.',
  defines: (kind: ListKind, n: number, places: string, counted: boolean) => {
    const [, one, many] = KINDS[kind];
    if (n > (counted ? 1 : MAX_NAMES)) return `Este arquivo define ${n} ${MANY(kind)}: ${places}.`;
    return n === 0
      ? `Este arquivo não define ${MANY(kind)} no nível do arquivo.`
      : `Este arquivo define ${n === 1 ? one : many} ${places}.`;
  },
  definesAll: (lists: readonly DefinedList[]) =>
    lists.length === 0
      ? 'Este arquivo não define nada no nível do arquivo.'
      : `Este arquivo define ${lists.map(({ kind, count, places }) => `${KINDS[kind][count === 1 ? 1 : 2]} ${places}`).join('; ')}.`,
  nothing: (path: string, why: Nothing, what: 'imports' | 'exports' | 'defines') =>
    `${path} ${why === 'empty' ? 'está vazio' : 'só tem comentários'}: não ${({ imports: 'importa', exports: 'exporta', defines: 'define' } as const)[what]} nada.`,
  about:
    'Sou um modelo pequeno que roda nesta máquina. Completo código enquanto você digita e respondo a perguntas sobre fatos de um arquivo TypeScript, JavaScript ou Python: o que ele importa, define ou exporta, os parâmetros de uma função, os membros de uma classe, onde um nome é definido, o que diz o comentário. Para mais do que isso, modelos maiores podem ser instalados.',
  otherLanguage:
    'Isso está além do modelo, que responde a perguntas sobre arquivos TypeScript, JavaScript e Python. Nos outros, ele completa código enquanto você digita. Para mais do que isso, um modelo maior pode ser instalado.',
  noComment: 'Nenhum comentário diz o que faz.',
  beyond:
    'Isso está além do modelo. Ele responde a perguntas sobre fatos de um arquivo: o que ele importa, define ou exporta, os parâmetros de uma função, os membros de uma classe, onde um nome é definido. `/summarize` resume um arquivo, e o código é completado enquanto você digita. Para mais do que isso, um modelo maior pode ser instalado.',
  guess: 'Nenhum comentário diz o que faz; o modelo supõe:',
  guesses: 'O modelo supõe:',
  noMore: 'Mais do que isso o modelo não soube dizer.',
  noAnswer: (paths: readonly string[]) =>
    `${listed(paths, 'pt')} ${paths.length === 1 ? 'está vazio: não há nele' : 'estão vazios: não há neles'} de onde tirar uma resposta.`,
  others: 'O que é importado e variáveis de funções e laços não são listados.',
  lines: (n: number) => `Este arquivo tem ${n} ${n === 1 ? 'linha' : 'linhas'}.`,
  constants: 'Funções e classes em constantes e constantes de funções não são listadas.',
  constantsByCustom: 'Em Python são, por costume, os nomes em maiúsculas.',
  async: (n: number, places: string) =>
    n === 0
      ? 'Nenhuma função ou método que este arquivo define é `async`.'
      : `${places} ${n === 1 ? 'é' : 'são'} \`async\`.`,
  partly: 'O arquivo tem erros de sintaxe, então pode haver mais.',
  unreadable: 'Não dá para dizer: o arquivo tem erros de sintaxe.',
  inside: (places: string) => `Dentro de outras definições há ${places}.`,
  defined: (n: string) => `A definição de ${n} está`,
  where: (line: number, text?: string) => `na linha ${line}${text === undefined ? '' : `: \`${text}\``}`,
  missing: (n: string, path: string) => `Não há ${n} em ${path}.`,
  unread: (n: number) => `Este modelo só sabe o que está ${n === 1 ? 'no arquivo' : 'nos arquivos'}.`,
  codeThere: 'O código está lá, não neste arquivo.',
  noWord: (n: string, path: string) => `${n} não está em ${path}.`,
  isParameter: (n: string, functions: string) => `${n} é um parâmetro de ${functions}.`,
  standsIn: (n: string, places: string) => `${n} está ${places}.`,
  like: (n: string, line: number) => `Há ${n} (linha ${line}).`,
  imported: (n: string, module: string, line: number) => `${n} é importado de ${module} (linha ${line}).`,
  importsModule: (module: string, line: number) => `${module} é importado (linha ${line}).`,
  notImported: (n: string) => `${n} não é importado.`,
  calledIn: (n: string, places: string) => `${n} é chamado ${places}.`,
  calledAfterDot: (n: string, places: string) => `Depois de um ponto, onde pode ser outro, ${n} é chamado ${places}.`,
  inLines: (lines: string) => `nas linhas ${lines}`,
  notCalled: (n: string) => `${n} não é chamado neste arquivo.`,
  alsoStands: (places: string) => `O nome também está ${places}.`,
  nowhereElse: 'O nome não está em nenhuma outra linha.',
  namedIn: (lines: string, one: boolean) => `O nome está na${one ? '' : 's'} linha${one ? '' : 's'} ${lines}.`,
  signature: (n: string, written: string, line: number) => `A declaração de ${n} está na linha ${line}: ${written}.`,
  parameters: (n: string, names: readonly string[], line: number) =>
    `${n} ${names.length ? `recebe ${listed(names, 'pt')}` : 'não recebe parâmetros'} (linha ${line}).`,
  hasType: (p: string, type: string, line: number) => `${p} tem o tipo \`${type}\` (linha ${line}).`,
  noType: (p: string, n: string, line: number) => `${p} de ${n} é declarado sem tipo (linha ${line}).`,
  hasDefault: (p: string, value: string, line: number) => `O valor padrão de ${p} é \`${value}\` (linha ${line}).`,
  defaultOf: (p: string, n: string, value: string, line: number) =>
    `O valor padrão de ${p} em ${n} é \`${value}\` (linha ${line}).`,
  noDefault: (p: string, n: string, line: number) => `${p} de ${n} não tem valor padrão (linha ${line}).`,
  returns: (n: string, type: string | undefined, line: number) =>
    type === undefined
      ? `${n} é declarado sem tipo de retorno (linha ${line}).`
      : `${n} retorna \`${type}\` (linha ${line}).`,
  returned: (n: string, { generator, async }: Gives, values: string | undefined, line: number) => {
    const none = `nada: nenhum \`${generator ? 'yield' : 'return'}\` ali tem valor (linha ${line})`;
    const [not, what] = values === undefined ? ['não ', none] : ['', values];
    if (generator) return `${n} é um gerador${async ? ' assíncrono' : ''} e ${not}produz ${what}.`;
    return async ? `${n} é \`async\`: com \`await\`, ${not}retorna ${what}.` : `${n} ${not}retorna ${what}.`;
  },
  nothingGiven: 'nada',
  moreReturned: (count: number, { generator }: Gives, lines: readonly number[]) =>
    `o que ${count === 1 ? 'outro' : `outros ${count}`} \`${generator ? 'yield' : 'return'}\` ${count === 1 ? 'dá' : 'dão'} (${span(lines, 'linha', 'linhas')})`,
  says: (n: string, docstring: boolean, line: number) =>
    `${docstring ? 'A docstring' : 'O comentário'} de ${n} (linha ${line}) diz:`,
  base: (n: string, bases: readonly string[], interfaces: readonly string[], line: number) =>
    `${n} ${bases.length ? `herda de ${listed(bases, 'pt')}` : 'não tem classe base'}${interfaces.length ? ` e implementa ${listed(interfaces, 'pt')}` : ''} (linha ${line}).`,
  owner: (n: string, isMethod: boolean, owner: string, isClass: boolean, line: number) =>
    `${n} é ${isMethod ? 'um método' : 'um membro'} de ${owner}${isClass ? '' : ', que é um objeto e não uma classe'} (linha ${line}).`,
  noOwner: (n: string, line: number) => `${n} não pertence a nenhuma classe: é uma função (linha ${line}).`,
  members: (
    n: string,
    methods: readonly string[],
    accessors: readonly string[],
    line: number,
    bases: readonly string[],
  ) =>
    `${n} ${methods.length ? `tem ${methods.length > 1 ? 'os métodos' : 'o método'} ${listed(methods, 'pt')}` : 'não tem métodos próprios'}${accessors.length ? ` e ${accessors.length > 1 ? 'os acessores' : 'o acessor'} ${listed(accessors, 'pt')}` : ''} (a partir da linha ${line})${bases.length ? ', além dos que herda' : ''}.`,
  fields: (n: string, names: readonly string[], line: number, bases: readonly string[]) =>
    `${n} ${names.length ? `tem ${names.length > 1 ? 'os campos' : 'o campo'} ${listed(names, 'pt')}` : 'não tem campos próprios'} (a partir da linha ${line})${bases.length ? ', além dos que herda' : ''}.`,
  imports: (
    path: string,
    top: readonly string[],
    deeper: readonly string[],
    reexports: readonly string[],
    lines: readonly number[],
    deeperLines: readonly number[],
    exportLines: readonly number[],
  ) =>
    [
      top.length
        ? `Este arquivo importa ${listed(top, 'pt')} (${span(lines, 'linha', 'linhas')}).`
        : `Não há importações no nível do arquivo em ${path}.`,
      ...(deeper.length
        ? [`Dentro de blocos ou funções importa ${listed(deeper, 'pt')} (${span(deeperLines, 'linha', 'linhas')}).`]
        : []),
      ...(reexports.length ? [`Exporta de ${listed(reexports, 'pt')} (${span(exportLines, 'linha', 'linhas')}).`] : []),
    ].join(' '),
  exports: (by: ExportRule, kind: ListKind | undefined, n: number, items: string) => {
    const [none, one, many] = kind ? KINDS[kind] : ['', '', ''];
    const what =
      items === ''
        ? kind
          ? `nada que defina como ${none}`
          : 'nada'
        : kind
          ? `${n === 1 ? one : many} ${items}`
          : items;
    const not = items === '' ? 'não ' : '';
    if (by === 'statements') return `Este arquivo ${not}exporta ${what}.`;
    if (by !== 'names') return `Por \`__all__\` (linha ${by}), este arquivo ${not}exporta ${what}.`;
    if (items === '')
      return `Não há \`__all__\` neste arquivo, nem ${kind ? `${none} com nome público` : 'nome público'} no nível do arquivo.`;
    return `Não há \`__all__\` neste arquivo, então ele exporta o que define no nível do arquivo com nome público: ${what}.`;
  },
  noExports: (path: string) => `Não há exportações em ${path}.`,
  notExported: (n: string, by: ExportRule, line: number) =>
    by === 'statements'
      ? `este arquivo não exporta ${n} (linha ${line}).`
      : `\`__all__\` (linha ${by}) não tem ${n} (linha ${line}).`,
  as: (n: string, name: string) => `${n} como ${name}`,
  noDefaultExport: (path: string) => `Não há exportação padrão em ${path}.`,
  asDefault: (n: string | undefined) => (n === undefined ? 'uma exportação padrão' : `${n} como padrão`),
  from: (n: string, module: string) => `${n} de ${module}`,
  whole: (n: string | undefined, kind: 'function' | 'class' | undefined, line: number) =>
    `O que exporta como um todo é ${n ?? (kind === 'class' ? 'uma classe' : 'uma função')} (linha ${line}).`,
  besides: (items: string) => `Exporta também ${items}, sem dizer o que é.`,
  passesOn: (modules: readonly string[], lines: readonly number[]) =>
    `Repassa tudo o que ${modules.length === 1 ? 'exporta' : 'exportam'} ${listed(modules, 'pt')} (${span(lines, 'linha', 'linhas')}).`,
};
