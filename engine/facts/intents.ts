/** The words of questions in English and Portuguese: kinds of definitions, and intents. Does not read messages. */

export type Language = 'en' | 'pt';
type InBoth = Readonly<Record<Language, string>>;

/** The first word is the title of a list. */
export const KINDS = {
  classes: { en: 'classes', pt: 'classes' },
  functions: { en: 'functions', pt: 'funções' },
  methods: { en: 'methods', pt: 'métodos' },
  types: { en: 'types', pt: 'tipos' },
  interfaces: { en: 'interfaces', pt: 'interfaces' },
  enums: { en: 'enums', pt: 'enums' },
  namespaces: { en: 'namespaces', pt: 'namespaces' },
  constants: { en: 'constants', pt: 'constantes' },
  variables: { en: 'variables', pt: 'variáveis' },
  accessors: { en: 'accessors', pt: 'acessores' },
  fields: { en: 'fields, properties, attributes', pt: 'campos, propriedades, atributos' },
  tables: { en: 'tables', pt: 'tabelas' },
  views: { en: 'views', pt: 'visões' },
  indexes: { en: 'indexes, indices', pt: 'índices' },
  triggers: { en: 'triggers', pt: 'gatilhos' },
  keys: { en: 'keys', pt: 'chaves' },
  headings: { en: 'headings, sections, chapters', pt: 'títulos, cabeçalhos, seções, capítulos' },
} as const satisfies Record<string, InBoth>;
export type Kind = keyof typeof KINDS;

/**
 * A question has a phrase of one intent that stands before `|`. Its other words are of that intent, or fillers. `#` is
 * the name, `%` the file, `KIND` a word of `KINDS`, `WHO` and `WHERE` are of `SHARED`.
 */
export const INTENTS = {
  /** Questions about the whole file, without a name. */
  ofFile: {
    outline: {
      en: `KIND, outline, definitions, symbols, does % define, does % contain
        | define, defines, defined, declared, created, contain, contains, exist, top-level, top, level, main,
        has, have`,
      pt: `KIND, definições, símbolos, que % define, que % contém
        | define, definidas, definidos, declaradas, declarados, criadas, criados, contém, primeiro, nível, superior,
        tem`,
    },
    imports: {
      en: 'import, imports, imported, require, requires, dependencies | modules, packages, libraries, has, have',
      pt: 'importa, importações, importados, importadas, dependências | módulos, pacotes, bibliotecas, tem',
    },
    exports: {
      en: 'export, exports, exported | KIND, names, symbols, has, have',
      pt: 'exporta, exportações, exportados, exportadas, exportado | KIND, nomes, símbolos, tem',
    },
    purpose: {
      en: '% do, % for, % about, purpose of %, purpose %, summarize %, summarise %, explain %, describe % |',
      pt: '% faz, faz %, serve %, % serve, propósito %, finalidade %, resuma %, explique %, descreva % | para',
    },
    throws: {
      en: 'throw, throws, raise, raises, panic, panics, thrown, raised, throw statements | WHO, WHERE, ERROR, directly',
      pt: `lança, lançam, lançar, levanta, levantam, levantar, dispara, disparam, disparar, lançados, lançadas
        | WHO, WHERE, ERROR, ser, diretamente`,
    },
  },
  /** Questions about one name. */
  ofName: {
    where: {
      en: `WHERE, is there, exist, value of #, # belong, # belongs, class has #
        | defined, declared, implemented, imported, located, come, class, function called, class called, method called`,
      pt: `WHERE, existe, valor de #, pertence #, # pertence | definido, definida, declarado, declarada, importado,
        importada, fica, vem, encontra, classe, função chamada, classe chamada, método chamado`,
    },
    signature: {
      en: 'parameters, params, arguments, args, signature, # take, # accept | take, accept, need, has, have',
      pt: 'parâmetros, argumentos, assinatura, recebe #, # recebe, # aceita | recebe, aceita, tem',
    },
    /** About a parameter in a function: the only intent with two names. */
    parameter: {
      en: 'type of #, type is #, type does #, default value of #, default of #, # default | parameter, value, have',
      pt: 'tipo de #, tipo #, valor padrão de #, valor padrão # | parâmetro, tem',
    },
    returns: {
      en: '# return, return type, return value, returned by # | type, value',
      pt: '# retorna, retorna #, # devolve, tipo de retorno, retorno | tipo, valor',
    },
    callers: {
      en: 'call #, calls #, use #, uses #, # called, # used, callers, usages, references | WHO, WHERE',
      pt: 'chama #, chamam #, usa #, usam #, # é chamado, # é chamada, # é usado, # é usada, usos | WHO, WHERE',
    },
    members: {
      en: 'methods, members, fields, properties, attributes | class, has, have',
      pt: 'métodos, membros, campos, propriedades, atributos | possui, classe, tem',
    },
    base: {
      en: 'base class, superclass, parent class, # extend, # inherit | class, has, have',
      pt: 'classe base, superclasse, classe mãe, # herda, # estende | classe, tem',
    },
    purpose: {
      en: `# do, what # does, # for, # is for, # used for, purpose of #, explain #, describe #, what is #, # mean
        | explain, used`,
      pt: `# faz, faz #, serve #, # serve, propósito #, finalidade #, explique #, explica #, descreva #, o que é #,
        # significa, significa # | para, explica, explicar, você`,
    },
    changes: {
      en: `changed, assigned, reassigned, modified, written, updated, mutated, is # set, get set, incremented, initialized,
        where does # change, change #, changes #, modify #, modifies #, assign #, assigns #, update #,
        updates #, set #, sets #,
        write #, writes #, increment #, increments # | WHO, WHERE, value, ever, anywhere, get, gets, to`,
      pt: `alterado, alterada, modificado, modificada, mudado, mudada, atribuído, atribuída, atualizado, atualizada,
        inicializado, altera #, alteram #, muda #, mudam #, modifica #, modificam #, atribui #, atualiza #, atualizam #,
        incrementa #, # muda | WHO, WHERE, valor, vez`,
    },
    thrown: {
      en: '# thrown, # raised, throw #, throws #, raise #, raises # | WHO, WHERE, ERROR',
      pt: `lançado #, lançada #, # é lançado, # é lançada, lança #, lançam #, levanta #, levantam #, lançar #
        | WHO, WHERE, ERROR`,
    },
    throws: {
      en: '# throw, # raise, # panic, thrown by #, raised by #, thrown in #, raised in # | ERROR, directly',
      pt: '# lança, # levanta, # pode lançar, lançados em #, lançadas em # | ERROR, diretamente',
    },
  },
} as const satisfies Record<string, Record<string, InBoth>>;
export type Intent = keyof (typeof INTENTS)['ofFile'] | keyof (typeof INTENTS)['ofName'];

/** Lists that several intents have. */
export const SHARED: Readonly<Record<string, InBoth>> = {
  WHO: {
    en: 'functions, function, methods, method, code, lines',
    pt: 'quem, funções, função, métodos, método, código, linhas',
  },
  WHERE: { en: 'where, which line, what line, which lines', pt: 'onde, em que linha, em qual linha, em que linhas' },
  ERROR: { en: 'exception, exceptions, error, errors', pt: 'exceção, exceções, erro, erros' },
};

/** Words without a meaning of their own. They are never names. */
export const FILLERS = {
  en: `what, which, who, how many, is, are, does, do, can, could, may, be, the, a, an, of, in, on, to, from,
    by, for, and, all, any, there, here, please, list, show, me, tell, you`,
  pt: `que, qual, quais, quantos, quantas, o, a, os, as, um, uma, é, está, são, de, do, da, dos, das, em, no, na,
    e, há, pode, podem, existem, aqui, liste, lista, mostre, me, todas, todos, algum, alguma, alguns, algumas,
    este, esta`,
};

/** A plain word right after one of these is no name, as in "the total". */
export const DETERMINERS = 'the, a, an, this, that, its, o, a, os, as, um, uma, este, esta, do, da, no, na';

/** A plain word right after one of these is a name. Elsewhere it may be an ordinary word, as "private". */
export const BEFORE_NAMES = `
  does, called, call, calls, change, changes, modify, modifies, assign, assigns, update, updates, set, sets, increment,
  increments, signature of, parameters of, arguments of, callers of, value of, type of,
  class, function, method, field, property, variable, constant,
  o que, faz, retorna, chama, chamam, chamada, chamado, altera, alteram, muda, mudam, modifica, modificam, atualiza,
  atualizam, assinatura de, parâmetros de, valor de, tipo de, retorno de`;

/** A plain word right before one of these is a name. */
export const AFTER_NAMES =
  'defined, declared, imported, é definido, é definida, é declarado, é declarada, é importado, é importada';

/** The attached file. */
export const FILE = {
  en: 'in this file, in the file, of this file, of the file, this file, the file, this module, in %, of %, from %',
  pt: 'neste arquivo, no arquivo, deste arquivo, do arquivo, este arquivo, esse arquivo, o arquivo, em %, no %, de %',
};

/** Words that may stand right before or after a name. */
export const NOUNS = {
  en: 'class, function, method, field, property, type, interface, enum, constant, variable, table, view, key, section',
  pt: 'classe, função, método, campo, propriedade, tipo, interface, enum, constante, variável, tabela, chave, seção',
};

/** A message that begins with one of these asks for a change. */
export const ORDERS =
  'add, assign, change, declare, define, export, import, increment, modify, mutate, panic, raise, require, set, ' +
  'throw, update, use, write, altera, atribui, atualiza, dispara, exporta, importa, lança, levanta, modifica, muda, usa';
