/** Waits for answers of the network: not for ever, and no longer than a signal allows. Does not know hubs. */

/** Time for the head of an answer, and between two parts of its body. */
export const MAX_SILENCE_MS = 60_000;

/** Aborted with either of both. */
export const either = (signal: AbortSignal | undefined, other: AbortSignal): AbortSignal =>
  signal ? AbortSignal.any([signal, other]) : other;

/** Ends with the signal, even if what it waits for ignores that. @throws the signal's reason */
export async function unlessAborted<T>(running: Promise<T>, signal: AbortSignal): Promise<T> {
  let stop = () => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason as Error);
    signal.addEventListener('abort', stop, { once: true });
  });
  try {
    signal.throwIfAborted();
    return await Promise.race([running, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** Undefined if it is longer than `maxBytes`. @throws if it is silent or breaks, or the signal ends it */
export async function textOf(
  body: ReadableStream<Uint8Array> | null,
  maxBytes: number,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (!body) return '';
  const reader = body.getReader();
  const cancel = () => void reader.cancel().catch(() => {});
  let isLate = false;
  const stop = () => {
    isLate = true;
    cancel();
  };
  const silence = setTimeout(stop, MAX_SILENCE_MS);
  signal.addEventListener('abort', stop, { once: true });
  try {
    signal.throwIfAborted();
    const parts: Uint8Array[] = [];
    let bytes = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (isLate) throw Object.assign(new Error('late'), { code: 'ETIMEDOUT' });
      if (done) return Buffer.concat(parts).toString('utf8');
      bytes += value.length;
      if (bytes > maxBytes) return void cancel();
      parts.push(value);
      silence.refresh();
    }
  } finally {
    clearTimeout(silence);
    signal.removeEventListener('abort', stop);
  }
}
