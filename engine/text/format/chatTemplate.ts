/**
 * Renders the chat template of a model (Jinja) and encodes the result. Text in messages that looks like a control token
 * stays text. Does not decide where a file goes (see layout.ts).
 */
import { runInNewContext } from 'node:vm';
import { Template } from '@huggingface/jinja';
import { RequestError, reasonOf } from '../../protocol/errors.ts';
import { type ModelFolder, withoutByteOrderMark } from '../../model/load/modelFolder.ts';
import type { ChatMessage } from '../../protocol/tasks.ts';
import { type Tokenizer, tokenText } from '../tokenizer/tokenizer.ts';
import { REASONING_MARKS } from './controlTokens.ts';

/** A message for the template. Other fields are passed on as they are. */
export type TemplateMessage = Omit<ChatMessage, 'role'> & { role: string };

export interface RenderOptions {
  /** Whether the text ends with the opening of an assistant turn. Default: true. */
  addGenerationPrompt?: boolean;
  tools?: unknown[];
}

/**
 * A template is an untrusted program. Its size is limited, it is stopped if it renders for too long, and it does not
 * run before the model is loaded (see selfTest). Ranges are bounded, because a list takes its memory at once. One risk
 * remains: a template that doubles a list in a loop can use up the memory before its time is over.
 */
const MAX_CHARACTERS = 65_536;
const MAX_RENDER_MS = 2000;
const MAX_RANGE = 10_000;
/** Replaces `range`. The library lets only a variable hide one of its globals. Renders to nothing. */
const HEAD = '{% set range = boundedRange %}\n';

export class ChatTemplate {
  readonly #source: string;
  readonly #template: Template;
  readonly #tokenizer: Tokenizer;
  readonly #named: Record<string, string>;
  /** Properties of the template, found with trial messages on first use. */
  #found: { endOfTurnId: number | undefined; takesSystem: boolean } | undefined;

  /** Reads chat_template.jinja, or chat_template of tokenizer_config.json. Undefined if the model has neither. */
  static async read(folder: ModelFolder, tokenizer: Tokenizer): Promise<ChatTemplate | undefined> {
    const found = await readSource(folder);
    if (found === undefined) return undefined;
    const { source, config, file } = found;
    const named: Record<string, string> = {};
    for (const name of ['bos_token', 'eos_token', 'pad_token', 'unk_token']) {
      const token = tokenText(config[name]);
      if (token !== undefined) named[name] = token;
    }
    try {
      return new ChatTemplate(source, tokenizer, named);
    } catch (error) {
      throw new RequestError('modelInvalid', `${file}: the chat template cannot be read (${reasonOf(error)})`);
    }
  }

  /** Whether `read` would find a template. Does not parse or run it. */
  static async exists(folder: ModelFolder): Promise<boolean> {
    return (await readSource(folder)) !== undefined;
  }

  constructor(source: string, tokenizer: Tokenizer, named: Record<string, string>) {
    this.#source = source;
    this.#template = new Template(HEAD + source);
    this.#tokenizer = tokenizer;
    this.#named = named;
  }

  /** Id of the token that the template writes at the end of an assistant turn, if any. */
  get endOfTurnId(): number | undefined {
    return this.#probe().endOfTurnId;
  }

  /** Whether the template takes a system turn. */
  get takesSystem(): boolean {
    return this.#probe().takesSystem;
  }

  #probe(): { endOfTurnId: number | undefined; takesSystem: boolean } {
    this.#found ??= {
      endOfTurnId: this.#findEndOfTurn(),
      takesSystem:
        this.#tries([
          { role: 'system', content: 'KVASIR' },
          { role: 'user', content: 'x' },
        ])?.includes('KVASIR') ?? false,
    };
    return this.#found;
  }

  /**
   * The rendered text.
   * @throws RequestError `badRequest` with the message of the template if it refuses the messages
   */
  render(messages: readonly TemplateMessage[], options: RenderOptions = {}): string {
    const { addGenerationPrompt = true, tools } = options;
    try {
      const variables = {
        ...this.#named,
        boundedRange,
        messages: [...messages],
        add_generation_prompt: addGenerationPrompt,
        ...(tools === undefined ? {} : { tools }),
      };
      // Only code in a context can be stopped. The context is no security boundary.
      return runInNewContext(
        'render()',
        { render: () => this.#template.render(variables) },
        { timeout: MAX_RENDER_MS },
      ) as string;
    } catch (error) {
      const late = (error as NodeJS.ErrnoException | null)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT';
      const reason = late
        ? `rendering takes longer than ${MAX_RENDER_MS / 1000} s`
        : error instanceof Error
          ? error.message
          : String(error);
      throw new RequestError('badRequest', `chat template: ${reason.replace(/\s+/g, ' ').slice(0, 300)}`);
    }
  }

  /** Ids of the rendered text. Control tokens of the template are read as such. Those in messages stay text. */
  encode(messages: readonly TemplateMessage[], options: RenderOptions = {}): number[] {
    return this.encodeAround(messages, undefined, options).before;
  }

  /**
   * Ids before and after `mark`, a text in one message that the caller replaces. Without a mark, or if the template
   * drops it, all ids are in `before` and `found` is false.
   */
  encodeAround(
    messages: readonly TemplateMessage[],
    mark: string | undefined,
    options: RenderOptions = {},
  ): { before: number[]; after: number[]; found: boolean } {
    // The guard character is put into lookalikes of control tokens before rendering, and removed when they are encoded.
    const guard = unusedCharacter(JSON.stringify(messages) + this.#source);
    const guarded = messages.map((message) => ({
      ...message,
      content:
        typeof message.content === 'string'
          ? this.#tokenizer.guardLookalikes(message.content, guard, message.role === 'assistant' ? REASONING_MARKS : [])
          : message.content,
    }));
    const text = this.render(guarded, options);
    const at = mark === undefined ? -1 : text.indexOf(mark);
    if (mark === undefined || at < 0)
      return { before: this.#tokenizer.encodeTemplate(text, guard), after: [], found: false };
    return {
      before: this.#tokenizer.encodeTemplate(text.slice(0, at), guard),
      after: this.#tokenizer.encodeTemplate(text.slice(at + mark.length), guard, true),
      found: true,
    };
  }

  #tries(messages: TemplateMessage[]): string | undefined {
    try {
      return this.render(messages, { addGenerationPrompt: false });
    } catch {
      return undefined;
    }
  }

  #findEndOfTurn(): number | undefined {
    const text = this.#tries([
      { role: 'user', content: 'x' },
      { role: 'assistant', content: 'KVASIR' },
    ]);
    const at = text?.lastIndexOf('KVASIR') ?? -1;
    if (text === undefined || at < 0) return undefined;
    return this.#tokenizer
      .encodeTemplate(text.slice(at + 'KVASIR'.length), undefined, true)
      .find((id) => this.#tokenizer.addedTokens.has(id));
  }
}

async function readSource(
  folder: ModelFolder,
): Promise<{ source: string; file: string; config: Record<string, unknown> } | undefined> {
  const config = (await folder.readJson('tokenizer_config.json'))?.value ?? {};
  const own = await folder.readText('chat_template.jinja');
  const file = own === null ? 'tokenizer_config.json' : 'chat_template.jinja';
  const source = own === null ? templateOf(config.chat_template) : withoutByteOrderMark(own);
  if (source === undefined) return undefined;
  if (source.length > MAX_CHARACTERS)
    throw new RequestError(
      'modelInvalid',
      `${file}: the chat template has ${source.length} characters; at most ${MAX_CHARACTERS} are supported`,
    );
  return { source, file, config };
}

function boundedRange(first: number, second?: number, step = 1): number[] {
  const [start, stop] = second === undefined ? [0, first] : [first, second];
  const count = Math.max(0, Math.ceil((stop - start) / step));
  // Also false if a value is not a number.
  if (!(step !== 0 && count <= MAX_RANGE))
    throw new Error(`range(${start}, ${stop}, ${step}) is not supported: a range has at most ${MAX_RANGE} numbers`);
  return Array.from({ length: count }, (_, i) => start + i * step);
}

/** A private-use character that the text does not contain. */
function unusedCharacter(text: string): string {
  for (let code = 0xe000; ; code++) if (!text.includes(String.fromCharCode(code))) return String.fromCharCode(code);
}

function templateOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (!Array.isArray(value)) return undefined;
  const named = value as { name?: string; template?: string }[];
  return (named.find((entry) => entry.name === 'default') ?? named[0])?.template;
}
