/**
 * Makes exercises from files: texts to predict, lines to complete, questions about a file, constants to find.
 * The prompts are the product's own, so a context equals the product's file block.
 */
import { Parser } from 'web-tree-sitter';
import { uniform } from '../../../engine/sequence/sampler.ts';
import { chatPrompt } from '../../../engine/text/prompt/chatPrompt.ts';
import { completionPrompt } from '../../../engine/text/prompt/completionPrompt.ts';
import type { Layout } from '../../../engine/text/prompt/layout.ts';
import { SourceDocument } from '../../../engine/text/syntax/sourceDocument.ts';
import { type Grammars, grammarFor } from '../../../engine/text/syntax/syntaxTrees.ts';
import { holesIn, shuffled } from './holes.ts';
import { needleIn } from './needles.ts';
import { judged, type Question, QUESTION_KINDS, questionsOf } from './questions.ts';
import type { Tail } from './subject.ts';

export type ExerciseKind = 'text' | 'fim' | 'question' | 'needle';

interface Prompt {
  readonly tail: Tail;
  /** Kind of the hole or question, or distance of the needle. */
  readonly group: string;
  readonly judge: (answer: string) => Verdict;
}

interface Verdict {
  /** The answer matches the expected one word for word. */
  readonly exact: boolean;
  readonly right: boolean;
}

export interface Exercise {
  readonly kind: ExerciseKind;
  readonly contextIds: readonly number[];
  /** Tokens after the context. The first is given, each further one is predicted from those before it. May be empty. */
  readonly next: readonly number[];
  readonly prompts: readonly Prompt[];
}

export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

export interface ExerciseOptions {
  /** Tokens of a text's context, and tokens predicted after it. */
  readonly contextTokens: number;
  readonly scoredTokens: number;
  /** Upper limit. Files take turns. */
  readonly numTexts: number;
  /** Number per kind in each part of a file. */
  readonly holes: number;
  readonly questions: number;
  /**
   * Tokens between a constant and the end, and constants per distance. Distances beyond the model's limit are left out.
   */
  readonly distances: readonly number[];
  readonly needles: number;
  readonly seed: number;
}

const LINE_TOKENS = 40;
const ANSWER_TOKENS = 64;
const VALUE_TOKENS = 8;
/** Room for the question about a constant and its answer. */
const RECALL_TOKENS = 48;
/** Start of a comment, by file extension. */
const COMMENTS: Readonly<Record<string, string>> = { ts: '//', tsx: '//', js: '//', py: '#' };
/** A text with fewer lines or tokens is too short for a context. */
const MIN_TOKENS = 64;
/** Share of the lines before the first hole. They become the context, which is everything before the tail. */
const HOLES_FROM = 0.45;
/** Share of a file block's room that one part may fill. */
const VIEW_SHARE = 0.95;

/** Random numbers in 0..1, the same for the same seed. */
function seeded(seed: number): () => number {
  let index = 0;
  return () => uniform(seed, index++);
}

/** Contexts of `contextTokens` (fewer if the file is shorter) and the tokens after them. Texts do not overlap. */
export function textExercises(
  texts: readonly (readonly number[])[],
  { contextTokens, scoredTokens, numTexts }: Pick<ExerciseOptions, 'contextTokens' | 'scoredTokens' | 'numTexts'>,
): Exercise[] {
  const needed = contextTokens + scoredTokens + 1;
  const parts = texts.map((ids) => {
    const pieces: (readonly number[])[] = [];
    for (let at = 0; at === 0 || at + needed <= ids.length; at += needed) pieces.push(ids.slice(at, at + needed));
    return pieces.filter((piece) => piece.length > scoredTokens + 1 + MIN_TOKENS);
  });
  const exercises: Exercise[] = [];
  for (let round = 0; exercises.length < numTexts && parts.some((pieces) => pieces.length > round); round++) {
    for (const { [round]: piece } of parts) {
      if (!piece || exercises.length === numTexts) continue;
      const split = piece.length - scoredTokens - 1;
      exercises.push({ kind: 'text', contextIds: piece.slice(0, split), next: piece.slice(split), prompts: [] });
    }
  }
  return exercises;
}

/** Splits a file into parts that each fit a file block. Cuts where a definition begins. */
export function viewsOf(layout: Layout, file: SourceFile): SourceDocument[] {
  const { tokenizer } = layout.text;
  const room = VIEW_SHARE * (layout.contextTokens - layout.reservedTokens - layout.header(file.path).length);
  const views: SourceDocument[] = [];
  // Cuts after a blank line if the next line is not indented.
  const pieces = file.text.replaceAll('\r\n', '\n').split(/(?<=\n\n)(?=[^\s})\]])/);
  let text = '';
  const end = (): void => {
    if (tokenizer.encode(text).length >= MIN_TOKENS)
      views.push(new SourceDocument(`${file.path}#${views.length}`, file.path, text));
    text = '';
  };
  for (const piece of pieces) {
    if (text && tokenizer.encode(text + piece).length > room) end();
    text += piece;
    // A single definition may be longer than a block. Keeps as much of it as fits.
    while (tokenizer.encode(text).length > room) {
      const lines = text.split('\n');
      const cut = tokenizer.encodeWithOffsets(text).ends[Math.floor(room)]!;
      const whole = text.lastIndexOf('\n', cut) + 1;
      const rest = text.slice(whole || lines[0]!.length + 1);
      text = text.slice(0, text.length - rest.length);
      end();
      text = rest;
    }
  }
  end();
  return views;
}

function fimExercises(layout: Layout, view: SourceDocument, count: number, random: () => number): Exercise[] {
  const { tokenizer, fim, completionStopIds } = layout.text;
  if (!fim) return [];
  const stops = new Set(completionStopIds);
  const ends = (tokenId: number): boolean => stops.has(tokenId) || tokenizer.decode([tokenId]).includes('\n');
  return holesIn(view.lf, count, HOLES_FROM, random).flatMap(({ kind, text, offset, taken }) => {
    const { promptIds, numBlockTokens, opening } = completionPrompt(
      layout,
      new SourceDocument(view.docId, view.path, text),
      offset,
      { answerTokens: LINE_TOKENS },
    );
    if (numBlockTokens < MIN_TOKENS) return [];
    const judge = (answer: string): Verdict => {
      // The prompt may leave out its last characters. The answer must then repeat them.
      const exact = answer.trimEnd() === (opening + taken).trimEnd();
      return { exact, right: exact };
    };
    const tail = { ids: promptIds.slice(numBlockTokens), maxTokens: LINE_TOKENS, ends };
    return [
      {
        kind: 'fim' as const,
        contextIds: promptIds.slice(0, numBlockTokens),
        next: [],
        prompts: [{ tail, group: kind, judge }],
      },
    ];
  });
}

function questionExercise(layout: Layout, view: SourceDocument, questions: readonly Question[]): Exercise[] {
  const { chatTemplate, chatStopIds, manifest } = layout.text;
  if (!chatTemplate || !manifest.can.chat || questions.length === 0) return [];
  const stops = new Set(chatStopIds);
  const block = layout.fileBlock(view).tokenIds;
  const prompts = questions.flatMap((question) => {
    const { promptIds, numBlockTokens } = chatPrompt(layout, {
      doc: view,
      messages: [{ role: 'user', content: question.text }],
      answerTokens: ANSWER_TOKENS,
    });
    // All questions share one context. Skips a prompt with another one.
    if (numBlockTokens !== block.length) return [];
    return [
      {
        tail: {
          ids: promptIds.slice(numBlockTokens),
          maxTokens: ANSWER_TOKENS,
          ends: (tokenId: number) => stops.has(tokenId),
        },
        group: question.kind,
        judge: (answer: string) => judged(question, answer),
      },
    ];
  });
  return prompts.length ? [{ kind: 'question', contextIds: block, next: [], prompts }] : [];
}

/** Up to `count` questions of each kind, in a fixed order. */
export function someOfEach(questions: readonly Question[], count: number, random: () => number): Question[] {
  return QUESTION_KINDS.flatMap((kind) =>
    shuffled(
      questions.filter((question) => question.kind === kind),
      random,
    ).slice(0, count),
  );
}

async function parsed(grammars: Grammars, view: SourceDocument): Promise<Question[]> {
  const grammar = grammarFor(view);
  if (grammar === undefined) return [];
  await grammars.load(grammar);
  const language = grammars.get(grammar);
  if (!language) return [];
  const parser = new Parser().setLanguage(language);
  const tree = parser.parse(view.lf);
  try {
    return tree ? questionsOf(tree, view.lf) : [];
  } finally {
    tree?.delete();
    parser.delete();
  }
}

/** Needle exercises. Every context is as long as the model allows, at each distance. */
function needleExercises(
  layout: Layout,
  files: readonly SourceFile[],
  { distances, needles }: ExerciseOptions,
  random: () => number,
): Exercise[] {
  const { tokenizer } = layout.text;
  const exercises: Exercise[] = [];
  for (const distance of distances) {
    for (let i = 0; i < needles; i++) {
      const possible = files.filter(
        ({ path, text }) => COMMENTS[extension(path)] && tokenizer.encode(text).length > distance + 2 * MIN_TOKENS,
      );
      const file = possible[i % possible.length];
      if (!file) continue;
      const header = layout.header(file.path);
      const numTokens = Math.min(
        layout.contextTokens - header.length - RECALL_TOKENS,
        tokenizer.encode(file.text).length - 1,
      );
      if (numTokens < distance + MIN_TOKENS) continue;
      const { text, recall, value } = needleIn(
        file.text,
        COMMENTS[extension(file.path)]!,
        { numTokens, distance },
        (part) => tokenizer.encodeWithOffsets(part),
        random,
      );
      const judge = (answer: string): Verdict => ({ exact: answer === value, right: answer === value });
      const tail = {
        ids: tokenizer.encode(recall),
        maxTokens: VALUE_TOKENS,
        ends: (tokenId: number) => !/^\d+$/.test(tokenizer.decode([tokenId])),
      };
      exercises.push({
        kind: 'needle',
        contextIds: [...header, ...tokenizer.encode(text)],
        next: [],
        prompts: [{ tail, group: String(distance), judge }],
      });
    }
  }
  return exercises;
}

const extension = (path: string): string => path.slice(path.lastIndexOf('.') + 1);

/** All exercises that the model can do over these files. */
export async function exercisesOf(
  layout: Layout,
  grammars: Grammars,
  files: readonly SourceFile[],
  options: ExerciseOptions,
): Promise<Exercise[]> {
  const { tokenizer } = layout.text;
  const random = seeded(options.seed);
  const ids = files.map(({ path, text }) => [...layout.header(path), ...tokenizer.encode(text)]);
  const exercises = textExercises(ids, options);
  for (const view of files.flatMap((file) => viewsOf(layout, file))) {
    exercises.push(...fimExercises(layout, view, options.holes, random));
    exercises.push(
      ...questionExercise(layout, view, someOfEach(await parsed(grammars, view), options.questions, random)),
    );
  }
  return [...exercises, ...needleExercises(layout, files, options, random)];
}
