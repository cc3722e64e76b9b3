/**
 * Entry of `kvasir`, the engine without an editor. Runs one command and sets the exit status: 0 done, 1 failed, 2 wrong
 * usage. An error is one line on stderr: what, where, what to do.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { chat } from './chatCommand.ts';
import { complete } from './completeCommand.ts';
import { demo } from './demoCommand.ts';
import { download } from './downloadCommand.ts';
import { evaluate } from './evalCommand.ts';
import { whyNot } from './cliFiles.ts';
import { generate } from './generateCommand.ts';
import { inspect } from './inspectCommand.ts';
import { modelPath } from './modelArgument.ts';
import { models } from './modelsCommand.ts';
import { HELP, helpOf } from './commandTable.ts';
import { asksForHelp, type CommandLine, parseCommandLine, text } from './options.ts';
import { summarize } from './summarizeCommand.ts';
import { UsageError } from './usageError.ts';

/** Each command returns the exit status. */
const COMMANDS: Record<string, (line: CommandLine) => Promise<number>> = {
  demo,
  complete,
  chat,
  summarize,
  generate,
  eval: evaluate,
  models,
  inspect,
  download,
};

async function main(argv: string[]): Promise<number> {
  const name = argv[0];
  if (name === undefined) {
    process.stdout.write(HELP);
    return 2;
  }
  if (name === 'help' && argv[1] !== undefined && !/^(help|--help|-h)$/.test(argv[1])) {
    commandNamed(argv[1]);
    process.stdout.write(helpOf(argv[1]));
    return 0;
  }
  if (name === 'help' || name === '--help' || name === '-h') {
    process.stdout.write(HELP);
    return 0;
  }
  if (name === '--version') {
    const { version } = JSON.parse(readFileSync(join(__dirname, '..', 'package.json'), 'utf8')) as { version: string };
    process.stdout.write(`${version}\n`);
    return 0;
  }
  const command = commandNamed(name);
  if (asksForHelp(name, argv.slice(1))) {
    process.stdout.write(helpOf(name));
    return 0;
  }
  const line = parseCommandLine(name, argv.slice(1));
  const model = text(line, 'model');
  if (model !== undefined) line.values.model = await modelPath(model);
  return command(line);
}

function commandNamed(name: string): (line: CommandLine) => Promise<number> {
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!command) throw new UsageError(`unknown command "${name}"; one of ${Object.keys(COMMANDS).join(', ')}`);
  return command;
}

// A closed pipe on stdout (`kvasir ... | head`) is no failure. A closed pipe on stderr does not end the command.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  process.stderr.write(`kvasir: the output cannot be written: ${whyNot(error)}\n`);
  process.exit(1);
});
process.stderr.on('error', () => {});

main(process.argv.slice(2)).then(
  (status) => {
    process.exitCode = status;
  },
  (error: unknown) => {
    const usage = error instanceof UsageError;
    process.stderr.write(
      `kvasir: ${error instanceof Error ? error.message : String(error)}${usage ? ' (see kvasir help)' : ''}\n`,
    );
    process.exitCode = usage ? 2 : 1;
  },
);
