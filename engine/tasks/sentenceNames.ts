/**
 * Finds the names of code in a sentence of prose: what stands in backticks or is spelled like a name. Leaves out what is
 * spelled alike but names nothing in code: addresses, paths, options, numbers. Does not know the code.
 */
const SPAN = '`[^`\\n]+`';
/** camelCase, snake_case, and a word with its parentheses, but not "file(s)". */
const BARE = String.raw`(?<![\w$.])(?:\p{Ll}+\p{Lu}[\w$]*|[\p{L}$]\w*_\w+|[\p{L}_$][\w$]*(?=\((?!(?:e?s|ies|ed|ing)\))))`;
const NAME = new RegExp(`${SPAN}|${BARE}`, 'gu');
const AND = String.raw`(?:,\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+)`;
const ITEM = String.raw`(?:${SPAN}|${BARE})(?:\([^()\n]*\))?`;
const LIST = new RegExp(`${ITEM}(?:${AND}${ITEM})+`, 'gu');
const SPANS = `${SPAN}(?:${AND}${SPAN})*`;

const FILE_ENDINGS =
  `tsx?|jsx?|[cm][jt]s|json[5lc]?|pyi?|ipynb|go|rs|sql|rb|php|java|kt|cs|c|h|cpp|cc|hpp|lua|md|mdx|rst|txt|
  toml|ya?ml|ini|cfg|xml|csv|tsv|html?|css|scss|sass|less|vue|svelte|astro|svg|png|jpe?g|gif|ico|pdf|zip|tar|gz|wasm|onnx|
  parquet|sh|bash|ps1|bat|graphql|proto|tf|gradle|sqlite`.replace(/\s+/g, '');
const COMMANDS =
  'npm|npx|pnpm|yarn|node|deno|bun|git|pip3?|python3?|uv|poetry|pytest|cargo|go|docker|make|curl|cd|bash|sh';
const USUAL_TYPES =
  'list|dict|dictionary|tuple|set|array|object|map|function|callback|iterator|generator|error|exception|promise|' +
  'buffer|date|char|byte|long|short|double|Promise|Array|Map|Set|Date|Error|Object|RegExp|Buffer|Iterator|Generator';
/** What is spelled like a name but is none. */
const OTHERS = [
  // Addresses.
  String.raw`\b[a-z][a-z\d+.-]*:\/\/[^\s\x60<>"]+|\bwww\.[^\s\x60<>"]+|[\w.+-]+@[\w-]+\.[\w.-]*\w`,
  // Commands, and names with one slash, which are folders or types of media.
  String.raw`(?<=\x60)(?:\$ )?(?:${COMMANDS})\s[^\x60\n(]*(?=\x60)|(?<=\x60)[\w.@-]+\/[\w.@*+-]*(?=\x60)`,
  // Files, except what a response gives.
  String.raw`(?<![\w$])(?!(?:res|resp|response|req|request|r)\.\w+\b(?!\.))(?:~|@|\.{1,2})?\/?(?:[\w.@$*[\]-]+\/)*[\w.@$*-]+` +
    String.raw`\.(?:${FILE_ENDINGS})(?![\w(.]*[\w(])`,
  String.raw`(?<![\w$])(?:\.env|\.git\w*|\.\w+(?:rc|ignore)|(?:yarn|Cargo|poetry|Gemfile|composer)\.lock)\b(?!\()`,
  // Paths.
  String.raw`(?<![\w$)\]])(?:~|@|\.{1,2})?(?:\/[\w.@:*{}-]+)+\/?|[\w.@-]+(?:\/[\w.@-]+){2,}`,
  // Options.
  String.raw`(?<![\w$-])(?:--[A-Za-z][\w-]*|-[A-Za-z](?!\w)|(?<=\x60)-[A-Za-z][\w-]*)(?:=[^\s\x60]+)?`,
  // Numbers, versions and orders of growth.
  String.raw`(?<![\w$.])(?:v(?=\d+\.\d))?(?:0[xob][\da-f_]+n?|\d[\d_]*(?:\.[\d_]+)*(?:e[+-]?\d+)?)\p{L}*`,
  String.raw`\bES\d+\b|#(?=[a-f]*\d)[\da-f]{3,8}\b`,
  String.raw`(?<![\w$.])[OΘΩ]\((?:[^()\n]|\([^()\n]*\))*\)`,
  // Formats and escapes.
  String.raw`(?<!\w)(?:%[-\d.]*[a-zA-Z]+[-:/ .]?)+|(?<!\w)\\(?:u[\da-f]{4}|x[\da-f]{2}|[a-zA-Z])`,
  String.raw`\b(?:YYYY|yyyy|YY|HH|hh)(?:[-/:.T ]?(?:YYYY|yyyy|MM?|DD?|dd?|HH|hh|mm|ss|SSS?|Z))+\b`,
  // Usual types around others, and where a value is said to be one. "Calls `map`" names a method.
  String.raw`(?<=\x60)(?:Promise|Array|Map|Set|Record|List|Option|Result|Vec)(?=<)`,
  String.raw`(?<=\b(?:an?|of|as|empty|new|each)\s+(?:(?!(?:the|methods?|functions?|calls?)\b)[a-z]+\s+)?)` +
    String.raw`\x60(?:${USUAL_TYPES})\x60`,
].map((pattern) => new RegExp(pattern, 'giu'));

const words = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/));

/** Words of languages, and names of products, which a text about code may use although the code does not. */
export const WORDS = words(
  `null undefined true false None True False nil NULL NaN Infinity self this super cls void string number boolean int str
  bool float bytes any unknown never bigint symbol int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 i8
  i16 i32 i64 u8 u16 u32 u64 usize isize f32 f64 rune async await return yield throw throws raise try catch except finally
  if else elif for while do in is not and or switch case match default break continue const let var function func fn def
  class struct enum interface trait impl type new delete typeof instanceof import export from require extends implements
  public private protected static abstract readonly final override global nonlocal lambda with as pass assert defer go
  select chan range package mut pub mod use where unsafe dyn move ref crate loop goto
  GET POST PUT PATCH DELETE HEAD OPTIONS HTTP HTTPS JSON CSV XML HTML CSS SQL URL URI API UTF UTF8 utf utf8 ISO ASCII UUID
  YAML TOML stdin stdout stderr EOF LF CRLF
  macOS iOS iPadOS tvOS webOS iPhone iPad jQuery gRPC eBPF mTLS kB dB camelCase snake_case node_modules`,
);
export const SQL_WORDS = words(
  `select insert update delete from where join left right inner outer full cross group order by having limit offset distinct
  create table view index drop alter into values and or not union case when then else end count sum avg min max primary
  foreign key unique check default constraint references cascade null is in like between exists with as on using set`,
);

/** The sentence with a number for everything that is no name. Spans stay spans. */
export const withoutOthers = (sentence: string): string =>
  OTHERS.reduce((text, pattern) => text.replace(pattern, (found) => (found.startsWith('`') ? '`0`' : '0')), sentence);

/** As they are written, with their backticks. */
export const namesIn = (sentence: string): string[] => sentence.match(NAME) ?? [];

/** Whether a list of names has one twice. With arguments they are calls. */
export const repeats = (sentence: string): boolean =>
  (sentence.match(LIST) ?? []).some((list) => {
    const items = (list.match(new RegExp(ITEM, 'gu')) ?? []).map((item) => item.replace(/\(\)$/, ''));
    const names = items.filter((item) => /[\p{L}_$]/u.test(item));
    return new Set(names).size < names.length;
  });

export interface Claim {
  /** What a name is said to be: `class`, `function`, … */
  word: string;
  name: string;
  /** Whether the file is said to define it. */
  isDefined: boolean;
}

const WORD = 'class|function|method|type|interface|enum|struct|trait|constant|variable|parameter|table|view|procedure';
const BEFORE = new RegExp(String.raw`\b(${WORD})(?:(e?s):?)?\s+(?:(?:called|named)\s+)?(${SPANS})`, 'giu');
const GOES_ON = 'is|are|has|takes|returns|that|which|and|or|with|to|for|in|of|from|by|can|as|on';
/** Without "the `a` type", which may be the type of `a`. Other words behind may change what is meant. */
const BEHIND = new RegExp(
  String.raw`(${SPANS})\s+(?!type)(${WORD})(e?s)?` +
    String.raw`(?=[.,;:)]|\s*$|\s+(?:${GOES_ON}|(?!attribute|field|variable|parameter|argument|propert|member)\w+s)\b)`,
  'giu',
);
const BETWEEN =
  'the|an?|and|or|one|two|three|four|five|several|some|following|new|exported|public|private|async|asynchronous|' +
  'static|abstract|helper';
const DEFINES = new RegExp(
  String.raw`\b(?:define[sd]?|defining|declares?)\b(?:\s|[,:]|${SPAN}|\b(?:${BETWEEN}|(?:${WORD})(?:e?s)?)\b)*$`,
  'iu',
);
const IMPORTED = new RegExp(String.raw`\bimports?\s+(?:the\s+)?(?:(?:${WORD})(?:e?s)?\s+)?(${SPANS})`, 'giu');

/** What a sentence says of names. In "the class `A` and `B`", of the first one only. */
export function claimsIn(sentence: string): Claim[] {
  const found: Claim[] = [];
  const add = (word: string, plural: string | undefined, list: string, at: number, last: boolean): void => {
    const names = namesIn(list).flatMap((span) => simpleName(span) ?? []);
    const isDefined = DEFINES.test(sentence.slice(0, at));
    for (const name of plural ? names : names.slice(...(last ? [-1] : [0, 1])))
      found.push({ word: word.toLowerCase(), name, isDefined });
  };
  for (const { 1: word = '', 2: plural, 3: list = '', index } of sentence.matchAll(BEFORE))
    add(word, plural, list, index, false);
  for (const { 1: list = '', 2: word = '', 3: plural, index } of sentence.matchAll(BEHIND))
    add(word, plural, list, index, true);
  for (const { 1: list = '' } of sentence.matchAll(IMPORTED))
    for (const span of namesIn(list)) {
      const name = simpleName(span);
      if (name !== undefined) found.push({ word: 'import', name, isDefined: false });
    }
  return found;
}

/** The last name of a path, as in `Basket.add(item)` or `Basket::new`. Undefined for other code. */
function simpleName(span: string): string | undefined {
  const code = span.replaceAll('`', '').replace(/\([^()]*\)$/, '');
  return /^(?:[\p{L}\p{N}_$]+(?:\.|::|#|->))*[#@]?([\p{L}_$][\p{L}\p{N}_$]*)$/u.exec(code)?.[1];
}
