/**
 * Opens the files of a model and checks that the engine supports it. Reads no tensors.
 */
import { createHash } from 'node:crypto';
import { GgufModel } from '../load/gguf/ggufModel.ts';
import { type ModelConfig, parseConfig } from '../load/hfConfig.ts';
import { inOwnWords, type ModelFiles, openModelFiles } from '../load/modelFiles.ts';
import { ModelFolder, invalid, newestSnapshot, parseJsonObject } from '../load/modelFolder.ts';
import { otherContent } from '../load/otherFormats.ts';
import { checkTokenizerJson } from '../load/tokenizerFile.ts';
import { HEAD, planWeights } from '../load/weightPlan.ts';
import { Weights } from '../load/weights.ts';

/** Part of every key. Raise it when the conversion of weights changes. Graphs and layout are in the key themselves. */
const FORMAT = 4;
const JSON_FILES = [
  'config.json',
  'generation_config.json',
  'tokenizer.json',
  'tokenizer_config.json',
  'model.safetensors.index.json',
];

export interface OpenModel {
  /** Name that is shown to the user. */
  readonly name: string;
  readonly config: ModelConfig;
  readonly weights: Weights;
  /** Hash of the texts of the JSON files. */
  readonly textsHash: string;
  readonly tokenizerText: string;
  readonly files: ModelFiles;
}

/** Message for a folder without config.json. In a repository of the Hugging Face cache the model is in a subfolder. */
async function withoutConfig(modelDir: string): Promise<string> {
  const snapshot = await newestSnapshot(modelDir);
  if (snapshot !== null)
    return `${modelDir} is a repository of the Hugging Face cache. Choose the model folder in it: ${snapshot}.`;
  const other = await otherContent(await ModelFolder.open(modelDir));
  const whole = 'a model folder has config.json, safetensors weights and tokenizer.json';
  return `config.json is missing in ${modelDir}; ${other ?? whole}.`;
}

/** Reads everything except the tensors. Close `weights` after use. `files`: of the model, if they are open already. */
export async function openModel(modelDir: string, files?: ModelFiles): Promise<OpenModel> {
  const folder = files ?? (await openModelFiles(modelDir));
  return inOwnWords(folder, () => openFiles(modelDir, folder));
}

async function openFiles(modelDir: string, folder: ModelFiles): Promise<OpenModel> {
  const config = await folder.readJson('config.json');
  if (!config) throw invalid(await withoutConfig(modelDir));
  const parsed = parseConfig(config.value, (await folder.readJson('generation_config.json'))?.value ?? null);
  const tokenizerText = await folder.readText('tokenizer.json');
  if (tokenizerText === null)
    throw invalid(
      'tokenizer.json is missing. A model needs this file in the Hugging Face tokenizers format: ' +
        'download it, or make it with transformers (AutoTokenizer.from_pretrained, then save_pretrained).',
    );
  const weights = await Weights.open(folder, parsed);
  try {
    const hash = createHash('sha256').update(`kvasir ${FORMAT}|`);
    for (const name of JSON_FILES) {
      const text =
        name === 'config.json' ? config.text : name === 'tokenizer.json' ? tokenizerText : await folder.readText(name);
      hash.update(`${name}|${text === null ? 'none' : text.length}|`).update(text ?? '');
    }
    weights.refuseOtherForms();
    // Shapes are checked first, because a comparison of head and embedding needs the shapes of the config.
    const untied = planWeights(parsed, 'int8', false, 'rows').needed;
    for (const [name, shape] of untied)
      if (name !== HEAD || weights.has(HEAD)) weights.check(name, shape, parsed.quantisation?.kind === 'int8');
    // A folder may have more tensors. In a GGUF file such a tensor means that the metadata describe another model.
    if (folder instanceof GgufModel) weights.refuseOthers(untied);
    if (!parsed.tied && !weights.has(HEAD))
      throw invalid(
        `config.json: tie_word_embeddings is not true, but ${weights.files.join(', ')} has no tensor ${HEAD}. ` +
          'A model needs tied embeddings or an output head.',
      );
    return {
      name: folder.name,
      config: parsed,
      weights,
      textsHash: hash.digest('hex'),
      tokenizerText,
      files: folder,
    };
  } catch (error) {
    await weights.close();
    throw error;
  }
}

/** Returns the strings of all tokens. */
export function checkTokenizer({ tokenizerText, config, files }: OpenModel): Promise<ReadonlySet<string>> {
  return inOwnWords(files, () =>
    checkTokenizerJson(parseJsonObject('tokenizer.json', tokenizerText), config.vocabSize),
  );
}
