/**
 * The model that a name means: of Ollama ("qwen2.5-coder:1.5b"), of the hub ("owner/name", "owner/name:Q8_0"), or as the
 * list shows it. Downloads nothing.
 */
import type { Machine } from '../download/hubCache.ts';
import { english } from '../protocol/translate.ts';
import { findModels } from './findModels.ts';
import type { FoundModel, NameProblem } from './found.ts';
import { nameProblemText } from './texts.ts';

export class NameError extends Error {
  readonly problem: NameProblem;

  constructor(problem: NameProblem) {
    super(nameProblemText(problem, english));
    this.problem = problem;
  }
}

const MAX_NAMES_SHOWN = 5;

/** @throws NameError */
export async function modelNamed(name: string, folders: readonly string[], machine: Machine): Promise<FoundModel> {
  const { models, places } = await findModels(folders, machine, { wanted: name });
  const called = modelsCalled(models, name);
  const [first, ...others] = called.filter(({ fault }) => fault === undefined);
  if (first && others.length === 0) return first;
  if (first) {
    const shown = [first, ...others].slice(0, MAX_NAMES_SHOWN);
    const areNames = new Set(shown.map((each) => each.name)).size === shown.length;
    const names = shown.map((each) => (areNames ? each.name : each.modelDir));
    throw new NameError({ kind: 'several', name, names });
  }
  const fault = called[0]?.fault;
  throw new NameError(fault === undefined ? { kind: 'unknown', name, places } : { kind: 'faulty', name, fault });
}

/** Those of the closest match: shown names before other names, as it is written before other case. */
export function modelsCalled(models: readonly FoundModel[], name: string): FoundModel[] {
  const [lower, asCached] = [name.toLowerCase(), cachedName(name)];
  const rules: ((model: FoundModel) => boolean)[] = [
    (model) => model.name === name || model.modelDir === name,
    ({ aliases }) => aliases.includes(name),
    (model) => [model.name, ...model.aliases].some((each) => each.toLowerCase() === lower),
    (model) => model.source === 'llamaCpp' && asCached?.test(model.name) === true,
  ];
  for (const rule of rules) {
    const called = models.filter(rule);
    if (called.length > 0) return called;
  }
  return [];
}

/** llama.cpp stores a file of owner/name as owner_name_file. */
function cachedName(name: string): RegExp | undefined {
  const [, owner, model, format] = /^([\w.-]+)\/([\w.-]+?)(?::([\w.-]+))?$/.exec(name) ?? [];
  if (owner === undefined || model === undefined) return undefined;
  const plain = `${owner}_${model}`.replaceAll('.', '\\.');
  return new RegExp(`^${plain}_${format === undefined ? '' : `.*${format.replaceAll('.', '\\.')}`}`, 'i');
}
