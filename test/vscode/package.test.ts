/** `npm run package -- --all` makes one package for each platform, each with only its own native library. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { inflateRawSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';

/** The first bytes of a native file by platform, and its processor type: ELF e_machine, PE Machine, Mach-O cputype. */
const FORMATS = {
  linux: { start: '7f454c46', machine: 18 },
  win32: { start: '4d5a', machine: -1 },
  darwin: { start: 'cffaedfe', machine: 4 },
};
const MACHINES: Record<string, number> = {
  'linux-x64': 0x3e,
  'linux-arm64': 0xb7,
  'win32-x64': 0x8664,
  'win32-arm64': 0xaa64,
  'darwin-arm64': 0x000c,
};
const LIBRARIES = { linux: 'libonnxruntime.so.1', win32: 'onnxruntime.dll', darwin: 'libonnxruntime.1.dylib' };
const NATIVE = 'extension/node_modules/onnxruntime-node/bin/napi-v6';

const folder = mkdtempSync(path.join(tmpdir(), 'kvasir-packages-'));
const version = (JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }).version;
const vsix = (target: string) => path.join(folder, `kvasir-${target}-${version}.vsix`);
let common: string[] | undefined;

beforeAll(() => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/package.mjs', '--all', '--out', folder], {
    encoding: 'utf8',
  });
  expect(`${status === 0 ? '' : stdout}${stderr}`).toBe('');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The entries of a zip archive by name, from the directory at its end. Content is unpacked on request. */
function entriesOf(archive: string): Map<string, () => string> {
  const data = readFileSync(archive);
  const end = data.lastIndexOf(Buffer.from('504b0506', 'hex'));
  const entries = new Map<string, () => string>();
  for (let at = data.readUInt32LE(end + 16); data.readUInt32LE(at) === 0x02014b50; ) {
    const [name, extra, comment] = [data.readUInt16LE(at + 28), data.readUInt16LE(at + 30), data.readUInt16LE(at + 32)];
    const [method, size, header] = [data.readUInt16LE(at + 10), data.readUInt32LE(at + 20), data.readUInt32LE(at + 42)];
    entries.set(data.toString('utf8', at + 46, at + 46 + name), () => {
      const start = header + 30 + data.readUInt16LE(header + 26) + data.readUInt16LE(header + 28);
      const packed = data.subarray(start, start + size);
      return (method === 0 ? packed : inflateRawSync(packed)).toString('utf8');
    });
    at += 46 + name + extra + comment;
  }
  expect(entries.size).toBe(data.readUInt16LE(end + 10));
  return entries;
}
const filesIn = (archive: string) => [...entriesOf(archive).keys()];

test.each(Object.keys(MACHINES))('%s', (target) => {
  const [platform, arch] = target.split('-') as [keyof typeof FORMATS, string];
  const megabytes = statSync(vsix(target)).size / 1e6;
  console.log(`${target}: ${megabytes.toFixed(1)} MB`);
  expect(megabytes).toBeLessThan(60);

  const files = filesIn(vsix(target));
  const native = files.filter((file) => /\.(node|dll|dylib|so(\.\d+)*|exe)$/.test(file));
  expect(native.sort()).toEqual(
    [
      `extension/dist/native/${target}.node`,
      ...[LIBRARIES[platform], 'onnxruntime_binding.node'].map((file) => `${NATIVE}/${platform}/${arch}/${file}`),
    ].sort(),
  );
  // All other files are the same in each package.
  const rest = files.filter((file) => !native.includes(file)).sort();
  expect(rest).toEqual(common ?? rest);
  common = rest;
  for (const file of [
    'dist/extension.js',
    'dist/worker.js',
    'dist/webview/chat.js',
    'model/model.safetensors',
    'package.nls.pt-br.json',
    'l10n/bundle.l10n.pt-br.json',
  ])
    expect(files).toContain(`extension/${file}`);
  // The command line is for a checkout. It has the whole engine a second time.
  expect(files).not.toContain('extension/dist/cli.js');
  expect(files.filter((file) => /\.(ts|map)$|(^|\/)(test|src|scripts|\.cache)\//.test(file))).toEqual([]);

  // The files are native code for that platform, and the binding links the library by its file name in the package.
  for (const file of native) {
    const data = readFileSync(file.replace('extension/', ''));
    const { start, machine } = FORMATS[platform];
    expect([file, data.toString('hex', 0, start.length / 2)]).toEqual([file, start]);
    expect([file, data.readUInt16LE(machine < 0 ? data.readUInt32LE(0x3c) + 4 : machine)]).toEqual([
      file,
      MACHINES[target],
    ]);
    if (file.endsWith('onnxruntime_binding.node')) expect(data.includes(LIBRARIES[platform])).toBe(true);
  }
});

test('the package’s page has no broken pictures or links, and the package contains only the pictures that the extension shows', () => {
  const entries = entriesOf(vsix('linux-x64'));
  const media = [...entries.keys()].filter((name) => name.startsWith('extension/media/'));
  const shown = JSON.stringify(JSON.parse(readFileSync('package.json', 'utf8'))).match(/media\/[\w/.-]+/g) ?? [];
  const pictures = media.filter((name) => /\.(png|svg|jpe?g|gif|webp)$/.test(name));
  expect(pictures.sort()).toEqual([...new Set(shown)].map((name) => `extension/${name}`).sort());
  expect(media.filter((name) => name.endsWith('.css')).sort()).toEqual([
    'extension/media/cache.css',
    'extension/media/chat.css',
  ]);

  expect([...entries.keys()].filter((name) => /readme/i.test(name))).toEqual(['extension/readme.md']);
  expect(entries.get('extension.vsixmanifest')!()).toContain(
    'Type="Microsoft.VisualStudio.Services.Content.Details" Path="extension/readme.md"',
  );
  const readme = entries.get('extension/readme.md')!();
  expect(readme).not.toMatch(/!\[|media\/|pictures?\b/);
  expect(readme).not.toMatch(/\]\((?!https?:|#)/);
  // All sections except those that need a checkout.
  for (const [, heading, marked] of readFileSync('README.md', 'utf8').matchAll(
    /^(## .+)\n\n(<!-- about a checkout)?/gm,
  ))
    expect([heading, readme.includes(`\n${heading}\n`)]).toEqual([heading, !marked]);
  expect(readme).not.toContain('npm ci');
});

test('an unknown platform gives one line of error, and nothing is packaged', () => {
  const { status, stderr } = spawnSync(process.execPath, ['scripts/package.mjs', '--target', 'darwin-x64'], {
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({
    status: 1,
    stderr:
      'package: there is no package for darwin-x64; there is one for linux-x64, linux-arm64, win32-x64, win32-arm64, darwin-arm64\n',
  });
});
