/** Which files that are not open are sent to the engine to copy from, with a small fake disk. */
import { join, matchesGlob } from 'node:path/posix';
import { beforeEach, expect, test, vi } from 'vitest';
import type { HostMessage } from '../../../../engine/protocol/messages.ts';
import type { Settings } from '../../../../src/config.ts';

/** Texts by path, and how often each was changed. */
const disk = new Map<string, { text: string; mtime: number }>();
const searched: string[] = [];
const read: string[] = [];
/** The paths that were read, whether or not they exist. */
const looked: string[] = [];
const saved = new Set<(document: { uri: FakeUri }) => void>();

class FakeUri {
  readonly scheme = 'file';
  readonly authority = '';
  readonly path: string;
  constructor(path: string) {
    this.path = path;
  }
  toString(): string {
    return `file://${this.path}`;
  }
  static joinPath({ path }: FakeUri, ...parts: string[]): FakeUri {
    return new FakeUri(join(path, ...parts));
  }
}

/** Targets of links. */
const links = new Map<string, string>();
vi.mock('../../../../src/completion/links.ts', () => ({
  targetOf: ({ path }: FakeUri) => (links.has(path) ? new FakeUri(links.get(path)!) : undefined),
}));
/** What happens while a file is being read. */
let whileReading = (_: string): void => {};

vi.mock('../../../../src/vscode.ts', () => ({
  Uri: FakeUri,
  RelativePattern: class {
    readonly folder: FakeUri;
    readonly glob: string;
    constructor(folder: FakeUri, glob: string) {
      this.folder = folder;
      this.glob = glob;
    }
  },
  workspace: {
    notebookDocuments: [],
    getWorkspaceFolder: (uri: FakeUri) => (uri.path.startsWith('/w/') ? { uri: new FakeUri('/w') } : undefined),
    getConfiguration: () => ({ get: () => ({ '**/node_modules': true }) }),
    onDidSaveTextDocument: (listener: (document: { uri: FakeUri }) => void) => {
      saved.add(listener);
      return { dispose: () => saved.delete(listener) };
    },
    findFiles: async ({ folder, glob }: { folder: FakeUri; glob: string }, exclude: string, most: number) => {
      searched.push(folder.path);
      const below = [...disk.keys()].filter((path) => path.startsWith(`${folder.path}/`));
      return below
        .filter(
          (path) =>
            matchesGlob(path.slice(folder.path.length + 1), glob) && !(exclude && path.includes('/node_modules/')),
        )
        .map((path) => new FakeUri(path))
        .slice(0, most);
    },
    fs: {
      stat: async ({ path }: FakeUri) => {
        const file = disk.get(path);
        if (!file) throw new Error('it is gone');
        return { mtime: file.mtime, size: file.text.length };
      },
      readFile: async ({ path }: FakeUri) => {
        looked.push(path);
        const file = disk.get(path);
        if (!file) throw new Error('it is gone');
        read.push(path);
        whileReading(path);
        return new TextEncoder().encode(file.text);
      },
    },
  },
  languages: {
    match: ({ pattern }: { pattern: string }, { uri }: { uri: FakeUri }) => (matchesGlob(uri.path, pattern) ? 10 : 0),
  },
}));
const { ProjectFiles } = await import('../../../../src/context/projectFiles.ts');

const completion = { enable: true, languages: ['*'], exclude: ['**/*.key.ts'], snippets: true };
let changed: () => void = () => {};
const settings = {
  current: { completion },
  onDidChange: (listener: () => void) => {
    changed = listener;
    return { dispose: () => {} };
  },
} as unknown as Settings;
const write = (path: string, text = 'export const a = 1;\n'): void =>
  void disk.set(path, { text, mtime: (disk.get(path)?.mtime ?? 0) + 1 });

function setUp(files: string[], model = { copiesFiles: true }) {
  for (const path of files) write(path);
  const messages: HostMessage[] = [];
  const client = {
    state: { kind: 'ready', model },
    epoch: 1,
    notify: (message: HostMessage) => void messages.push(message),
  };
  const project = new ProjectFiles(client as never, settings);
  const near = (path: string, open: string[] = []): string[] =>
    project
      .near({ uri: new FakeUri(path) } as never, new Set(open.map((each) => `file://${each}`)))
      .map((id) => id.replace(/^copy file:\/\//, ''));
  return {
    project,
    client,
    near,
    /** The files that were sent; `-` marks a removal. */
    sent: () =>
      messages
        .splice(0)
        .map((message) =>
          message.type === 'sourceChanged'
            ? message.path
            : message.type === 'sourceClosed'
              ? `-${message.docId.replace(/^copy file:\/\//, '')}`
              : message.type,
        ),
    /** The files near a file after they have been read. */
    settled: async (path: string, open: string[] = []): Promise<string[]> => {
      near(path, open);
      await vi.runAllTimersAsync();
      await project.idle;
      return near(path, open);
    },
  };
}

beforeEach(() => {
  vi.useFakeTimers();
  disk.clear();
  for (const list of [searched, read, looked]) list.length = 0;
  links.clear();
  whileReading = () => {};
  Object.assign(completion, { snippets: true, languages: ['*'], exclude: ['**/*.key.ts'] });
});

test('files of the same language that are not open are sent, the nearest first, without secret, ignored or foreign files', async () => {
  write('/w/.gitignore', 'built\n');
  const { settled, sent, near } = setUp([
    '/w/src/a/this.ts',
    '/w/src/a/near.ts',
    '/w/src/b/side.tsx',
    '/w/far.js',
    '/w/src/a/my.key.ts',
    '/w/src/a/b.py',
    '/w/built/x.ts',
    '/w/node_modules/m/y.ts',
    '/w/src/a/open.ts',
  ]);
  expect(near('/w/src/a/this.ts')).toEqual([]);
  expect(await settled('/w/src/a/this.ts', ['/w/src/a/open.ts'])).toEqual([
    '/w/src/a/near.ts',
    '/w/src/b/side.tsx',
    '/w/far.js',
  ]);
  expect(sent().sort()).toEqual(['/w/far.js', '/w/src/a/near.ts', '/w/src/a/open.ts', '/w/src/b/side.tsx']);
  // Nothing is read again for the next key.
  read.length = 0;
  expect(await settled('/w/src/a/this.ts')).toHaveLength(4);
  expect([read, sent()]).toEqual([[], []]);
});

test('at most a hundred files are sent, all from one folder if it has as many', async () => {
  const { settled } = setUp([
    ...Array.from({ length: 120 }, (_, i) => `/w/src/f${i}.ts`),
    '/w/other/a.ts',
    '/w/src/this.ts',
  ]);
  expect(await settled('/w/src/this.ts')).toHaveLength(100);
  expect(searched).toEqual(['/w/src']);
});

test('a saved, changed or deleted file is updated in the engine', async () => {
  const { settled, sent } = setUp(['/w/this.ts', '/w/a.ts', '/w/b.ts']);
  await settled('/w/this.ts');
  sent();
  write('/w/a.ts', 'export const b = 2;\n');
  for (const listener of saved) listener({ uri: new FakeUri('/w/a.ts') });
  await settled('/w/this.ts');
  expect(sent()).toEqual(['/w/a.ts']);
  write('/w/b.ts', 'export const c = 3;\n');
  disk.delete('/w/a.ts');
  await settled('/w/this.ts');
  expect(sent()).toEqual([]);
  vi.setSystemTime(Date.now() + 10 * 60_000);
  expect(await settled('/w/this.ts')).toEqual(['/w/b.ts']);
  expect(sent()).toEqual(['-/w/a.ts', '/w/b.ts']);
});

test('in another folder, distant files are removed; a new engine gets all files again', async () => {
  const { settled, sent, client } = setUp([
    ...Array.from({ length: 105 }, (_, i) => `/w/x/f${i}.ts`),
    ...Array.from({ length: 105 }, (_, i) => `/w/y/g${i}.ts`),
  ]);
  await settled('/w/x/f0.ts');
  sent();
  expect((await settled('/w/y/g0.ts')).every((path) => path.startsWith('/w/y/'))).toBe(true);
  expect(sent().filter((path) => path.startsWith('-/w/x/'))).toHaveLength(100);
  client.epoch++;
  expect(await settled('/w/y/g0.ts')).toHaveLength(100);
  expect(sent()).toHaveLength(100);
});

test('files that are not code are not sent, and no file is sent for them', async () => {
  const { settled } = setUp([
    '/w/app.json',
    '/w/credentials.json',
    '/w/a.tfvars',
    '/w/b.tfvars',
    '/w/Makefile',
    '/w/this.ts',
    '/w/a.ts',
  ]);
  for (const file of ['/w/app.json', '/w/a.tfvars', '/w/Makefile']) expect(await settled(file)).toEqual([]);
  expect(read).toEqual([]);
  // Files that were read for another file are not offered to them either.
  expect(await settled('/w/this.ts')).toEqual(['/w/a.ts']);
  for (const file of ['/w/app.json', '/w/Makefile', '/w/b.py', '/x/this.ts']) expect(await settled(file)).toEqual([]);
});

test('links out of the workspace are not followed, and files without completions are not read', async () => {
  const { settled } = setUp(['/w/this.ts', '/w/in.ts', '/w/out.ts', '/w/b.js', '/w/old/c.ts']);
  links.set('/w/out.ts', '/home/me/other.ts').set('/w/in.ts', '/w/lib/in.ts');
  completion.languages = ['*', '!javascript', '!**/old/**'];
  expect(await settled('/w/this.ts')).toEqual(['/w/in.ts']);
  expect(read.filter((path) => path.endsWith('.ts') || path.endsWith('.js'))).toEqual(['/w/in.ts']);
});

test('a .gitignore applies also if there are more files than are listed', async () => {
  const { settled } = setUp([
    '/w/this.ts',
    '/w/z/a.ts',
    '/w/z/made.ts',
    ...Array.from({ length: 2200 }, (_, i) => `/w/z/y/f${i}.py`),
    '/w/z/b.ts',
    ...Array.from({ length: 2200 }, (_, i) => `/w/z/built/${i}/f.ts`),
  ]);
  write('/w/z/.gitignore', 'built\nmade.ts\n');
  expect(await settled('/w/this.ts')).toEqual(['/w/z/a.ts', '/w/z/b.ts']);
  // The search does not look into each of thousands of folders.
  expect(looked.filter((path) => path.endsWith('/.gitignore'))).toEqual(['/w/.gitignore', '/w/z/.gitignore']);
});

test('a file that is excluded while it is being read is not sent', async () => {
  const { settled, sent, near } = setUp(['/w/this.ts', '/w/a.ts']);
  whileReading = (path) => {
    if (path !== '/w/a.ts') return;
    completion.exclude = ['**/a.ts'];
    changed();
    near('/w/this.ts');
  };
  expect(await settled('/w/this.ts')).toEqual([]);
  expect(sent()).toEqual([]);
});

test('files are in the order of their names, independent of the order of reading', async () => {
  const { settled } = setUp(['/w/this.ts', '/w/b.ts', '/w/c.ts']);
  await settled('/w/this.ts');
  write('/w/a.ts');
  vi.setSystemTime(Date.now() + 10 * 60_000);
  await settled('/w/this.ts');
  expect(await settled('/w/this.ts')).toEqual(['/w/a.ts', '/w/b.ts', '/w/c.ts']);
});

test('after a change of settings, all files are removed, and the allowed ones are sent again', async () => {
  const { settled, sent, near } = setUp(['/w/this.ts', '/w/a.ts']);
  await settled('/w/this.ts');
  sent();
  changed();
  expect(sent()).toEqual(['-/w/a.ts']);
  expect(await settled('/w/this.ts')).toEqual(['/w/a.ts']);
  completion.snippets = false;
  expect(near('/w/this.ts')).toEqual([]);
});

test('no files are searched without workspace, copying model or setting, and binary files are not sent', async () => {
  const { settled, sent } = setUp(['/w/this.ts', '/x/a.ts']);
  write('/w/data.ts', 'a\0b');
  write('/w/large.ts', 'x\n'.repeat(200_000));
  expect(await settled('/x/this.ts')).toEqual([]);
  expect(await settled('/w/this.ts')).toEqual([]);
  expect(sent()).toEqual([]);
  searched.length = 0;
  const other = setUp(['/w/a.ts'], { copiesFiles: false });
  expect(await other.settled('/w/this.ts')).toEqual([]);
  expect(searched).toEqual([]);
});
