/** Which open files the current one imports, and the lines that declare what they export. Pure. */

/**
 * Import statements of most languages: `from './a'`, `require('a')`, `import a.b`, `#include "a.h"`, `use a::b`,
 * `mod a`.
 */
const IMPORT =
  /^\s*(?:import|from|export\b.*\bfrom|#\s*include|use|mod|require|require_relative|using|package|.*\brequire\()(.*)$/;
const KEYWORDS =
  'export|public|pub|def|async def|class|interface|type|struct|enum|trait|fn|func|function|module|const|abstract';
const DECLARATION = new RegExp(`^\\s{0,4}(?:${KEYWORDS})\\b`);
const MAX_LINES = 40;
/** Imports are at the top. */
const HEAD_LINES = 100;

/** Last parts of the names that `text` imports from: "cache" of `./lib/cache.ts`, `lib.cache` and `lib::cache`. */
export function importedNames(text: string): Set<string> {
  const names = new Set<string>();
  for (const line of text.split(/\r?\n/, HEAD_LINES)) {
    const rest = IMPORT.exec(line)?.[1];
    if (rest === undefined) continue;
    for (const word of rest.match(/[\w$./\\@:-]+/g) ?? []) {
      const name = word
        .replace(/\.(?:[cm]?[jt]sx?|py|rb|h|hpp|php|css)$/, '')
        .split(/[./\\:]+/)
        .filter(Boolean)
        .at(-1);
      if (name) names.add(name);
    }
  }
  return names;
}

/** The name by which other files would import this one. */
export function importName(path: string): string {
  const parts = path.split(/[\\/]/);
  const stem = (parts.at(-1) ?? '').replace(/\.[^.]*$/, '');
  return /^(?:index|__init__|mod)$/.test(stem) ? (parts.at(-2) ?? stem) : stem;
}

/** The lines with declarations, without their bodies; empty if there are none. */
export function declarations(text: string): string {
  const lines = text.split(/\r?\n/).filter((line) => DECLARATION.test(line) && line.length < 300);
  return lines.slice(0, MAX_LINES).join('\n');
}
