/**
 * The kinds of questions that are answered from facts, with their words in each language. A message must consist of
 * these words and at most one name. Does not read messages (see factQuestions.ts).
 */

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

/** Kinds that can be at the top level of a file. */
const EN_LISTS = 'classes,functions,methods,types,interfaces,enums,namespaces,constants,variables';
const PT_LISTS = 'classes,funções,métodos,tipos,interfaces,enums,namespaces,constantes,variáveis';

/** Phrases in lower case. The message must have one of those before `|`. `#` is the name, `%` the file. */
export interface Keywords {
  en: string;
  pt: string;
}

/** Questions about the whole file. The message has no name. */
export const FILE_INTENTS = {
  outline: {
    en: `${EN_LISTS},outline,definitions,symbols|define,defines,defined,declared,have,has,contain,and`,
    pt: `${PT_LISTS},definições,símbolos|define,definidas,definidos,declaradas,declarados,tem,contém`,
  },
  imports: {
    en: 'import,imports,imported,require,requires,dependencies|modules,packages,libraries,have,has',
    pt: 'importa,importações,importados,importadas,dependências|módulos,pacotes,bibliotecas,tem',
  },
  exports: {
    en: `export,exports,exported|${EN_LISTS},names,symbols,have,has,and`,
    pt: `exporta,exportações,exportados,exportadas,exportado|${PT_LISTS},nomes,símbolos,tem`,
  },
  purpose: {
    en: '% do,% for,% about,purpose of %,purpose %,summarize %,summarise %|',
    pt: '% faz,faz %,serve %,% serve,propósito %,finalidade %,resuma %|para',
  },
} satisfies Record<string, Keywords>;

/** Questions about one name. */
export const NAME_INTENTS = {
  where: {
    en: 'where,which line,what line|defined,declared,implemented,imported,located,from,come,on,in',
    pt: 'onde,em que linha,em qual linha|definido,definida,declarado,declarada,importado,importada,fica,está,vem,encontra',
  },
  signature: {
    en: 'parameters,params,arguments,args,signature,# take,# accept|have,has,take,accept,for,need',
    pt: 'parâmetros,argumentos,assinatura,# recebe,# aceita|tem,recebe,aceita',
  },
  returns: {
    en: '# return,return type,return value,returned by #|type,value,for,of,have',
    pt: '# retorna,tipo de retorno,retorno,# devolve|tipo,valor',
  },
  callers: {
    en: 'calls #,uses #,# called,# used,callers,usages,references,called #|where,who,functions,methods,lines,to,on,in',
    pt: 'quem chama #,quem usa #,chamam #,usam #,# é chamado,# é chamada,# é usado,# é usada,usos|onde,funções,métodos,linhas',
  },
  members: {
    en: 'methods,members,fields,properties,attributes|have,has,class,and',
    pt: 'métodos,membros,campos,propriedades,atributos|tem,possui,classe',
  },
  owner: {
    en: '# belong,# belongs,owner of #,class has #|class,to,has',
    pt: '# pertence,pertence #,classe tem #|classe,tem,que',
  },
  base: {
    en: 'base class,superclass,parent class,# extend,# inherit|class,from,have',
    pt: 'classe base,superclasse,classe mãe,# herda,# estende|classe',
  },
  purpose: {
    en: '# do,# for,# used for,purpose of #|',
    pt: '# faz,faz #,serve #,# serve,propósito #,finalidade #|para',
  },
} satisfies Record<string, Keywords>;

export type FactKind = keyof typeof FILE_INTENTS | keyof typeof NAME_INTENTS;

/** Words without a meaning of their own. */
export const FILLERS = {
  en: 'what,which,is,are,does,do,the,a,an,of,all,there,here,please,list,show,me,tell',
  pt: 'que,o,a,os,as,um,uma,qual,quais,e,são,de,do,da,dos,das,no,na,há,existem,aqui,liste,lista,mostre,me,todas,todos,este,esta',
};

/** Phrases for the attached file. */
export const FILE_WORDS = {
  en: 'in this file,in the file,of this file,of the file,from this file,this file,the file,this module,in %,of %,from %',
  pt: 'neste arquivo,nesse arquivo,no arquivo,deste arquivo,do arquivo,este arquivo,esse arquivo,o arquivo,em %,no %,de %,do %',
};

/** Words that may stand right before or after a name. */
export const NOUNS = {
  en: 'class,function,method,field,property,type,interface,enum,constant,variable,constructor',
  pt: 'classe,função,método,campo,propriedade,tipo,interface,enum,constante,variável,construtor',
};

/** A plain word after one of these is no name, as in "the total". */
export const DETERMINERS = 'the,a,an,this,that,its,o,a,os,as,um,uma,este,esta,do,da,no,na';
