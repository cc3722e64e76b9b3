/** The command `kvasir models`: lists the models of this machine, with what each can do, or why it cannot run. Loads none. */
import { statSync } from 'node:fs';
import path from 'node:path';
import { thisMachine } from '../download/hubCache.ts';
import { findModels } from '../find/findModels.ts';
import { described } from '../find/modelFolders.ts';
import type { Found, FoundModel, Source } from '../find/found.ts';
import { Look } from '../find/look.ts';
import { faultText, sourceText } from '../find/texts.ts';
import { RequestError } from '../protocol/errors.ts';
import { oneLine } from '../protocol/oneLine.ts';
import type { InspectedModel } from '../protocol/stats.ts';
import { english } from '../protocol/translate.ts';
import { inspectFolder } from '../server/inspection.ts';
import { builtInModelDir } from './modelArgument.ts';
import { type CommandLine, texts } from './options.ts';
import { bytes, count, print, printJson, progressOf } from './output.ts';

interface Listed {
  name: string;
  source: Source | 'builtIn';
  path: string;
  aliases: readonly string[];
  bytes: number;
  answer: InspectedModel | { reason: string };
}

export async function models(line: CommandLine): Promise<number> {
  const folders = texts(line, 'folder').map((folder) => path.resolve(folder));
  const missing = folders.find((folder) => !statSync(folder, { throwIfNoEntry: false })?.isDirectory());
  if (missing !== undefined) throw new RequestError('badRequest', `--folder ${missing}: no such folder`);
  const found = await findModels(folders, thisMachine());
  const builtIn = await described(builtInModelDir(), 'folder', new Look());
  const answer = await inspected(builtIn);
  const name = 'reason' in answer ? builtIn.name : answer.name;
  const listed: Listed[] = [{ ...builtIn, name, source: 'builtIn', path: builtIn.modelDir, answer }];
  const tell = progressOf('models inspected');
  for (const model of found.models) {
    listed.push({ ...model, path: model.modelDir, answer: await inspected(model) });
    tell(listed.length - 1, found.models.length);
  }
  const reason = faultText('denied', english);
  for (const { source, folder } of found.denied)
    listed.push({ name: sourceText(source, english), aliases: [], source, path: folder, bytes: 0, answer: { reason } });
  if (line.json) for (const each of listed) printJson(jsonOf(each));
  else printList(listed, found);
  return 0;
}

async function inspected({ modelDir, fault }: FoundModel): Promise<Listed['answer']> {
  if (fault !== undefined) return { reason: faultText(fault, english) };
  return inspectFolder(modelDir).catch((error: unknown) => ({ reason: oneLine((error as Error).message) }));
}

function jsonOf({ name, aliases, source, path: file, bytes: size, answer }: Listed): object {
  const model = { name, aliases, source, path: file, bytes: size };
  if ('reason' in answer) return { type: 'model', ...model, canRun: false, reason: answer.reason };
  const { architecture, format, parameters, contextTokens, canComplete, canChat, canEdit } = answer;
  return {
    type: 'model',
    ...model,
    canRun: true,
    architecture,
    format,
    parameters,
    contextTokens,
    canComplete,
    canChat,
    canEdit,
  };
}

function printList(listed: readonly Listed[], { places, isCut }: Found): void {
  const able = listed.flatMap(({ answer, ...model }) => ('reason' in answer ? [] : [{ ...model, answer }]));
  const rows = able.map((model) => [
    model.name,
    bytes(model.bytes),
    `${model.answer.architecture} ${model.answer.format}`,
  ]);
  const widths = [0, 1, 2].map((column) => Math.max(0, ...rows.map((row) => row[column]!.length)));
  for (const [i, { source, path: file, answer }] of able.entries()) {
    if (source !== able[i - 1]?.source) print(`${i > 0 ? '\n' : ''}${titleOf(source)}`);
    const [name = '', size = '', kind = ''] = rows[i]!;
    print(
      `  ${name.padEnd(widths[0]!)}  ${size.padStart(widths[1]!)}  ${kind.padEnd(widths[2]!)}  ${abilities(answer)}`,
    );
    print(`    ${oneLine(file)}`);
  }
  const refused = listed.filter(({ answer }) => 'reason' in answer);
  if (refused.length > 0) print('\ncannot run');
  for (const { name, source, path: file, answer } of refused) {
    print(`  ${name} (${titleOf(source)}): ${(answer as { reason: string }).reason}`);
    print(`    ${oneLine(file)}`);
  }
  const looked = places.map(({ source, folder }) => `${titleOf(source)} (${oneLine(folder)})`);
  print(
    `\n${count(able.length)} can run, ${count(refused.length)} cannot. --model and kvasir.model take a name or a path.`,
  );
  print(`Looked through: ${looked.join(', ') || 'no folder of Hugging Face, Ollama, LM Studio or llama.cpp exists'}.`);
  if (isCut) print('There are more than are listed; --folder DIR lists one folder.');
}

const titleOf = (source: Listed['source']): string => (source === 'builtIn' ? 'built in' : sourceText(source, english));

function abilities({ canComplete, canChat, canEdit }: InspectedModel): string {
  const can = [canComplete && 'completions', canChat && 'chat', canEdit && 'edits'].filter((word) => word !== false);
  return can.join(', ') || 'raw text only';
}
