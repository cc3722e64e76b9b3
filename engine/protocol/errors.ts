/** A failure that belongs to one request: it ends that request with `error` and the engine goes on. */
import type { ErrorCode } from './tasks.ts';

export class RequestError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string) {
    super(message);
    this.name = 'RequestError';
    this.code = code;
  }
}

/** Any other error is a bug: its code is `engineFailed`. */
export function toRequestError(error: unknown): RequestError {
  if (error instanceof RequestError) return error;
  return new RequestError('engineFailed', error instanceof Error ? error.message : String(error));
}

/** The message of a system error without the path that Node appends: "ENOENT: no such file". */
export function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text
    .replace(/\s+/g, ' ')
    .replace(
      /,? ?\b(open|stat|lstat|read|write|mkdir|rename|realpath|scandir|unlink|fsync|ftruncate|rm|rmdir)\b( '.*)?$/s,
      '',
    )
    .slice(0, 200);
}
