/**
 * Everything about a model folder that has to do with text, loaded together: tokenizer, chat template, FIM family,
 * manifest, and the ids that end a generation. Reads all of them
 * through one opened folder, never weights.
 */
import { basename, resolve } from 'node:path';
import { ModelFolder } from '../modelFolder.ts';
import { ChatTemplate } from './chatTemplate.ts';
import { Fim } from './fim.ts';
import { type Manifest, defaultManifest, invalid, parseManifest } from './manifest.ts';
import { Tokenizer, tokenText } from './tokenizer.ts';

export class ModelText {
  readonly tokenizer: Tokenizer;
  readonly manifest: Manifest;
  /** Undefined when the model has none. */
  readonly chatTemplate: ChatTemplate | undefined;
  readonly fim: Fim | undefined;
  /** End-of-text ids of the model's own files. */
  readonly endTokenIds: readonly number[];
  readonly bosTokenId: number | undefined;

  /** `modelInvalid` or `modelUnsupported` names the file and the field. */
  static async load(dir: string): Promise<ModelText> {
    const folder = await ModelFolder.open(dir);
    const tokenizer = await Tokenizer.read(folder);
    const chatTemplate = await ChatTemplate.read(folder, tokenizer);
    const config = (await folder.readJson('tokenizer_config.json'))?.value ?? {};
    const bosTokenId = idOfToken(tokenizer, config.bos_token);

    const found = Fim.of(tokenizer, { bosTokenId });
    const defaults = defaultManifest(basename(resolve(dir)), {
      fim: found !== undefined,
      chatTemplate: chatTemplate !== undefined,
      readsRepository: found?.repositoryHead('', [], '') !== undefined,
    });
    const json = await folder.readJson('kvasir.json');
    const manifest = json === null ? defaults : parseManifest(json.value, defaults);
    if (manifest.can.complete && found === undefined) throw invalid('can.complete', 'is true, but the tokenizer has no fill-in-the-middle tokens');
    if ((manifest.can.chat || manifest.can.summarize) && chatTemplate === undefined) throw invalid('can.chat', 'is true, but the model has no chat template');
    if (manifest.fileBlock === 'fileSeparator' && fileSeparator(tokenizer) === undefined) throw invalid('fileBlock', 'is "fileSeparator", but the tokenizer has no <|file_sep|>');

    const endTokenIds = new Set<number>();
    for (const name of ['generation_config.json', 'config.json']) {
      for (const id of [(await folder.readJson(name))?.value.eos_token_id].flat()) if (typeof id === 'number') endTokenIds.add(id);
    }
    const eos = idOfToken(tokenizer, config.eos_token);
    if (eos !== undefined) endTokenIds.add(eos);
    const fim = manifest.completion.order === 'suffixFirst' ? Fim.of(tokenizer, { suffixFirst: true, bosTokenId }) : found;
    return new ModelText({ tokenizer, manifest, chatTemplate, fim, endTokenIds: [...endTokenIds], bosTokenId });
  }

  private constructor(fields: { tokenizer: Tokenizer; manifest: Manifest; chatTemplate: ChatTemplate | undefined; fim: Fim | undefined; endTokenIds: number[]; bosTokenId: number | undefined }) {
    this.tokenizer = fields.tokenizer;
    this.manifest = fields.manifest;
    this.chatTemplate = fields.chatTemplate;
    this.fim = fields.fim;
    this.endTokenIds = fields.endTokenIds;
    this.bosTokenId = fields.bosTokenId;
  }

  /** Ids that end an answer: the model's own, the end of a turn, and the start of another file. */
  get chatStopIds(): number[] {
    const stops = [...this.endTokenIds, this.chatTemplate?.endOfTurnId, fileSeparator(this.tokenizer)];
    return [...new Set(stops.filter((id) => id !== undefined))];
  }

  get completionStopIds(): number[] {
    return [...new Set([...this.endTokenIds, ...(this.fim?.stopTokenIds ?? [])])];
  }
}

/** The token that starts a file in a prompt. */
export function fileSeparator(tokenizer: Tokenizer): number | undefined {
  return tokenizer.idOf('<|file_sep|>') ?? tokenizer.idOf('<file_sep>');
}

function idOfToken(tokenizer: Tokenizer, value: unknown): number | undefined {
  const text = tokenText(value);
  return text === undefined ? undefined : tokenizer.idOf(text);
}
