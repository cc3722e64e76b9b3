// Compiles engine/native (C, Node-API) with a pinned zig for all platforms into engine/native/prebuilt/.
// --check compares with the files there instead; --target NAME takes one platform; --sanitize tests the C code;
// --emulate runs the kernels of other platforms in qemu and wine.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { include_dir } from 'node-api-headers';

const ZIG_VERSION = '0.17.1';
const ROOT = path.resolve(import.meta.dirname, '..');
const SOURCES = path.join(ROOT, 'engine/native');
const PREBUILT = path.join(SOURCES, 'prebuilt');

/** The compiler never fuses products and sums, so all platforms give the same bits. Nothing names a folder or a time. */
const FLAGS = ['-std=gnu11', '-ffp-contract=off', '-fno-math-errno', '-Wall', '-Wextra', '-Werror'];
const RELEASE = [
  ...FLAGS,
  '-g0',
  '-fno-sanitize=all',
  '-fvisibility=hidden',
  '-ffunction-sections',
  '-fdata-sections',
  '-fno-ident',
  '-isystem',
  include_dir,
];
const TESTS = ['faults', 'fuzz', 'processors', 'stress'];
const COMPUTING = ['kernels', 'processor', 'threads'];
const SHARED = ['addon', 'engine', 'file', 'host', 'kernels', 'plan', 'processor', 'threads', 'values'];

/** step.c once per instruction set. `zig` and `cc` (gcc, clang) name it differently. `plain` is seldom used: small. */
const X64 = {
  plain: { zig: ['-Os', '-mcpu=x86_64_v2'], cc: ['-march=x86-64-v2'] },
  avx2: { zig: ['-O3', '-mcpu=x86_64_v3'], cc: ['-march=x86-64-v3'] },
  avxvnni: { zig: ['-O3', '-mcpu=x86_64_v3+avxvnni'], cc: ['-march=x86-64-v3', '-mavxvnni'] },
  avx512vnni: {
    zig: ['-O3', '-mcpu=x86_64_v4+avx512vnni+avx512vbmi', '-mprefer-vector-width=512'],
    cc: ['-march=x86-64-v4', '-mavx512vnni', '-mavx512vbmi', '-mprefer-vector-width=512'],
  },
};
const ARM64 = {
  plain: { zig: ['-Os', '-mcpu=generic'], cc: [] },
  dotprod: { zig: ['-O3', '-mcpu=generic+dotprod'], cc: ['-march=armv8-a+dotprod'] },
};
const ELF = { compile: ['-fPIC'], link: ['-lpthread', '-Wl,--gc-sections'] };
const PE = { compile: [], link: ['-Wl,--gc-sections'] };
const MACH_O = { compile: ['-fPIC'], link: ['-Wl,-undefined,dynamic_lookup', '-Wl,-dead_strip'] };
const TARGETS = {
  'linux-x64': { triple: 'x86_64-linux-gnu.2.28', baseline: 'x86_64', kernels: X64, format: ELF },
  'linux-arm64': { triple: 'aarch64-linux-gnu.2.28', baseline: 'generic', kernels: ARM64, format: ELF },
  'win32-x64': { triple: 'x86_64-windows-gnu', baseline: 'x86_64', kernels: X64, format: PE },
  'win32-arm64': { triple: 'aarch64-windows-gnu', baseline: 'generic', kernels: ARM64, format: PE },
  'darwin-arm64': { triple: 'aarch64-macos.11.0', baseline: 'generic', kernels: ARM64, format: MACH_O },
};

/** @throws Error if the command fails */
function run(command, args, cwd = SOURCES) {
  // The linker for Windows writes this time into the file.
  const env = { ...process.env, SOURCE_DATE_EPOCH: '0' };
  const { status, signal, error } = spawnSync(command, args, { cwd, env, stdio: ['ignore', 'inherit', 'inherit'] });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? signal ?? `exit ${status}`}`);
}

/** The path of zig. Installs it into .cache first if it is not there. */
function installedZig() {
  const folder = path.join(ROOT, '.cache', `zig-${ZIG_VERSION}`);
  if (!existsSync(folder)) {
    const partial = `${folder}.partial`;
    rmSync(partial, { recursive: true, force: true });
    mkdirSync(partial, { recursive: true });
    const pip = ['-m', 'pip', 'install', '--quiet', '--no-deps', '--target', partial, `ziglang==${ZIG_VERSION}`];
    run(process.platform === 'win32' ? 'python' : 'python3', pip);
    renameSync(partial, folder);
  }
  return path.join(folder, 'ziglang', process.platform === 'win32' ? 'zig.exe' : 'zig');
}

/** Compiles and links `target` into `folder`. Returns the path of the library. */
function build(zig, target, folder) {
  const { triple, baseline, kernels, format } = TARGETS[target];
  const objects = [];
  const compile = (source, name, flags) => {
    objects.push(`${target}-${name}.o`);
    const output = path.join(folder, objects.at(-1));
    run(zig, ['cc', '-target', triple, ...RELEASE, ...format.compile, ...flags, '-c', source, '-o', output]);
  };
  for (const [name, { zig: flags }] of Object.entries(kernels)) compile('step.c', name, flags);
  for (const name of SHARED) compile(`${name}.c`, name, ['-O2', `-mcpu=${baseline}`]);
  // In the folder, because the library for macOS has the path that is given here.
  const library = `${target}.node`;
  run(zig, ['cc', '-target', triple, '-shared', '-g0', '-s', ...objects, ...format.link, '-o', library], folder);
  return path.join(folder, library);
}

function inTemporaryFolder(use) {
  const folder = mkdtempSync(path.join(tmpdir(), 'kvasir-native-'));
  try {
    return use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What differs between a new build and the file that is checked in, or null. */
function difference(target, library) {
  const checkedIn = path.join(PREBUILT, `${target}.node`);
  if (!existsSync(checkedIn)) return `${target}: not checked in`;
  const [expected, actual] = [readFileSync(checkedIn), readFileSync(library)];
  if (expected.equals(actual)) return null;
  if (expected.length !== actual.length) return `${target}: ${actual.length} bytes instead of ${expected.length}`;
  return `${target}: differs from byte ${expected.findIndex((byte, i) => byte !== actual[i])}`;
}

function buildAll(targets, isCheck) {
  const zig = installedZig();
  inTemporaryFolder((folder) => {
    for (const target of targets) {
      const library = build(zig, target, folder);
      if (!isCheck) {
        mkdirSync(PREBUILT, { recursive: true });
        cpSync(library, path.join(PREBUILT, `${target}.node`));
        console.log(`${target}: ${readFileSync(library).length} bytes`);
        continue;
      }
      const found = difference(target, library);
      if (!found) continue;
      console.error(found);
      process.exitCode = 1;
    }
  });
}

/** Where --sanitize leaves the addon for test/bench/soak. */
const SANITIZED = path.join(ROOT, '.cache/native-sanitized');
/** Without the sizes of the real threads' stacks, large arrays on them would not be found. 512 kB, as on macOS. */
const WITH_SMALL_STACK = ['-c', 'ulimit -s 512 && exec "$0" "$@"'];

/** Compiles everything, also the tests, into `folder`. `form`: of the kernel flags. Returns a function that links. */
function compileForTests(compiler, form, flags, folder) {
  const compile = (source, name, more) => {
    const output = path.join(folder, `${name}.o`);
    const all = [...FLAGS, ...flags, '-fPIC', '-isystem', include_dir, ...more, '-O2', '-c', source, '-o', output];
    run(compiler[0], [...compiler.slice(1), ...all]);
  };
  const kernels = process.arch === 'arm64' ? ARM64 : X64;
  for (const [name, kernel] of Object.entries(kernels)) {
    compile(
      'step.c',
      `step-${name}`,
      kernel[form].filter((flag) => !flag.startsWith('-O')),
    );
  }
  for (const name of SHARED) compile(`${name}.c`, name, []);
  // The fake functions of Node-API do not use all their parameters.
  for (const name of TESTS) compile(`test/${name}.c`, name, ['-Wno-unused-parameter']);
  const steps = Object.keys(kernels).map((name) => `step-${name}`);
  return (names, output, more = []) => {
    const objects = [...names, ...steps].map((name) => path.join(folder, `${name}.o`));
    run(compiler[0], [...compiler.slice(1), ...flags, ...more, ...objects, '-lpthread', '-o', output]);
    return output;
  };
}

/** Memory and undefined behaviour with a compiler of the system: zig has no such libraries. Threads with zig. */
function sanitize(cases) {
  const cc = spawnSync('clang', ['--version']).status === 0 ? ['clang'] : ['gcc', '-Wno-psabi', '-Wno-unknown-pragmas'];
  inTemporaryFolder((folder) => {
    const checks = ['-g', '-fsanitize=address,undefined', '-fno-sanitize-recover=all'];
    const link = compileForTests(cc, 'cc', checks, folder);
    mkdirSync(SANITIZED, { recursive: true });
    link(SHARED, path.join(SANITIZED, `${process.platform}-${process.arch}.node`), ['-shared']);
    console.log(`${cc[0]}, address and undefined behaviour:`);
    run(link([...COMPUTING, 'processors'], path.join(folder, 'processors.out')), []);
    run(link([...SHARED, 'faults'], path.join(folder, 'faults.out')), []);
    run('sh', [
      ...WITH_SMALL_STACK,
      link([...COMPUTING, 'fuzz'], path.join(folder, 'fuzz.out')),
      '1',
      '0',
      String(cases),
    ]);
  });
  inTemporaryFolder((folder) => {
    const link = compileForTests([installedZig(), 'cc'], 'zig', ['-g', '-fsanitize=thread'], folder);
    console.log('zig, threads:');
    run(link([...COMPUTING, 'stress'], path.join(folder, 'stress.out')), []);
    const fuzz = link([...COMPUTING, 'fuzz'], path.join(folder, 'fuzz.out'));
    run(fuzz, ['2', '0', String(Math.ceil(cases / 4))]);
  });
}

/** Compiles the tests of what computes for `triple`, as in the libraries. Returns the paths of `processors` and `fuzz`. */
function compileTestsFor(triple, { baseline, kernels }, folder) {
  const objects = [];
  const compile = (source, name, flags) => {
    const output = path.join(folder, `${name}.o`);
    run(installedZig(), ['cc', '-target', triple, ...RELEASE, ...flags, '-c', source, '-o', output]);
    return output;
  };
  for (const [name, { zig: flags }] of Object.entries(kernels)) objects.push(compile('step.c', `step-${name}`, flags));
  for (const name of COMPUTING) objects.push(compile(`${name}.c`, name, ['-O2', `-mcpu=${baseline}`]));
  return ['processors', 'fuzz'].map((name) => {
    const test = compile(`test/${name}.c`, name, ['-O2', `-mcpu=${baseline}`]);
    const program = path.join(folder, `${name}.exe`);
    run(installedZig(), ['cc', '-target', triple, '-static', test, ...objects, '-lpthread', '-o', program]);
    return program;
  });
}

/** Runs the kernels of other platforms in emulators. All platforms must give the same checksum. */
function emulate(cases) {
  const here = `${process.platform}-${process.arch}`;
  const platforms = [
    ['linux-x64', 'x86_64-linux-musl', []],
    ['linux-arm64', 'aarch64-linux-musl', ['qemu-aarch64-static', '-cpu', 'max']],
    ['win32-x64', 'x86_64-windows-gnu', ['wine']],
  ];
  const checksums = new Set();
  for (const [target, triple, emulator] of platforms)
    inTemporaryFolder((folder) => {
      const command = target === here ? [] : emulator;
      for (const program of compileTestsFor(triple, TARGETS[target], folder)) {
        const [file, ...args] = [...command, program];
        const { status, error, stdout } = spawnSync(file, [...args, '3', '0', String(cases)], {
          encoding: 'utf8',
          env: { ...process.env, WINEDEBUG: '-all' },
          stdio: ['ignore', 'pipe', 'inherit'],
        });
        if (status !== 0) throw new Error(`${target}: ${file}: ${error?.message ?? `exit ${status}`}`);
        console.log(`${target}: ${stdout.trim()}`);
        const checksum = /checksum (\w+)/.exec(stdout)?.[1];
        if (checksum) checksums.add(checksum);
      }
    });
  if (checksums.size !== 1) throw new Error('the checksums differ');
}

const { values } = parseArgs({
  options: {
    check: { type: 'boolean' },
    sanitize: { type: 'boolean' },
    emulate: { type: 'boolean' },
    cases: { type: 'string', default: '1000' },
    target: { type: 'string' },
  },
});
if (values.target && !TARGETS[values.target]) throw new Error(`--target: ${Object.keys(TARGETS).join(', ')}`);
if (values.sanitize) sanitize(Number(values.cases));
else if (values.emulate) emulate(Math.ceil(values.cases / 20));
else buildAll(values.target ? [values.target] : Object.keys(TARGETS), values.check);
