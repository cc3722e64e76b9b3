/** What a definition is for, where its comment or docstring says it: the first paragraph, word for word. Pure. */
import type { Doc } from './extract/factDocs.ts';
import type { Definition } from './extract/facts.ts';
import type { QuestionLanguage } from './factKinds.ts';
import { qualified } from './factPhrases.ts';
import { WORDS } from './factWords.ts';

/** More of one name are different things. */
const MAX_COMMENTS = 3;
/** More is cut, where a sentence ends if one does. */
const MAX_PARAGRAPH = 600;

/** @param called all definitions of that name. @param brief what it says, without where. Undefined where no comment says it. */
export function purposeAnswer(
  called: readonly Definition[],
  name: string,
  text: string,
  language: QuestionLanguage,
  brief = false,
): string | undefined {
  const said = called.flatMap(({ doc, owner, line, kind }) => {
    // What begins a file is about the file, rather than about a value right below it.
    if (doc?.from === 0 && kind === 'value') return [];
    const paragraph = doc && firstParagraph(text.slice(doc.from, doc.to), doc);
    return doc && paragraph !== undefined
      ? [
          brief
            ? paragraph
            : `${WORDS[language].says(qualified(called, name, owner), doc.docstring === true, line)}\n\n> ${paragraph}`,
        ]
      : [];
  });
  return said.length > 0 && said.length <= MAX_COMMENTS ? said.join('\n\n') : undefined;
}

/** A comment that begins a file, with nothing that it could be about right below it but an import, or a module's docstring. */
const SCRIPT_HEAD =
  /^(?:#![^\n]*\n)?\s*(\/\*[\s\S]*?\*\/|\/\/[^\n]*(?:\n\/\/[^\n]*)*)[ \t]*\n(?=\s*\n|import\b|(?:const|let|var)\b[^\n]*\brequire\(|['"]use )/;
const PYTHON_HEAD = /^(?:#[^\n]*\n|[ \t]*\n)*([rRuU]?("{3}|'{3})[\s\S]*?\2)/;

/** The first paragraph of what a file says of itself; undefined where it says nothing. */
export function headOf(text: string, isPython: boolean): string | undefined {
  const written = (isPython ? PYTHON_HEAD : SCRIPT_HEAD).exec(text)?.[1];
  return written === undefined
    ? undefined
    : firstParagraph(written, { from: 0, to: written.length, ...(isPython ? { docstring: true } : {}) });
}

/** About a file as a whole, of lawyers, or what is still to be done: nothing that says what a definition does. */
const OTHERWISE =
  /copyright|spdx-license|@license|@file\b|@fileoverview|@module\b|@packagedocumentation|^\W*(?:todo|fixme|xxx|hack)\b/i;
/** Rules between parts of a file, or code that is not in use. */
const RULE = /[-=*#~_/]{3,}/;
const CODE =
  /[;{}]$|^(?:const|let|var|return|if|for|while|import|from|def|class|function|export|await|print)\b.*[({=:;]/;

/** On one line; undefined where it says nothing about what it stands above. @param written with its marks */
function firstParagraph(written: string, { docstring }: Doc): string | undefined {
  if (!docstring && OTHERWISE.test(written)) return undefined;
  const isBlock = written.startsWith('/*');
  const bare = docstring
    ? /^[rRuU]?("""|'''|"|')(.*)\1$/s.exec(written)?.[2]
    : isBlock
      ? written.replace(/^\/\*+!?|\**\*\/$/g, '')
      : written;
  if (bare === undefined) return undefined;
  const lines = bare
    .split('\n')
    .map((line) =>
      (docstring
        ? line
        : isBlock
          ? line.replace(/^\s*(?:\*+(?=\s|$)|\*(?!\*))/, '')
          : line.replace(/^\s*(?:\/\/+!?|#+[:!]?)/, '')
      ).trim(),
    );
  const described = lines.findIndex((line) => /^@(?:description|desc|summary)\b/.test(line));
  const from = described < 0 ? lines.findIndex((line) => line !== '') : described;
  const rest = lines
    .slice(Math.max(0, from))
    .map((line, i) => (i === 0 ? line.replace(/^@(?:description|desc|summary)\b\s*/, '') : line));
  const end = rest.findIndex((line, i) => line === '' || BLOCK_TAG.test(line) || (i > 0 && /^[-=~]{3,}$/.test(line)));
  const paragraph = rest
    .slice(0, end < 0 ? undefined : end)
    .join(' ')
    .replace(
      /\{@link(?:code|plain)?\s+([^}|\s]+)(?:[|\s]+([^}]+))?\}/g,
      (_, target: string, label?: string) => label?.trim() ?? target,
    )
    .replace(/\s+/g, ' ')
    .replace(INLINE_TAG, '')
    .trim();
  if (
    !/\p{L}{2}/u.test(paragraph) ||
    (!docstring &&
      !written.startsWith('/**') &&
      (RULE.test(paragraph) || CODE.test(paragraph) || !/\s/.test(paragraph)))
  )
    return undefined;
  return cut(paragraph);
}

/** What tells of parameters and results, in the ways of JSDoc, Sphinx and Google, or shows how it is used. */
const BLOCK_TAG =
  /^(?:@\w|:\w+[^:]*:|>>>|```|(?:Args|Arguments|Parameters|Params|Returns|Yields|Raises|Examples?|Notes?|Attributes):?$)/;

/** Behind a description on the same line. */
const INLINE_TAG = / @(?:param|returns?|throws|example|deprecated|internal|private|type)\b.*$/;

function cut(paragraph: string): string {
  if (paragraph.length <= MAX_PARAGRAPH) return paragraph;
  const start = paragraph.slice(0, MAX_PARAGRAPH);
  const end = Math.max(start.lastIndexOf('. '), start.lastIndexOf('! '), start.lastIndexOf('? '));
  return `${end > 0 ? start.slice(0, end + 1) : start.slice(0, start.lastIndexOf(' '))} …`;
}
