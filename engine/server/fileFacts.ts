/**
 * What is read off the syntax trees of documents: definitions, outlines, summaries, and whether the text of a small
 * model names what is there. Does not parse documents and answers no messages.
 */
import { type Asked, factOf, fromFiles, type KnownAnswer } from '../facts/ask.ts';
import { commentOf, headComment, leadingComment } from '../facts/extract/comments.ts';
import { hasFacts, NO_FACTS, readFacts } from '../facts/extract/facts.ts';
import type { Language } from '../facts/intents.ts';
import type { SummarizeTask } from '../protocol/tasks.ts';
import type { ChatOptions } from '../tasks/chatTask.ts';
import { withCheckedNames } from '../tasks/checkedNames.ts';
import { type FileOfNames, type KindsOf, kindsIn, sqlKinds } from '../tasks/nameKinds.ts';
import type { PreparedRequest } from '../tasks/preparedRequest.ts';
import { asksForSummary, tooSmall } from '../tasks/stockReplies.ts';
import type { Layout } from '../text/prompt/layout.ts';
import { outlinesOf } from '../text/syntax/outline.ts';
import { type SourceDocument, shortPath } from '../text/syntax/sourceDocument.ts';
import type { Syntax } from '../text/syntax/syntax.ts';
import { grammarFor } from '../text/syntax/syntaxTrees.ts';

/** Of one selection, so many definitions are told. */
const MAX_TOLD = 5;

export class FileFacts {
  /** The user's language, for answers to commands. */
  language: Language = 'en';
  readonly #syntax: Syntax;

  constructor(syntax: Syntax) {
    this.#syntax = syntax;
  }

  readonly of = (document: SourceDocument) => readFacts(this.#syntax, document);

  /** The definitions that are not inside functions. None without a tree. */
  readonly definitionsOf = (document: SourceDocument) =>
    (this.of(document)?.changes.named ?? [])
      .filter(({ kind, local, isPrototype }) => !local && !isPrototype && kind !== 'value')
      .map(({ line, owner }) => ({ line, isMember: owner !== undefined }));

  readonly outlinesOf = (document: SourceDocument) =>
    this.#syntax.read(document, (tree, _, text) => outlinesOf(tree, text));

  /** What is read instead of asking a small model for a summary. Undefined if it is to be asked. */
  readSummary(document: SourceDocument, range: SummarizeTask['range'], layout: Layout): KnownAnswer | undefined {
    const at = range && inLf(document, range);
    const comment = fromFiles(this.#commentOf(document, at), [document]);
    if (comment) return comment;
    if (at) return this.#definedIn(document, at) ?? tooSmall(layout);
    return hasFacts(document) ? undefined : (this.#outlineOf([document]) ?? tooSmall(layout));
  }

  /** What the code says of the definitions in one selection. A small model would only guess what they are for. */
  readSelection({ docs, snippets = [] }: ChatOptions, language: Language | undefined): KnownAnswer | undefined {
    const [selection, ...others] = snippets.filter(({ startLine }) => startLine !== undefined);
    const document = docs.find(({ path }) => selection && path === shortPath(selection.path));
    if (selection?.startLine === undefined || !document || others.length > 0) return undefined;
    const { startLine, text } = selection;
    const end = document.lineStart(startLine + text.trimEnd().split('\n').length);
    return this.#definedIn(document, { start: document.lineStart(startLine), end, label: '' }, language);
  }

  /** What the code says of the outermost definitions that begin in a range. Of one with a label, only of that. */
  #definedIn(document: SourceDocument, at: LfRange, language = this.language): KnownAnswer | undefined {
    const { start, end, label } = at;
    const { definitions } = this.of(document) ?? NO_FACTS;
    const inside = definitions.filter(
      ({ name, at: from = -1 }) => start <= from && from < end && (label === '' || name === nameOf(at)),
    );
    // In the order of the text, an outer one before the inner ones.
    const outer: typeof inside = [];
    for (const each of inside) if ((each.at ?? 0) >= (outer.at(-1)?.end ?? 0)) outer.push(each);
    const texts = outer.slice(0, MAX_TOLD).map(({ name, owner }) => {
      const query = { intent: 'purpose', name, owner, within: { start, end } } as const;
      return factOf(query, [document], language, this.of)?.text;
    });
    return fromFiles([...new Set(texts)].filter((text) => text !== undefined).join('\n\n') || undefined, [document]);
  }

  /** The comment of the file, of a definition, or at the beginning of a selection. */
  #commentOf(document: SourceDocument, at: LfRange | undefined): string | undefined {
    const { lf, path } = document;
    if (at?.label === '') return leadingComment(lf.slice(at.start, at.end), path);
    if (!hasFacts(document)) return undefined;
    if (!at) return headComment(lf, grammarFor(document) === 'python');
    const { definitions, partial } = this.of(document) ?? NO_FACTS;
    const said = definitions
      .filter(({ name, at: start = -1 }) => name === nameOf(at) && at.start <= start && start < at.end)
      .map((each) => (each.broken ? undefined : commentOf(each, partial, lf)));
    return new Set(said).size === 1 ? said[0] : undefined;
  }

  #outlineOf(documents: readonly SourceDocument[], language = this.language): KnownAnswer | undefined {
    return factOf({ intent: 'outline', name: '' }, documents, language, this.of);
  }

  /** The summary of a file by a small model, with the names of the text that it is about. */
  checkedSummary(prepared: PreparedRequest, document: SourceDocument, layout: Layout): PreparedRequest {
    const { lf, path } = document;
    return {
      ...prepared,
      shape: withCheckedNames(prepared.shape, {
        texts: [lf, path],
        ignoresCase: isSql(document),
        kindsOf: isSql(document) ? sqlKinds(lf) : this.#kindsIn([document]),
        instead: () => this.#outlineOf([document]) ?? tooSmall(layout),
      }),
    };
  }

  /** The answer of a small model, with the names of the files and of the conversation. */
  checkedAnswer(
    prepared: PreparedRequest,
    { docs, messages, snippets = [] }: ChatOptions,
    asked: Asked | undefined,
    layout: Layout,
  ): PreparedRequest {
    const last = messages.at(-1)?.content ?? '';
    const isOfFile = asked?.isSummary || asksForSummary(last, layout.text.manifest.summary.fileQuestion);
    const isSummary = isOfFile && docs.length > 0 && snippets.every(({ startLine }) => startLine === undefined);
    return {
      ...prepared,
      shape: withCheckedNames(prepared.shape, {
        texts: [
          ...docs.flatMap(({ lf, path }) => [lf, path]),
          ...snippets.flatMap(({ text, path }) => [text, path]),
          ...messages.map(({ content }) => content),
        ],
        ignoresCase: docs.some(isSql),
        kindsOf: isSummary ? this.#kindsIn(docs) : undefined,
        instead: () => (isSummary ? this.#outlineOf(docs, asked?.language) : undefined) ?? tooSmall(layout),
      }),
    };
  }

  /** Undefined if a tree is missing. */
  #kindsIn(documents: readonly SourceDocument[]): KindsOf | undefined {
    const files = documents.map((document) => ({ text: document.lf, facts: this.of(document) }));
    return files.every((file): file is FileOfNames => file.facts !== undefined) ? kindsIn(files) : undefined;
  }
}

const isSql = ({ path, language }: Pick<SourceDocument, 'path' | 'language'>): boolean =>
  /sql/i.test(language ?? '') || /\.sql$/i.test(path);

type LfRange = ReturnType<typeof inLf>;

const nameOf = ({ label }: LfRange): string => label.split(/[.#]/).at(-1) ?? '';

const inLf = (document: SourceDocument, { start, end, label = '' }: NonNullable<SummarizeTask['range']>) => ({
  start: document.toLf(start),
  end: document.toLf(end),
  label,
});
