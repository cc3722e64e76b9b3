/**
 * Prepares an edit: new code for a range of a document, from an instruction. The prompt has the same file block as
 * chat. Reduces the answer to the code, with the indentation and line ends of the old code. Runs nothing.
 */
import { t } from '@vscode/l10n';
import { RequestError } from '../protocol/errors.ts';
import type { SamplingParams } from '../protocol/tasks.ts';
import { chatPrompt } from '../text/prompt/chatPrompt.ts';
import type { Layout } from '../text/prompt/layout.ts';
import type { SourceDocument } from '../text/syntax/sourceDocument.ts';
import { reasoningForm } from './reasoning.ts';
import { blockContent, fenceFor, fromBlock, languageOf, openingIds, runaway } from './repetition.ts';
import {
  prefillRanges,
  type PreparedRequest,
  requireInstructions,
  type Shaped,
  samplingFor,
} from './preparedRequest.ts';

export interface EditOptions {
  /** In the host's text. */
  range: { start: number; end: number };
  instruction: string;
}

/** Tokens that an edit may add to the code. */
const EXTRA_TOKENS = 256;
/** Copies of a unit that count as endless repetition. Tables and generated code have fewer. */
const minCopies = (period: number): number => Math.max(12, 240 / period);

/**
 * @throws RequestError `badRequest` for a model that does not follow instructions, a range outside the text, or an
 * empty instruction; `contextTooLong` for a range that does not fit
 */
export function prepareEdit(
  layout: Layout,
  doc: SourceDocument,
  { range, instruction }: EditOptions,
  sampling?: SamplingParams,
): PreparedRequest {
  const { manifest, tokenizer } = layout.text;
  requireInstructions(
    manifest,
    t('{0} cannot change code: it does not follow instructions. Choose a larger model', manifest.name),
  );
  if (!(range.start >= 0 && range.start <= range.end && range.end <= doc.text.length)) {
    throw new RequestError(
      'badRequest',
      t('range {0}-{1} is outside {2}, which has {3} characters', range.start, range.end, doc.path, doc.text.length),
    );
  }
  if (instruction.trim() === '') throw new RequestError('badRequest', t('the instruction of an edit is empty'));
  const place = placeOf(doc, range);
  const numTokens = tokenizer.encode(place.code).length;
  const most = Math.floor((layout.contextTokens - EXTRA_TOKENS / 2) / 2.5);
  if (numTokens > most)
    throw new RequestError(
      'contextTooLong',
      t(
        'the selected code takes {0} tokens, but this model can rewrite {1} at a time. Select less',
        numTokens,
        Math.max(0, most),
      ),
    );
  const wanted = sampling?.maxTokens ?? 2 * numTokens + EXTRA_TOKENS;
  const fence = fenceFor(place.code);
  const opening = openingIds(layout, fence, languageOf(doc.path));
  const prompt = chatPrompt(layout, {
    doc,
    cursorOffset: doc.toLf(range.start),
    messages: [{ role: 'user', content: question(doc, place, instruction, fence) }],
    answerTokens:
      Math.min(wanted, Math.ceil(1.5 * numTokens) + EXTRA_TOKENS / 2, Math.floor(layout.contextTokens / 2)) +
      opening.length,
    enableThinking: false,
  });
  const reasoning = reasoningForm(layout.text, prompt.promptIds, true);
  const reasonsFirst = reasoning.start === 'inside';
  const promptIds = reasonsFirst ? prompt.promptIds : [...prompt.promptIds, ...opening];
  return {
    promptIds,
    blockTokens: prompt.numBlockTokens,
    prefill: prefillRanges(
      prompt.numBlockTokens,
      [[0, promptIds.length - prompt.numBlockTokens]],
      layout.fewestPrefill,
    ),
    docId: doc.docId,
    sampling: samplingFor(sampling, { maxTokens: wanted, temperature: 0 }, promptIds.length, layout.contextTokens),
    stopTokenIds: layout.text.chatStopIds,
    // Code that contains a mark may begin with it.
    ...(!reasonsFirst && place.code.includes(reasoning.open) ? {} : { reasoning }),
    shape: (rawText, finished) =>
      shapeEdit(place, fence, reasonsFirst ? fromBlock(rawText, finished) : rawText, finished),
    notes: prompt.notes,
  };
}

/** The code that is replaced. */
interface EditPlace {
  /** With the indentation of its first line, also if the range starts after the indentation. */
  code: string;
  /** White space before the range on its first line. It stays, so it is not part of the new text. */
  lead: string;
  /** Whether code stands before the range on its first line. */
  midLine: boolean;
  /** From 1. */
  line: number;
  lineEnd: '\n' | '\r\n';
}

function placeOf(doc: SourceDocument, range: EditOptions['range']): EditPlace {
  const [start, end] = [doc.toLf(range.start), doc.toLf(range.end)];
  const line = doc.lineAt(start);
  const before = doc.lf.slice(doc.lineStart(line), start);
  const midLine = before.trim() !== '';
  const lead = midLine ? '' : before;
  return { code: lead + doc.lf.slice(start, end), lead, midLine, line: line + 1, lineEnd: doc.lineEnd };
}

function question(doc: SourceDocument, { code, line }: EditPlace, instruction: string, fence: string): string {
  const asked = `Instruction: ${instruction.replaceAll('\r\n', '\n').trim()}`;
  if (code.trim() === '')
    return `Write new code for line ${line} of ${doc.path}.\n${asked}\nAnswer with the new code only, in one code block.`;
  const fenced = `${fence}${languageOf(doc.path)}\n${code.replace(/\n+$/, '')}\n${fence}`;
  return (
    `Change this code of ${doc.path}, from line ${line} on:\n${fenced}\n${asked}\n` +
    'Answer with the whole changed code only, in one code block, indented as it was.'
  );
}

/** The text that replaces the range. More raw text only adds to it. */
function shapeEdit(place: EditPlace, fence: string, rawText: string, finished: boolean): Shaped {
  const { text: content, closed } = blockContent(rawText, fence, finished);
  const over = finished || closed;
  if (content === '') return { text: '', stop: over, ...(over ? { note: t('the model gave no code') } : {}) };
  const blank = place.code.trim() === '';
  const blankLines = blank ? '' : (/^(?:[ \t]*\n)*/.exec(place.code) as RegExpExecArray)[0];
  const indent = (/^[ \t]*/.exec(place.code.slice(blankLines.length)) as RegExpExecArray)[0];
  const code = place.midLine ? content.trimStart() : blankLines + indented(content, indent);
  const circling = !over && runaway(rawText, minCopies) !== undefined;
  const tail = over ? ((blank ? /\n$/ : /\s*$/).exec(place.code)?.[0] ?? '') : '';
  const text = (code.slice(place.lead.length) + tail).replaceAll('\n', place.lineEnd);
  return {
    text,
    stop: over || circling,
    ...(circling ? { note: t('stopped where the new code only repeats itself') } : {}),
  };
}

/** Indents all lines so that the first has `indent`. Models often write code without indentation. */
function indented(content: string, indent: string): string {
  const own = (/^[ \t]*/.exec(content) as RegExpExecArray)[0];
  if (own === indent) return content;
  const lines = content.split('\n');
  if (indent.startsWith(own))
    return lines.map((line) => (line.trim() === '' ? line : indent.slice(own.length) + line)).join('\n');
  const excess = own.startsWith(indent) ? own.length - indent.length : own.length;
  const prefix = own.startsWith(indent) ? '' : indent;
  return lines
    .map((line) =>
      line.trim() === '' ? line : prefix + line.slice(Math.min(excess, line.length - line.trimStart().length)),
    )
    .join('\n');
}
