/** A completion task: its prompt, its sampling, and how what the model writes is shown at the cursor. Pure. */
import { RequestError } from '../errors.ts';
import type { SamplingParams, Snippet } from '../protocol.ts';
import { completionPrompt } from '../text/completionPrompt.ts';
import type { Layout } from '../text/layout.ts';
import type { SourceDocument } from '../text/sourceDocument.ts';
import { type CursorContext, shapeCompletion } from './completionText.ts';
import { type PreparedRequest, answerRoom, samplingFor } from './preparedRequest.ts';

export interface CompleteOptions {
  /** Of the host's text. */
  offset: number;
  multiline?: boolean;
  snippets?: readonly Snippet[];
}

/** Throws `badRequest` for an offset outside the text or a model that cannot complete. */
export function prepareComplete(layout: Layout, doc: SourceDocument, options: CompleteOptions, sampling?: SamplingParams): PreparedRequest {
  const { manifest } = layout.text;
  if (!manifest.can.complete) throw new RequestError('badRequest', `${manifest.name} cannot complete code: ${layout.text.faults.complete ?? 'it has no fill-in-the-middle tokens'}`);
  if (!(options.offset >= 0 && options.offset <= doc.text.length)) throw new RequestError('badRequest', `offset ${options.offset} lies outside ${doc.path}, which has ${doc.text.length} characters`);
  const offset = doc.toLf(options.offset);
  const multiline = options.multiline ?? wantsLines(doc, offset);
  const maxTokens = multiline ? manifest.completion.multilineMaxTokens : manifest.completion.maxTokens;
  const prompt = completionPrompt(layout, doc, offset, { answerTokens: answerRoom(sampling?.maxTokens ?? maxTokens, layout.contextTokens), snippets: options.snippets });
  const context = cursorContext(doc, offset, multiline);
  return {
    promptIds: prompt.promptIds,
    blockTokens: prompt.numBlockTokens,
    docId: doc.docId,
    sampling: samplingFor(sampling, { maxTokens, temperature: 0 }, prompt.promptIds.length, layout.contextTokens),
    stopTokenIds: layout.text.completionStopIds,
    shape: (rawText, finished) => shapeCompletion(context, rawText, finished),
    notes: prompt.notes,
  };
}

/** Several lines at the end of a line that opens a block, and on an empty line; one line elsewhere. */
function wantsLines(doc: SourceDocument, offset: number): boolean {
  const line = doc.lineAt(offset);
  const before = doc.lf.slice(doc.lineStart(line), offset).trim();
  const after = doc.lf.slice(offset, doc.lineStart(line + 1)).trim();
  return after === '' && (before === '' || /[{([:]$|=>$/.test(before));
}

function cursorContext(doc: SourceDocument, offset: number, multiline: boolean): CursorContext {
  const line = doc.lineAt(offset);
  const lineEndAt = doc.lf.indexOf('\n', offset);
  const after = doc.lf.slice(offset, lineEndAt < 0 ? undefined : lineEndAt);
  let nextLine = '';
  for (let i = line + 1; nextLine === '' && i < Math.min(doc.numLines, line + 20); i++) nextLine = doc.lf.slice(doc.lineStart(i), doc.lineStart(i + 1)).trim();
  return { before: doc.lf.slice(doc.lineStart(line), offset), after, nextLine, multiline, lineEnd: doc.lineEnd };
}
