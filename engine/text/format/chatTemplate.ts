/**
 * Renders the chat template of a model (Jinja) and encodes the result. Text in messages that looks like a control token
 * stays text. Does not decide where a file goes (see layout.ts).
 */
import { t } from '@vscode/l10n';
import { RequestError } from '../../protocol/errors.ts';
import type { ModelFiles } from '../../model/load/modelFiles.ts';
import { withoutByteOrderMark } from '../../model/load/modelFolder.ts';
import type { ChatMessage } from '../../protocol/tasks.ts';
import { isPlainText } from '../tokenizer/addedTokens.ts';
import { type Tokenizer, tokenText } from '../tokenizer/tokenizer.ts';
import { REASONING_MARKS } from './controlTokens.ts';
import { JinjaTemplate, onOneLine, RenderTimeout } from './jinja.ts';

/** A message for the template. Other fields are passed on as they are. */
export type TemplateMessage = Omit<ChatMessage, 'role'> & { role: string };

export interface RenderOptions {
  /** Whether the text ends with the opening of an assistant turn. Default: true. */
  addGenerationPrompt?: boolean;
  /** Whether the model reasons before its answer, for templates that ask. Default: as the template decides. */
  enableThinking?: boolean;
  tools?: unknown[];
}

/** The message with which a template is tried. */
const TRIAL: readonly TemplateMessage[] = [{ role: 'user', content: 'x' }];
/** Time for a template when a folder is inspected: many folders may be inspected at once. */
const MAX_TRIAL_MS = 100;

/** A template that the template language does not allow. The model can be used without it. */
export class UnparsableTemplate extends RequestError {}

export class ChatTemplate {
  readonly #source: string;
  readonly #template: JinjaTemplate;
  readonly #tokenizer: Tokenizer;
  readonly #named: Record<string, string>;
  readonly #file: string;
  /** Properties of the template, found with trial messages on first use. */
  #found: { endOfTurnId: number | undefined; takesSystem: boolean } | undefined;
  #end: string | undefined;
  #tried: { fault: string | undefined } | undefined;

  /**
   * Reads chat_template.jinja, or chat_template of tokenizer_config.json. Undefined if the model has neither.
   * @throws UnparsableTemplate with the file; RequestError `modelInvalid` if the file may not be read
   */
  static async read(folder: ModelFiles, tokenizer: Tokenizer): Promise<ChatTemplate | undefined> {
    const found = await readSource(folder);
    if (found === undefined) return undefined;
    const { source, config, file } = found;
    try {
      return new ChatTemplate(source, tokenizer, namedTokens(config), file);
    } catch (error) {
      throw new UnparsableTemplate('modelInvalid', unreadable(file, error));
    }
  }

  /**
   * Whether `read` would find a template, and why it cannot be parsed or run. Renders one question, but not for long:
   * a slow template has no fault here.
   */
  static async inspect(folder: ModelFiles): Promise<{ exists: boolean; fault?: string }> {
    const found = await readSource(folder);
    if (found === undefined) return { exists: false };
    const { source, config, file } = found;
    let template: JinjaTemplate;
    try {
      template = new JinjaTemplate(source);
    } catch (error) {
      return { exists: true, fault: unreadable(file, error) };
    }
    try {
      template.render(variablesFor(TRIAL, namedTokens(config), {}), MAX_TRIAL_MS);
    } catch (error) {
      if (!(error instanceof RenderTimeout)) return { exists: true, fault: unusable(file, error) };
    }
    return { exists: true };
  }

  /** @throws Error with the reason if the template cannot be parsed */
  constructor(source: string, tokenizer: Tokenizer, named: Record<string, string>, file = 'chat_template.jinja') {
    this.#source = source;
    this.#template = new JinjaTemplate(source);
    this.#tokenizer = tokenizer;
    this.#named = named;
    this.#file = file;
  }

  /** Why the template cannot render one question, with the file. Undefined if it can. Renders on first use. */
  get fault(): string | undefined {
    this.#tried ??= { fault: this.#try() };
    return this.#tried.fault;
  }

  #try(): string | undefined {
    try {
      this.#template.render(variablesFor(TRIAL, this.#named, {}));
      return undefined;
    } catch (error) {
      return unusable(this.#file, error);
    }
  }

  /** Id of the token that the template writes at the end of an assistant turn, if any. */
  get endOfTurnId(): number | undefined {
    return this.#probe().endOfTurnId;
  }

  /** Whether the template takes a system turn. */
  get takesSystem(): boolean {
    return this.#probe().takesSystem;
  }

  /** Whether the template lets the caller decide whether the model reasons. */
  get asksForThinking(): boolean {
    return this.#source.includes('enable_thinking');
  }

  /** Whether prompts end with this text of the template, apart from white space. */
  endsWith(text: string): boolean {
    if (!this.#source.includes(text)) return false;
    this.#end ??= this.#tries([{ role: 'user', content: 'x' }], true)?.trimEnd() ?? '';
    return this.#end.endsWith(text);
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
    try {
      return this.#template.render(variablesFor(messages, this.#named, options));
    } catch (error) {
      throw new RequestError('badRequest', `chat template: ${onOneLine(error)}`);
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
      after: this.#tokenizer.encodeTemplate(text.slice(at + mark.length), guard, 'text'),
      found: true,
    };
  }

  #tries(messages: TemplateMessage[], addGenerationPrompt = false): string | undefined {
    try {
      return this.render(messages, { addGenerationPrompt });
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
    return this.#tokenizer.encodeTemplate(text.slice(at + 'KVASIR'.length), undefined, 'text').find((id) => {
      const token = this.#tokenizer.addedTokens.get(id);
      return token !== undefined && !isPlainText(token);
    });
  }
}

async function readSource(
  folder: ModelFiles,
): Promise<{ source: string; file: string; config: Record<string, unknown> } | undefined> {
  const config = (await folder.readJson('tokenizer_config.json'))?.value ?? {};
  const own = await folder.readText('chat_template.jinja');
  const file = own === null ? folder.said('tokenizer_config.json') : 'chat_template.jinja';
  const source = own === null ? templateOf(config.chat_template) : withoutByteOrderMark(own);
  if (source === undefined) return undefined;
  return { source, file, config };
}

/** `tools` and `documents` are null if there are none, as transformers passes them. */
function variablesFor(
  messages: readonly TemplateMessage[],
  named: Record<string, string>,
  { addGenerationPrompt = true, tools, enableThinking }: RenderOptions,
): Record<string, unknown> {
  return {
    ...named,
    messages: [...messages],
    add_generation_prompt: addGenerationPrompt,
    tools: tools ?? null,
    documents: null,
    // A template may ask whether it is defined.
    ...(enableThinking === undefined ? {} : { enable_thinking: enableThinking }),
  };
}

function namedTokens(config: Record<string, unknown>): Record<string, string> {
  const named: Record<string, string> = {};
  for (const name of ['bos_token', 'eos_token', 'pad_token', 'unk_token']) {
    const token = tokenText(config[name]);
    if (token !== undefined) named[name] = token;
  }
  return named;
}

function unreadable(file: string, error: unknown): string {
  return t('{0}: the chat template cannot be read ({1})', file, onOneLine(error));
}

function unusable(file: string, error: unknown): string {
  return t('{0}: the chat template cannot be used ({1})', file, onOneLine(error));
}

/** A private-use character that the text does not contain. */
function unusedCharacter(text: string): string {
  for (let code = 0xe000; ; code++) if (!text.includes(String.fromCharCode(code))) return String.fromCharCode(code);
}

function templateOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (!Array.isArray(value)) return undefined;
  const named = value as ({ name?: unknown; template?: unknown } | null)[];
  const template = (named.find((entry) => entry?.name === 'default') ?? named[0])?.template;
  return typeof template === 'string' ? template : undefined;
}
