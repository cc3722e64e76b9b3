/**
 * Prepares a commit message: the part of the diff that fits, recent commits as examples, and the message without the
 * code fences of the answer. Runs nothing.
 */
import { t } from '@vscode/l10n';
import { RequestError } from '../protocol/errors.ts';
import type { SamplingParams } from '../protocol/tasks.ts';
import { chatPrompt } from '../text/prompt/chatPrompt.ts';
import type { Layout } from '../text/prompt/layout.ts';
import type { Tokenizer } from '../text/tokenizer/tokenizer.ts';
import {
  prefillRanges,
  type PreparedRequest,
  requireInstructions,
  type Shaped,
  reservedForAnswer,
  samplingFor,
} from './preparedRequest.ts';
import { reasoningForm } from './reasoning.ts';
import { blockContent, fenceFor, fromBlock, openingIds, runaway } from './repetition.ts';

export interface CommitMessageOptions {
  /** In unified format. */
  diff: string;
  /** First lines of recent commits, newest first. */
  subjects?: readonly string[];
}

const MAX_TOKENS = 256;
const MAX_SUBJECTS = 8;
const SUBJECT_CHARACTERS = 100;

/**
 * @throws RequestError `badRequest` for a model that does not follow instructions, or an empty diff; `contextTooLong`
 * if no part of the diff fits
 */
export function prepareCommitMessage(
  layout: Layout,
  { diff, subjects = [] }: CommitMessageOptions,
  sampling?: SamplingParams,
): PreparedRequest {
  const { manifest, tokenizer } = layout.text;
  requireInstructions(
    manifest,
    t('{0} cannot write commit messages: it does not follow instructions. Choose a larger model', manifest.name),
  );
  if (diff.trim() === '')
    throw new RequestError('badRequest', t('there are no changes to describe in a commit message'));
  const lf = diff.replaceAll('\r\n', '\n');
  const fence = fenceFor(lf);
  const opening = openingIds(layout, fence, '');
  const answerTokens = reservedForAnswer(sampling?.maxTokens ?? MAX_TOKENS, layout.contextTokens) + opening.length;
  const prompt = (text: string) =>
    chatPrompt(layout, {
      messages: [{ role: 'user', content: question(text, subjects, fence) }],
      answerTokens,
      enableThinking: false,
    });
  const frame = prompt('').promptIds.length;
  // 8 tokens in reserve, because the diff may have other tokens inside the question than alone.
  const { text, omitted } = diffExcerpt(tokenizer, lf, layout.contextTokens - answerTokens - frame - 8);
  if (text === '')
    throw new RequestError(
      'contextTooLong',
      t(
        'a commit message needs {0} tokens in addition to the diff, but this model reads {1}',
        frame + answerTokens,
        layout.contextTokens,
      ),
    );
  const { promptIds, notes } = prompt(text);
  const reasoning = reasoningForm(layout.text, promptIds, true);
  const reasonsFirst = reasoning.start === 'inside';
  const ids = reasonsFirst ? promptIds : [...promptIds, ...opening];
  return {
    promptIds: ids,
    blockTokens: 0,
    prefill: prefillRanges(0, [[0, ids.length]], layout.fewestPrefill),
    docId: null,
    sampling: samplingFor(sampling, { maxTokens: MAX_TOKENS, temperature: 0 }, ids.length, layout.contextTokens),
    stopTokenIds: layout.text.chatStopIds,
    reasoning,
    shape: (rawText, finished) => shapeMessage(reasonsFirst ? fromBlock(rawText, finished) : rawText, fence, finished),
    notes: omitted === '' ? notes : [...notes, omitted],
  };
}

function question(diff: string, subjects: readonly string[], fence: string): string {
  const habits = subjects.slice(0, MAX_SUBJECTS).map((subject) => `- ${subject.trim().slice(0, SUBJECT_CHARACTERS)}`);
  const style = habits.length ? `\nThe project's last commits, as examples of its style:\n${habits.join('\n')}` : '';
  return (
    `Write a git commit message for this diff:\n${fence}diff\n${diff}\n${fence}${style}\n` +
    'A subject line of at most 72 characters says what the change does. Where that is not enough, ' +
    'a blank line and a short body follow that say why. Answer with the message only, in one code block.'
  );
}

/** The message without fences. More raw text only adds to it. */
export function shapeMessage(rawText: string, fence: string, finished: boolean): Shaped {
  const { text: content, closed } = blockContent(rawText, fence, finished);
  const text = content.trimStart();
  const over = finished || closed;
  if (over) return { text, stop: true, ...(text === '' ? { note: t('the model gave no message') } : {}) };
  if (runaway(rawText, (period) => Math.max(5, 72 / period)) !== undefined)
    return { text, stop: true, note: t('stopped where the message only repeats itself') };
  return { text, stop: false };
}

// --- excerpt of the diff ----------------------------------------------------------

/** Most characters that are encoded per token of the limit. */
const CHARACTERS_PER_TOKEN = 6;
/** A smaller part of the diff of a file is useless. */
const MIN_TOKENS = 24;

export interface DiffExcerpt {
  text: string;
  /** Says for the user what is left out. Empty if the whole diff fits. */
  omitted: string;
}

/**
 * The part of a diff that fits in `limit` tokens. Each file gets a fair share. Marks in the text say what is missing.
 */
export function diffExcerpt(tokenizer: Tokenizer, diff: string, limit: number): DiffExcerpt {
  const files = diff.split(/^(?=diff --git )/m).filter((part) => part.trim() !== '');
  const sizes = files.map((file) =>
    file.length > limit * CHARACTERS_PER_TOKEN ? Number.POSITIVE_INFINITY : tokenizer.encode(file).length,
  );
  // Tokens of the longest mark.
  const markTokens = tokenizer.encode(`\n${missingLines(10_000)}`).length;
  const least = MIN_TOKENS + markTokens;
  const shares = shareOut(sizes, limit, least);
  let numLines = 0;
  let numShown = 0;
  const parts: string[] = [];
  let numDropped = 0;
  for (const [i, file] of files.entries()) {
    const lines = file.replace(/\n$/, '').split('\n');
    numLines += lines.length;
    const share = shares[i] as number;
    const shown =
      (sizes[i] as number) <= share
        ? lines.length
        : share < least
          ? 0
          : linesWithin(tokenizer, file, share - markTokens);
    numShown += shown;
    if (shown === 0) numDropped++;
    else
      parts.push(
        [...lines.slice(0, shown), ...(shown < lines.length ? [missingLines(lines.length - shown)] : [])].join('\n'),
      );
  }
  if (numShown === numLines) return { text: parts.join('\n'), omitted: '' };
  if (numDropped) parts.push(`[the diffs of ${numDropped} more files]`);
  const dropped = numDropped ? `, nothing of ${numDropped} of its ${files.length} files` : '';
  return {
    text: parts.join('\n'),
    omitted: `the diff has ${numLines} lines; only ${numShown} of them fit in this model${dropped}`,
  };
}

function missingLines(count: number): string {
  return `[${count} more lines of this file's diff]`;
}

/**
 * Shares for files of these sizes. Small files get what they need, the others equal shares of the rest. If the shares
 * would be below `least`, the last files get nothing.
 */
function shareOut(sizes: readonly number[], limit: number, least: number): number[] {
  const shares = sizes.map(() => 0);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const wanting = sizes.map((_, i) => i).slice(0, total <= limit ? sizes.length : Math.floor(limit / least));
  wanting.sort((a, b) => (sizes[a] as number) - (sizes[b] as number));
  // Reserves tokens for one mark, which counts the files that are not shown.
  let left = wanting.length < sizes.length ? limit - (least - MIN_TOKENS) : limit;
  for (const [k, i] of wanting.entries()) {
    shares[i] = Math.min(sizes[i] as number, Math.floor(left / (wanting.length - k)));
    left -= shares[i];
  }
  return shares;
}

function linesWithin(tokenizer: Tokenizer, text: string, limit: number): number {
  const { ids, ends } = tokenizer.encodeWithOffsets(text.slice(0, Math.max(0, limit) * CHARACTERS_PER_TOKEN));
  const end = ids.length <= limit ? Math.max(0, limit) * CHARACTERS_PER_TOKEN : (ends[limit - 1] ?? 0);
  return text.slice(0, end).split('\n').length - 1;
}
