/** A commit message task: the diff as far as it fits, the project's habits, and the answer reduced to the message. Pure. */
import { t } from '@vscode/l10n';
import { RequestError } from '../errors.ts';
import type { SamplingParams } from '../protocol.ts';
import { chatPrompt } from '../text/chatPrompt.ts';
import type { Layout } from '../text/layout.ts';
import { blockContent, fenceFor, openingIds } from './codeBlock.ts';
import { diffExcerpt } from './diffExcerpt.ts';
import { prefillRanges } from './prefillRanges.ts';
import { type PreparedRequest, type Shaped, answerRoom, samplingFor } from './preparedRequest.ts';
import { runaway } from './repetition.ts';

export interface CommitMessageOptions {
  /** Unified. */
  diff: string;
  /** First lines of recent commits, newest first. */
  subjects?: readonly string[];
}

const MAX_TOKENS = 256;
const MOST_SUBJECTS = 8;
const SUBJECT_CHARACTERS = 100;

/** Throws `badRequest` for a model that does not follow instructions or an empty diff, `contextTooLong` when not even a part of it fits. */
export function prepareCommitMessage(
  layout: Layout,
  { diff, subjects = [] }: CommitMessageOptions,
  sampling?: SamplingParams,
): PreparedRequest {
  const { manifest, tokenizer } = layout.text;
  if (!manifest.can.edit)
    throw new RequestError(
      'badRequest',
      t('{0} cannot write commit messages: it does not follow instructions. Choose a larger model', manifest.name),
    );
  if (diff.trim() === '') throw new RequestError('badRequest', t('there is no change to write a commit message for'));
  const lf = diff.replaceAll('\r\n', '\n');
  const fence = fenceFor(lf);
  const opening = openingIds(layout, fence, '');
  const answerTokens = answerRoom(sampling?.maxTokens ?? MAX_TOKENS, layout.contextTokens) + opening.length;
  const prompt = (text: string) =>
    chatPrompt(layout, { messages: [{ role: 'user', content: question(text, subjects, fence) }], answerTokens });
  const frame = prompt('').promptIds.length;
  // Tokens at the seams may part differently than alone.
  const { text, omitted } = diffExcerpt(tokenizer, lf, layout.contextTokens - answerTokens - frame - 8);
  if (text === '')
    throw new RequestError(
      'contextTooLong',
      t(
        'a commit message needs {0} tokens besides the diff, and this model reads {1}',
        frame + answerTokens,
        layout.contextTokens,
      ),
    );
  const { promptIds, notes } = prompt(text);
  const ids = [...promptIds, ...opening];
  return {
    promptIds: ids,
    blockTokens: 0,
    prefill: prefillRanges(0, [[0, ids.length]], layout.fewestPrefill),
    docId: null,
    sampling: samplingFor(sampling, { maxTokens: MAX_TOKENS, temperature: 0 }, ids.length, layout.contextTokens),
    stopTokenIds: layout.text.chatStopIds,
    shape: (rawText, finished) => shapeMessage(rawText, fence, finished),
    notes: omitted === '' ? notes : [...notes, omitted],
  };
}

function question(diff: string, subjects: readonly string[], fence: string): string {
  const habits = subjects.slice(0, MOST_SUBJECTS).map((subject) => `- ${subject.trim().slice(0, SUBJECT_CHARACTERS)}`);
  const style = habits.length ? `\nThe project's last commits, as examples of its style:\n${habits.join('\n')}` : '';
  return `Write a git commit message for this diff:\n${fence}diff\n${diff}\n${fence}${style}
A subject line of at most 72 characters says what the change does. Where that is not enough, a blank line and a short body follow that say why. Answer with the message only, in one code block.`;
}

/** The message without fences; more raw text only ever adds to it. */
export function shapeMessage(rawText: string, fence: string, finished: boolean): Shaped {
  const { text: content, closed } = blockContent(rawText, fence, finished);
  const text = content.trimStart();
  const over = finished || closed;
  if (over) return { text, stop: true, ...(text === '' ? { note: t('the model gave no message') } : {}) };
  if (runaway(rawText, (period) => Math.max(5, 72 / period)) !== undefined)
    return { text, stop: true, note: t('stopped where the message only repeats itself') };
  return { text, stop: false };
}
