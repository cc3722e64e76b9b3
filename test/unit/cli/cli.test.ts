import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cacheReach, leastBudget } from '../../../engine/server/cacheReach.ts';
import { defaultCacheDir } from '../../../engine/cli/cliClient.ts';
import { offsetAt } from '../../../engine/cli/completeCommand.ts';
import { nothing, pickCursor } from '../../../engine/cli/demoCommand.ts';
import { wrap } from '../../../engine/cli/demoCommand.ts';
import { asksForHelp, loadOptionsOf, parseCommandLine, texts } from '../../../engine/cli/options.ts';
import { bytes, folderFooter, paced, progressOf, table } from '../../../engine/cli/output.ts';
import { LeftOut, sourceFiles } from '../../../engine/cli/summarizeCommand.ts';
import { remedyFor, withRemedy } from '../../../engine/cli/session.ts';
import { isSecret, SECRETS } from '../../../engine/cli/cliFiles.ts';
import { definitionOf } from '../../../engine/cli/summarizeCommand.ts';
import { RequestError } from '../../../engine/protocol/errors.ts';
import { parseConfig } from '../../../engine/model/load/hfConfig.ts';
import type { ErrorCode } from '../../../engine/protocol/tasks.ts';
import { BUILT_IN } from '../../support/builtIn.ts';
import { BundledCli } from '../../support/cli/bundledCli.ts';

describe('parts', () => {
  test('a line and column become an offset, also after CRLF, and never outside the line', () => {
    expect(offsetAt('ab\ncd', 1, 1)).toBe(0);
    expect(offsetAt('ab\ncd', 2, 3)).toBe(5);
    expect(offsetAt('ab\r\ncd', 1, 3)).toBe(2);
    expect(offsetAt('ab\r\ncd', 2, 1)).toBe(4);
    expect(() => offsetAt('ab\r\ncd', 1, 4)).toThrow('--column 4: line 1 has 2 characters');
    expect(() => offsetAt('ab', 2, 1)).toThrow('--line 2: the last line of the file is 1');
  });

  test('a definition has its lines up to the closing bracket', () => {
    const source =
      'import x;\n\nexport async function read(file) {\n  if (file) {\n    return read(file);\n  }\n}\nconst after = 1;\n';
    const { start, end } = definitionOf(source, 'read', 'f.ts');
    expect(source.slice(start, end)).toBe(
      'export async function read(file) {\n  if (file) {\n    return read(file);\n  }\n}',
    );
    const python = 'class A:\n    def go(self):\n        return 1\n\n    def stop(self):\n        pass\n';
    const method = definitionOf(python, 'go', 'f.py');
    expect(definitionOf(python, 'Robot.go', 'f.py')).toEqual(method);
    expect(python.slice(method.start, method.end).trimEnd()).toBe('    def go(self):\n        return 1');
    const ofLine = (text: string, name: string) => text.slice(definitionOf(text, name, 'f').start).split('\n')[0];
    const go = 'func main() {\n\twriteAll(w, 1)\n}\n\nfunc writeAll(w io.Writer, n int) {\n}\n';
    expect(ofLine(go, 'writeAll'), 'not its call above').toBe('func writeAll(w io.Writer, n int) {');
    expect(ofLine('main();\nfunction main() {}\n', 'main')).toBe('function main() {}');
    const local = 'class A {\n  add() {\n    const total = 1;\n  }\n\n  total() {\n    return 2;\n  }\n}\n';
    expect(ofLine(local, 'total'), 'not the local name').toBe('  total() {');
    expect(() => definitionOf(source, 'rea', 'f.ts')).toThrow('f.ts: no definition of "rea" was found in this file');
  });

  test('the demo removes the rest of a line in the second half of the file', () => {
    const source = 'a\nb\nc\nd\ne\n  const total = sum(items, 0);\n}\n';
    const { offset, rest } = pickCursor(source);
    expect(source.slice(offset, offset + rest.length)).toBe(rest);
    expect(source.slice(0, offset).endsWith('  const total = sum(')).toBe(true);
    expect(pickCursor('')).toEqual({ offset: 0, rest: '' });
    // Without such a line, one that goes on from a word of its own.
    const restOf = (text: string) => pickCursor(text).rest;
    expect(
      restOf('// a\n// b\nexport class Store {\n  flush(force) {\n    log(force);\n    return force;\n  }\n}\n'),
    ).toBe('force;');
    // Without its value, a return is no error, so the chat reads the file as a whole one.
    expect(restOf('a\nb\nc\nconst total = add(1, 2);\n  return total;\n')).toBe('total;');
    expect(restOf('one\ntwo\n\nprint(three)\n')).toBe('three)');
    expect(restOf('one\ntwo\n')).toBe('');
  });

  test('lines are broken at spaces if possible', () => {
    expect(wrap('one two three', 8)).toEqual(['one two', 'three']);
    expect(wrap('abcdefghij', 4)).toEqual(['abcd', 'efgh', 'ij']);
    expect(wrap('a\n\nb', 10)).toEqual(['a', '', 'b']);
  });

  test('sizes and tables are formatted', () => {
    expect([0, 999, 1000, 1_234_567, 2e9].map(bytes)).toEqual(['0 B', '999 B', '1.0 kB', '1.2 MB', '2.0 GB']);
    expect(
      table([
        ['a', 'bb'],
        ['ccc', 'd'],
      ]),
    ).toBe('a    bb\nccc   d');
  });

  test('progress is one overwritten line on a terminal, and a plain line every five seconds elsewhere', () => {
    const shown = (isTTY: boolean) => {
      const [written, clock]: [string[], { now: number }] = [[], { now: 0 }];
      const tell = progressOf(
        'files',
        { isTTY, write: (text: string | Uint8Array) => written.push(String(text)) > 0 },
        () => clock.now,
      );
      for (const numDone of [1, 2, 3]) {
        tell(numDone, 3);
        clock.now += 5000;
      }
      tell(2, 4);
      clock.now += 1000;
      tell(3, 4);
      return written;
    };
    expect(shown(true)).toEqual([
      '\r\x1b[2K1 of 3 files',
      '\r\x1b[2K2 of 3 files',
      '\r\x1b[2K',
      '\r\x1b[2K2 of 4 files',
      '\r\x1b[2K3 of 4 files',
    ]);
    expect(shown(false)).toEqual(['2 of 3 files\n', '2 of 4 files\n']);
  });

  test('progress of a long measurement is printed at once, then at most every five seconds', () => {
    const [told, clock]: [string[], { now: number }] = [[], { now: 100 }];
    const tell = paced(
      (text) => told.push(text),
      () => clock.now,
    );
    for (const now of [100, 4000, 5099, 5100, 5200, 10_100]) {
      clock.now = now;
      tell(String(now));
    }
    expect(told).toEqual(['100', '5100', '10100']);
  });

  test('the footer of a folder has its tokens and the time', () => {
    const done = (promptTokens: number) => ({ usage: { promptTokens } }) as Parameters<typeof folderFooter>[1];
    expect(folderFooter(80, done(79_035), 44_950)).toBe('80 files, 79,035 tokens, in 45 s');
    expect(folderFooter(1, done(0), 94)).toBe('1 file in 0.1 s');
  });

  test('the demo says why there is no text', () => {
    expect(nothing({ diagnostics: ['x'], suppressed: true })).toBe(
      '(nothing offered: the confidence of the model is too low here)',
    );
    expect(nothing({ diagnostics: ['a', 'the model gave no answer'] })).toBe('(nothing: the model gave no answer)');
    expect(nothing({ diagnostics: [] })).toBe('(nothing)');
  });

  test('the cache folder follows the system', () => {
    expect(defaultCacheDir({ XDG_CACHE_HOME: '/x' }, 'linux')).toBe(join('/x', 'kvasir'));
    expect(defaultCacheDir({ LOCALAPPDATA: 'L' }, 'win32')).toBe(join('L', 'kvasir', 'cache'));
  });
});

describe('advice for a text that does not fit', () => {
  const config = parseConfig(JSON.parse(readFileSync('model/config.json', 'utf8')), null);
  const figures = (words: string): number[] =>
    Array.from(words.matchAll(/about ([\d.]+) MB/g), ([, number]) => 1.01e6 * Number(number));

  test('an error of memory names the option instead of the setting', async () => {
    const line = parseCommandLine('chat', ['--model', 'model', '--message', 'x']);
    const said = new RequestError(
      'outOfMemory',
      'Raise kvasir.cache.maxBytes or send less text: about 2.9 MB are enough for 2048 tokens, or 970 kB to read them in parts. ' +
        'To read in parts, kvasir.cache.diskBytes must be above 0.',
    );
    expect(((await withRemedy(line, said)) as Error).message).toBe(
      'Raise --max-bytes or send less text: about 2.9 MB are enough for 2048 tokens, or 970 kB to read them in parts. ' +
        'To read in parts, give --kv-cache-dir DIR.',
    );
  });

  test('an error of the disk names its limit and the memory that is enough', () => {
    const words = remedyFor('diskFull', config, 2048, false);
    expect(words).toMatch(
      /^--kv-cache-dir uses up to 1\.0 GB of disk; with --max-bytes of about [\d.]+ MB, a text of up to 2,048 tokens fits in memory\.$/,
    );
    expect(cacheReach(config, figures(words)[0]!, 0).poolTokens).toBeGreaterThanOrEqual(2048);
  });

  test('each error gets its own advice, and other errors stay unchanged', async () => {
    const line = parseCommandLine('chat', ['--model', 'model', '--message', 'x', '--kv-cache-dir', 'somewhere']);
    const told = async (code: ErrorCode): Promise<string> =>
      ((await withRemedy(line, new RequestError(code, 'No.'))) as Error).message;
    expect(await told('diskFull')).toMatch(/^No\. --kv-cache-dir uses up to 1\.0 GB/);
    expect(await told('writeFailed')).toMatch(
      /^No\. Leave out --kv-cache-dir: with --max-bytes of about [\d.]+ MB, .* fits in memory\.$/,
    );
    expect(await told('contextTooLong')).toBe('No.');
  });
});

describe('help, or a value', () => {
  test.each([
    [['-h'], true],
    [['--help'], true],
    [['--json', '-h'], true],
    [['--prompt', 'x', '-h'], true],
    [['--frobnicate', '-h'], true],
    [['--prompt', '-h'], false],
    [['--prompt=-h'], false],
    [['--prompt=--help'], false],
    [['--prompt', '--help'], true],
    [['--stop', '-h', '--stop', '--x'], false],
    [['--', '-h'], false],
    [['--prompt', '--', '-h'], true],
    [[], false],
  ])('%j: %s', (args, asks) => {
    expect(asksForHelp('generate', args)).toBe(asks);
  });

  test('a value that looks like an unknown option is used as it is', () => {
    const line = parseCommandLine('generate', ['--prompt', '-h', '--stop', '--x', '--stop=--help']);
    expect([line.values.prompt, texts(line, 'stop')]).toEqual(['-h', ['--x', '--help']]);
    expect(parseCommandLine('summarize', ['--', '-h']).positionals).toEqual(['-h']);
  });
});

describe('which files', () => {
  test('secret files are those that the editor excludes, in any folder', () => {
    const { contributes } = JSON.parse(readFileSync('package.json', 'utf8')) as {
      contributes: { configuration: { properties: Record<string, { default: unknown }> }[] };
    };
    expect(SECRETS).toEqual(
      [contributes.configuration]
        .flat()
        .flatMap(({ properties }) => properties['kvasir.completion.exclude']?.default ?? []),
    );
    for (const path of [
      '.env',
      'a/.env.local',
      '.env/x.ts',
      'a/server.pem',
      '.ssh/config',
      'id_rsa.pub',
      '/home/me/.aws/credentials',
      'a/.NPMRC',
    ])
      expect(isSecret(path), path).toBe(true);
    for (const path of ['env.ts', 'a.env', 'a/key.ts', 'pem', 'ssh/config', '.aws/config', 'my_id_rsa', 'x.keys'])
      expect(isSecret(path), path).toBe(false);
  });

  test('a folder is read as sorted source files, and other files are counted', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'kvasir-folder-'));
    for (const path of ['b/a', '.git', 'node_modules', 'b/node_modules', '.env'])
      mkdirSync(join(folder, path), { recursive: true });
    for (const path of [
      'b/a/x.ts',
      'b/x.ts',
      'a.py',
      'readme.txt',
      'notes',
      '.eslintrc.js',
      'k.pem',
      '.git/a.ts',
      'node_modules/a.ts',
    ])
      writeFileSync(join(folder, path), 'x');
    symlinkSync(join(folder, 'a.py'), join(folder, 'z.py'));
    const leftOut = new LeftOut();
    expect(await sourceFiles(folder, leftOut)).toEqual(['a.py', join('b', 'a', 'x.ts'), join('b', 'x.ts')]);
    expect(leftOut.toString()).toBe(
      '1 file hidden, 1 with secrets, 2 not source code, 1 a link; the folders .env, .git, node_modules (2)',
    );
    for (let i = 0; i < 100; i++) writeFileSync(join(folder, `b/${i}.go`), 'x');
    const more = new LeftOut();
    expect(await sourceFiles(folder, more)).toHaveLength(100);
    expect(more.toString()).toContain('3 beyond the first 100');
    expect(new LeftOut().toString()).toBe('');
    // A folder of secrets is one by any name.
    const [ssh, shown] = [join(folder, '.ssh'), join(folder, 'shown')];
    mkdirSync(ssh);
    writeFileSync(join(ssh, 'known.ts'), 'x');
    symlinkSync(ssh, shown, 'junction');
    const secrets = new LeftOut();
    expect(await sourceFiles(shown, secrets)).toEqual([]);
    expect(secrets.toString()).toBe('1 file with secrets');
    rmSync(folder, { recursive: true });
  });
});

describe('the program', () => {
  const temporary = mkdtempSync(join(tmpdir(), 'kvasir-cli-'));
  /** With one thread, because two threads wait for each other at each operator of a small model. */
  const withFolders = (args: readonly string[]) => [
    ...args,
    ...(args[0] === 'inspect' || args[0] === 'help'
      ? []
      : ['--cache-dir', temporary, '--model', 'model', ...(args.includes('--threads') ? [] : ['--threads', '1'])]),
  ];
  /** In this process: starting one and loading the program takes longer than most commands. */
  const run = (...args: string[]) => cli.run(withFolders(args));
  /** In a process of its own, started by `command` with the program and its arguments behind it. */
  const spawned = ([command, ...first]: readonly [string, ...string[]], ...args: string[]) =>
    spawnSync(command, [...first, cli.file, ...withFolders(args)], { encoding: 'utf8', timeout: 60_000 });
  const lines = (output: string) =>
    output
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
  let cli: BundledCli;

  beforeAll(async () => {
    cli = new BundledCli();
    // Imported once, so that no later run says that it is importing: on a busy machine that takes longer than the second after which it is said.
    expect((await run('generate', '--prompt', 'x', '--max-tokens', '1')).status).toBe(0);
  });
  afterAll(() => {
    cli.remove();
    rmSync(temporary, { recursive: true, force: true });
  });

  test.each([
    [['nonsense'], 'unknown command "nonsense"'],
    [['complete', '--line', '1', '--column', '1'], '--file is missing'],
    [
      ['complete', '--file', 'x', '--line', 'one', '--column', '1'],
      '--line one: it must be a whole number of at least 1',
    ],
    [['generate'], 'exactly one of --prompt, --ids and --requests'],
    [['generate', '--ids', '1,x'], '--ids 1,x'],
    [['generate', '--prompt', 'x', '--frobnicate'], 'frobnicate'],
    [['generate', '--prompt', 'x', '--precision', 'int2'], '--precision int2: expected one of int8, int4, float32'],
    [['generate', '--prompt', 'x', '--max-tokens', '-1'], '--max-tokens -1: it must be a whole number of at least 1'],
    [['generate', '--prompt', 'x', '--seed', '-5'], '--seed -5: it must be a whole number of at least 0'],
    [['generate', '--prompt', 'x', '--temperature', '1e3'], '--temperature 1e3: it must be a number from 0 to 5'],
    [['generate', '--prompt', 'x', '--stop', ''], '--stop: the text is empty'],
    [['generate', '--prompt', '--json'], '--prompt needs a value'],
    [['complete', '--file', 'a', '--file', 'b'], '--file is given more than once'],
    [['session', '--help'], 'unknown command "session"'],
    [['eval', '--text', 'README.md', '--kv', 'int8,nothing'], 'unknown codec nothing'],
    [
      ['chat', '--message', 'x', '--codec', 'int3'],
      '--codec int3: expected one of int8, auto, int4-kivi, nvfp4, turboquant, kvzip',
    ],
    [
      ['generate', '--prompt', 'x', '--codec', 'auto', '--precision', 'float32'],
      '--codec auto: float32 rows are not compressed',
    ],
    [['complete', '--file', 'x', '--line', '1', '--column', '1', '--codec', 'nvfp4'], "Unknown option '--codec'"],
    [['chat', '--message', 'x', '--threads', '4097'], '--threads 4097: this machine has '],
    [['inspect', 'model', '--model', 'model'], 'inspect: name one model, alone or with --model'],
    [['chat', 'What is this?'], 'unexpected argument "What is this?"; use --message for a question'],
  ])('wrong usage is status 2 and one line: %j', async (args, message) => {
    const { status, stdout, stderr } = await run(...args);
    expect(stderr).toContain(message);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  });

  test('a failure is status 1 and one line that says what, where and what to do', async () => {
    const [gguf, binary] = [join(temporary, 'x.gguf'), join(temporary, 'binary')];
    const [hub, snapshot] = [join(temporary, 'models--Q--X'), join(temporary, 'models--Q--X', 'snapshots', 'abc')];
    mkdirSync(snapshot, { recursive: true });
    writeFileSync(join(snapshot, 'config.json'), '{}');
    const [cacheOnly, unfinished] = [
      join(temporary, 'models--Q--Y'),
      join(temporary, 'models--Q--Y', 'snapshots', 'abc'),
    ];
    mkdirSync(unfinished, { recursive: true });
    for (const file of [gguf, binary]) writeFileSync(file, 'GGUF\0');
    for (const [args, message] of [
      [['inspect', 'test/fixtures/bad/cfg_no_hidden_size'], 'config.json: hidden_size'],
      [['inspect', 'test/fixtures/unsupported/gpt-oss-config-only'], 'gpt_oss'],
      [['inspect', 'Qwen/Qwen3-0.6B'], 'To use one of the Hugging Face hub, run `kvasir download Qwen/Qwen3-0.6B`.'],
      [
        ['inspect', hub],
        `models--Q--X is a repository of the Hugging Face cache. Choose the model folder in it: ${snapshot}.`,
      ],
      [['inspect', join(hub, 'snapshots')], `Choose the model folder in it: ${snapshot}.`],
      [['inspect', cacheOnly], 'config.json is missing in '],
      [['inspect', '--model', 'nowhere'], 'No model on this machine is called nowhere'],
      [['inspect', gguf], 'x.gguf ends inside its header: download the file again.'],
      [['inspect', './nowhere'], 'The model folder ./nowhere cannot be opened: there is no such folder.'],
      [['inspect', join('docs', 'performance.md', 'model')], 'cannot be opened: there is no such folder.'],
      [['inspect', 'package.json'], 'package.json is no model; a model is a folder with config.json'],
      [['eval', '--text', binary], 'is a binary file'],
      [['eval', '--text', temporary], 'is a folder; a file is needed'],
      [['generate', '--prompt', 'x', '--trace', temporary], 'is a folder; a file is needed'],
      [['complete', '--file', 'no/such.ts', '--line', '1', '--column', '1'], 'no/such.ts: no such file'],
      [['demo', '--file', 'no/such.ts'], 'no/such.ts: no such file'],
      [
        ['complete', '--file', 'package.json', '--line', '1', '--column', '1', '--open-file', temporary],
        'is a folder; a file is needed',
      ],
      [
        ['chat', '--message', 'x', '--kv-cache-dir', 'package.json'],
        '--kv-cache-dir package.json: a file is in the way; choose another folder',
      ],
      [
        ['chat', '--message', 'x', '--kv-cache-dir', join('package.json', 'kept')],
        'a file is in the way; choose another folder',
      ],
      [['summarize', 'package.json', '--symbol', 'zebra'], 'no definition of "zebra"'],
    ] as const) {
      const { status, stdout, stderr } = await run(...args);
      expect(stderr).toContain(message);
      expect(stderr.trim().split('\n')).toHaveLength(1);
      expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    }
  });

  test.each([
    [['nonsense'], 2],
    [['inspect', 'nowhere'], 1],
    [['help', 'complete'], 0],
  ])('a process ends with the status and the output of its command: %j', async (args, status) => {
    const { stdout, stderr } = await run(...args);
    expect(spawned([process.execPath], ...args)).toMatchObject({ status, stdout, stderr });
  });

  // The reader is gone before the program writes.
  test.runIf(process.platform !== 'win32')('a closed pipe on stdout is no failure', () => {
    const script = '{ sleep 0.2; "$@"; echo "status $?" >&2; } | true';
    expect(spawned(['sh', '-c', script, 'sh', process.execPath], 'help')).toMatchObject({ stderr: 'status 0\n' });
  });

  test('a prompt that does not fit names options that are enough, and hardly more than enough', async () => {
    const { status, stdout, stderr } = await run('generate', '--prompt', 'word '.repeat(900), '--max-bytes', '1000000');
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    const said =
      /^kvasir: .* Raise --max-bytes or send less text: about (\S+ [kM]B) are enough for (\d+) tokens, or (\S+ [kM]B) to read them in parts\. To read in parts, give --kv-cache-dir DIR\.\n$/.exec(
        stderr,
      );
    const [whole, inParts] = [said?.[1], said?.[3]].map(
      (size = '') => Number.parseFloat(size) * (size.endsWith('kB') ? 1e3 : 1e6),
    ) as [number, number];
    expect(Number(said?.[2])).toBe(BUILT_IN.contextTokens);
    const config = parseConfig(JSON.parse(readFileSync('model/config.json', 'utf8')), null);
    // The least, in two digits, rounded up.
    for (const [budget, diskBytes] of [
      [whole, 0],
      [inParts, 1e9],
    ] as const) {
      const { poolTokens, sketchedTokens } = cacheReach(config, budget, diskBytes);
      expect(Math.max(poolTokens, sketchedTokens)).toBeGreaterThanOrEqual(BUILT_IN.contextTokens);
      expect(budget / leastBudget(config, BUILT_IN.contextTokens, diskBytes)).toBeLessThan(1.11);
    }
    expect(inParts).toBeLessThan(whole);
  });

  test('each command has its own help, and --version prints the version', async () => {
    const { status, stdout } = await run('complete', '--help');
    expect(status).toBe(0);
    expect(stdout).toContain('kvasir complete --file F');
    expect(stdout).toMatch(/^ {2}--open-file F +another open file/m);
    expect(stdout).toContain('--max-tokens');
    expect(stdout).not.toContain('chat');
    // What an option does in one command is not told of it in another.
    expect((await run('chat', '--help')).stdout).toMatch(/^ {2}--file F +.*may be given several times$/m);
    expect((await run('demo', '--help')).stdout.split('Options:\n')[1]).not.toContain('chat');
    expect((await run('generate', '--help')).stdout).not.toContain('eval');
    expect((await run('eval', '--help')).stdout).toMatch(/^ {2}--kv NAMES +what to measure: .*codecs/m);
    // Raw text comes behind what most are here for, and says what it is.
    const all = (await run('help')).stdout;
    expect(all.indexOf('kvasir generate')).toBeGreaterThan(all.indexOf('kvasir summarize'));
    expect((await run('generate', '--help')).stdout).toContain('raw text, without a chat template');
    expect(await run('help', 'complete')).toMatchObject({ status: 0, stdout });
    // Each option on a line, with a word on it.
    expect(stdout).toMatch(/^ {2}--kv-cache-dir DIR +\w+/m);
    for (const line of stdout.split('Options:\n')[1]!.split('\n').slice(0, -1))
      expect(line).toMatch(/^ {2}--[\w-]+( [\w,]+)? {2,}\w.{10,}$/);
    for (const again of ['help', '--help', '-h'])
      expect(await run('help', again)).toMatchObject({ status: 0, stdout: (await run('help')).stdout });
    expect(await run('help', 'nonsense')).toMatchObject({
      status: 2,
      stdout: '',
      stderr: expect.stringContaining('unknown command "nonsense"'),
    });
    expect(spawnSync(process.execPath, [cli.file, '--version'], { encoding: 'utf8' }).stdout).toBe(
      `${JSON.parse(readFileSync('package.json', 'utf8')).version}\n`,
    );
  });

  // The tests run on the Node that npm ci brings; whoever types `node dist/cli.js` has the one that npm runs on, 20.19 at the oldest.
  test.runIf(process.env.npm_node_execpath)('the program also runs on the Node of npm', () => {
    const { status, stdout, stderr } = spawned(
      [process.env.npm_node_execpath!],
      'chat',
      '--file',
      'engine/kv/pageTable.ts',
      '--message',
      'Which classes does this file define?',
    );
    expect({ status, stdout, stderr }).toEqual({
      status: 0,
      stdout: expect.stringContaining('SlotAllocator'),
      stderr: 'answered without the model\n',
    });
  });

  test('a value may begin with a dash; limits of the model are noted', async () => {
    const { status, stdout, stderr } = await run(
      'generate',
      '--prompt',
      '-h',
      '--max-tokens',
      '1',
      '--context',
      '100000',
    );
    expect(status).toBe(0);
    expect(stdout).not.toContain('Options:');
    expect(stderr).toContain(`note: --context 100000: kvasir-starter reads at most ${BUILT_IN.contextTokens} tokens`);
  });

  test('inspect prints the bytes per token of each codec and how many tokens fit', async () => {
    const [model] = lines((await run('inspect', 'model', '--json')).stdout);
    expect(model).toMatchObject({
      type: 'model',
      name: 'kvasir-starter',
      cache: { longestContext: BUILT_IN.contextTokens },
    });
    expect(model.cache.codecs).toHaveLength(6);
    const { stdout } = await run('inspect', 'model');
    expect((await run('inspect', '--model', 'model')).stdout.split('\n').slice(0, 5)).toEqual(
      stdout.split('\n').slice(0, 5),
    );
    expect(stdout).toContain(`Longest context that fits in it: ${BUILT_IN.contextTokens.toLocaleString('en')} tokens`);
    expect(stdout).toContain('Files of 2,000 tokens that fit beside the longest context');
    // In the table are those that can be chosen, and of what there is room for whole files.
    for (const { codec, bytesPerToken, compression, storedTokens } of model.cache.codecs) {
      const row = new RegExp(
        `^${codec} +${bytesPerToken.toFixed(0)} +${compression.toFixed(2)}x +([\\d,]+)$`,
        'm',
      ).exec(stdout);
      const load = () => loadOptionsOf(parseCommandLine('chat', ['--codec', codec, '--model', 'model']));
      if (row) expect(load, codec).not.toThrow();
      else expect(load, codec).toThrow('expected one of');
      // The machine's memory differs a little from one look to the next.
      if (row)
        expect(Math.abs(Number(row[1]!.replaceAll(',', '')) * 2000 - storedTokens) / storedTokens).toBeLessThan(0.2);
    }
    expect(stdout).toMatch(/^kvzip /m);
  });

  test('--json prints chunks, one done line and the stats, with matching text and ids', async () => {
    const { status, stdout } = await run(
      'generate',
      '--prompt',
      'export function add(a: number, b: number) {\n  return a',
      '--max-tokens',
      '6',
      '--top-logprobs',
      '2',
      '--json',
    );
    expect(status).toBe(0);
    const messages = lines(stdout);
    const done = messages.filter((m) => m.type === 'done');
    expect(done).toHaveLength(1);
    expect(messages.at(-1)).toMatchObject({ type: 'stats', kvBytesPerToken: BUILT_IN.kvBytesPerToken });
    const chunks = messages.filter((m) => m.type === 'chunk');
    expect(chunks.map((m) => m.text).join('')).toBe(done[0].text);
    expect(done[0].topLogprobs).toHaveLength(done[0].tokenIds.length);
    expect(done[0].usage).toMatchObject({ cachedTokens: 0, completionTokens: done[0].tokenIds.length });
  });

  test('the completion of the demo is how the file goes on', async () => {
    const { stdout } = await run('demo', '--file', 'engine/text/syntax/sourceDocument.ts');
    const rest = /the file goes on: (.+)\)$/m.exec(stdout)?.[1];
    expect(rest).toBeDefined();
    expect(/^completion │ (.*)$/m.exec(stdout)?.[1]).toBe(rest);
  });

  test('notes are printed with an answer, and on stderr for a completion', async () => {
    const long = join(temporary, 'long.ts');
    writeFileSync(long, 'export const value = [1, 2, 3];\n'.repeat(100));
    const limits = ['--max-tokens', '4', '--context', '512'];
    const { done } = Object.fromEntries(
      lines((await run('summarize', long, ...limits, '--json')).stdout).map((line) => [line.type, line]),
    );
    expect(done.diagnostics).toEqual([expect.stringContaining('long.ts'), 'cut off after 4 tokens']);
    const summary = await run('summarize', long, ...limits);
    const byModel = 'written by the model, so it may be wrong';
    expect(summary.stdout).toBe(
      `${done.text}\n${[byModel, ...done.diagnostics].map((note) => `note: ${note}\n`).join('')}`,
    );
    expect(summary.stderr).not.toContain('note:');
    const raw = await run('complete', '--file', long, '--line', '50', '--column', '1', ...limits);
    expect(raw.stdout).not.toContain('note:');
  });

  test('answers from files are never cut, and an empty file gets no invented answer', async () => {
    const [empty, one, two] = ['empty.ts', 'one.ts', 'two.ts'].map((name) => join(temporary, name)) as [
      string,
      string,
      string,
    ];
    for (const [file, content] of [
      [empty, '\n'],
      [one, 'export class One {}\n'],
      [two, 'export class Two {}\n'],
    ] as const)
      writeFileSync(file, content);
    const ask = (message: string, files: readonly string[]) =>
      run('chat', ...files.flatMap((file) => ['--file', file]), '--message', message, '--max-tokens', '2');
    for (const [answer, note, message, ...files] of [
      [
        /empty\.ts` defines nothing at its top level\.\n/,
        /note: from the code of /,
        'What does this file define?',
        empty,
      ],
      [
        /empty\.ts` is empty: there is nothing in it to answer from\.\n/,
        /note: not written by the model\n/,
        'What is this file for?',
        empty,
      ],
      [
        /empty\.ts` está vazio: não há nele de onde tirar uma resposta\.\n/,
        /note: not written by the model\n/,
        'Para que serve este arquivo?',
        empty,
      ],
      [
        /one\.ts`: `One` \(line 1\)\.\n\n.*two\.ts`: `Two` \(line 1\)\.\n/,
        /note: from the code of .*one\.ts, .*two\.ts, not/,
        'which classes are defined',
        one,
        two,
      ],
      [
        /`One` is defined on line 1: `export class One \{\}`\.\n/,
        /note: from the code of /,
        'where is One defined',
        one,
      ],
    ] as const) {
      const { status, stdout, stderr } = await ask(message, files);
      expect({ status, stdout, stderr }).toEqual({
        status: 0,
        stdout: expect.stringMatching(answer),
        stderr: 'answered without the model\n',
      });
      expect(stdout).toMatch(note);
      expect(stdout).not.toContain('cut off');
    }
    expect((await ask('Explain this code.', [one])).stdout).toMatch(/\nnote: cut off after 2 tokens\n$/);
  });

  test('a refused question can be asked all the same, with /anyway', async () => {
    const file = join(temporary, 'area.ts');
    writeFileSync(file, 'export function area(w: number, h: number): number {\n  return w * h;\n}\n');
    const chat = (message: string) => run('chat', '--file', file, '--message', message, '--max-tokens', '2');
    const refused = await chat('Is this code fast?');
    expect(refused.stdout).toMatch(/ is too small for this/);
    expect(refused.stderr).toContain(
      '--model MODEL uses another model (see kvasir models); --message "/anyway QUESTION" asks this one all the same',
    );
    expect((await chat('/anyway Is this code fast?')).stdout).toMatch(
      /\nnote: written by the model, so it may be wrong\n/,
    );
    // Slash commands stand for the same questions as in the editor.
    expect((await chat('/explain area')).stdout).toMatch(/^No comment above `area` says what it does\./);
    expect((await chat('/tests area')).stdout).toMatch(/ is too small for this/);
    const { stdout, stderr } = spawnSync(
      process.execPath,
      [cli.file, 'chat', '--file', file, '--max-tokens', '2', '--cache-dir', temporary, '--model', 'model'],
      { encoding: 'utf8', timeout: 60_000, input: '/anyway\nIs this code fast?\n/anyway\n' },
    );
    expect(stdout).toMatch(/^[^\n]* is too small for this[^\n]*\n[^\n]+\nnote: written by the model/);
    expect(stderr).toContain('/anyway: no question was refused');
    expect(stderr).toContain('/anyway asks it all the same');
  });

  test('a text with a UTF-16 byte order mark is read as UTF-16', async () => {
    const file = join(temporary, 'wide.ts');
    for (const bytes of [
      Buffer.from('\uFEFFexport class Wide {}\n', 'utf16le'),
      Buffer.from('\uFEFFexport class Wide {}\n', 'utf16le').swap16(),
    ]) {
      writeFileSync(file, bytes);
      expect((await run('chat', '--file', file, '--message', 'Which classes are defined?')).stdout).toContain(
        '`Wide` (line 1)',
      );
    }
    writeFileSync(file, Buffer.from('export class Wide {}\n', 'utf16le'));
    expect((await run('chat', '--file', file, '--message', 'x')).stderr).toContain('is a binary file');
  });

  test('bytes that are not UTF-8 are noted once, and the rest of the text is read', async () => {
    const file = join(temporary, 'latin.ts');
    for (const [bytes, encoding] of [
      [Buffer.from('// ação\nexport class Wide {}\n', 'latin1'), 'UTF-8'],
      [Buffer.from([...Buffer.from('\uFEFFexport class Wide {}\n', 'utf16le'), 0x61]), 'UTF-16LE'],
    ] as const) {
      writeFileSync(file, bytes);
      const { stdout, stderr } = await run('chat', '--file', file, '--message', 'Which classes are defined?');
      expect(stdout).toContain('`Wide`');
      expect(stderr).toBe(
        `note: ${file}: some bytes are not ${encoding} and are read as \uFFFD\nanswered without the model\n`,
      );
    }
    // A text may have that sign.
    writeFileSync(file, '// \uFFFD\nexport class Wide {}\n');
    expect((await run('chat', '--file', file, '--message', 'Which classes are defined?')).stderr).toBe(
      'answered without the model\n',
    );
  });

  test.runIf(process.platform === 'linux')('an answer that cannot be written is one line and status 1', () => {
    const { status, stderr } = spawnSync('sh', ['-c', '"$@" > /dev/full', 'sh', process.execPath, cli.file, 'help'], {
      encoding: 'utf8',
    });
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: 'kvasir: the output cannot be written: the disk is full\n',
    });
  });

  test('a folder is summarized by relative paths, with a note on left-out files, and without empty files', async () => {
    const folder = join(temporary, 'folder');
    for (const path of ['a', 'b/a']) {
      mkdirSync(join(folder, path), { recursive: true });
      writeFileSync(join(folder, path, 'x.ts'), 'export const x = 1;\n');
    }
    for (const [path, content] of [
      ['empty.ts', '\n'],
      ['binary.ts', 'a\0b'],
      ['notes.txt', 'x'],
    ] as const)
      writeFileSync(join(folder, path), content);
    const lineOf = (path: string) => expect.stringMatching(`^- ${path}: .`);
    const summary = await run('summarize', folder, '--max-tokens', '4');
    expect(summary.stderr).toMatch(/^2 files, [\d,]+ tokens, in [\d.]+ s\n$/);
    expect(summary.stdout.trimEnd().split('\n')).toEqual([
      lineOf('a/x.ts'),
      lineOf('b/a/x.ts'),
      'note: written by the model, so it may be wrong',
      'note: left out: 1 file not source code, 1 binary, 1 empty',
    ]);
    // What was not read of a file stands with the file, under the name that it has in the list.
    mkdirSync(join(folder, 'b', 'c'));
    writeFileSync(join(folder, 'b', 'c', 'long.ts'), 'export const value = [1, 2, 3];\n'.repeat(100));
    const { stdout } = await run('summarize', folder, '--max-tokens', '4', '--context', '512');
    const long = stdout.trimEnd().split('\n');
    expect(long[2]).toMatch(/^- b\/c\/long\.ts: .*\(lines [\d-]+ of 100 left out; cut off after 4 tokens\)$/);
    expect(long.filter((text) => text.includes('long.ts'))).toHaveLength(1);
    rmSync(join(folder, 'a'), { recursive: true });
    rmSync(join(folder, 'b'), { recursive: true });
    const { status, stderr } = await run('summarize', folder);
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: `kvasir: ${folder}: no source file to summarize (left out: 1 file not source code, 1 binary, 1 empty)\n`,
    });
    expect((await run('summarize', join(folder, 'empty.ts'))).stderr).toContain('empty.ts: is empty');
  });

  test('--kv-cache-dir keeps rows of a file, and nothing of a secret file', async () => {
    const [kept, source] = [join(temporary, 'kept'), 'export const NAME_OF_IT = 1;\n'.repeat(60)];
    const [plain, secret] = [join(temporary, 'plain.ts'), join(temporary, '.env')];
    for (const file of [plain, secret]) writeFileSync(file, source);
    const ask = (...files: string[]) =>
      run(
        'chat',
        ...files.flatMap((file) => ['--file', file]),
        '--message',
        'Explain this code.',
        '--max-tokens',
        '2',
        '--kv-cache-dir',
        kept,
      );
    expect((await ask(secret)).status).toBe(0);
    expect(readdirSync(kept)).toEqual([]);
    // Nor of one that another name leads to: of the file, or of a folder.
    const [link, hidden, shown] = [join(temporary, 'settings.ts'), join(temporary, '.ssh'), join(temporary, 'shown')];
    symlinkSync(secret, link);
    mkdirSync(hidden);
    writeFileSync(join(hidden, 'known.ts'), source);
    symlinkSync(hidden, shown, 'junction');
    expect((await ask(link, join(shown, 'known.ts'))).status).toBe(0);
    expect(readdirSync(kept)).toEqual([]);
    expect((await ask(plain)).status).toBe(0);
    expect(readdirSync(kept)).not.toEqual([]);
    expect(await run('chat', '--message', 'x', '--kv-cache-dir', '')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('--kv-cache-dir is empty'),
    });
  });

  test('a completion notes why none of its rows were written, and nothing if some were', async () => {
    const [kept, short, long, secret] = ['kept-completion', 'few.ts', 'many.ts', '.env.local'].map((name) =>
      join(temporary, name),
    ) as [string, string, string, string];
    for (const [file, numLines] of [
      [short, 20],
      [long, 60],
      [secret, 60],
    ] as const)
      writeFileSync(file, 'export const NAME_OF_IT = 1;\n'.repeat(numLines));
    const ask = async (file: string, line: number) =>
      (
        await run(
          'complete',
          '--file',
          file,
          '--line',
          String(line),
          '--column',
          '1',
          '--max-tokens',
          '2',
          '--kv-cache-dir',
          kept,
        )
      ).stderr;
    for (const _ of [1, 2])
      expect(await ask(short, 20)).toContain(
        `note: nothing was written to ${kept}: only whole segments of 256 tokens above the lines around the cursor are written\n`,
      );
    expect(await ask(secret, 59)).toContain(
      `note: nothing was written to ${kept}: files with secrets are never written\n`,
    );
    expect(readdirSync(kept)).toEqual([]);
    expect(await ask(long, 59)).not.toContain('nothing was written');
    const again = await ask(long, 59);
    expect(again).not.toContain('nothing was written');
    const [, reused, all] = /^([\d,]+) of ([\d,]+) tokens reused/m
      .exec(again)!
      .map((figure) => Number(figure.replaceAll(',', ''))) as [number, number, number];
    expect(reused).toBeGreaterThanOrEqual(256);
    expect(reused % 256).toBe(0);
    expect(reused).toBeLessThan(all);
  });

  test('--trace writes the last steps to a file; a file that cannot be written is one line and status 1', async () => {
    const trace = join(temporary, 'trace.json');
    const write = (file: string) => run('generate', '--prompt', 'const x =', '--max-tokens', '3', '--trace', file);
    expect(await write(trace)).toMatchObject({ status: 0, stderr: expect.not.stringContaining('kvasir:') });
    const { traceEvents, otherData } = JSON.parse(readFileSync(trace, 'utf8')) as {
      traceEvents: { ph: string; name: string }[];
      otherData: object;
    };
    expect(traceEvents.filter(({ ph, name }) => ph === 'X' && name === 'step').length).toBeGreaterThan(0);
    expect(otherData).toMatchObject({ precision: 'int8' });
    const { status, stderr } = await write(join(temporary, 'no', 'such', 'file'));
    expect(status).toBe(1);
    expect(stderr.trim().split('\n').at(-1)).toMatch(
      /^kvasir: .*no.such.file cannot be written: its folder does not exist$/,
    );
  });

  test('requests of one file run together; bad ones fail alone and make the status 1', async () => {
    const file = join(temporary, 'requests.jsonl');
    const prefix = Array.from({ length: 64 }, (_, i) => 300 + i);
    const requests = [
      ...Array.from({ length: 4 }, (_, i) => ({
        id: `r${i}`,
        ids: [...prefix, 400 + i],
        maxTokens: 5,
        priority: ['completion', 'chat', 'summary'][i % 3],
        arriveMs: i,
      })),
      { id: 'long', ids: Array.from({ length: 2 * BUILT_IN.contextTokens }, () => 5) },
      { id: 'both', ids: [5], prompt: 'x' },
    ];
    writeFileSync(file, `\n${requests.map((r) => JSON.stringify(r)).join('\n')}\n\nnot json\n{}\n`);
    const { status, stdout, stderr } = await run('generate', '--requests', file, '--json');
    const messages = lines(stdout);
    const ends = messages.filter((m) => m.type === 'done' || m.type === 'error');
    expect(ends.map((m) => m.id).sort()).toEqual(['10', '9', 'both', 'long', 'r0', 'r1', 'r2', 'r3']);
    expect(
      messages
        .filter((m) => m.type === 'error')
        .map((m) => [m.id, m.code])
        .sort(),
    ).toEqual([
      ['10', 'badRequest'],
      ['9', 'badRequest'],
      ['both', 'badRequest'],
      ['long', 'contextTooLong'],
    ]);
    expect(messages.at(-1).tokens.promptComputed).toBeLessThanOrEqual(1.01 * (64 + 4));
    expect(status).toBe(1);
    expect(stderr).toContain('4 of 8 requests failed');
    // The lines of the file, blank ones counted, in label and text.
    expect(
      messages
        .filter((m) => /^\d+$/.test(m.id))
        .map((m) => m.message)
        .sort(),
    ).toEqual([
      'line 10 of the requests: exactly one of "ids" and "prompt" is needed',
      'line 9 of the requests: not JSON',
    ]);
    for (const [content, message] of [
      ['\n \n', 'contains no requests'],
      ['a\0', 'is a binary file'],
    ] as const) {
      writeFileSync(file, content);
      expect(await run('generate', '--requests', file)).toMatchObject({
        status: 1,
        stderr: expect.stringContaining(message),
      });
    }
    expect(await run('generate', '--requests', temporary)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('is a folder'),
    });
  });

  test('--codec sets the codec of the model, and an unusable codec is noted', async () => {
    const optionsOf = (...args: string[]) => loadOptionsOf(parseCommandLine('chat', [...args, '--model', 'model']));
    expect(optionsOf().compress).toBeUndefined();
    expect(optionsOf('--codec', 'int8').compress).toBeUndefined();
    expect(optionsOf('--codec', 'auto').compress).toBe('auto');
    expect(optionsOf('--codec', 'kvzip').compress).toBe('kvzip');
    const short = await run('generate', '--prompt', 'x', '--max-tokens', '1', '--context', '64', '--codec', 'nvfp4');
    expect({ status: short.status, stderr: short.stderr }).toEqual({
      status: 0,
      stderr: expect.stringContaining('nvfp4 is not used: the context is too short to measure what it loses\n'),
    });
    // Within one answer nothing is left alone for a minute.
    expect(short.stderr).toContain(
      'note: --codec nvfp4 changes nothing in one answer: only KV rows idle for a minute are compressed\n',
    );
    const used = await run('generate', '--prompt', 'x', '--max-tokens', '1', '--codec', 'nvfp4');
    expect({ status: used.status, stderr: used.stderr }).toEqual({
      status: 0,
      stderr: expect.not.stringContaining('not used'),
    });
  });

  test('eval explains its columns, and warns about a short text', async () => {
    const file = join(temporary, 'three.ts');
    writeFileSync(file, 'a b c');
    const { status, stdout, stderr } = await run('eval', '--text', file);
    expect(status).toBe(0);
    expect(stdout).not.toContain('note:');
    expect(stderr).toMatch(/^scored 0 of 3 tokens$/m);
    expect(stderr).toMatch(/^KL mean and KL max: KL divergence from the first row, /m);
    expect(stderr).toContain('note: the figures rest on 2 predicted tokens; take a longer text, for 1000 or more');
    expect(await run('eval', '--text', file, '--kv', 'nvfp4')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('the text is too short to measure a codec'),
    });
  });

  test('eval measures codecs against int8 rows', async () => {
    const file = join(temporary, 'some.ts');
    writeFileSync(file, 'export const NAME_OF_IT = 1;\n'.repeat(40));
    const [row, ...others] = lines((await run('eval', '--text', file, '--kv', 'nvfp4', '--json')).stdout);
    expect(others).toEqual([]);
    expect(row).toMatchObject({ kv: 'nvfp4', numTokens: 192 });
    expect(row.top1).toBeGreaterThan(0.5);
    expect(row.kldMean).toBeGreaterThan(0);
    expect(row.compression).toBeGreaterThan(3);
    const { stderr } = await run('eval', '--text', file, '--kv', 'nvfp4');
    expect(stderr).toMatch(/^KL and top-1 are against int8 rows/m);
    expect(stderr).toContain('the figures rest on 192 predicted tokens');
  });

  test('complete prints only the text on stdout, the same in every run', async () => {
    const place = ['complete', '--file', 'engine/model/runtime/rope.ts', '--line', '13', '--column', '20'];
    const first = spawned([process.execPath], ...place);
    expect(first.status).toBe(0);
    expect((await run(...place)).stdout).toBe(first.stdout);
  });

  test('complete --n prints different candidates, the first as without --n, and computes their prompt once', async () => {
    const file = join(temporary, 'sum.ts');
    writeFileSync(
      file,
      'export function sum(items: number[]): number {\n  let total = 0;\n  for (const item of items) {\n    \n  }\n  return total;\n}\n',
    );
    const place = ['complete', '--file', file, '--line', '4', '--column', '5'];
    const messages = lines((await run(...place, '--n', '5', '--json')).stdout);
    const ends = messages.filter((m) => m.type === 'done');
    expect(ends.map((m) => m.id)).toEqual(['complete', 'complete-1', 'complete-2', 'complete-3', 'complete-4']);
    // What the others were given by each other is nothing that was known before.
    expect(ends[0].usage.cachedTokens).toBe(0);
    expect(messages.at(-1).tokens.promptComputed).toBeLessThanOrEqual(ends[0].usage.promptTokens + 5);
    const texts = new Set(ends.map((m) => m.text).filter((text) => text !== ''));
    expect(texts.size).toBeGreaterThan(1);
    const { stdout, stderr } = await run(...place, '--n', '5');
    expect(stdout).toBe([...texts].map((text) => `${text}\n`).join(''));
    // On a terminal both streams are one: the figures stand behind all candidates.
    const both = spawned(['sh', '-c', '"$@" 2>&1', 'sh', process.execPath], ...place, '--n', '5').stdout;
    if (process.platform !== 'win32')
      for (const text of texts) expect(both.slice(0, both.indexOf('tokens reused'))).toContain(text);
    expect(stderr).toContain(`${texts.size} different of 5 candidates`);
    expect(stdout.startsWith((await run(...place)).stdout)).toBe(true);
  });
});
