/**
 * Rewrites possessive quantifiers (`a++`) and atomic groups (`(?>a)`) of an Oniguruma pattern, which JavaScript does
 * not have: a lookahead captures what the atom takes, and a back reference takes exactly that. Changes nothing else.
 */
import { unsupported } from './tokenizerJson.ts';

/** A whole escape sequence. */
const ESCAPE = /\\(?:[pPxu]\{[^}]*\}|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|c[A-Za-z]|[\s\S])/uy;
/** The beginning of a group. */
const GROUP = /\((?:\?(?:<[=!]|<[A-Za-z_]\w*>|[:=!>]|[imx-]+:))?/uy;
/** A quantifier without what makes it lazy or possessive. An interval is never possessive (`{2}+` repeats it). */
const QUANTIFIER = /[?*+]|\{(?:\d+,?\d*|,\d+)\}/uy;
const BACK_REFERENCE = /(?:^|[^\\])(?:\\\\)*\\[1-9]/;

/**
 * `capturing` false makes all groups plain ones.
 * @throws RequestError `modelUnsupported` for a pattern that would change its meaning
 */
export function withoutAtomic(pattern: string, capturing = true): string {
  let out = '';
  let numGroups = 0;
  /** Where the last atom begins in `out`. Negative if nothing can be quantified. */
  let atom = -1;
  const open: { at: number; atomic: boolean }[] = [];
  const take = (form: RegExp, at: number): string | undefined => {
    form.lastIndex = at;
    return form.exec(pattern)?.[0];
  };
  const makeAtomic = (from: number): void => {
    out = `${out.slice(0, from)}(?=(?<_${numGroups}>${out.slice(from)}))\\k<_${numGroups}>`;
    out = `${out.slice(0, from)}(?:${out.slice(from)})`;
    numGroups++;
  };
  for (let i = 0; i < pattern.length; ) {
    const group = take(GROUP, i);
    const quantifier = atom >= 0 ? take(QUANTIFIER, i) : undefined;
    if (group !== undefined) {
      open.push({ at: out.length, atomic: group === '(?>' });
      out += group === '(?>' || (!capturing && /^\((?:\?<\w|$)/.test(group)) ? '(?:' : group;
      i += group.length;
      atom = -1;
    } else if (pattern[i] === ')') {
      const { at, atomic } = open.pop() ?? { at: out.length, atomic: false };
      out += ')';
      if (atomic) makeAtomic(at);
      atom = at;
      i++;
    } else if (quantifier !== undefined) {
      out += quantifier;
      i += quantifier.length;
      if (pattern[i] === '?') out += pattern[i++];
      else if (pattern[i] === '+' && quantifier.length === 1) {
        makeAtomic(atom);
        i++;
        continue;
      }
      // What follows another quantifier is quantified as a whole by Oniguruma.
      if (quantifier.length > 1) continue;
      atom = -1;
    } else {
      atom = pattern[i] === '|' ? -1 : out.length;
      const text = take(ESCAPE, i) ?? (pattern[i] === '[' ? classAt(pattern, i) : characterAt(pattern, i));
      out += text;
      i += text.length;
    }
  }
  if (numGroups > 0 && BACK_REFERENCE.test(pattern))
    throw unsupported('a pattern has a possessive quantifier and a back reference');
  if (numGroups > 0 && !capturing) throw unsupported('Split removes matches of a pattern with a possessive quantifier');
  return out;
}

export function hasBackReference(pattern: string): boolean {
  return BACK_REFERENCE.test(pattern);
}

/** A character class with the classes inside it. */
function classAt(pattern: string, start: number): string {
  let depth = 0;
  for (let i = start; i < pattern.length; i++) {
    if (pattern[i] === '\\') i++;
    else if (pattern[i] === '[') {
      depth++;
      if (pattern[i + 1] === '^') i++;
      // A bracket at the beginning is a character of the class.
      if (pattern[i + 1] === ']') i++;
    } else if (pattern[i] === ']' && --depth === 0) return pattern.slice(start, i + 1);
  }
  return pattern.slice(start);
}

function characterAt(pattern: string, at: number): string {
  return String.fromCodePoint(pattern.codePointAt(at) as number);
}
