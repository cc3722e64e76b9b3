/** What a search for models gives. Types only. */

export type Source = 'folder' | 'huggingFace' | 'ollama' | 'lmStudio' | 'llamaCpp';

/** Where a source keeps models. */
export interface Place {
  source: Source;
  folder: string;
}

/** What a search sees of a model that cannot be opened. */
export type Fault = 'badManifest' | 'noGguf' | 'severalFiles' | 'adapter' | 'missing' | 'cut' | 'denied';

export interface FoundModel {
  /** A folder, or a GGUF file. With a fault: what describes the model. */
  modelDir: string;
  /** For display, in one line: "Qwen/Qwen3-0.6B", "qwen2.5-coder:1.5b", or the name of the folder or file. */
  name: string;
  /** Other names and paths of it. */
  aliases: readonly string[];
  source: Source;
  /** Of its weights on the disk. */
  bytes: number;
  fault?: Fault;
}

export interface Found {
  /** In the order of the places. */
  models: FoundModel[];
  /** Those that exist. */
  places: Place[];
  /** Folders that this user must not read. */
  denied: Place[];
  /** A limit has left something out. */
  isCut: boolean;
}

/** Why a name leads to no model. */
export type NameProblem =
  | { kind: 'unknown'; name: string; places: readonly Place[] }
  | { kind: 'several'; name: string; names: readonly string[] }
  | { kind: 'faulty'; name: string; fault: Fault };
