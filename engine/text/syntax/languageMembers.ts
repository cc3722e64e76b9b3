/**
 * Knows the members of modules, global objects and types of a language: Python's from a table, those of scripts from
 * this program, which runs in the same language. Does not read files.
 */
import { isBuiltin } from 'node:module';
import { PYTHON_ATTRIBUTES, PYTHON_MODULES, PYTHON_TYPES } from './pythonNames.ts';

const GLOBALS = new Set(
  'Array BigInt Boolean Date JSON Map Math Number Object Promise Reflect RegExp Set String Symbol console'.split(' '),
);
/** Those whose instances have all their members from the prototype. */
const INSTANCES = new Set('Array BigInt Boolean Date Map Number Promise Set String'.split(' '));

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

/** Members that this program may lack: it may run in another version than the user's, or on another system. */
const OF_VERSIONS = new Set(
  `groupBy fromAsync withResolvers try escape sumPrecise f16round isError rawJSON isRawJSON concat zip zipKeyed
  getOrInsert getOrInsertComputed union intersection difference symmetricDifference isSubsetOf isSupersetOf isDisjointFrom
  getuid geteuid getgid getegid getgroups setuid setgid seteuid setegid setgroups initgroups lchmod lchmodSync
  glob globSync hash matchesGlob styleText openAsBlob getBuiltinModule loadEnvFile parseEnv partialDeepStrictEqual
  getCallSites execve finalization availableMemory registerHooks enableCompileCache findPackageJSON stripTypeScriptTypes
  isInternalThread markAsUncloneable postMessageToThread flushCompileCache getCompileCacheDir WebSocket CloseEvent
  MessageEvent queryObjects startCpuProfile setTraceSigInt getSystemErrorMessage argon2 argon2Sync encapsulate decapsulate
  mkdtempDisposable mkdtempDisposableSync toTemporalInstant createCipher createDecipher createSecurePair SlowBuffer F_OK
  R_OK W_OK X_OK
  zstdCompress zstdDecompress zstdCompressSync zstdDecompressSync createZstdCompress createZstdDecompress crc32`.split(
    /\s+/,
  ),
);

/** The members of an object of the language. Undefined if they are not known. */
export function languageMembers(
  kind: 'module' | 'itself' | 'instance',
  name: string,
  isScript: boolean,
): ((member: string) => boolean) | undefined {
  if (!isScript) {
    const table = kind === 'module' ? PYTHON_MODULES : PYTHON_TYPES;
    const names = Object.hasOwn(table, name) ? new Set(table[name]?.trim().split(/\s+/)) : undefined;
    return names && ((member) => names.has(member) || !/^[a-z]/.test(member));
  }
  const value = kind === 'module' ? isBuiltin(name) && process.getBuiltinModule(name) : GLOBAL_OBJECTS[name];
  const object = kind === 'instance' ? INSTANCES.has(name) && (value as { prototype: object }).prototype : value;
  return object ? (member) => member in Object(object) || OF_VERSIONS.has(member) : undefined;
}

/** Whether the language has an object or type of this name whose members are known. */
export const isLanguageObject = (name: string, isScript: boolean): boolean =>
  isScript ? GLOBALS.has(name) : Object.hasOwn(PYTHON_TYPES, name);

const GLOBAL_OBJECTS = globalThis as Readonly<Record<string, unknown>>;

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
