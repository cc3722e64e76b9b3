// Compiles engine/kv/approx/codecs/kernels/ (AssemblyScript) and writes the result into
// engine/kv/approx/codecs/kernelBytes.ts.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import asc from 'assemblyscript/asc';

const CODECS = path.resolve(import.meta.dirname, '../engine/kv/approx/codecs');
const LINE = 140;

/** Compiles the WebAssembly module. Uses no relaxed SIMD, so results are the same on every machine. */
export async function compileKernels() {
  let compiled = null;
  const options = [
    'index.ts',
    '--baseDir',
    path.join(CODECS, 'kernels'),
    '--outFile',
    'kernels.wasm',
    '--runtime',
    'stub',
    '--enable',
    'simd',
    '-O3',
    '--converge',
    '--noAssert',
  ];
  const { error, stderr } = await asc.main(options, {
    writeFile: (_name, contents) => {
      compiled = contents;
    },
  });
  if (error) throw new Error(`${error.message}\n${stderr}`);
  return compiled;
}

if (process.argv[1] === import.meta.filename) {
  const text = Buffer.from(await compileKernels()).toString('base64');
  const lines = text.match(new RegExp(`.{1,${LINE}}`, 'g'));
  writeFileSync(
    path.join(CODECS, 'kernelBytes.ts'),
    `/** Written by scripts/kernels.mjs: kernels/ as a WebAssembly module, in base64. */\nexport const KERNEL_BYTES = \`\n${lines.join('\n')}\n\`;\n`,
  );
}
