/**
 * Tests whether the text side of a model fits together: the tokenizer restores a text, the control tokens exist within
 * the model, and the chat template matches the tokenizer. A mismatch raises no error by itself, only garbage. Here it
 * becomes a message. Runs once per load.
 */
import { RequestError } from '../../protocol/errors.ts';
import { type Faults, fileSeparator, type ModelText } from './modelText.ts';

/** Code, indentation, a line break, characters of two and three bytes. */
const SAMPLE = 'def f(x):\n\tif x > 10:\n        return "é ✓"\n';
const QUESTION = 'KVASIR QUESTION';
const ANSWER = 'KVASIR ANSWER';
/** Token that opens or closes a turn in the published templates, at the start of a text. */
const MARK = /^(?:<\|[^|<>\s]{1,40}\|>|<｜[^｜<>\s]{1,40}｜>|<\/s>|<eos>|<end_of_turn>)/;

/**
 * Returns what must be switched off, and why. `vocabSize`: of the model; ids from there on have no embedding.
 * @throws RequestError `modelInvalid` for an unusable tokenizer.
 */
export function selfTest(text: ModelText, vocabSize: number): Faults {
  const { tokenizer, fim, chatTemplate } = text;
  const ids = tokenizer.encode(SAMPLE);
  if (tokenizer.decode(ids) !== SAMPLE)
    throw new RequestError(
      'modelInvalid',
      'tokenizer.json: a text that is encoded and decoded comes back changed; the file is incomplete or of another kind',
    );
  if (ids.some((id) => id >= vocabSize))
    throw new RequestError(
      'modelInvalid',
      `tokenizer.json: it has token ids that the model does not (config.json: vocab_size is ${vocabSize}); the file belongs to another model`,
    );
  const faults: Faults = {};
  const complete = fim && controlFault(fim.controls, text, vocabSize);
  const chat = chatTemplate && chatFault(text, vocabSize);
  if (complete) faults.complete = complete;
  if (chat) faults.chat = chat;
  return faults;
}

/** Control tokens must differ, and each must be a token of the model that reads as its name. */
function controlFault(
  controls: { token: string; tokenId: number }[],
  { tokenizer }: ModelText,
  vocabSize: number,
): string | undefined {
  for (const { token, tokenId } of controls) {
    if (tokenId >= vocabSize)
      return `tokenizer.json: ${token} has the id ${tokenId}, but the model has only ${vocabSize} tokens`;
    if (controls.some((other) => other.token !== token && other.tokenId === tokenId))
      return `tokenizer.json: ${token} has the same id as another fill-in-the-middle token`;
    if (plain(tokenizer.decode([tokenId])) !== plain(token))
      return `tokenizer.json: id ${tokenId} of ${token} reads as something else`;
  }
  return undefined;
}

/** Some tokenizers write spaces as ▁ and put one before a text. */
function plain(token: string): string {
  return token.replaceAll('▁', ' ').trim();
}

function chatFault(text: ModelText, vocabSize: number): string | undefined {
  const { tokenizer, chatTemplate, chatStopIds } = text;
  if (chatTemplate === undefined) return undefined;
  let asked: string;
  let answered: string;
  try {
    asked = chatTemplate.render([{ role: 'user', content: QUESTION }]);
    answered = chatTemplate.render(
      [
        { role: 'user', content: QUESTION },
        { role: 'assistant', content: ANSWER },
      ],
      { addGenerationPrompt: false },
    );
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  if (!asked.includes(QUESTION)) return 'chat template: it leaves the question out';
  if (!answered.includes(ANSWER)) return 'chat template: it leaves earlier answers out';
  const end = MARK.exec(answered.slice(answered.indexOf(ANSWER) + ANSWER.length).trimStart())?.[0];
  if (end !== undefined && tokenizer.idOf(end) === undefined)
    return `chat template: it ends an answer with ${end}, which tokenizer.json does not know; the template belongs to another model`;
  if (chatStopIds.every((id) => id === fileSeparator(tokenizer)))
    return 'chat template: neither it nor config.json names a token that ends an answer';
  const beyond = tokenizer.encodeTemplate(asked).find((id) => id >= vocabSize);
  return beyond === undefined
    ? undefined
    : `chat template: it uses the token ${JSON.stringify(tokenizer.decode([beyond]))} with the id ${beyond}, but the model has only ${vocabSize} tokens`;
}
