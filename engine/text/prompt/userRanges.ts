/**
 * Finds the messages of the user in the tokens of a conversation, by their own tokens, whatever the template writes
 * around them. Rendering the conversation up to each message would take quadratic time. A message is found in the same
 * place however the conversation goes on. Pure functions.
 */

/** Shorter messages are not worth a place of their own. */
const MIN_CHARACTERS = 96;
/** Tokens that a message is known by. Its first and last may be others than in the text by itself. */
const MARK_TOKENS = 12;
/** More than that behind a message is not what a template writes there. */
const MAX_BEHIND = 32;

/**
 * @param contents of the user's messages, in order. @param behind what the template writes behind a message (see
 * tokensBehind).
 * @returns places of the long ones with what stands behind each, apart and in order; the first message's begins with
 * the conversation.
 */
export function userRanges(
  tokenIds: readonly number[],
  contents: readonly string[],
  encode: (text: string) => number[],
  behind: readonly number[],
): [from: number, to: number][] {
  const ranges: [number, number][] = [];
  let at = 0;
  for (const [i, content] of contents.entries()) {
    if (content.length < MIN_CHARACTERS) continue;
    // Some templates trim.
    const places = [...new Set([content, content.trim()])].map((text) => placeOf(tokenIds, encode(text), behind, at));
    const place = places.find((found) => found?.isWhole) ?? places.at(-1);
    if (!place) continue;
    ranges.push([i === 0 ? 0 : place.from, place.to]);
    at = place.to;
  }
  return ranges;
}

interface Place {
  readonly from: number;
  readonly to: number;
  /** With what is written behind it. */
  readonly isWhole: boolean;
}

/**
 * Where a message's tokens stand, with what is written behind it: an answer may hold the same text. Where it is nowhere
 * written
 * so, the first place of the message alone: its last token may be one with what follows.
 */
function placeOf(
  tokenIds: readonly number[],
  ids: readonly number[],
  behind: readonly number[],
  from: number,
): Place | null {
  const first = ids.slice(1, 1 + MARK_TOKENS);
  const last = ids.slice(-1 - MARK_TOKENS, -1);
  let alone: Place | null = null;
  for (let start = indexOf(tokenIds, first, from + 1); start >= 0; start = indexOf(tokenIds, first, start + 1)) {
    const end = start - 1 + ids.length;
    if (end > tokenIds.length || !standsAt(tokenIds, last, end - 1 - last.length)) continue;
    if (behind.length > 0 && standsAt(tokenIds, behind, end))
      return { from: start - 1, to: end + behind.length, isWhole: true };
    alone ??= { from: start - 1, to: end, isWhole: false };
  }
  return alone;
}

/**
 * Tokens that the template writes behind a user's message, the opening of the answer with them; none where that cannot
 * be told.
 */
export function tokensBehind(
  encodeChat: (content: string) => number[],
  encode: (text: string) => number[],
): readonly number[] {
  const probe =
    'What is written behind this message, before its answer? Nobody knows, so it has to be tried out once: here.';
  const tokenIds = encodeChat(probe);
  const place = placeOf(tokenIds, encode(probe), [], 0);
  return place && tokenIds.length - place.to <= MAX_BEHIND ? tokenIds.slice(place.to) : [];
}

function standsAt(tokenIds: readonly number[], mark: readonly number[], at: number): boolean {
  return mark.every((id, i) => tokenIds[at + i] === id);
}

function indexOf(tokenIds: readonly number[], mark: readonly number[], from: number): number {
  for (let at = from; mark.length > 0 && at + mark.length <= tokenIds.length; at++)
    if (standsAt(tokenIds, mark, at)) return at;
  return -1;
}
