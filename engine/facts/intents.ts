/**
 * The kinds of questions that a syntax tree answers, with the words of each language. A message must consist of these
 * words and at most one name; anything else is for the model.
 */
import type { FactKind, Part } from './query.ts';

/** Phrases in lower case, without accents. `#` is the name, `%` the file. Before `|`, one of them must be there. */
export interface Intent {
  kind: FactKind;
  en: string;
  pt: string;
}

/** The words for parts of a list. */
export const PARTS: readonly { part: Part; en: string; pt: string }[] = [
  { part: 'classes', en: 'classes', pt: 'classes' },
  { part: 'functions', en: 'functions', pt: 'funcoes' },
  { part: 'methods', en: 'methods', pt: 'metodos' },
  { part: 'types', en: 'types', pt: 'tipos' },
  { part: 'interfaces', en: 'interfaces', pt: 'interfaces' },
  { part: 'enums', en: 'enums', pt: 'enums' },
  { part: 'constants', en: 'constants', pt: 'constantes' },
  { part: 'variables', en: 'variables', pt: 'variaveis' },
  { part: 'fields', en: 'fields,properties,attributes', pt: 'campos,propriedades,atributos' },
];
const EN_LISTS = 'classes,functions,methods,types,interfaces,enums,constants,variables';
const PT_LISTS = 'classes,funcoes,metodos,tipos,interfaces,enums,constantes,variaveis';

/** About the file as a whole: there is no name in the message. */
export const FILE_INTENTS: readonly Intent[] = [
  {
    kind: 'outline',
    en: `${EN_LISTS},outline,definitions,symbols|define,defines,defined,declared,have,has,contain,and`,
    pt: `${PT_LISTS},definicoes,simbolos|define,definidas,definidos,declaradas,declarados,tem,contem`,
  },
  {
    kind: 'imports',
    en: 'import,imports,imported,dependencies|modules,packages,libraries,have,has',
    pt: 'importa,importacoes,importados,importadas,dependencias|modulos,pacotes,bibliotecas,tem',
  },
  {
    kind: 'exports',
    en: `export,exports,exported|${EN_LISTS},names,symbols,have,has,and`,
    pt: `exporta,exportacoes,exportados,exportadas,exportado|${PT_LISTS},nomes,simbolos,tem`,
  },
  {
    kind: 'purpose',
    en: '% do,% for,% about,purpose of %,purpose %,summarize %,summarise %|',
    pt: '% faz,faz %,serve %,% serve,proposito %,finalidade %,resuma %|para',
  },
];

/** About one name. */
export const NAME_INTENTS: readonly Intent[] = [
  {
    kind: 'where',
    en: 'where,which line,what line|defined,declared,implemented,imported,located,from,come,on,in',
    pt: 'onde,em que linha,em qual linha|definido,definida,declarado,declarada,implementado,implementada,importado,importada,fica,esta,vem,se,encontra',
  },
  {
    kind: 'signature',
    en: 'parameters,params,arguments,args,signature,# take,# accept|have,has,take,accept,for,need',
    pt: 'parametros,argumentos,assinatura,# recebe,# aceita|tem,recebe,aceita',
  },
  {
    kind: 'returns',
    en: '# return,return type,return value,returned by #|type,value,for,of,have',
    pt: '# retorna,tipo de retorno,retorno,# devolve|tipo,valor',
  },
  {
    kind: 'callers',
    en: 'calls #,uses #,# called,# used,callers,usages,references,called #|where,who,functions,methods,function,method,lines,line,to,on,in',
    pt: 'quem chama #,quem usa #,chamam #,usam #,# e chamado,# e chamada,# e usado,# e usada,usado #,usada #,chamado #,chamada #,usos|onde,funcoes,metodos,linhas,em que linhas',
  },
  {
    kind: 'members',
    en: 'methods,members,fields,properties,attributes|have,has,class,and',
    pt: 'metodos,membros,campos,propriedades,atributos|tem,possui,classe',
  },
  {
    kind: 'owner',
    en: '# belong,# belongs,owner of #,class has #,class has a #,class has an #,class has the #|class,to,has',
    pt: '# pertence,pertence #,classe tem #|classe,tem,que',
  },
  {
    kind: 'base',
    en: 'base class,superclass,parent class,# extend,# inherit|class,from,have',
    pt: 'classe base,superclasse,classe mae,# herda,# estende|classe',
  },
  {
    kind: 'purpose',
    en: '# do,# for,# used for,purpose of #|',
    pt: '# faz,faz #,serve #,# serve,proposito #,finalidade #|para',
  },
];

/** Words that say nothing by themselves. */
export const FILLERS = {
  en: 'what,which,is,are,does,do,the,a,an,of,all,there,here,please,list,show,me,tell',
  pt: 'que,o,a,os,as,um,uma,qual,quais,e,sao,de,do,da,dos,das,no,na,ha,existem,aqui,por favor,liste,lista,mostre,me,todas,todos,todo,este,esta',
};

/** The attached file. */
export const FILE_WORDS = {
  en: 'in this file,in the file,of this file,of the file,from this file,this file,the file,this module,in %,of %,from %',
  pt: 'neste arquivo,nesse arquivo,no arquivo,deste arquivo,do arquivo,este arquivo,esse arquivo,o arquivo,este modulo,em %,no %,de %,do %',
};

/** What a name may be said to be, right before or behind it. */
export const NOUNS = {
  en: 'class,function,method,field,property,type,interface,enum,constant,variable,constructor',
  pt: 'classe,funcao,metodo,campo,propriedade,tipo,interface,enum,constante,variavel,construtor',
};

/** A plain word behind one of these is an ordinary word rather than a name: "the total". */
export const DETERMINERS = 'the,a,an,this,that,its,o,a,os,as,um,uma,este,esta,do,da,no,na';
