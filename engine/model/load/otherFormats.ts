/**
 * Names what a folder holds instead of a model in the supported layout, by its file names and tensor names, and says
 * what to do. Reads no files.
 */
import type { ModelFolder } from './modelFolder.ts';

/** What to do about weights that are quantised in another way. */
export const CHOOSE_UNQUANTISED =
  'choose the original model in bfloat16, float16 or float32 (Kvasir makes 8 or 4 bits itself)';

/** By file names: the first match counts. */
const FOLDERS: readonly (readonly [RegExp, string])[] = [
  [
    /^adapter_(?:config\.json|model\..*)$/,
    'it holds an adapter (LoRA), which is only a change of another model: ' +
      'merge it into its base model (merge_and_unload in peft), and choose the folder of the result',
  ],
  [/\.gguf$/i, 'it holds GGUF files: choose one of them instead of the folder'],
  [
    /^model.*\.safetensors\.incomplete$|\.(?:part|incomplete|crdownload)$/,
    'it holds a download that has not finished: download the model again',
  ],
  [/^consolidated.*\.(?:safetensors|pth)$/, 'it holds weights with other names: choose the Hugging Face version'],
  [
    /^pytorch_model.*\.bin(?:\.index\.json)?$|\.(?:pt|pth|ckpt)$/,
    'it holds weights of PyTorch: load it with transformers and save it again (save_pretrained), which writes safetensors',
  ],
  [/\.onnx$/, 'it holds an ONNX model, which is not supported: choose the folder of the original model'],
];

interface OtherForm {
  readonly name: string;
  readonly pattern: RegExp;
  /** Whether it is supported if config.json describes it. */
  readonly isRead: boolean;
}

/** By tensor names: the first match counts. */
const FORMS: readonly OtherForm[] = [
  { name: 'GPTQ', pattern: /\.g_idx$/, isRead: true },
  { name: 'GPTQ or AWQ', pattern: /\.qweight$/, isRead: true },
  { name: 'compressed-tensors', pattern: /\.weight_packed$/, isRead: true },
  { name: 'bitsandbytes', pattern: /\.weight\.absmax$|\.SCB$/, isRead: false },
  { name: 'LoRA', pattern: /\.lora_[AB]\./, isRead: false },
];

/** What the folder holds instead, as the end of a sentence. Null if nothing is recognised. */
export async function otherContent(folder: ModelFolder): Promise<string | null> {
  const names = await folder.names();
  return FOLDERS.find(([pattern]) => names.some((name) => pattern.test(name)))?.[1] ?? null;
}

/** Names the way in which tensors are quantised. Null if they are not, or in the way that config.json describes. */
export function otherQuantisation(tensors: Iterable<string>): OtherForm | null {
  const names = [...tensors];
  return FORMS.find(({ pattern }) => names.some((name) => pattern.test(name))) ?? null;
}
