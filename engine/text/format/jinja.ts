/**
 * Parses and runs a Jinja template of a model folder, with limits, because it is an untrusted program. Does not know
 * tokens (see chatTemplate.ts).
 */
import { runInNewContext } from 'node:vm';
import { t } from '@vscode/l10n';
import { run } from './jinjaRuntime.ts';
import { parseTemplate } from './jinjaSource.ts';
import { strftime } from './strftime.ts';

/**
 * The size of a template is limited, it is stopped if it renders for too long, and it does not run before the model is
 * inspected or loaded. Ranges are bounded, because a list takes its memory at once. One risk remains: a template that
 * doubles a list in a loop can use up the memory before its time is over.
 */
const MAX_CHARACTERS = 65_536;
/** The time of the patterns of @huggingface/jinja 0.5.11 grows with the square of white space without a break. */
const MAX_SPACES = 1000;
const SPACES = new RegExp(`\\s{${MAX_SPACES + 1}}`);
const MAX_RENDER_MS = 2000;
const MAX_RANGE = 10_000;
/** Rendering was stopped. */
export class RenderTimeout extends Error {}

export class JinjaTemplate {
  readonly #program: ReturnType<typeof parseTemplate>;

  /** @throws Error with the reason if the template is too long or cannot be parsed */
  constructor(source: string) {
    if (source.length > MAX_CHARACTERS)
      throw new Error(`it has ${source.length} characters; at most ${MAX_CHARACTERS} are supported`);
    if (SPACES.test(source)) throw new Error(`it has more than ${MAX_SPACES} spaces or line ends without a break`);
    try {
      this.#program = parseTemplate(source);
    } catch (error) {
      const line = lineOfFault(source, faultOf(error));
      throw new Error(line === undefined ? faultOf(error) : t('line {0}: {1}', line, faultOf(error)));
    }
  }

  /** @throws RenderTimeout, or Error with the reason, on one line */
  render(variables: Record<string, unknown>, limitMs = MAX_RENDER_MS): string {
    const all = {
      range: boundedRange,
      raise_exception: (reason: string) => {
        throw new Error(reason);
      },
      strftime_now: (format: string) => strftime(new Date(), format),
      ...variables,
    };
    try {
      // Only code in a context can be stopped. The context is no security boundary.
      return runInNewContext('render()', { render: () => run(this.#program, all) }, { timeout: limitMs }) as string;
    } catch (error) {
      if ((error as NodeJS.ErrnoException | null)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT')
        throw new RenderTimeout(`rendering takes longer than ${limitMs / 1000} s`);
      throw new Error(onOneLine(error));
    }
  }
}

/**
 * The line from which on a template has this fault: the first one with which all beginnings have it. The library does
 * not tell. Undefined if the template has one line.
 */
function lineOfFault(source: string, fault: string): number | undefined {
  const lines = source.split('\n');
  if (lines.length < 2) return undefined;
  const faultWith = (count: number): string | undefined => {
    try {
      parseTemplate(lines.slice(0, count).join('\n'));
      return undefined;
    } catch (error) {
      return faultOf(error);
    }
  };
  let [without, found] = [0, lines.length];
  while (found - without > 1) {
    const middle = (without + found) >> 1;
    if (faultWith(middle) === fault) found = middle;
    else without = middle;
  }
  return found;
}

/** The library reads behind the last token of a template that leaves a block open. */
const faultOf = (error: unknown): string =>
  error instanceof TypeError ? t('a block is not closed') : onOneLine(error);

/** At most 300 characters. */
export function onOneLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/\s+/g, ' ').slice(0, 300);
}

function boundedRange(first: number, second?: number, step = 1): number[] {
  const [start, stop] = second === undefined ? [0, first] : [first, second];
  const count = Math.max(0, Math.ceil((stop - start) / step));
  // Also false if a value is not a number.
  if (!(step !== 0 && count <= MAX_RANGE))
    throw new Error(`range(${start}, ${stop}, ${step}) is not supported: a range has at most ${MAX_RANGE} numbers`);
  return Array.from({ length: count }, (_, i) => start + i * step);
}
