/** Errors that belong to one request. Such an error ends the request; the engine goes on. */
import { oneLine } from './oneLine.ts';
import type { ErrorCode } from './tasks.ts';

export class RequestError extends Error {
  readonly code: ErrorCode;

  /** `message`: one sentence. Names in it may come from files and have any characters, so it is made one line. */
  constructor(code: ErrorCode, message: string) {
    super(oneLine(message));
    this.name = 'RequestError';
    this.code = code;
  }
}

/** Turns any error into a RequestError. One of another class is a bug and gets the code `engineFailed`. */
export function toRequestError(error: unknown): RequestError {
  if (error instanceof RequestError) return error;
  return new RequestError('engineFailed', error instanceof Error ? error.message : String(error));
}

/** The message of a system error without the path that Node appends, such as "ENOENT: no such file". */
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
