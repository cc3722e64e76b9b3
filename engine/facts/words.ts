/**
 * The words of questions and answers in English and Portuguese, and how lists are written in answers.
 * Does not read messages or decide what is answered.
 */
import { CHANGE_KEYWORDS, CHANGE_WORDS } from './changeWords.ts';

export type Language = 'en' | 'pt';

/** Kinds of definitions, with their names in answers and questions. The first name is used in answers. */
export const PARTS = {
  classes: { en: 'classes', pt: 'classes' },
  functions: { en: 'functions', pt: 'funções' },
  methods: { en: 'methods', pt: 'métodos' },
  types: { en: 'types', pt: 'tipos' },
  interfaces: { en: 'interfaces', pt: 'interfaces' },
  enums: { en: 'enums', pt: 'enums' },
  namespaces: { en: 'namespaces', pt: 'namespaces' },
  constants: { en: 'constants', pt: 'constantes' },
  variables: { en: 'variables', pt: 'variáveis' },
  fields: { en: 'fields,properties,attributes', pt: 'campos,propriedades,atributos' },
} as const;
export type Part = keyof typeof PARTS;

/** Writes a name in backticks, or in two if it contains one. */
export const quoted = (name: string): string => (name.includes('`') ? `\`\` ${name} \`\`` : `\`${name}\``);

const joined = (items: readonly string[], last: string): string =>
  items.length < 2 ? items.join('') : `${items.slice(0, -1).join(', ')} ${last} ${items.at(-1)}`;

/** Kinds that can be at the top level of a file. */
const EN_LISTS = 'classes,functions,methods,types,interfaces,enums,namespaces,constants,variables';
const PT_LISTS = 'classes,funções,métodos,tipos,interfaces,enums,namespaces,constantes,variáveis';

/**
 * A question must consist of its keywords and at most one name. Phrases are in lower case; `#` is the name, `%` the
 * file. A question of an intent has at least one of the phrases before `|`. Names and lines are passed to answers ready
 * for display.
 */
const EN = {
  ...CHANGE_WORDS.en,
  language: 'en' as Language,
  keywords: {
    /** Questions about the whole file, without a name. */
    ofFile: {
      outline:
        `${EN_LISTS},outline,definitions,symbols,what does % define,what does % contain|define,defines,` +
        'defined,declared,have,has,contain,and',
      imports: 'import,imports,imported,require,requires,dependencies|modules,packages,libraries,have,has',
      exports: `export,exports,exported|${EN_LISTS},names,symbols,have,has,and`,
      purpose: '% do,% for,% about,purpose of %,purpose %,summarize %,summarise %,explain %,describe %|',
      ...CHANGE_KEYWORDS.en.ofFile,
    },
    /** Questions about one name. */
    ofName: {
      where:
        'where,which line,what line,is there,exist,value of #,a function called #,a class called #,a method called #|' +
        'defined,declared,implemented,imported,located,from,come,on,in,function called #,class called #,' +
        'method called #,have,has',
      signature: 'parameters,params,arguments,args,signature,# take,# accept|have,has,take,accept,for,need',
      returns: '# return,return type,return value,returned by #|type,value,for,of,have',
      callers:
        'calls #,uses #,# called,# used,callers,usages,references,called #|where,who,functions,methods,lines,to,on,in',
      members: 'methods,members,fields,properties,attributes|have,has,class,and',
      owner: '# belong,# belongs,owner of #,class has #|class,to,has',
      base: 'base class,superclass,parent class,# extend,# inherit|class,from,have',
      purpose:
        '# do,# does,# for,# is for,# used for,# is used for,purpose of #,explain #,describe #,' +
        'what is #,what # is,# mean,# means,meaning of #|explain,describe,can you,could you,for,used for',
      ...CHANGE_KEYWORDS.en.ofName,
    },
    /** Words without a meaning of their own. */
    fillers: 'what,which,how many,is,are,does,do,the,a,an,of,all,there,here,please,list,show,me,tell',
    /** The attached file. */
    file:
      'in this file,in the file,of this file,of the file,from this file,this file,the file,this module,' +
      'in %,of %,from %',
    /** Words that may stand right before or after a name. */
    nouns:
      'class,function,method,field,property,type,interface,enum,constant,variable,constructor,table,view,key,' +
      'section,heading,chapter',
  },
  titles: { accessors: 'Accessors', imports: 'Imports', exports: 'Exports' },
  of: (label: string, subject: string, list: string) => `${label} of ${subject}: ${list || 'none'}.`,
  atTopLevel: 'none at the top level',
  inside: (list: string) => `Inside functions or blocks: ${list}.`,
  reexports: (list: string) => `It exports from ${list}.`,
  and: (items: readonly string[]) => joined(items, 'and'),
  or: (items: readonly string[]) => joined(items, 'or'),
  more: (count: number) => `${count} more`,
  line: (line: number) => `(line ${line})`,
  inLine: (line: number, code?: string) => `in line ${line}${code === undefined ? '' : `: ${code}`}`,
  inLines: (lines: string) => `in lines ${lines}`,
  as: (name: string, other: string) => `${name} as ${other}`,
  from: (name: string, module: string) => `${name} from ${module}`,
  outline: (path: string) => `Outline of ${path}:`,
  nothing: (path: string) => `${path} defines nothing at its top level.`,
  partly: 'The file has syntax errors, so there may be more.',
  defined: (name: string, places: string) => `${name} is defined${places}`,
  imported: (name: string, module: string) => `${name} is imported from ${module}.`,
  appears: (name: string, places: string) => `${name} appears${places}`,
  alsoAppears: (places: string) => `Its name also appears${places}`,
  missing: (name: string, paths: string) => `${name} does not appear in ${paths}.`,
  called: (name: string, places: string) => `${name} is called${places}`,
  notCalled: (name: string, path: string) => `${name} is not called in ${path}.`,
  takes: (name: string, parameters: string) => `${name} takes ${parameters || 'no parameters'}`,
  declared: (name: string) => `${name} is declared`,
  returns: (name: string, what: string) => `${name} returns ${what}.`,
  yields: (name: string, what: string) => `${name} yields ${what}.`,
  returnsNothing: (name: string, line: string) => `${name} returns nothing ${line}.`,
  nothingGiven: 'nothing',
  /** `name`: a name and its line. */
  says: (name: string) => `The comment of ${name} says:`,
  commentSays: 'The comment says:',
  base: (name: string, bases: string) => (bases ? `${name} extends ${bases}` : `${name} has no base class`),
  implements: (list: string) => ` and implements ${list}`,
  owner: (name: string, owner: string, isMethod: boolean) =>
    `${name} is a ${isMethod ? 'method' : 'member'} of ${owner}`,
  inherits: (name: string) => `${name} may inherit more.`,
  byAll: (line: string) => `\`__all__\` says so ${line}.`,
  byName: 'There is no `__all__`: these are the public names at the top level.',
  unclear: (path: string) => `${path} decides its exports at run time, or has syntax errors.`,
  passesOn: (modules: string) => `All exports of ${modules} are passed on.`,
  noSyntax: (path: string) => `${path}: this command works for TypeScript, JavaScript and Python files only.`,
  noTree: (path: string) => `${path} cannot be parsed.`,
  noFile: 'No file is attached. Open a file, or attach one.',
  noName: (command: string) => `Which name? Write it after the command: \`${command} NAME\`.`,
  tooMany: (count: number) => `Attach at most ${count} files for this.`,
};

const PT: typeof EN = {
  ...CHANGE_WORDS.pt,
  language: 'pt',
  keywords: {
    ofFile: {
      outline:
        `${PT_LISTS},definições,símbolos,o que % define,o que % contém|define,definidas,definidos,` +
        'declaradas,declarados,tem,contém',
      imports: 'importa,importações,importados,importadas,dependências|módulos,pacotes,bibliotecas,tem',
      exports: `exporta,exportações,exportados,exportadas,exportado|${PT_LISTS},nomes,símbolos,tem`,
      purpose:
        '% faz,faz %,serve %,% serve,propósito %,finalidade %,resuma %,resume %,explique %,explica %,descreva %|para',
      ...CHANGE_KEYWORDS.pt.ofFile,
    },
    ofName: {
      where:
        'onde,em que linha,em qual linha,existe,valor de #,função chamada #,classe chamada #,método chamado #|' +
        'definido,definida,declarado,declarada,importado,importada,fica,está,vem,encontra',
      signature: 'parâmetros,argumentos,assinatura,# recebe,# aceita|tem,recebe,aceita',
      returns: '# retorna,tipo de retorno,retorno,# devolve|tipo,valor',
      callers:
        'quem chama #,quem usa #,chamam #,usam #,# é chamado,# é chamada,# é usado,# é usada,usos|onde,' +
        'funções,métodos,linhas',
      members: 'métodos,membros,campos,propriedades,atributos|tem,possui,classe',
      owner: '# pertence,pertence #,classe tem #|classe,tem,que',
      base: 'classe base,superclasse,classe mãe,# herda,# estende|classe',
      purpose:
        '# faz,faz #,serve #,# serve,propósito #,finalidade #,explique #,explica #,explicar #,descreva #,' +
        'o que é #,que # é,# significa,significa #|para,explique,explica,explicar,pode,você',
      ...CHANGE_KEYWORDS.pt.ofName,
    },
    fillers:
      'que,o,a,os,as,um,uma,qual,quais,quantos,quantas,e,são,de,do,da,dos,das,no,na,há,existem,aqui,liste,lista,mostre,' +
      'me,todas,todos,este,esta',
    file:
      'neste arquivo,nesse arquivo,no arquivo,deste arquivo,do arquivo,este arquivo,esse arquivo,' +
      'o arquivo,em %,no %,de %,do %',
    nouns:
      'classe,função,método,campo,propriedade,tipo,interface,enum,constante,variável,construtor,tabela,chave,' +
      'seção,título,capítulo',
  },
  titles: { accessors: 'Acessores', imports: 'Importações', exports: 'Exportações' },
  of: (label, subject, list) => `${label} de ${subject}: ${list || 'não há'}.`,
  atTopLevel: 'não há no nível do arquivo',
  inside: (list) => `Dentro de funções ou blocos: ${list}.`,
  reexports: (list) => `Exporta de ${list}.`,
  and: (items) => joined(items, 'e'),
  or: (items) => joined(items, 'ou'),
  more: (count) => `mais ${count}`,
  line: (line) => `(linha ${line})`,
  inLine: (line, code) => `na linha ${line}${code === undefined ? '' : `: ${code}`}`,
  inLines: (lines) => `nas linhas ${lines}`,
  as: (name, other) => `${name} como ${other}`,
  from: (name, module) => `${name} de ${module}`,
  outline: (path) => `Estrutura de ${path}:`,
  nothing: (path) => `${path} não define nada no nível do arquivo.`,
  partly: 'O arquivo tem erros de sintaxe, então pode haver mais.',
  defined: (name, places) => `A definição de ${name} está${places}`,
  imported: (name, module) => `${name} é importado de ${module}.`,
  appears: (name, places) => `${name} aparece${places}`,
  alsoAppears: (places) => `O nome aparece também${places}`,
  missing: (name, paths) => `${name} não aparece em ${paths}.`,
  called: (name, places) => `${name} é chamado${places}`,
  notCalled: (name, path) => `${name} não é chamado em ${path}.`,
  takes: (name, parameters) => `${name} ${parameters ? `recebe ${parameters}` : 'não recebe parâmetros'}`,
  declared: (name) => `${name} é declarado`,
  returns: (name, what) => `${name} retorna ${what}.`,
  yields: (name, what) => `${name} produz ${what}.`,
  returnsNothing: (name, line) => `${name} não retorna nada ${line}.`,
  nothingGiven: 'nada',
  says: (name) => `O comentário de ${name} diz:`,
  commentSays: 'O comentário diz:',
  base: (name, bases) => (bases ? `${name} herda de ${bases}` : `${name} não tem classe base`),
  implements: (list) => ` e implementa ${list}`,
  owner: (name, owner, isMethod) => `${name} é um ${isMethod ? 'método' : 'membro'} de ${owner}`,
  inherits: (name) => `${name} pode herdar outros.`,
  byAll: (line) => `É o que diz \`__all__\` ${line}.`,
  byName: 'Não há `__all__`: estes são os nomes públicos no nível do arquivo.',
  unclear: (path) => `${path} decide suas exportações durante a execução, ou tem erros de sintaxe.`,
  passesOn: (modules) => `Todas as exportações de ${modules} são repassadas.`,
  noSyntax: (path) => `${path}: este comando funciona só para arquivos TypeScript, JavaScript e Python.`,
  noTree: (path) => `${path} não pode ser analisado.`,
  noFile: 'Nenhum arquivo está anexado. Abra ou anexe um arquivo.',
  noName: (command) => `Que nome? Escreva-o depois do comando: \`${command} NOME\`.`,
  tooMany: (count) => `Anexe no máximo ${count} arquivos para isso.`,
};

/** A list with more names shows only the first NAMED. */
const MAX_NAMES = 60;
const NAMED = 20;

/** How names, lines and lists are written in answers. */
function writing({ language, line, and, more }: typeof EN) {
  const named = (name: string, at: number): string => `${quoted(name)} ${line(at)}`;
  const listed = (items: readonly string[]): string =>
    and(items.length <= MAX_NAMES ? items : [...items.slice(0, NAMED), more(items.length - NAMED)]);
  return {
    /** "`flush` (line 3)". */
    named,
    /** Joins all items, or the first ones and the number of the others. */
    listed,
    listedNames: (some: readonly { name: string; line: number }[]) =>
      listed(some.map((one) => named(one.name, one.line))),
    /** The title of a list of definitions. */
    title(part: Part): string {
      const [word = ''] = PARTS[part][language].split(',');
      return `${word.charAt(0).toUpperCase()}${word.slice(1)}`;
    },
  };
}

export type Words = typeof EN & ReturnType<typeof writing>;
export const WORDS: Readonly<Record<Language, Words>> = {
  en: { ...EN, ...writing(EN) },
  pt: { ...PT, ...writing(PT) },
};
export type FactKind = keyof Words['keywords']['ofFile'] | keyof Words['keywords']['ofName'];

/** A plain word after one of these is no name, as in "the total". */
export const DETERMINERS = 'the,a,an,this,that,its,o,a,os,as,um,uma,este,esta,do,da,no,na';
