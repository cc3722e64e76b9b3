/** The command `kvasir chat`: answers one question, or holds a conversation on the terminal. */
import { createInterface } from 'node:readline/promises';
import { RequestError } from '../protocol/errors.ts';
import { namedSymbol, parseSlash, slashQuestion } from '../protocol/slash.ts';
import type { ChatMessage } from '../protocol/tasks.ts';
import { type CommandLine, samplingOf, text, texts } from './options.ts';
import { UsageError } from './usageError.ts';
import { log, printJson, statsLine } from './output.ts';
import { runTask, withClient } from './session.ts';

/** Asks a question that the model is too small for; alone, the one that was refused last. */
const ANYWAY = /^\s*\/anyway(?:\s+([\s\S]*\S))?\s*$/;

export async function chat(line: CommandLine): Promise<number> {
  const sampling = samplingOf(line);
  const message = text(line, 'message');
  if (message !== undefined && !message.trim()) throw new UsageError('chat: --message is empty');
  return withClient(line, async (client, model) => {
    const docIds: string[] = [];
    for (const file of texts(line, 'file')) docIds.push((await client.openFile(file)).docId);
    const messages: ChatMessage[] = [];
    let running: string | null = null;
    let numTurns = 0;
    let refused: string | undefined;
    const inWords = (written: string): string => {
      const command = parseSlash(written);
      const symbol = command && namedSymbol(command.rest);
      return command
        ? slashQuestion(command, { selection: false, ...(symbol ? { symbol } : {}) }, model.canEdit)
        : written;
    };
    const turn = async (written: string) => {
      const found = ANYWAY.exec(written);
      const insisted = found ? (found[1] ?? '') : undefined;
      const content = insisted === '' ? refused : inWords(insisted ?? written);
      if (content === undefined) throw new RequestError('badRequest', '/anyway: no question was refused');
      messages.push({ role: 'user', content });
      running = `chat-${++numTurns}`;
      try {
        const { text: answer, source } = await runTask(
          line,
          client,
          { kind: 'chat', messages: [...messages], docIds, ...(insisted === undefined ? {} : { anyway: true }) },
          { id: running, sampling },
        );
        refused = source === 'refused' ? content : undefined;
        if (refused !== undefined && !line.json)
          log(
            message === undefined
              ? '/anyway asks it all the same'
              : `--model MODEL uses another model (see kvasir models); --message "/anyway QUESTION" asks this one all the same`,
          );
        // A refusal, or an answer that was stopped before its first text, is no part of the conversation.
        if (answer === '' || refused !== undefined) messages.pop();
        else messages.push({ role: 'assistant', content: answer, ...(source ? { source } : {}) });
      } catch (error) {
        messages.pop();
        throw error;
      } finally {
        running = null;
      }
    };
    if (message !== undefined) await turn(message);
    else {
      if (model.note.en && !line.json) log(model.note.en);
      const prompt = process.stdin.isTTY ? '> ' : '';
      const terminal = createInterface({ input: process.stdin, output: process.stderr, prompt });
      // Ctrl+C stops an answer. At the prompt it ends the conversation.
      terminal.on('SIGINT', () => (running === null ? terminal.close() : client.abort(running)));
      let open = true;
      terminal.on('close', () => {
        open = false;
        // The shell's prompt starts on a new line.
        if (process.stdin.isTTY) process.stderr.write('\n');
      });
      terminal.prompt();
      // The input may end before its last lines are answered.
      for await (const question of terminal) {
        if (question.trim())
          await turn(question).catch((error: unknown) => {
            if (!(error instanceof RequestError)) throw error;
            log(error.message);
          });
        if (open) terminal.prompt();
      }
    }
    if (line.json) printJson(statsLine(await client.stats()));
    return 0;
  });
}
