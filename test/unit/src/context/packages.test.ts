/** Which packages a project has, from its manifests on a fake disk. */
import path from 'node:path';
import { expect, test, vi } from 'vitest';

const fake = vi.hoisted(() => {
  const uri = (file: string): object => ({ path: file, toString: () => file });
  return {
    files: new Map<string, string>(),
    changed: [] as (() => void)[],
    numDisposed: 0,
    uri,
  };
});
vi.mock('../../../../src/vscode.ts', () => {
  const listen = (listener: () => void) => {
    fake.changed.push(listener);
    return { dispose: () => fake.numDisposed++ };
  };
  return {
    FileType: { File: 1, Directory: 2 },
    Uri: { joinPath: ({ path: base }: { path: string }, part: string) => fake.uri(path.posix.join(base, part)) },
    workspace: {
      createFileSystemWatcher: () => ({
        onDidChange: listen,
        onDidCreate: listen,
        onDidDelete: listen,
        dispose: () => fake.numDisposed++,
      }),
      getWorkspaceFolder: ({ path: file }: { path: string }) =>
        file.startsWith('/project/') ? { uri: fake.uri('/project') } : undefined,
      fs: {
        readDirectory: async ({ path: folder }: { path: string }) => {
          const below = [...fake.files.keys()].filter((name) => name.startsWith(`${folder}/`.replace('//', '/')));
          const parts = below.map((name) => name.slice(`${folder}/`.replace('//', '/').length).split('/'));
          if (parts.length === 0) throw new Error('no such folder');
          return [...new Map(parts.map(([first, ...more]) => [first, more.length > 0 ? 2 : 1]))];
        },
        readFile: async ({ path: file }: { path: string }) => {
          const text = fake.files.get(file);
          if (text === undefined) throw new Error('no such file');
          return new TextEncoder().encode(text);
        },
      },
    },
  };
});
const { Packages } = await import('../../../../src/context/packages.ts');

const document = (file: string) => ({
  uri: fake.uri(file) as never,
  languageId: file.endsWith('.py') ? 'python' : 'typescript',
});
const settle = () => new Promise((resolve) => setTimeout(resolve, 5));

/** What is known of a file in /project/app after reading. */
async function read(
  files: Record<string, unknown>,
  file = '/project/app/src/a.ts',
): Promise<readonly string[] | undefined> {
  fake.files = new Map(
    Object.entries(files).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
  );
  const packages = new Packages();
  expect(packages.of(document(file))).toBeUndefined();
  await settle();
  const known = packages.of(document(file));
  packages.dispose();
  return known;
}

const APP = { name: 'app', dependencies: { react: '1' }, devDependencies: { vitest: '1' } };

test.each([
  [
    'of the nearest manifest and those above',
    { '/project/app/package.json': APP, '/project/package.json': { dependencies: { zod: '1' } } },
    ['app', 'react', 'vitest', 'zod'],
  ],
  [
    'not the folders beside them',
    { '/project/package.json': APP, '/project/src/parts/a.ts': '', '/project/lib/b.ts': '' },
    ['app', 'react', 'vitest'],
  ],
  [
    'also of a folder above the workspace, as packages are found there',
    { '/project/package.json': APP, '/package.json': { dependencies: { zod: '1' } } },
    ['app', 'react', 'vitest', 'zod'],
  ],
  ['none without a manifest', {}, undefined],
  ['none of a manifest without lists', { '/project/package.json': { type: 'module' } }, undefined],
  [
    'none of a half-written manifest',
    { '/project/app/package.json': '{"name": ', '/project/package.json': APP },
    undefined,
  ],
  ['none of a manifest that is no object', { '/project/package.json': '[]' }, undefined],
  ['none of a workspace of packages', { '/project/package.json': { ...APP, workspaces: ['a'] } }, undefined],
  ['none of a workspace of pnpm', { '/project/package.json': APP, '/project/pnpm-workspace.yaml': '' }, undefined],
  [
    'none where a bundler gives names to folders',
    { '/project/package.json': APP, '/project/vite.config.ts': 'resolve: { alias: { parts: "/src/parts" } }' },
    undefined,
  ],
  [
    'none where a bundler looks for packages in folders',
    { '/project/package.json': APP, '/project/webpack.config.js': "resolve: { modules: ['src', 'node_modules'] }" },
    undefined,
  ],
  [
    'none where Node does',
    { '/project/package.json': { ...APP, scripts: { start: 'NODE_PATH=src node app.js' } } },
    undefined,
  ],
  ['none of a project of Deno', { '/project/package.json': APP, '/project/deno.json': '{}' }, undefined],
  [
    'none where tests give names to folders',
    { '/project/package.json': { ...APP, jest: { moduleNameMapper: {} } } },
    undefined,
  ],
  [
    'none where a base configuration gives names to paths',
    { '/project/package.json': APP, '/project/tsconfig.base.json': '{ "compilerOptions": { "paths": {} } }' },
    undefined,
  ],
  [
    'none where paths have names',
    { '/project/package.json': APP, '/project/tsconfig.json': '{ "compilerOptions": { "paths": {} } }' },
    undefined,
  ],
] as const)('%s', async (_, files, expected) => {
  expect(await read(files)).toEqual(expected);
});

const TOML = `[build-system]
requires = ["setuptools>=61"]
[project]
name = "shop"
classifiers = ["Framework :: Django"]
dependencies = [
  "PyYAML>=6", # reads files
  'Pillow[extra] ; python_version > "3.9"',
]
[project.optional-dependencies]
test = ["pytest", "respx"]
[dependency-groups]
dev = [{ include-group = "test" }, "ruff"]
[tool.black]
line-length = 99
`;
const POETRY = `[tool.poetry.dependencies]
python = "^3.11"
requests = "^2"
"ruamel.yaml" = { version = "^0.18", extras = ["jinja2"] }
[tool.poetry.group.dev.dependencies]
mypy = "*"
[tool.poetry.scripts]
shop = "shop.main:run"
`;
const SETUP_CFG = `[metadata]
name = shop
[options]
packages = find:
install_requires =
    requests>=2
    attrs; python_version < "3.8"
[options.extras_require]
fast = orjson; uvloop
`;
const SETUP_PY = "setup(\n  name='shop',\n  install_requires=['requests>=2', 'click'],\n)\n";
const LINES = `# comment
requests[socks]==2.31 --hash=sha256:1  # why
-i https://packages.org/simple
-c constraints.txt
-e git+https://code.org/me/tool.git@main#egg=tool
git+https://code.org/me/other.git
name @ https://code.org/name.zip
`;

test.each([
  ['pyproject.toml', { 'pyproject.toml': TOML }, ['PyYAML', 'Pillow', 'pytest', 'respx', 'test', 'ruff']],
  ['the lists of Poetry', { 'pyproject.toml': POETRY }, ['requests', 'ruamel', 'mypy']],
  ['the list of Flit', { 'pyproject.toml': '[tool.flit.metadata]\nrequires = ["flask"]\n' }, ['flask']],
  ['the lists of Pixi', { 'pyproject.toml': '[tool.pixi.pypi-dependencies]\nflask = "*"\n' }, ['flask']],
  ['setup.cfg', { 'setup.cfg': SETUP_CFG }, ['requests', 'attrs', 'orjson', 'uvloop']],
  ['setup.py', { 'setup.py': SETUP_PY }, ['shop', 'requests', 'click', 'setup']],
  ['requirements.txt', { 'requirements.txt': LINES }, ['requests', 'tool', 'other', 'name']],
  [
    'a folder of them',
    { 'requirements/dev.txt': '-r base.txt\nruff\n', 'requirements/base.txt': 'flask\n' },
    ['ruff', 'flask', 'requirements'],
  ],
  ['several lists', { 'requirements-dev.txt': 'ruff\n', 'requirements.txt': 'flask\n' }, ['ruff', 'flask']],
  [
    'a list that pyproject.toml leaves to another',
    { 'pyproject.toml': '[project]\ndynamic = ["dependencies"]\n', 'requirements.txt': 'flask\n' },
    ['flask'],
  ],
  [
    'folders and files',
    { 'requirements.txt': 'flask\n', 'src/shop/a.py': '', 'b.py': '' },
    ['flask', 'src', 'b', 'shop'],
  ],
  ['no list', { 'shop/a.py': '' }, undefined],
  ['an empty list', { 'pyproject.toml': '[project]\nname = "shop"\ndependencies = []\n' }, undefined],
  ['no scripts', { 'package.json': APP }, undefined],
  ['no list that is elsewhere', { 'pyproject.toml': '[project]\ndynamic = ["dependencies"]\n' }, undefined],
  ['no list with unread parts', { 'requirements.txt': 'flask\n-r more/base.txt\n' }, undefined],
  ['no list beside one that is not read', { 'requirements.txt': 'flask\n', Pipfile: '' }, undefined],
  ['no list in a file', { 'setup.cfg': '[options]\ninstall_requires = file: requirements.in\n' }, undefined],
  [
    'no list of another file',
    { 'setup.py': "from lists import LIST\nsetup('shop', install_requires=LIST)\n" },
    undefined,
  ],
  ['no list that a program makes', { 'setup.py': "setup(install_requires=open('a').readlines())\n" }, undefined],
])('of Python: %s', async (_, files, expected) => {
  const placed = Object.entries(files).map(([name, text]) => [`/project/${name}`, text]);
  const known = await read(Object.fromEntries(placed), '/project/app.py');
  expect(known && [...known].sort()).toEqual(expected && [...expected].sort());
});

test('nothing is read outside a workspace', async () => {
  expect(await read({ '/tmp/package.json': APP }, '/tmp/a.ts')).toBeUndefined();
});

test('a changed manifest is read again, and an older reading does not count', async () => {
  fake.files = new Map([['/project/package.json', JSON.stringify(APP)]]);
  fake.changed.length = 0;
  const packages = new Packages();
  const file = document('/project/a.ts');
  packages.of(file);
  fake.files = new Map([['/project/package.json', JSON.stringify({ dependencies: { zod: '1' } })]]);
  for (const changed of fake.changed) changed();
  packages.of(file);
  await settle();
  expect(packages.of(file)).toEqual(['zod']);
  const before = fake.numDisposed;
  packages.dispose();
  expect(fake.numDisposed - before).toBe(4);
});

test('packages above the folder that is open count for scripts', async () => {
  const app = { '/project/app/package.json': APP };
  expect(await read({ ...app, '/package.json': { devDependencies: { jest: '1' } } })).toContain('jest');
  expect(await read({ ...app, '/package.json': { workspaces: ['project/*'] } })).toBeUndefined();
});
