/** Finds text that goes round in circles: pure string functions on what a model has written so far. */

/**
 * Start of the longest end of the text that also stands earlier in it: how much of the end may turn out to be a
 * repetition. Never moves back as the text grows.
 */
export function repeatedEnd(text: string): number {
  let low = 0;
  let high = text.length - 1;
  while (low < high) {
    const length = (low + high + 1) >> 1;
    if (text.lastIndexOf(text.slice(text.length - length), text.length - length - 1) >= 0) low = length;
    else high = length - 1;
  }
  return text.length - Math.max(0, low);
}

/**
 * The end of the text as copies of one period, when there are too many of them to be meant; undefined otherwise.
 * `start` is where the first copy starts.
 */
export function runaway(
  text: string,
  minCopies: (period: number, unit: () => string) => number,
): { start: number; period: number } | undefined {
  const reversed = reverse(text.slice(-1000));
  // KMP: the shortest period of every start of the reversed text is its length minus its longest border.
  const border = new Int32Array(reversed.length + 1);
  border[0] = -1;
  let best: { start: number; period: number } | undefined;
  for (let i = 1, k = -1; i <= reversed.length; i++) {
    while (k >= 0 && reversed[k] !== reversed[i - 1]) k = border[k] as number;
    border[i] = ++k;
    const period = i - k;
    if (i / period >= minCopies(period, () => text.slice(text.length - i, text.length - i + period)))
      best = { start: text.length - i, period };
  }
  return best;
}

function reverse(text: string): string {
  let reversed = '';
  for (let i = text.length - 1; i >= 0; i--) reversed += text[i];
  return reversed;
}
