/**
 * PURE: where in a conversation's tokens the user's messages stand. Found by their own tokens, whatever the template puts
 * around them: rendering the conversation up to each message would cost the square of its length. A message is found in the
 * same place however the conversation goes on.
 */

/** Shorter messages are not worth a place of their own. */
const FEWEST_CHARACTERS = 96;
/** Tokens that a message is known by. Its first and last may be others than in the text by itself. */
const MARK_TOKENS = 12;
/** More than that behind a message is not what a template writes there. */
const MOST_BEHIND = 32;

/**
 * @param contents of the user's messages, in order. @param behind tokens that the template writes behind a message.
 * @returns places of the long ones with what stands behind each, apart and in order; the first message's begins with the conversation.
 */
export function userRanges(tokenIds: readonly number[], contents: readonly string[], encode: (text: string) => number[], behind: number): [from: number, to: number][] {
  const ranges: [number, number][] = [];
  let at = 0;
  for (const [i, content] of contents.entries()) {
    if (content.length < FEWEST_CHARACTERS) continue;
    const ids = encode(content);
    const start = indexOf(tokenIds, ids.slice(1, 1 + MARK_TOKENS), at + 1);
    if (start < 0) continue;
    const from = i === 0 ? 0 : start - 1;
    at = Math.min(tokenIds.length, start - 1 + ids.length + behind);
    ranges.push([from, at]);
  }
  return ranges;
}

/** How many tokens the template writes behind a user's message, the opening of the answer with them; 0 where that cannot be told. */
export function tokensBehind(encodeChat: (content: string) => number[], encode: (text: string) => number[]): number {
  const probe = 'What is written behind this message, before its answer? Nobody knows, so it has to be tried out once: here.';
  const ids = encode(probe);
  const tokenIds = encodeChat(probe);
  const start = indexOf(tokenIds, ids.slice(1, 1 + MARK_TOKENS), 0);
  const behind = tokenIds.length - (start - 1 + ids.length);
  return start > 0 && behind >= 0 && behind <= MOST_BEHIND ? behind : 0;
}

function indexOf(tokenIds: readonly number[], mark: readonly number[], from: number): number {
  for (let at = from; mark.length > 0 && at + mark.length <= tokenIds.length; at++) if (mark.every((id, i) => tokenIds[at + i] === id)) return at;
  return -1;
}
