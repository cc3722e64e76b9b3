/**
 * Reads kvasir.json, the optional file beside a model that says what it was trained to do: prompt layouts, questions,
 * and notes for the user. Every field may be left out. Does not check the tokenizer (see modelText.ts).
 */
import { RequestError } from '../../protocol/errors.ts';
import { oneLine } from '../../protocol/oneLine.ts';
import type { ModelFiles } from '../../model/load/modelFiles.ts';
import type { ModelInfo } from '../../protocol/stats.ts';
import type { FimLayout, FoundFim, OwnFim } from './fimFamilies.ts';
import type { CopyWeights } from '../copy/copyPrior.ts';
import type { Healing } from '../tokenizer/healing.ts';

export interface Manifest {
  name: string;
  version: string;
  /**
   * Describes the model to the user. May be empty. In kvasir.json it is one text for all languages, or one text per
   * language. A missing language gets the text of the other one.
   */
  note: ModelInfo['note'];
  can: {
    complete: boolean;
    chat: boolean;
    summarize: boolean;
    /** Follows instructions well enough to change code. */
    edit: boolean;
  };
  /** Where the open file goes: after a file separator at the start, or inside the first turn of the chat template. */
  fileBlock: 'fileSeparator' | 'chatTemplate';
  completion: {
    /** Whether the file block may come before the FIM tail. */
    layout: 'blockAndTail' | 'tail';
    /** `suffixFirst` ends the prompt with the prefix. `family` is the published order of the control tokens. */
    order: 'suffixFirst' | 'family';
    /** The tokens of a family that is not known, or their order. Empty: those of the known family (see fimFamilies). */
    fim: OwnFim;
    maxTokens: number;
    multilineMaxTokens: number;
    /** Whether the prompt may have snippets of other files before the current file. */
    snippets: boolean;
    /** Which part of the text before the cursor is removed from the prompt and generated again (see healing.ts). */
    heal: Healing;
    /** Weights of copying from the file and from others (see CopyPrior). */
    copy: CopyWeights;
    /**
     * Lowest confidence of text that is shown (see Confidence). Needs a model whose probabilities are calibrated. The
     * default of `lines` is `line`.
     */
    confidence: { line: number; words: number; lines: number };
  };
  chat: {
    /** Whether the model follows a system turn. */
    system: boolean;
    maxTokens: number;
    temperature: number;
    repetitionPenalty: number;
    /** Replaces a message that is only a greeting, by language. Empty: the message is not replaced. */
    greetings: { en: string; pt: string };
    /**
     * Whether questions are answered from the syntax tree if it has the answer. For models that often answer wrongly.
     */
    facts: boolean;
    /** Tells the user how reliable the answers are. Shown under the first answer. Has the form of `note`. */
    note: ModelInfo['note'];
  };
  summary: {
    fileQuestion: string;
    /** {name} is replaced by the name of the symbol. */
    symbolQuestion: string;
    /** Stands before the selected code. */
    selectionQuestion: string;
    /** The summary of a folder is a list of the summaries of its files, or one answer made from them. */
    folder: 'list' | 'reduce';
    folderQuestion: string;
    maxTokens: number;
  };
}

/** What the files of the model offer. The model may be trained for less. */
export interface Offers {
  fim(own: OwnFim): FoundFim;
  readsRepository(layout: FimLayout): boolean;
  chatTemplate: boolean;
  fileSeparator: boolean;
}

/** What of it a manifest starts from. */
interface Abilities {
  complete: boolean;
  readsRepository: boolean;
  chatTemplate: boolean;
}

/**
 * The manifest of the folder, or a default one that follows from its files, and the layout of its completions.
 * @throws RequestError `modelInvalid` with the name of a wrong field, also if the files do not have what it promises
 */
export async function readManifest(folder: ModelFiles, offers: Offers): Promise<{ manifest: Manifest; fim: FoundFim }> {
  const json = await folder.readJson('kvasir.json');
  const read = (complete: boolean, readsRepository: boolean): Manifest => {
    const { chatTemplate } = offers;
    const defaults = defaultManifest(folder.name, { complete, readsRepository, chatTemplate });
    return json === null ? defaults : parseManifest(json.value, defaults);
  };
  const fim = offers.fim(read(false, false).completion.fim);
  const manifest = read(fim.layout !== undefined, fim.layout !== undefined && offers.readsRepository(fim.layout));
  if (manifest.can.complete && fim.layout === undefined)
    throw invalid('can.complete', `is true, but ${fim.fault ?? 'the tokenizer has no fill-in-the-middle tokens'}`);
  if ((manifest.can.chat || manifest.can.summarize) && !offers.chatTemplate)
    throw invalid('can.chat', 'is true, but the model has no chat template');
  if (manifest.fileBlock === 'fileSeparator' && !offers.fileSeparator)
    throw invalid('fileBlock', 'is "fileSeparator", but the tokenizer has no <|file_sep|>');
  return { manifest, fim };
}

/** The manifest of a model without kvasir.json. */
function defaultManifest(name: string, { complete, readsRepository, chatTemplate }: Abilities): Manifest {
  return {
    name,
    version: '',
    note: { en: '', pt: '' },
    can: { complete, chat: chatTemplate, summarize: chatTemplate, edit: chatTemplate },
    fileBlock: 'chatTemplate',
    completion: {
      layout: 'tail',
      order: 'family',
      fim: { order: '', prefix: '', suffix: '', middle: '', file: '' },
      maxTokens: 64,
      multilineMaxTokens: 160,
      snippets: readsRepository,
      heal: 'word',
      copy: { share: 0, doubt: 0, match: 0, agreement: 0, confidence: 0, others: 0 },
      confidence: { line: 0, words: 0, lines: 0 },
    },
    chat: {
      system: true,
      maxTokens: 1024,
      temperature: 0.2,
      repetitionPenalty: 1,
      greetings: { en: '', pt: '' },
      facts: false,
      note: { en: '', pt: '' },
    },
    summary: {
      fileQuestion:
        'Summarise this file in two or three sentences: what it is for and what its main parts do. No list, no code.',
      symbolQuestion: 'Explain in one or two sentences what `{name}` does in this file.',
      selectionQuestion: 'Explain in one or two sentences what this code does.',
      folder: 'reduce',
      folderQuestion:
        'These are summaries of the files of one folder. ' +
        'Summarise the folder in three or four sentences: what it is for and how the files work together.',
      maxTokens: 256,
    },
  };
}

/** The manifest in `json`, with `defaults` for missing fields. */
function parseManifest(json: Record<string, unknown>, defaults: Manifest): Manifest {
  const allowed: Record<string, readonly string[]> = {
    fileBlock: ['fileSeparator', 'chatTemplate'],
    'completion.layout': ['blockAndTail', 'tail'],
    'completion.order': ['suffixFirst', 'family'],
    'completion.fim.order': ['prefix-suffix-middle', 'suffix-prefix-middle'],
    'completion.heal': ['none', 'word', 'token'],
    'summary.folder': ['list', 'reduce'],
  };
  const manifest = merge(defaults as unknown as Fields, json, '', allowed) as unknown as Manifest;
  for (const texts of [manifest, manifest.chat])
    texts.note = { en: texts.note.en || texts.note.pt, pt: texts.note.pt || texts.note.en };
  const { copy, confidence } = manifest.completion;
  const said = (json.completion as { confidence?: object } | undefined)?.confidence;
  if (said && !('lines' in said)) confidence.lines = confidence.line;
  for (const [field, share] of [
    ['copy.share', copy.share],
    ['copy.others', copy.others],
    ['confidence.line', confidence.line],
    ['confidence.words', confidence.words],
    ['confidence.lines', confidence.lines],
  ] as const)
    if (share > 1) throw invalid(`completion.${field}`, 'is above 1; it must be from 0 to 1');
  if (!manifest.summary.symbolQuestion.includes('{name}'))
    throw invalid('summary.symbolQuestion', 'does not contain "{name}", the place of the name');
  return manifest;
}

/** Bounds of numbers by the last name of their field, and of texts. Most text is shown to the user. */
const BOUNDS: Readonly<Record<string, readonly [least: number, most: number]>> = {
  temperature: [0, 100],
  repetitionPenalty: [0.01, 100],
};
const MAX_NUMBER = 1000;
const MAX_ANSWER_TOKENS = 65_536;
const MAX_TEXT = 10_000;
const MAX_NAME = 200;

function invalid(field: string, problem: string): RequestError {
  return new RequestError('modelInvalid', `kvasir.json: ${field} ${problem}`);
}

interface Fields {
  [field: string]: string | number | boolean | Fields;
}

/** Replaces defaults by the fields of `json`. Each field must have the type of its default. */
function merge(
  defaults: Fields,
  json: Record<string, unknown>,
  path: string,
  allowed: Record<string, readonly string[]>,
): Fields {
  const merged: Fields = { ...defaults };
  for (const [key, value] of Object.entries(json)) {
    const field = path === '' ? key : `${path}.${key}`;
    const fallback = defaults[key];
    if (fallback === undefined || !Object.hasOwn(defaults, key))
      throw invalid(
        field.replace(/\s+/g, ' ').slice(0, 80),
        `is not a known field; known are ${Object.keys(defaults).join(', ')}`,
      );
    if (typeof fallback === 'object') {
      const given = key === 'note' && typeof value === 'string' ? { en: value } : value;
      if (typeof given !== 'object' || given === null || Array.isArray(given))
        throw invalid(field, key === 'note' ? 'is neither a string nor an object' : 'is not an object');
      merged[key] = merge(fallback, given as Record<string, unknown>, field, allowed);
      continue;
    }
    if (typeof value !== typeof fallback) throw invalid(field, `is not a ${typeof fallback}`);
    const choices = allowed[field];
    if (choices !== undefined && !choices.includes(value as string))
      throw invalid(
        field,
        `is ${JSON.stringify(value).slice(0, 80)}; known are ${choices.map((choice) => `"${choice}"`).join(', ')}`,
      );
    checkValue(field, key, value as string | number | boolean);
    merged[key] = value as string | number | boolean;
  }
  return merged;
}

function checkValue(field: string, key: string, value: string | number | boolean): void {
  if (typeof value === 'number' && /[tT]okens$/.test(key)) {
    if (!Number.isInteger(value) || value < 1 || value > MAX_ANSWER_TOKENS)
      throw invalid(field, `is not a whole number from 1 to ${MAX_ANSWER_TOKENS}`);
  } else if (typeof value === 'number') {
    const [least, most] = BOUNDS[key] ?? [0, MAX_NUMBER];
    if (!(value >= least && value <= most)) throw invalid(field, `is not a number from ${least} to ${most}`);
  } else if (typeof value === 'string') {
    const isName = field === 'name' || field === 'version';
    const most = isName ? MAX_NAME : MAX_TEXT;
    if (value.length > most) throw invalid(field, `has ${value.length} characters; at most ${most} are supported`);
    if (isName && value !== oneLine(value)) throw invalid(field, 'is not one line of text');
  }
}
