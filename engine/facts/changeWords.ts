/**
 * The words of questions and answers about changes, exceptions and entries of data files, in English and Portuguese.
 * Does not read messages or decide what is answered.
 */

/** All pairs of a subject and a verb, with `behind` after them. "Change total" is no question: it has no subject. */
const pairs = (subjects: string, verbs: string, behind = ''): string =>
  subjects
    .split(',')
    .flatMap((subject) => verbs.split(',').map((verb) => `${subject} ${verb}${behind}`))
    .join(',');

const EN_WHO = 'functions,function,methods,method,what,who,which,code,lines,that';
const EN_CHANGE =
  'change,changes,modify,modifies,assign,assigns,assign to,assigns to,write,writes,write to,writes to,' +
  'update,updates,mutate,mutates,set,sets,increment,increments,can change,can modify,may change';
const EN_THROW =
  'panic,panics,can panic,throw,throws,raise,raises,can throw,can raise,may throw,may raise,could throw,could raise';
const PT_WHO = 'funções,função,métodos,método,quem,que,linhas,código';
const PT_CHANGE =
  'altera,alteram,muda,mudam,modifica,modificam,atribui,atribuem,escreve,escrevem,atualiza,atualizam,' +
  'incrementa,incrementam,pode alterar,podem alterar,pode mudar,podem mudar';
const PT_THROW =
  'lança,lançam,levanta,levantam,dispara,disparam,pode lançar,podem lançar,pode levantar,' +
  'podem levantar,pode disparar,podem disparar';

/** As in words.ts: a question of an intent has one of the phrases before `|`. */
export const CHANGE_KEYWORDS = {
  en: {
    ofFile: {
      throwers:
        `${pairs(EN_WHO, EN_THROW)},exceptions thrown,errors thrown,exceptions raised,errors raised,` +
        `are thrown,are raised,be thrown,be raised,error thrown,exception thrown,error raised,exception raised,` +
        `throw statements,raise statements,% throw,% raise|${EN_WHO},an,any,exception,exceptions,error,errors,where,` +
        'in,can,directly',
      assigned:
        'names are assigned,variables are assigned,fields are assigned,names are changed,' +
        'variables are changed,fields are changed,variables are modified,names assigned,is assigned|where,' +
        'in,and',
      entries:
        'tables,views,indexes,indices,triggers,keys,headings,sections,chapters|top-level,top,level,define,' +
        'defines,defined,declared,created,have,has,contain,contains,exist,main,in,and',
    },
    ofName: {
      changes:
        'changed,assigned,reassigned,modified,written,updated,mutated,set,incremented,decremented,' +
        'overwritten,initialized,initialised,where does # change,assignments to #|ever,anywhere,where,' +
        'which line,what line,which lines,when,to,on,in,get,gets,value,does,be,can',
      changers:
        `${pairs(EN_WHO, EN_CHANGE, ' #')},# changed by,# modified by,# assigned by,# set by,# updated by|` +
        `${EN_WHO},can`,
      thrown:
        `thrown,raised,${pairs(EN_WHO, EN_THROW, ' #')},${pairs('it,%,we', 'throw,raise', ' #')}|` +
        `${EN_WHO},where,which line,what line,on which line,on what line,in which line,in what line,lines,` +
        'exception,error,it,we,can,be',
      throwsOf:
        '# throw,# raise,# panic,thrown by #,raised by #,thrown in #,raised in #|exceptions,exception,errors,error,' +
        'can,could,be,an,any,directly',
    },
  },
  pt: {
    ofFile: {
      throwers:
        `${pairs(PT_WHO, PT_THROW)},exceções são lançadas,erros são lançados,são lançadas,são lançados,` +
        `ser lançadas,ser lançados,erro é lançado,exceção é lançada,% lança|${PT_WHO},podem,` +
        `exceção,exceções,erro,erros,uma,um,onde,lançadas,lançados,diretamente`,
      assigned:
        'nomes são atribuídos,variáveis são atribuídas,variáveis são alteradas,variáveis são modificadas,' +
        'variáveis mudam,campos são alterados,campos são atribuídos|onde',
      entries:
        'tabelas,visões,índices,gatilhos,chaves,títulos,cabeçalhos,seções,capítulos|definidas,definidos,' +
        'define,declaradas,declarados,criadas,criados,tem,contém,primeiro nível,nível superior,principais,' +
        'nível,de',
    },
    ofName: {
      changes:
        'alterado,alterada,modificado,modificada,mudado,mudada,atribuído,atribuída,reatribuído,' +
        'reatribuída,escrito,escrita,atualizado,atualizada,incrementado,incrementada,inicializado,' +
        'inicializada,# muda,muda #,altera #|alguma vez,onde,em que linha,em qual linha,em que linhas,' +
        'em quais linhas,quando,é,está,valor,se,ser,pode',
      changers: `${pairs(PT_WHO, PT_CHANGE, ' #')},alterado por #,# é alterado por|${PT_WHO}`,
      thrown:
        `lançado,lançada,levantado,levantada,disparado,disparada,${pairs(PT_WHO, PT_THROW, ' #')}|` +
        `${PT_WHO},onde,em que linha,em qual linha,é,está,exceção,erro,ser,pode`,
      throwsOf:
        '# lança,# levanta,# dispara,# pode lançar,# pode levantar,lançadas por #,lançados por #,lançadas em #,' +
        'lançados em #|podem,ser,exceções,exceção,erros,erro,uma,um,alguma,algum,diretamente',
    },
  },
};

/** The names of entries in questions. The first one stands in answers. */
export const ENTRY_NAMES = {
  table: { en: 'tables', pt: 'tabelas' },
  view: { en: 'views', pt: 'visões' },
  index: { en: 'indexes,indices', pt: 'índices' },
  trigger: { en: 'triggers', pt: 'gatilhos' },
  function: { en: 'functions', pt: 'funções' },
  type: { en: 'types', pt: 'tipos' },
  key: { en: 'keys', pt: 'chaves' },
  heading: { en: 'headings,sections,chapters,titles', pt: 'títulos,cabeçalhos,seções,capítulos' },
} as const;

const EN = {
  assigned: (name: string, places: string) => `${name} is assigned${places}`,
  firstValue: (places: string) => `Its first value is${places}`,
  onlyDefined: (name: string, path: string) => `In ${path}, ${name} appears only where it is defined.`,
  notAssigned: (name: string, path: string) => `No assignment in ${path} changes ${name}.`,
  callsOn: (places: string) => `Calls on it may change it${places}`,
  noComment: (name: string) => `No comment says what ${name} does.`,
  changedBy: (name: string, list: string) => `${name} is assigned by ${list}.`,
  outsideFunctions: 'code outside functions',
  thrown: (name: string, places: string) => `${name} is thrown${places}`,
  notThrown: (name: string, path: string) => `No \`throw\` or \`raise\` in ${path} names ${name}.`,
  throws: (name: string, list: string) => `${name} throws ${list} directly.`,
  throwsNothing: (name: string) => `${name} throws nothing directly. What it calls may throw.`,
  throwers: (path: string, list: string) => `These throw directly in ${path}: ${list}`,
  mayThrow: 'What they call may throw, too.',
  noThrowers: (path: string) => `Nothing in ${path} throws directly. What it calls may throw.`,
  aValue: 'a value',
  parameterOf: (name: string, of: string) => `${name} of ${of}`,
  hasType: (name: string, type: string) => `${name} has the type ${type}`,
  hasNoType: (name: string) => `${name} has no declared type`,
  hasDefault: (name: string, value: string) => `${name} defaults to ${value}`,
  hasNoDefault: (name: string) => `${name} has no default value`,
  inInner: 'in an inner function',
  assignedNames: 'Assigned names',
  topLevel: 'Top-level keys',
  overloads: (name: string, first: number, last: number, code: string) =>
    `${name} is defined in lines ${first} to ${last}, with overloads${code === '' ? '' : `: ${code}`}.`,
};

const PT: typeof EN = {
  assigned: (name, places) => `${name} é atribuído${places}`,
  firstValue: (places) => `Seu primeiro valor está${places}`,
  onlyDefined: (name, path) => `Em ${path}, ${name} só aparece onde é definido.`,
  notAssigned: (name, path) => `Nenhuma atribuição em ${path} altera ${name}.`,
  callsOn: (places) => `Chamadas nele podem alterá-lo${places}`,
  noComment: (name) => `Nenhum comentário diz o que ${name} faz.`,
  changedBy: (name, list) => `${name} é atribuído por ${list}.`,
  outsideFunctions: 'código fora de funções',
  thrown: (name, places) => `${name} é lançado${places}`,
  notThrown: (name, path) => `Nenhum \`throw\` ou \`raise\` em ${path} cita ${name}.`,
  throws: (name, list) => `${name} lança ${list} diretamente.`,
  throwsNothing: (name) => `${name} não lança nada diretamente. O que ele chama pode lançar.`,
  throwers: (path, list) => `Lançam diretamente em ${path}: ${list}`,
  mayThrow: 'O que chamam também pode lançar.',
  noThrowers: (path) => `Nada em ${path} lança diretamente. O que é chamado pode lançar.`,
  aValue: 'um valor',
  parameterOf: (name, of) => `${name} de ${of}`,
  hasType: (name, type) => `${name} é do tipo ${type}`,
  hasNoType: (name) => `${name} não tem tipo declarado`,
  hasDefault: (name, value) => `O valor padrão de ${name} é ${value}`,
  hasNoDefault: (name) => `${name} não tem valor padrão`,
  inInner: 'em uma função interna',
  assignedNames: 'Nomes atribuídos',
  topLevel: 'Chaves do nível superior',
  overloads: (name, first, last, code) =>
    `A definição de ${name} está nas linhas ${first} a ${last}, com sobrecargas${code === '' ? '' : `: ${code}`}.`,
};

export const CHANGE_WORDS = { en: EN, pt: PT };
