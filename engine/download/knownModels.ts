/**
 * The open models that are offered by name (media/models.json). Sizes in memory follow the import's arithmetic over each
 * model's config.json; a test checks them. Models whose licence forbids commercial use are left out (Qwen2.5-Coder-3B).
 */
import models from '../../media/models.json';

export interface KnownModel {
  /** Hugging Face repository of the original. */
  id: string;
  title: string;
  /** Repository of its GGUF files. */
  repository: string;
  /** A branch: the download takes the commit that it names then. */
  revision: string;
  /** Which of the files. */
  format: string;
  /** Size of that file, rounded. The hub tells the exact one. */
  aboutBytes: number;
  licence: string;
  /** Trained for code, including fill-in-the-middle. The others are general. All follow instructions. */
  code: boolean;
  /** See FIRST_MODEL. */
  first?: boolean;
  parameters: number;
  /**
   * Size of the engine's weights that each token reads and that stay in memory: all but the embedding,
   * which is read by single rows.
   */
  residentBytes: Record<'int8' | 'int4', number>;
  /** Size of the KV cache for an ordinary file and conversation, as the engine counts it. */
  cacheBytes: number;
}

export const KNOWN_MODELS: readonly KnownModel[] = models;

/** The one that is offered where there is room for one. */
export const FIRST_MODEL: KnownModel = KNOWN_MODELS.find(({ first }) => first) ?? KNOWN_MODELS[0]!;
