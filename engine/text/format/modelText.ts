/**
 * Loads the text side of a model folder (tokenizer, chat template, FIM family, manifest, stop ids) and tests whether
 * its parts fit together. Does not read weights.
 */
import { t } from '@vscode/l10n';
import { inOwnWords, type ModelFiles, openModelFiles } from '../../model/load/modelFiles.ts';
import { ChatTemplate, UnparsableTemplate } from './chatTemplate.ts';
import { controlIds, reasoningIds } from './controlTokens.ts';
import type { Faults } from './faults.ts';
import { Fim } from './fim.ts';
import { findFim, namedFim, readsRepository } from './fimFamilies.ts';
import { type Manifest, type Offers, readManifest } from './manifest.ts';
import { Tokenizer, tokenText } from '../tokenizer/tokenizer.ts';
import { RequestError } from '../../protocol/errors.ts';

export class ModelText {
  readonly tokenizer: Tokenizer;
  /** The self-test switches off what is faulty. */
  manifest: Manifest;
  /** Why a task that the files offer is switched off. */
  faults: Faults = {};
  /** Undefined if the model has none that can be used. */
  chatTemplate: ChatTemplate | undefined;
  /** Why the chat template of the model cannot be parsed. */
  readonly templateFault: string | undefined;
  readonly fim: Fim | undefined;
  /** Why its fill-in-the-middle tokens are not used. Null if it has none, or if they are used. */
  readonly fimFault: string | null;
  /** See ModelFiles. */
  readonly said: ModelFiles['said'];
  /** End-of-text ids of the files of the model. */
  readonly endTokenIds: readonly number[];
  readonly bosTokenId: number | undefined;

  /** @throws RequestError `modelInvalid` or `modelUnsupported`, with file and field */
  static async load(dir: string): Promise<ModelText> {
    const folder = await openModelFiles(dir);
    return inOwnWords(folder, () => ModelText.#read(folder));
  }

  static async #read(folder: ModelFiles): Promise<ModelText> {
    const tokenizer = await Tokenizer.read(folder);
    const { chatTemplate, templateFault } = await readTemplate(folder, tokenizer);
    const config = (await folder.readJson('tokenizer_config.json'))?.value ?? {};
    const bosTokenId = idOfToken(tokenizer, config.bos_token);

    const { manifest, fim: found } = await readManifest(
      folder,
      offersOf(
        (token) => tokenizer.idOf(token) !== undefined,
        chatTemplate !== undefined || templateFault !== undefined,
        [...tokenizer.addedTokens.values()].map(({ content }) => content),
        config,
      ),
    );

    const endTokenIds = new Set<number>();
    for (const name of ['generation_config.json', 'config.json']) {
      for (const id of [(await folder.readJson(name))?.value.eos_token_id].flat())
        if (typeof id === 'number') endTokenIds.add(id);
    }
    const eos = idOfToken(tokenizer, config.eos_token);
    if (eos !== undefined) endTokenIds.add(eos);
    const suffixFirst = manifest.completion.order === 'suffixFirst';
    const fim = found.layout && new Fim(found.layout, tokenizer, { suffixFirst, bosTokenId });
    return new ModelText({
      tokenizer,
      manifest,
      chatTemplate,
      templateFault,
      fim,
      fimFault: found.layout === undefined && found.fault !== null ? folder.said(found.fault) : null,
      said: folder.said,
      endTokenIds: [...endTokenIds],
      bosTokenId,
    });
  }

  private constructor(fields: {
    tokenizer: Tokenizer;
    manifest: Manifest;
    chatTemplate: ChatTemplate | undefined;
    templateFault: string | undefined;
    fim: Fim | undefined;
    fimFault: string | null;
    said: ModelFiles['said'];
    endTokenIds: number[];
    bosTokenId: number | undefined;
  }) {
    this.tokenizer = fields.tokenizer;
    this.manifest = fields.manifest;
    this.chatTemplate = fields.chatTemplate;
    this.templateFault = fields.templateFault;
    this.fim = fields.fim;
    this.fimFault = fields.fimFault;
    this.said = fields.said;
    this.endTokenIds = fields.endTokenIds;
    this.bosTokenId = fields.bosTokenId;
  }

  /** Ids that end an answer: what the files name as its end, and all control tokens but the marks of reasoning. */
  get chatStopIds(): number[] {
    const marks = reasoningIds(this.tokenizer);
    const stops = [...this.endOfAnswerIds, fileSeparator(this.tokenizer), ...controlIds(this.tokenizer)];
    return [...new Set(stops.filter((id) => id !== undefined && !marks.includes(id)))] as number[];
  }

  /** Ids that the files name as the end of an answer: end-of-text ids and the end of a turn. */
  get endOfAnswerIds(): number[] {
    return [...this.endTokenIds, this.chatTemplate?.endOfTurnId].filter((id) => id !== undefined);
  }

  /** Ids that the template writes before and after a single user message. Empty without a template. */
  get turn(): { before: number[]; after: number[] } {
    return (
      this.chatTemplate?.encodeAround([{ role: 'user', content: MESSAGE_MARK }], MESSAGE_MARK) ?? {
        before: [],
        after: [],
      }
    );
  }

  /** Ids that end a completion: end-of-text ids and all control tokens. Some families have theirs as plain tokens. */
  get completionStopIds(): number[] {
    const ofFamily = [...(this.fim?.stopTokenIds ?? []), ...(this.fim?.controls ?? []).map(({ tokenId }) => tokenId)];
    return [...new Set([...this.endTokenIds, ...ofFamily, ...controlIds(this.tokenizer)])];
  }
}

/** A template that cannot be parsed stops chat, not the model. */
async function readTemplate(
  folder: ModelFiles,
  tokenizer: Tokenizer,
): Promise<{ chatTemplate?: ChatTemplate; templateFault?: string }> {
  try {
    return { chatTemplate: await ChatTemplate.read(folder, tokenizer) };
  } catch (error) {
    if (!(error instanceof UnparsableTemplate)) throw error;
    return { templateFault: error.message };
  }
}

/** A text that templates do not contain. */
const MESSAGE_MARK = '@@message@@';
const FILE_SEPARATORS = ['<|file_sep|>', '<file_sep>'];

/** The token that starts a file in a prompt. */
export function fileSeparator(tokenizer: Tokenizer): number | undefined {
  for (const token of FILE_SEPARATORS) if (tokenizer.idOf(token) !== undefined) return tokenizer.idOf(token);
  return undefined;
}

/**
 * What a model offers, by the tokens that its tokenizer knows. `names`: tokens that messages may name.
 * `tokenizerConfig`: tokenizer_config.json.
 */
export function offersOf(
  knows: (token: string) => boolean,
  chatTemplate: boolean,
  names: Iterable<string>,
  tokenizerConfig: Record<string, unknown>,
): Offers {
  return {
    fim: (own) => findFim(knows, own, names, namedFim(tokenizerConfig)),
    readsRepository: (layout) => readsRepository(layout, knows),
    chatTemplate,
    fileSeparator: FILE_SEPARATORS.some(knows),
  };
}

function idOfToken(tokenizer: Tokenizer, value: unknown): number | undefined {
  const text = tokenText(value);
  return text === undefined ? undefined : tokenizer.idOf(text);
}

// --- self-test --------------------------------------------------------------------

/** Code with indentation, line breaks, and characters of two and three bytes. */
const SAMPLE = 'def f(x):\n\tif x > 10:\n        return "é ✓"\n';
const QUESTION = 'KVASIR QUESTION';
const ANSWER = 'KVASIR ANSWER';
/** A token that opens or closes a turn in published templates, at the start of a text. */
const MARK = /^(?:<\|[^|<>\s]{1,40}\|>|<｜[^｜<>\s]{1,40}｜>|<\/s>|<eos>|<end_of_turn>)/;

/**
 * Tests whether the tokenizer restores a text, whether the model has the control tokens, and whether the chat template
 * matches the tokenizer. A mismatch raises no error by itself, but the answers would be garbage. Runs once per load.
 * @param vocabSize of the model. It has no embedding for higher ids.
 * @returns what must be switched off, and why
 * @throws RequestError `modelInvalid` for an unusable tokenizer
 */
export function selfTest(text: ModelText, vocabSize: number): Faults {
  const { tokenizer, fim, chatTemplate, said } = text;
  checkRestores(tokenizer, said);
  if (tokenizer.encode(SAMPLE).some((id) => id >= vocabSize))
    throw new RequestError(
      'modelInvalid',
      said(
        `tokenizer.json: it has token ids above those of the model (config.json: vocab_size is ${vocabSize}); ` +
          'the file belongs to another model',
      ),
    );
  const faults: Faults = {};
  const complete = fim && controlFault(fim.controls, text, vocabSize);
  const chat = text.templateFault ?? (chatTemplate && chatFault(text, vocabSize));
  if (complete) faults.complete = said(complete);
  if (chat) faults.chat = said(chat);
  return faults;
}

/** Whether the tokenizer of a folder can be used: as when it is loaded, but fast. @throws the errors of `Tokenizer.read` */
export async function checkTokenizer(folder: ModelFiles): Promise<void> {
  const config = (await folder.readJson('tokenizer_config.json'))?.value;
  const json = await folder.readJson('tokenizer.json');
  if (json === null) return void (await Tokenizer.read(folder));
  const fast = Tokenizer.withoutMerges(json.value as Parameters<typeof Tokenizer.withoutMerges>[0], config);
  // A vocabulary need not have all characters by themselves.
  if (!restores(fast)) checkRestores(await Tokenizer.read(folder), folder.said);
}

const restores = (tokenizer: Tokenizer): boolean => tokenizer.decode(tokenizer.encode(SAMPLE)) === SAMPLE;

function checkRestores(tokenizer: Tokenizer, said: ModelFiles['said']): void {
  if (!restores(tokenizer))
    throw new RequestError(
      'modelInvalid',
      said(
        'tokenizer.json: a text comes back changed from encoding and decoding; the file is incomplete or of another kind',
      ),
    );
}

/** Control tokens must differ, must be tokens of the model, and must decode to their names. */
function controlFault(
  controls: { token: string; tokenId: number }[],
  { tokenizer }: ModelText,
  vocabSize: number,
): string | undefined {
  for (const { token, tokenId } of controls) {
    if (tokenId >= vocabSize)
      return t('tokenizer.json: {0} has the id {1}, but the model has only {2} tokens', token, tokenId, vocabSize);
    if (controls.some((other) => other.token !== token && other.tokenId === tokenId))
      return t('tokenizer.json: {0} has the same id as another fill-in-the-middle token', token);
    if (plain(tokenizer.decode([tokenId])) !== plain(token))
      return t('tokenizer.json: id {0} of {1} decodes to something else', tokenId, token);
  }
  return undefined;
}

/** Some tokenizers write spaces as ▁ and put one before a text. */
function plain(token: string): string {
  return token.replaceAll('▁', ' ').trim();
}

function chatFault(text: ModelText, vocabSize: number): string | undefined {
  const { tokenizer, chatTemplate, endOfAnswerIds } = text;
  if (chatTemplate === undefined) return undefined;
  if (chatTemplate.fault !== undefined) return chatTemplate.fault;
  let asked: string;
  let answered: string;
  try {
    asked = chatTemplate.render([{ role: 'user', content: QUESTION }]);
    answered = chatTemplate.render(
      [
        { role: 'user', content: QUESTION },
        { role: 'assistant', content: ANSWER },
      ],
      { addGenerationPrompt: false },
    );
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  if (!asked.includes(QUESTION)) return t('chat template: it leaves the question out');
  if (!answered.includes(ANSWER)) return t('chat template: it leaves earlier answers out');
  const end = MARK.exec(answered.slice(answered.indexOf(ANSWER) + ANSWER.length).trimStart())?.[0];
  if (end !== undefined && tokenizer.idOf(end) === undefined)
    return t(
      'chat template: it ends an answer with {0}, which is not in tokenizer.json; it belongs to another model',
      end,
    );
  if (endOfAnswerIds.every((id) => id === fileSeparator(tokenizer)))
    return t('chat template: neither it nor config.json names a token that ends an answer');
  const beyond = tokenizer.encodeTemplate(asked).find((id) => id >= vocabSize);
  return beyond === undefined
    ? undefined
    : t(
        'chat template: it uses the token {0} with the id {1}, but the model has only {2} tokens',
        JSON.stringify(tokenizer.decode([beyond])),
        beyond,
        vocabSize,
      );
}
