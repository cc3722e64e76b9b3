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
