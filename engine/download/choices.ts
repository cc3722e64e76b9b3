/** Which models a repository offers: its GGUF files by size, or the folder of its safetensors. Goes by names. Pure. */
import { ggufName } from '../protocol/ggufName.ts';
import type { HubFile } from './hubFile.ts';

export interface Choice {
  /** The path of its first GGUF file; empty for the repository's folder. */
  path: string;
  /** "Q8_0", "safetensors"; empty if the name does not say it. */
  format: string;
  files: HubFile[];
  bytes: number;
}

/** What the engine reads of a folder, and its licence. */
const IN_FOLDER = new RegExp(
  '^(?:(?:config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab|kvasir)\\.json|' +
    'model\\.safetensors\\.index\\.json|merges\\.txt|chat_template\\.(?:jinja|json)|licen[cs]e.*)$',
  'i',
);
const WEIGHTS = /^(?!consolidated|adapter)[^/]*\.safetensors$/i;
const SHARD = /^(.+)-(\d+)-of-(\d+)\.safetensors$/i;
const LICENCE = /^licen[cs]e[^/]*$/i;
/** Formats that the engine does not read, and files that read pictures for another model. */
const UNUSABLE = /(?:^|[-._])(?:i?q1_\w+|iq[23]_\w+|tq\d_\d)(?=[-.])|^mmproj|imatrix/i;
const FORMAT = /(?:^|[-._])((?:iq|q)\d_\w+|bf16|f16|f32|fp16|fp32)(?=[-.])/gi;

/** By size, the smallest first. A GGUF file counts with all its parts. */
export function choicesOf(files: readonly HubFile[]): Choice[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const licence = files.filter(({ path }) => LICENCE.test(path));
  const choices: Choice[] = [];
  for (const { path } of files) {
    const [name = '', folder, deeper] = path.split('/').reverse();
    const gguf = ggufName(name);
    if (gguf?.part !== 1 || deeper !== undefined || UNUSABLE.test(name)) continue;
    const parts = gguf.files.map((part) => byPath.get(folder === undefined ? part : `${folder}/${part}`));
    if (!parts.every((part) => part !== undefined)) continue;
    choices.push(choice(path, formatIn(name), [...parts, ...licence]));
  }
  const weights = files.filter(({ path }) => WEIGHTS.test(path));
  if (areWhole(weights) && byPath.has('config.json') && byPath.has('tokenizer.json'))
    choices.push(choice('', 'safetensors', [...files.filter(({ path }) => IN_FOLDER.test(path)), ...weights]));
  return choices.sort((a, b) => a.bytes - b.bytes);
}

/** "Q8_0", by the name of a GGUF file; empty if it does not say it. */
export function formatIn(name: string): string {
  return [...name.matchAll(FORMAT)].at(-1)?.[1]?.toUpperCase() ?? '';
}

/** Whether there are weights, and every set of shards has as many as their names say. */
function areWhole(weights: readonly HubFile[]): boolean {
  const sets = new Map<string, Set<string>>();
  for (const { path } of weights) {
    const [, stem, shard = '', count] = SHARD.exec(path) ?? [];
    if (count === undefined) continue;
    const name = `${count} ${stem}`;
    sets.set(name, (sets.get(name) ?? new Set()).add(shard));
  }
  return weights.length > 0 && [...sets].every(([name, shards]) => shards.size === Number.parseInt(name, 10));
}

function choice(path: string, format: string, files: HubFile[]): Choice {
  return { path, format, files, bytes: files.reduce((sum, { size }) => sum + size, 0) };
}

/** The one of a path, file name or format ("Q8_0", "safetensors"); of several of one format the one in fewest files. */
export function choiceNamed(choices: readonly Choice[], wanted: string): Choice | undefined {
  const name = wanted.toLowerCase();
  const byName = choices.find(({ path }) => path !== '' && [path, path.split('/').at(-1)].includes(wanted));
  if (byName) return byName;
  const same = choices.filter(({ format }) => format.toLowerCase() === name);
  return same.sort((a, b) => a.files.length - b.files.length)[0];
}
