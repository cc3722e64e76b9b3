/** Lists the participants: Kvasir and each peer in the compared forms, with their files and their best settings. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import type { ShapeName } from '../shapes.ts';
import { shapeFolder } from '../writeShape.ts';

export const PEERS = ['llama', 'openvino', 'transformers'] as const;
export type PeerName = (typeof PEERS)[number];

export const SEED = 1;

/** Folders of everything that is installed or written, all in one folder that git ignores. */
export interface Places {
  /** Random models in the Hugging Face layout. */
  shapes: string;
  /** Models imported by Kvasir. */
  imported: string;
  /** npm packages of the peers. */
  node: string;
  /** A Python virtual environment. */
  python: string;
  /** Models in the peers' formats. */
  models: string;
  logs: string;
}

export function places(cache: string): Places {
  const at = (...parts: string[]): string => path.resolve(cache, 'bench', ...parts);
  return {
    shapes: at('shapes'),
    imported: at('imported'),
    node: at('peers/node'),
    python: at('peers/python'),
    models: at('peers/models'),
    logs: at('peers/logs'),
  };
}

export function pythonProgram({ python }: Places): string {
  return process.platform === 'win32' ? path.join(python, 'Scripts/python.exe') : path.join(python, 'bin/python');
}

/** Names of files that the set-up step writes. It keeps existing files, so new content needs a new name. */
export type ModelFile = 'q8_0.gguf' | 'q4_0-head.gguf' | 'openvino' | 'transformers';

export function modelFile({ models }: Places, shape: ShapeName, format: ModelFile): string {
  return path.join(models, `${shape}-seed${SEED}`, format);
}

export interface Participant {
  id: string;
  label: string;
  peer: PeerName | 'kvasir';
  command: string[];
  model: string;
  installed: string;
  settings: Record<string, unknown>;
}

/**
 * Best settings at 2k. Prefill tok/s: 551 with chunks of 1024 (256: 516, 4096: 537); 687 with groups of 128 activations
 * (default groups: 551).
 */
const OPENVINO_SETTINGS = {
  scheduler: { max_num_batched_tokens: 1024 },
  properties: { DYNAMIC_QUANTIZATION_GROUP_SIZE: '128' },
};

/** Kvasir first, then the requested peers in all their forms. @throws Error that names what is not set up. */
export async function participants(peers: readonly PeerName[], shape: ShapeName, at: Places): Promise<Participant[]> {
  const node = (driver: string): string[] => [
    process.execPath,
    '--disable-warning=MODULE_TYPELESS_PACKAGE_JSON',
    path.join(import.meta.dirname, driver),
  ];
  const llama = (id: string, label: string, file: ModelFile): Participant => ({
    id,
    label,
    peer: 'llama',
    command: node('llamaDriver.ts'),
    model: modelFile(at, shape, file),
    installed: at.node,
    settings: {},
  });
  const shapeDir = await shapeFolder(shape, at.shapes, SEED);
  const kvasir = (id: string, precision: string): Participant => ({
    id,
    label: `Kvasir ${precision}`,
    peer: 'kvasir',
    command: node('kvasirDriver.ts'),
    model: shapeDir,
    installed: at.imported,
    settings: { precision },
  });
  const all: Participant[] = [
    kvasir('kvasir', 'int8'),
    // Comparison for llama.cpp's form with as many bits.
    ...(peers.includes('llama') ? [kvasir('kvasir-int4', 'int4')] : []),
    llama('llama-q8', 'llama.cpp Q8_0', 'q8_0.gguf'),
    llama('llama-q4', 'llama.cpp Q4_0', 'q4_0-head.gguf'),
    {
      id: 'openvino',
      label: 'OpenVINO GenAI int8',
      peer: 'openvino',
      command: [pythonProgram(at), path.join(import.meta.dirname, 'openvinoDriver.py')],
      model: modelFile(at, shape, 'openvino'),
      installed: at.python,
      settings: OPENVINO_SETTINGS,
    },
    {
      id: 'transformers',
      label: 'transformers.js q8',
      peer: 'transformers',
      command: node('transformersDriver.ts'),
      model: modelFile(at, shape, 'transformers'),
      installed: at.node,
      settings: {},
    },
  ];
  const chosen = all.filter(({ peer }) => peer === 'kvasir' || peers.includes(peer));
  for (const { peer, model, installed } of chosen) {
    const missing = [model, ...(peer === 'kvasir' ? [] : [installed])].find((file) => !existsSync(file));
    if (missing)
      throw new Error(
        `${peer}: ${missing} is missing; set it up with: npm run bench -- peers --setup --peers ${peer} --shape ${shape}`,
      );
  }
  return chosen;
}
