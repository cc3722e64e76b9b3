/**
 * A model in a GGUF file, or in the parts of one. Answers as a model folder does: config.json and the files of the
 * tokenizer are made from the metadata, tensors have the names of Hugging Face. Only kvasir.json is a real file: beside
 * x.gguf it is x.gguf.kvasir.json.
 */
import { realpath } from 'node:fs/promises';
import path from 'node:path';
import { ggufManifest, ggufName } from '../../../protocol/ggufName.ts';
import { oneLine } from '../../../protocol/oneLine.ts';
import { invalid, inHubCache, ModelFolder, type OpenFile, parseJsonObject } from '../modelFolder.ts';
import { type TensorInfo, toFloat32 } from '../safetensors.ts';
import { type OwnedTensor, readExactly, type TensorFiles } from '../tensorFiles.ts';
import {
  FACTOR_TENSORS,
  ggufConfig,
  isInterleaved,
  nameInFile,
  type RopeFactors,
  shiftOf,
  tensorName,
} from './ggufConfig.ts';
import { SHAPE_LISTS } from './ggufFamilies.ts';
import { GgufFields } from './ggufFields.ts';
import { type GgufHeader, type Metadata, readGgufHeader } from './ggufHeader.ts';
import { ggufTokenizer, TOKENIZER_LISTS } from './ggufTokenizer.ts';
import { ownWords } from './ownWords.ts';

const MAX_ROPE_FACTORS = 4096;
const NO_LISTS: ReadonlySet<string> = new Set();
const LISTS: ReadonlySet<string> = new Set([...TOKENIZER_LISTS, ...SHAPE_LISTS]);

/** A file whose header has been read. */
interface Part {
  readonly name: string;
  readonly size: number;
  readonly mtimeMs: number;
  readonly tensors: GgufHeader['tensors'];
}

export class GgufModel {
  /** The path as given, for messages. */
  readonly dir: string;
  /** The name that is shown to the user. */
  readonly name: string;
  /** Says a fault of a made file as one of this file. */
  readonly said: (message: string) => string;
  readonly #folder: ModelFolder;
  readonly #parts: readonly Part[];
  readonly #texts: ReadonlyMap<string, string>;
  readonly #headSize: number;
  /** As the file names it. */
  readonly #family: string;
  readonly #manifest: string;

  /**
   * Reads the headers and no tensors.
   * @throws RequestError `modelInvalid` or `modelUnsupported`, with file and key in one sentence
   */
  static async open(file: string): Promise<GgufModel> {
    const { folder, names } = await locate(file);
    const parts: Part[] = [];
    let metadata: Metadata = new Map();
    const ropeFactors = new Map<string, Float32Array>();
    for (const [i, name] of names.entries()) {
      const open = await folder.openFile(name);
      if (open === null) throw invalid(`${name.slice(0, 200)} is missing, a part of the model: download it.`);
      try {
        const header = await readGgufHeader(open, i === 0 ? LISTS : NO_LISTS);
        const { tensors } = header;
        parts.push({ name, size: open.size, mtimeMs: open.mtimeMs, tensors });
        if (i === 0) metadata = header.metadata;
        for (const name of FACTOR_TENSORS) {
          const factors = tensors.get(name);
          if (factors) ropeFactors.set(name, await readFactors(open, factors));
        }
      } finally {
        await open.handle.close();
      }
    }
    return new GgufModel(file, folder, parts, new GgufFields(names[0]!, metadata), ropeFactors);
  }

  private constructor(
    file: string,
    folder: ModelFolder,
    parts: readonly Part[],
    fields: GgufFields,
    ropeFactors: RopeFactors,
  ) {
    const count = fields.count('split.count', { least: 0, fallback: 0 }) || 1;
    if (count !== parts.length) {
      const said = parts.length === 1 ? 'does not say that it is a part' : `says ${parts.length}`;
      throw invalid(
        `${fields.file}: the model has ${count} parts, but the name ${said}: give the file its own name again.`,
      );
    }
    const tensors = new Map(parts.flatMap((part) => [...part.tensors]));
    const config = ggufConfig(fields, tensors, ropeFactors);
    const { tokenizer, config: tokenizerConfig, generation } = ggufTokenizer(fields, config.vocab_size as number);
    this.dir = file;
    this.name = nameOf(file, fields);
    this.#folder = folder;
    this.#parts = parts;
    this.#headSize = config.head_dim as number;
    this.#family = fields.text('general.architecture')!;
    this.#manifest = ggufManifest(fields.file);
    this.said = ownWords(fields.file, this.#family, this.#manifest);
    this.#texts = new Map(
      Object.entries({
        'config.json': config,
        'generation_config.json': generation,
        'tokenizer.json': tokenizer,
        'tokenizer_config.json': tokenizerConfig,
      }).map(([name, json]) => [name, JSON.stringify(json)]),
    );
  }

  /** The whole text of a file, or null if there is none. */
  async readText(name: string): Promise<string | null> {
    return this.#texts.get(name) ?? (name === 'kvasir.json' ? this.#folder.readText(this.#manifest) : null);
  }

  /** The JSON object in a file, with its text. Null if there is no such file. */
  async readJson(name: string): Promise<{ text: string; value: Record<string, unknown> } | null> {
    const text = await this.readText(name);
    return text === null ? null : { text, value: parseJsonObject(name, text) };
  }

  /** Opens the files again. The caller closes them. */
  async openTensors(): Promise<TensorFiles> {
    const files: OpenFile[] = [];
    const tensors = new Map<string, OwnedTensor>();
    const half = this.#headSize / 2;
    // Rows 0, h, 1, h + 1, ...
    const pairs = Array.from({ length: this.#headSize }, (_, r) => (r < half ? 2 * r : 2 * (r - half) + 1));
    try {
      for (const { name, size, mtimeMs, tensors: stored } of this.#parts) {
        const file = await this.#folder.openFile(name);
        if (file === null) throw invalid(`${name} is not there any more.`);
        files.push(file);
        if (file.size !== size || file.mtimeMs !== mtimeMs) throw invalid(`${name} changed while it was read.`);
        for (const info of stored.values()) {
          const known = tensorName(name, this.#family, info.name);
          if (known === null) continue;
          if (tensors.has(known))
            throw invalid(
              `${name}: tensor ${JSON.stringify(info.name)} is in another part, too: download the files again.`,
            );
          const shift = shiftOf(this.#family, info.name);
          tensors.set(known, {
            file,
            info,
            ...(isInterleaved(this.#family, info.name) ? { order: pairs } : {}),
            ...(shift === 0 ? {} : { shift }),
          });
        }
      }
    } catch (error) {
      for (const file of files) await file.handle.close();
      throw error;
    }
    return {
      files,
      tensors,
      index: this.#parts[0]!.name,
      config: 'its metadata',
      nameInFile: (name) => nameInFile(this.#family, name),
    };
  }
}

/** The folder of a file, and the names of all parts in it. A link is followed, but not to a blob of the Hugging Face cache. */
async function locate(file: string): Promise<{ folder: ModelFolder; names: readonly string[] }> {
  const given = path.resolve(file);
  const found = (await inHubCache(path.dirname(given))) ? given : await realpath(given);
  const folder = await ModelFolder.open(path.dirname(found));
  const name = path.basename(found);
  return { folder, names: ggufName(name)?.files ?? [name] };
}

/** The name of the file. Blobs of Ollama have no name, but say in their metadata what they are. */
function nameOf(file: string, fields: GgufFields): string {
  const name = path.basename(file);
  return ggufName(name)?.model ?? oneLine(fields.text('general.name') || name);
}

async function readFactors(file: OpenFile, info: TensorInfo): Promise<Float32Array> {
  const bytes = info.end - info.start;
  if (info.dtype !== 'F32' || bytes > 4 * MAX_ROPE_FACTORS)
    throw invalid(`${file.name}: tensor "${info.name}" is no list of at most ${MAX_ROPE_FACTORS} numbers in F32.`);
  const raw = new Uint8Array(bytes);
  await readExactly(file, raw, info.start);
  const factors = new Float32Array(bytes / 4);
  if (!toFloat32(raw, 'F32', factors)) throw invalid(`${file.name}: tensor "${info.name}" holds NaN or infinity.`);
  return factors;
}
