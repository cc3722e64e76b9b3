/**
 * Installs a real VS Code and a browser for it into the git-ignored cache folder, from npm packages only. Writes each
 * part's marker file last and rebuilds parts without one, so an interrupted run leaves no incomplete part. Knows
 * nothing of Kvasir. editor.ts opens windows on the result.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const CODE_SERVER_VERSION = '4.139.1';

/** Absolute paths of the files that `prepareEditor` installs. */
export interface EditorFiles {
  /** code-server's entry script, for Node 24. */
  codeServer: string;
  chromium: string;
  /** Environment variables that Chromium needs on a machine without its shared libraries and fonts. */
  chromiumEnv: Record<string, string>;
}

/** Creates or reuses the parts under `cacheDir`. The first run takes less than a minute; later runs do nothing. */
export async function prepareEditor(cacheDir: string): Promise<EditorFiles> {
  const require = createRequire(import.meta.url);
  const chromiumEntry = require.resolve('@sparticuz/chromium');
  const chromiumPackage = chromiumEntry.slice(0, chromiumEntry.lastIndexOf('build'));
  const chromiumVersion = (
    JSON.parse(readFileSync(path.join(chromiumPackage, 'package.json'), 'utf8')) as { version: string }
  ).version;
  const { folder: codeServer, entry } = await prepareCodeServer(cacheDir);
  const chromium = path.join(cacheDir, 'chromium');
  await makeOnce(chromium, `chromium ${chromiumVersion}`, () => unpackChromium(chromiumPackage, chromium));
  const fonts = path.join(chromium, 'fonts.conf');
  writeFileSync(fonts, fontConfiguration(chromium, codeServer));
  return {
    codeServer: entry,
    chromium: path.join(chromium, 'chromium'),
    chromiumEnv: {
      LD_LIBRARY_PATH: [path.join(chromium, 'al2023/lib'), chromium, process.env.LD_LIBRARY_PATH]
        .filter(Boolean)
        .join(':'),
      FONTCONFIG_FILE: fonts,
    },
  };
}

/** Prepares VS Code's server alone. Returns its folder and its entry script for Node 24. */
export async function prepareCodeServer(cacheDir: string): Promise<{ folder: string; entry: string }> {
  const folder = path.join(cacheDir, 'code-server');
  await makeOnce(folder, `code-server ${CODE_SERVER_VERSION}`, () => installCodeServer(folder));
  giveLogger(folder);
  return { folder, entry: path.join(folder, 'node_modules/code-server/out/node/entry.js') };
}

/**
 * Replaces the logger. VS Code's logger is native, and no package contains it built. Without one, all logs are empty,
 * also those of the extensions.
 */
function giveLogger(folder: string): void {
  const own = path.join(folder, 'node_modules/code-server/lib/vscode/node_modules/@vscode/spdlog');
  if (existsSync(path.join(own, 'build/Release/spdlog.node'))) return;
  const [entry, ours] = [path.join(own, 'index.js'), readFileSync(new URL('logger.cjs', import.meta.url), 'utf8')];
  if (readFileSync(entry, 'utf8') === ours) return;
  const whole = `${entry}.${process.pid}`;
  writeFileSync(whole, ours);
  renameSync(whole, entry);
}

/**
 * A bare machine has no fonts. The browser's package contains a proportional font; code-server (in KaTeX) contains a
 * monospaced one.
 */
function fontConfiguration(chromium: string, codeServer: string): string {
  const folders = [
    path.join(chromium, 'fonts/fonts'),
    path.join(codeServer, 'node_modules/code-server/lib/vscode/node_modules/katex/dist/fonts'),
    '/usr/share/fonts',
  ];
  const prefer = (family: string, ...others: string[]) =>
    `<alias><family>${family}</family><prefer>${others.map((other) => `<family>${other}</family>`).join('')}</prefer></alias>`;
  return `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
${folders.map((folder) => `<dir>${folder}</dir>`).join('')}<cachedir>${path.join(chromium, 'font-cache')}</cachedir>
${prefer('sans-serif', 'Open Sans')}${prefer('system-ui', 'Open Sans')}${prefer('monospace', 'DejaVu Sans Mono', 'KaTeX_Typewriter')}
</fontconfig>
`;
}

async function makeOnce(folder: string, content: string, make: () => void | Promise<void>): Promise<void> {
  const marker = path.join(folder, 'complete.txt');
  if (existsSync(marker) && readFileSync(marker, 'utf8') === content) return;
  const started = performance.now();
  console.log(`preparing ${content} in ${folder} (from npm, once)`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await make();
  writeFileSync(marker, content);
  console.log(`${content} is ready after ${((performance.now() - started) / 1000).toFixed(0)} s`);
}

/** Runs no package's install script. The native modules that the workbench needs are prebuilt. */
function installCodeServer(folder: string): void {
  writeFileSync(path.join(folder, 'package.json'), '{"private":true}\n');
  npm(folder, ['install', '--save-exact', `code-server@${CODE_SERVER_VERSION}`]);
  const vscode = path.join(folder, 'node_modules/code-server/lib/vscode');
  npm(vscode, ['install', '--omit=dev']);
  npm(path.join(vscode, 'extensions'), ['install', '--omit=dev']);
  // Copilot starts by itself and would disturb the ghost text and network tests.
  rmSync(path.join(vscode, 'extensions/copilot'), { recursive: true, force: true });
}

/**
 * Runs npm with the user's own configuration (registry, proxy, certificates), but without the `npm_config_*` variables
 * that an outer `npm run` sets. Those describe this project and its flags, not the folder installed here.
 */
function npm(cwd: string, args: string[]): void {
  const passedOn =
    /^npm_config_(registry|.*_registry|proxy|https?_proxy|noproxy|cafile|ca|strict_ssl|cache|userconfig|globalconfig)$/i;
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name) || passedOn.test(name)),
  );
  // An outer npm names its own path. Otherwise the npm on the PATH runs.
  const outer = process.env.npm_execpath?.replace(/npx-cli\.js$/, 'npm-cli.js');
  const [command, first] =
    outer?.endsWith('npm-cli.js') && existsSync(outer) ? [process.execPath, [outer]] : ['npm', []];
  const flags = [
    '--ignore-scripts',
    '--include=optional',
    '--no-audit',
    '--no-fund',
    '--no-progress',
    '--loglevel=error',
  ];
  const result = spawnSync(command, [...first, ...args, ...flags], { cwd, env, encoding: 'utf8', timeout: 600_000 });
  if (result.status === 0) return;
  const said = result.stderr.split('\n').flatMap((line) => /^npm (?:error|ERR!) (.+)/.exec(line)?.[1] ?? []);
  const reason =
    result.error?.message ?? (said.slice(0, 4).join(', ') || `exit status ${result.status ?? result.signal}`);
  throw new Error(`"npm ${args.join(' ')}" in ${cwd} failed: ${reason}`);
}

/**
 * The package's own unpacker always writes to the temporary folder and skips the shared libraries outside of AWS. So
 * this calls its inner function for each archive with the right folder. The package does not export that function,
 * hence the path.
 */
async function unpackChromium(packageDir: string, folder: string): Promise<void> {
  const { inflate } = (await import(pathToFileURL(path.join(packageDir, 'build/esm/lambdafs.js')).href)) as {
    inflate(file: string): Promise<string>;
  };
  const before = process.env.TMPDIR;
  process.env.TMPDIR = folder;
  try {
    for (const archive of ['chromium.br', 'al2023.tar.br', 'fonts.tar.br', 'swiftshader.tar.br'])
      await inflate(path.join(packageDir, 'bin', archive));
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  }
}
