/** What a fact is asked of: the commands, and the kinds that questions share with them. */
import type { FactKind, Part } from './intents.ts';

export interface FactQuery {
  kind: FactKind;
  /** '' asks of the file as a whole. */
  name: string;
  /** The class that `name` is said to belong to, as in `Store.flush`. */
  owner?: string;
  /** Of an outline, exports or members: only these. All if left out. */
  only?: readonly Part[];
  /** Only the definition that begins there, in the LF text. Tells several of one name apart. */
  within?: { start: number; end: number };
}

/** The commands that are answered without the model, and whether they take a name. */
export const FACT_COMMANDS = {
  outline: false,
  where: true,
  signature: true,
  imports: false,
  callers: true,
} as const satisfies Partial<Record<FactKind, boolean>>;
type FactCommand = keyof typeof FACT_COMMANDS;

/** The command of a message; undefined for any other message. `name` is undefined where one is missing. */
export function parseCommand(message: string): (Omit<FactQuery, 'name'> & { name: string | undefined }) | undefined {
  const [, word = '', rest = ''] = /^\/([a-z]+)(?:\s+([\s\S]*))?$/i.exec(message.trim()) ?? [];
  const kind = word.toLowerCase() as FactCommand;
  if (!Object.hasOwn(FACT_COMMANDS, kind)) return undefined;
  if (!FACT_COMMANDS[kind]) return { kind, name: '' };
  const said = rest.trim().replace(/^`|`$|\(\)`?$/g, '');
  return said === '' || /\s/.test(said) ? { kind, name: undefined } : { kind, ...pathOf(said) };
}

/** `Store.flush` is `flush` of `Store`. */
export function pathOf(said: string): { name: string; owner?: string } {
  const parts = said.split(/(?<=[^.#])[.#](?=[^.])/);
  const owner = parts.at(-2);
  return { name: parts.at(-1) as string, ...(owner === undefined ? {} : { owner }) };
}
