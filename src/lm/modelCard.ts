/**
 * What VS Code's model list shows of the model in use: name, limits, and whether it can chat. Read from the loaded
 * model or from the files of its folder, so that listing neither starts the engine nor loads anything.
 */
import { existsSync } from 'node:fs';
import path from 'node:path';
import type { ModelInfo } from '../../engine/protocol/stats.ts';
import { describeModel, readJson, readManifest, shownNote } from '../models/locate.ts';

export interface ModelCard {
  name: string;
  /** "qwen3" */
  family: string;
  version: string;
  note: string;
  parameters: number | null;
  canChat: boolean;
  /** Tokens that a request's texts may take together. */
  maxInputTokens: number;
  maxOutputTokens: number;
}

/** The engine keeps at most this share of the context for an answer. */
const MAX_ANSWER_SHARE = 1 / 6;
/** The engine's own limit, and the default for a config.json without a length. */
const MAX_CONTEXT = 65_536;
const DEFAULT_CONTEXT: Record<string, number> = { qwen2: 32_768, qwen3: 32_768, llama: 2048 };
/** Longest answer of a model whose manifest does not say. */
const DEFAULT_ANSWER = 1024;
/** Reserved for the tokens of the chat template. */
const TEMPLATE_TOKENS = 64;

/**
 * `answerTokens` is kvasir.chat.maxTokens. `loaded` is the engine's information, which takes precedence. Null for a
 * folder that holds no model, and for a GGUF file that is not loaded: only the engine reads it.
 */
export function modelCard(modelDir: string, answerTokens: number, loaded: ModelInfo | null): ModelCard | null {
  const config = readJson(path.join(modelDir, 'config.json'));
  const manifest = readManifest(modelDir);
  const family = loaded?.architecture ?? String(config.model_type ?? '');
  const made = DEFAULT_CONTEXT[family];
  if (made === undefined) return null;
  const contextTokens =
    loaded?.contextTokens ?? Math.min(MAX_CONTEXT, positive(config.max_position_embeddings) ?? made);
  const wanted =
    answerTokens || (positive((manifest.chat as { maxTokens?: unknown } | undefined)?.maxTokens) ?? DEFAULT_ANSWER);
  const within = (tokens: number) => Math.max(1, Math.min(tokens, Math.floor(contextTokens * MAX_ANSWER_SHARE)));
  const maxOutputTokens = within(wanted);
  const reserved = within(wanted + (loaded?.reasoningTokens ?? 0));
  const { name, note } = loaded ? { name: loaded.name, note: shownNote(loaded.note) } : describeModel({ modelDir });
  return {
    name,
    family,
    version: typeof manifest.version === 'string' ? manifest.version : '',
    note,
    parameters: loaded?.parameters ?? null,
    canChat: loaded?.canChat ?? promisesChat(modelDir, manifest),
    maxInputTokens: Math.max(1, contextTokens - reserved - TEMPLATE_TOKENS),
    maxOutputTokens,
  };
}

function promisesChat(modelDir: string, manifest: Record<string, unknown>): boolean {
  const said = (manifest.can as { chat?: unknown } | undefined)?.chat;
  if (typeof said === 'boolean') return said;
  return (
    existsSync(path.join(modelDir, 'chat_template.jinja')) ||
    readJson(path.join(modelDir, 'tokenizer_config.json')).chat_template !== undefined
  );
}

function positive(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : undefined;
}
