/**
 * Knows what modules and global objects of a language have as members: Python's from a table, those of scripts from this
 * program, which runs in the same language. Undefined for objects that it does not know.
 */
import { isBuiltin } from 'node:module';
import { PYTHON_ATTRIBUTES, PYTHON_MODULES } from './pythonNames.ts';

const GLOBALS = new Set(
  'Array BigInt Boolean Date JSON Map Math Number Object Promise Reflect RegExp Set String Symbol console'.split(' '),
);
/** Members that many objects have in browsers. */
const BROWSER = `
  activeElement addEventListener appendChild body bubbles cancelBubble checked childNodes children classList className
  click clientHeight clientWidth clientX clientY closest contains createElement createTextNode currentTarget dataset
  defaultPrevented disabled dispatchEvent documentElement firstChild firstElementChild focus getAttribute
  getBoundingClientRect getComputedStyle getContext getElementById getItem hash head height hidden host hostname href
  innerHTML innerHeight innerText innerWidth insertBefore isConnected key lastChild localStorage location matches naturalHeight
  nextElementSibling nextSibling nodeName nodeType nodeValue offsetHeight offsetLeft offsetTop offsetWidth onclick onload
  ownerDocument pageX pageY parentElement parentNode pathname placeholder preventDefault previousSibling protocol
  querySelector querySelectorAll readyState reload remove removeAttribute removeChild removeEventListener removeItem
  replaceChild responseText scrollHeight scrollIntoView scrollLeft scrollTo scrollTop selected sessionStorage setAttribute
  setItem shiftKey src srcElement status statusText stopPropagation style submit tabIndex tagName target textContent type
  value visibility width
  current default displayName length message name props state prototype`;

/** Members that this program may lack: it may run in an older version than the user's, or on another system. */
export const NEWER = new Set(
  `groupBy fromAsync withResolvers try escape sumPrecise f16round isError rawJSON isRawJSON concat zip zipKeyed
  getOrInsert getOrInsertComputed union intersection difference symmetricDifference isSubsetOf isSupersetOf isDisjointFrom
  getuid geteuid getgid getegid getgroups setuid setgid seteuid setegid setgroups initgroups lchmod lchmodSync
  glob globSync hash matchesGlob styleText openAsBlob getBuiltinModule loadEnvFile parseEnv partialDeepStrictEqual
  getCallSites execve finalization availableMemory registerHooks enableCompileCache findPackageJSON stripTypeScriptTypes
  zstdCompress zstdDecompress zstdCompressSync zstdDecompressSync createZstdCompress createZstdDecompress crc32`.split(
    /\s+/,
  ),
);

/** Whether the object that a file knows by this name has a member. Undefined if nothing is known of it. */
export function moduleMembers(
  object: string,
  text: string,
  grammar: string,
): ((member: string) => boolean) | undefined {
  const name = object.replaceAll('$', '\\$');
  if (grammar === 'python') {
    const [, path = object] =
      new RegExp(`^[ \\t]*import +(?:.*, *)?(?:([\\w.]+) +as +${name}|${name}(?![\\w.]))`, 'm').exec(text) ?? [];
    const names = Object.hasOwn(PYTHON_MODULES, path) ? PYTHON_MODULES[path] : undefined;
    // A variable of this name, or one that is imported from a module.
    const isOther = new RegExp(
      `\\b${name} *=(?!=)|\\b(?:def|class|for) +${name}\\b|[(,] *${name} *[:,)=]|\\bfrom\\b.*\\bimport\\b.*\\b${name}\\b`,
      'm',
    );
    if (names === undefined || isOther.test(text) || !new RegExp(`^[ \\t]*import\\b.*\\b${name}\\b`, 'm').test(text))
      return undefined;
    const known = new Set(names.trim().split(/\s+/));
    return (member) => known.has(member) || !/^[a-z]/.test(member);
  }
  const has = (value: unknown) => (member: string) =>
    member in Object(value) || NEWER.has(member) || (grammar !== 'javascript' && /^[A-Z]/.test(member));
  const module = new RegExp(
    `^import +(?:\\* *as +)?${name} +from *['"]([\\w:/]+)['"]|\\b(?:const|var|let) +${name} *= *require\\(['"]([\\w:/]+)['"]\\)`,
    'm',
  ).exec(text);
  const path = module?.[1] ?? module?.[2];
  if (path !== undefined) return isBuiltin(path) ? has(process.getBuiltinModule(path)) : undefined;
  const declared = new RegExp(
    `\\b(?:const|let|var|function|class|import|interface|type)\\b[^\\n=]*(?<![\\w$.])${name}\\b`,
  );
  if (!GLOBALS.has(object) || declared.test(text)) return undefined;
  return has((globalThis as Record<string, unknown>)[object]);
}

let scriptNames: Set<string> | undefined;
let pythonNames: Set<string> | undefined;

/** Whether some object of the language has such a member. */
export function isMemberOfLanguage(member: string, isScript: boolean): boolean {
  if (!isScript) {
    pythonNames ??= new Set(`${PYTHON_ATTRIBUTES} ${Object.values(PYTHON_MODULES).join(' ')}`.trim().split(/\s+/));
    return pythonNames.has(member) || member.startsWith('__');
  }
  scriptNames ??= new Set([...BROWSER.trim().split(/\s+/), ...namesOfScripts()]);
  return scriptNames.has(member);
}

/** Members of the global objects, their prototypes and instances. */
function* namesOfScripts(): Generator<string> {
  const { getOwnPropertyNames, getOwnPropertyDescriptor } = Object;
  for (const name of getOwnPropertyNames(globalThis)) {
    yield name;
    // Getters are not called, because some of them load what is not needed.
    const value: unknown = getOwnPropertyDescriptor(globalThis, name)?.value;
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null) continue;
    yield* getOwnPropertyNames(value);
    const { prototype } = value as { prototype?: object };
    if (prototype) yield* getOwnPropertyNames(prototype);
  }
  for (const value of [[][Symbol.iterator](), Promise.resolve()])
    yield* getOwnPropertyNames(Object.getPrototypeOf(value));
  yield* ['cause', 'code', 'done', 'errno', 'groups', 'index', 'input', 'raw', 'stack', 'syscall'];
}
