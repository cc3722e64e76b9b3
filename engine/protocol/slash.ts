/**
 * The chat's slash commands and the question that each stands for. Small models get the questions they were trained on;
 * models that follow instructions get the full instruction. The engine answers the fact commands from the code itself.
 */

const SLASH_NAMES = ['explain', 'fix', 'tests', 'doc', 'summarize'] as const;
export type SlashName = (typeof SLASH_NAMES)[number];

const FACT_COMMAND = /^\/(?:outline|where|signature|imports|callers)(?!\S)/i;

/** Whether the engine answers the question from the attached files, without the model. */
export const isFactCommand = (text: string): boolean => FACT_COMMAND.test(text.trim());

export interface SlashCommand {
  name: SlashName;
  /** The text after the command. */
  rest: string;
}

/** What a command is about. */
export interface SlashTarget {
  /** Name of the definition at the cursor, or the one that the user named. */
  symbol?: string;
  /** Whether code is selected. */
  selection: boolean;
}

/** The command that a question starts with; null for any other question, including a path such as "/etc". */
export function parseSlash(text: string): SlashCommand | null {
  const [, word = '', rest = ''] = /^\/(\w+)(?:\s+([\s\S]*))?$/.exec(text.trim()) ?? [];
  const name = SLASH_NAMES.find((each) => each === word.toLowerCase());
  return name ? { name, rest: rest.trim() } : null;
}

/** Whether the command needs a model that follows instructions. */
export function needsInstructions(name: SlashName): boolean {
  return name === 'fix' || name === 'tests' || name === 'doc';
}

/** A name such as `flush`, `Store.flush` or `flush()`; undefined when `rest` is something else. */
export function namedSymbol(rest: string): string | undefined {
  return /^`?([A-Za-z_$][\w$]*(?:[.#:]+[A-Za-z_$][\w$]*)*)(?:\(\))?`?$/.exec(rest)?.[1];
}

/** The question in the words for the model. */
export function slashQuestion(
  { name, rest }: SlashCommand,
  { symbol, selection }: SlashTarget,
  canEdit: boolean,
): string {
  const what = symbol ? `\`${symbol}\`` : selection ? 'the selected code' : 'this file';
  // The user's further words. A name alone is already in `what`.
  const more = symbol !== undefined && namedSymbol(rest) === symbol ? '' : rest;
  const words = questionWords(name, what, symbol !== undefined || selection, canEdit);
  return more ? `${words} ${more}` : words;
}

function questionWords(name: SlashName, what: string, part: boolean, canEdit: boolean): string {
  switch (name) {
    case 'explain':
      if (!part)
        return canEdit ? 'Explain what this file does and how its parts work together.' : 'Summarise this file.';
      return canEdit
        ? `Explain step by step what ${what} does.`
        : what.startsWith('`')
          ? `What does ${what} do?`
          : 'What does this code do?';
    case 'summarize':
      return part ? `Summarise ${what}.` : 'Summarise this file.';
    case 'fix':
      return canEdit
        ? `Find the fault in ${what} and correct it. Give the whole corrected code in one code block, ` +
            'then say in one sentence what was wrong.'
        : `What is wrong in ${what}?`;
    case 'tests':
      return canEdit
        ? `Write unit tests for ${what} with the test framework that this project uses. Give them in one code block.`
        : `Write a test for ${what}.`;
    case 'doc':
      return canEdit
        ? `Write a documentation comment for ${what} in the usual style of its language. ` +
            'Give the code with its comment in one code block and change nothing else.'
        : `Write a docstring for ${what}.`;
  }
}
