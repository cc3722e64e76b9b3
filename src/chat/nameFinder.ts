/** Finds the names that the attached files define, for commands such as `/where`. Starts no engine. */
import * as vscode from '../vscode.ts';
import type { ContextRef, FoundName } from './chatMessages.ts';
import { rank } from './fuzzy.ts';
import { symbolsOf } from './chatSymbols.ts';

const MAX_FOUND = 12;

/** The best matches. Without a query, the first names of the files. */
export async function namesIn(refs: readonly ContextRef[], query: string): Promise<FoundName[]> {
  const files = refs.filter(({ kind }) => kind === 'file');
  const found = await Promise.all(
    files.map(async ({ uri, name: detail }) => {
      const opened = Promise.resolve(vscode.workspace.openTextDocument(vscode.Uri.parse(uri, true)));
      const document = await opened.catch(() => undefined);
      const names = document ? (await symbolsOf(document)).map(({ name }) => bareName(name)) : [];
      return names.filter((name) => name !== undefined).map((name) => ({ name, detail }));
    }),
  );
  const unique = [...new Map(found.flat().map((each) => [`${each.name} ${each.detail}`, each])).values()];
  if (!query) return unique.slice(0, MAX_FOUND);
  return unique
    .map((each) => ({ each, score: rank(query, each.name) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || a.each.name.length - b.each.name.length)
    .slice(0, MAX_FOUND)
    .map(({ each }) => each);
}

/**
 * Language extensions may add parameters or brackets to a name. Undefined for what is no name, such as `<function>`.
 */
const bareName = (name: string): string | undefined => /^[#\p{L}_$][\p{L}\p{N}_$]*/u.exec(name)?.[0];
