/** What is said where a question is about files of which no part had room: a model would tell of a file that it has made up. Pure. */
import { t } from '@vscode/l10n';
import type { ChatMessage } from '../protocol/tasks.ts';
import type { Layout } from '../text/prompt/layout.ts';
import { isGreeting } from './greeting.ts';
import type { KnownAnswer } from '../tasks/preparedRequest.ts';

/** Longer messages bring along what they are about. */
const LONGEST = 200;

/** Whether the last message has nothing but the files to be about, as far as can be told: neither a text of its own nor code that was said before. */
export function leansOnFiles(messages: readonly ChatMessage[]): boolean {
  const last = messages.at(-1)?.content.trim() ?? '';
  return (
    last.length <= LONGEST &&
    !last.includes('\n') &&
    !isGreeting(last) &&
    !messages.slice(0, -1).some(({ role, content }) => role !== 'system' && content.includes('\n'))
  );
}

/** @param paths of all files that it is about; undefined where there are none. */
export function unreadAnswer(
  { contextTokens, text: { manifest } }: Layout,
  paths: readonly string[],
): KnownAnswer | undefined {
  if (paths.length === 0) return undefined;
  const [path] = paths;
  const text =
    paths.length === 1
      ? t(
          '{0} was not read: no part of it fits in the {1} tokens that {2} reads.',
          path as string,
          contextTokens,
          manifest.name,
        )
      : t(
          '{0} were not read: no part of them fits in the {1} tokens that {2} reads.',
          paths.join(', '),
          contextTokens,
          manifest.name,
        );
  return { text, note: t('not written by the model') };
}
