/**
 * The bundled command line in a folder of its own, run inside the test's process: each run evaluates the bundle anew,
 * with its own arguments, streams and exit status. Does not start processes; `file` is for tests that do.
 */
import { readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Writable } from 'node:stream';
import vm from 'node:vm';
import { buildSync } from 'esbuild';
import { linkNative } from '../linkNative.ts';

export interface Ran {
  status: number;
  stdout: string;
  stderr: string;
}

export class BundledCli {
  readonly file: string;
  readonly #folder: string;
  readonly #evaluate: (...names: unknown[]) => void;

  constructor() {
    // A folder of this run's own: two runs at once would write over each other's program.
    this.#folder = join(process.cwd(), '.cache', `cli-under-test-${process.pid}`);
    this.file = join(this.#folder, 'dist', 'cli.js');
    buildSync({
      entryPoints: ['engine/cli/main.ts'],
      outfile: this.file,
      bundle: true,
      platform: 'node',
      format: 'cjs',
      external: ['onnxruntime-node'],
      // A function compiled here cannot import. With this, the bundle requires instead.
      supported: { 'dynamic-import': false },
      alias: { 'web-tree-sitter': './node_modules/web-tree-sitter/web-tree-sitter.cjs' },
      logLevel: 'error',
    });
    linkNative(dirname(this.file));
    symlinkSync(join(process.cwd(), 'dist/grammars'), join(this.#folder, 'dist/grammars'), 'junction');
    writeFileSync(join(this.#folder, 'package.json'), readFileSync('package.json'));
    const names = ['exports', 'require', 'module', '__filename', '__dirname', 'process'];
    this.#evaluate = vm.compileFunction(readFileSync(this.file, 'utf8'), names, { filename: this.file }) as never;
  }

  /** Runs a command until it has set its exit status. */
  run(args: readonly string[]): Promise<Ran> {
    return new Promise((resolve) => {
      const written = { stdout: '', stderr: '' };
      const stream = (name: 'stdout' | 'stderr') =>
        new Writable({
          decodeStrings: false,
          write(text: string, _, done) {
            written[name] += text;
            done();
          },
        });
      const own = Object.create(process, {
        argv: { value: [process.execPath, this.file, ...args] },
        stdout: { value: stream('stdout') },
        stderr: { value: stream('stderr') },
        exitCode: { set: (status: number) => resolve({ status, ...written }) },
      });
      const module = { exports: {} };
      const require = createRequire(this.file);
      this.#evaluate(module.exports, require, module, this.file, dirname(this.file), own);
    });
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
