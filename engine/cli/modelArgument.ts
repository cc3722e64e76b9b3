/** The model that a command line names: by a path, or by a name of this machine's models. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { thisMachine } from '../download/hubCache.ts';
import { modelNamed, NameError } from '../find/byName.ts';
import { RequestError } from '../protocol/errors.ts';
import { UsageError } from './usageError.ts';

/** The folder of the built-in model. It is beside dist/, in a checkout and in the packaged extension. */
export function builtInModelDir(): string {
  return path.join(__dirname, '..', 'model');
}

/**
 * A path stays as it is, even if nothing is there: the engine says so.
 * @throws RequestError for a name that no model has, because nothing is downloaded unasked
 */
export async function modelPath(given: string): Promise<string> {
  if (given === '') throw new UsageError('the model is empty; leave it out for the built-in model');
  if (existsSync(given) || /^[.~/\\]|^[a-z]:[/\\]|\.gguf$/i.test(given)) return given;
  try {
    return (await modelNamed(given, [], thisMachine())).modelDir;
  } catch (error) {
    if (!(error instanceof NameError)) throw error;
    const isUnknown = error.problem.kind === 'unknown';
    // A path of several folders. Names of Ollama with two slashes have a colon.
    if (isUnknown && /^[^:/]*\/[^:/]*\/[^:]*$/.test(given)) return given;
    const advice =
      isUnknown && /^[\w.-]+\/[\w.-]+$/.test(given)
        ? ` To use one of the Hugging Face hub, run \`kvasir download ${given}\`.`
        : '';
    throw new RequestError('badRequest', `${error.message}${advice}`);
  }
}
