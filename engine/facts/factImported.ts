/** What a file imports, all of it or one name, and where a name comes from. Pure. */
import type { Import } from './extract/factImports.ts';
import type { Definition, Facts } from './extract/facts.ts';
import { answered } from './factExported.ts';
import type { QuestionLanguage } from './factKinds.ts';
import { asFarAsRead } from './factListed.ts';
import { MAX_NAMES, quoted } from './factPhrases.ts';
import type { FactQuestion } from './factQuestion.ts';
import { whereAnswer } from './factWhere.ts';
import { WORDS } from './factWords.ts';

/** @param path as the answer names the file */
export function importsAnswer(facts: Facts, path: string, language: QuestionLanguage): string | undefined {
  const { imports, reexports } = facts;
  const modules = (of: readonly Import[]) => [...new Set(of.map(({ module }) => module))];
  const top = modules(imports.filter((each) => each.top));
  const deeper = modules(imports.filter((each) => !each.top)).filter((module) => !top.includes(module));
  if (top.length + deeper.length > MAX_NAMES) return undefined;
  const lines = imports.filter((each) => each.top).map(({ line }) => line);
  const all = WORDS[language].imports(
    quoted(path),
    top,
    deeper,
    modules(reexports),
    lines,
    imports.filter((each) => !each.top).map(({ line }) => line),
    reexports.map(({ line }) => line),
  );
  return asFarAsRead(facts, all, imports.length + reexports.length, language);
}

/** Whether a module is imported, or something of that name; what is imported besides where it is not. */
export function importedAnswer({ name, sure, language }: FactQuestion, facts: Facts, path: string): string | undefined {
  const words = WORDS[language];
  const modules = facts.imports.filter(({ module }) => isCalled(module, name));
  const names = facts.imports.filter((each) => each.names.includes(name) || each.renamed?.includes(name));
  const found =
    names.length === 0 || modules.some(({ module }) => module === name)
      ? modules.map(({ module, line }) => words.importsModule(quoted(module), line))
      : names.map(({ module, line }) => words.imported(quoted(name), quoted(module), line));
  if (found.length > 0) return `${words.yes}: ${[...new Set(found)].join(' ')}`;
  const all = importsAnswer(facts, path, language);
  // `lodash/debounce` is of lodash.
  const isNear = ({ module }: Import): boolean => module.toLowerCase().includes(name.toLowerCase());
  if (all === undefined || facts.broken || facts.imports.some(isNear) || facts.reexports.some(isNear)) return all;
  return sure || !/\p{Lu}|ly$/u.test(name) ? answered(words.no, all) : all;
}

/** Modules are called by their whole path or by what it ends with. */
function isCalled(module: string, name: string): boolean {
  const [path, said] = [module, name].map((each) =>
    each
      .toLowerCase()
      .replace(/^node:/, '')
      .replace(/\.[cm]?[jt]sx?$/, ''),
  ) as [string, string];
  const file = path.split('/').at(-1) as string;
  return path === said || file === said || (path === file && file.split('.').at(-1) === said);
}

/** Where a name comes from. @param called what the file defines by that name */
export function sourceAnswer(
  called: readonly Definition[],
  from: readonly Import[],
  name: string,
  { imports }: Facts,
  language: QuestionLanguage,
): string | undefined {
  const words = WORDS[language];
  if (from.length > 0) return whereAnswer([], from, name, language);
  const modules = imports.filter(({ module }) => isCalled(module, name));
  if (modules.length > 0) return modules.map(({ module, line }) => words.importsModule(quoted(module), line)).join(' ');
  return called.length > 0
    ? `${words.notImported(quoted(name))} ${whereAnswer(called, [], name, language)}`
    : undefined;
}
