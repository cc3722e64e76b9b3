/**
 * The models of Ollama: a manifest for each name, which names blobs by their hashes. Trusts no manifest. Ollama's own
 * templates and parameters are not used: a GGUF file has its template in its metadata.
 */
import path from 'node:path';
import { oneLine } from '../protocol/oneLine.ts';
import type { Fault, FoundModel } from './found.ts';
import { type Look, lookAt, pieces, shortText } from './look.ts';

/** Those of models in other formats list each tensor. */
const MAX_MANIFEST_BYTES = 1e6;
const REGISTRY = 'registry.ollama.ai';
const LAYER = 'application/vnd.ollama.image.';

/** `folder`: with `manifests` and `blobs`. */
export async function* inOllama(folder: string, look: Look): AsyncGenerator<FoundModel> {
  const manifests = path.join(folder, 'manifests');
  for (const host of await look.names(manifests))
    for (const owner of await look.names(path.join(manifests, host)))
      for (const model of await look.names(path.join(manifests, host, owner)))
        for (const tag of await look.names(path.join(manifests, host, owner, model)))
          yield* await described(folder, [host, owner, model, tag]);
}

/** The names of files and folders that a name of Ollama may stand for. */
export function partsOfName(name: string): string[] {
  const parts = name.split(/[/:]/);
  return [...parts, REGISTRY, 'library', 'latest'];
}

/** Nothing if there is no manifest. */
async function described(folder: string, parts: [string, string, string, string]): Promise<FoundModel[]> {
  const [host, owner, model, tag] = parts;
  const place = host !== REGISTRY ? `${host}/${owner}/` : owner === 'library' ? '' : `${owner}/`;
  const name = oneLine(`${place}${model}`);
  const manifest = path.join(folder, 'manifests', ...parts);
  if (!(await lookAt(manifest))?.isFile) return [];
  const blob = await blobOf(manifest, path.join(folder, 'blobs'));
  return [
    {
      ...(typeof blob === 'string' ? { modelDir: manifest, bytes: 0, fault: blob } : blob),
      name: `${name}:${oneLine(tag)}`,
      aliases: tag === 'latest' ? [name] : [],
      source: 'ollama',
    },
  ];
}

/** The file with the weights, or why there is none. */
async function blobOf(manifest: string, blobs: string): Promise<{ modelDir: string; bytes: number } | Fault> {
  const text = await shortText(manifest, MAX_MANIFEST_BYTES);
  const layers = text === null ? null : layersOf(text);
  if (layers === null) return 'badManifest';
  const models = layers.filter(({ mediaType }) => mediaType === `${LAYER}model`);
  if (models.length === 0) return 'noGguf';
  if (models.length > 1) return 'severalFiles';
  if (layers.some(({ mediaType }) => mediaType === `${LAYER}adapter`)) return 'adapter';
  const { digest, size } = models[0]!;
  if (typeof digest !== 'string' || !/^sha256:[0-9a-f]{64}$/.test(digest)) return 'badManifest';
  const modelDir = path.join(blobs, digest.replace(':', '-'));
  const file = await lookAt(modelDir);
  if (!file?.isFile) return 'missing';
  if (typeof size === 'number' && size !== file.bytes) return 'cut';
  const start = await pieces(modelDir, [0], 4);
  if (start === null) return 'denied';
  return start.toString('latin1') === 'GGUF' ? { modelDir, bytes: file.bytes } : 'noGguf';
}

type Layer = Record<string, unknown>;

function layersOf(text: string): Layer[] | null {
  try {
    const { layers } = JSON.parse(text) as { layers?: unknown };
    if (!Array.isArray(layers)) return null;
    return layers.filter((layer): layer is Layer => typeof layer === 'object' && layer !== null);
  } catch {
    return null;
  }
}
