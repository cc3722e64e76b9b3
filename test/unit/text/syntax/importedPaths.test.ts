// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings hold code.
/** Imports of files: those that do not exist are found, and none that may exist. */
import { describe, expect, it } from 'vitest';
import type { KnownFile } from '../../../../engine/text/syntax/importedModules.ts';
import { isMissingPath } from '../../../../engine/text/syntax/importedPaths.ts';

const FOLDERS = {
  '/w': ['package.json', 'src/', 'dist/', 'tests/'],
  '/w/src': ['index.ts', 'a/', 'util/', 'Logo.vue', 'data.json', 'empty/', 'pkg/', 'huge/'],
  '/w/src/a': [
    'file.ts',
    'near.tsx',
    'auth.service.ts',
    'Button.ios.tsx',
    'only.test.ts',
    'style.css',
    'more/',
    'view.gts',
  ],
  '/w/src/a/more': ['index.mjs', 'old.cjs', 'types.d.ts', 'x.mts', 'logo@2x.png', 'theme.css.ts'],
  '/w/src/util': ['text.js', 'text.test.js'],
  '/w/src/empty': ['deep/'],
  '/w/src/pkg': ['package.json'],
};
const FILE = '/w/src/a/file.ts';

/** Whether a line is judged wrong: the new text ends at `|`, or at the end. */
function isMissing(marked: string, others: KnownFile[] = [], file = FILE, language = 'script'): boolean {
  const [written = '', rest = ''] = marked.split('|');
  return isMissingPath(language, { written, rest, file, others, folders: FOLDERS });
}

describe('a script that exists may be imported', () => {
  it.each(
    [
      './near',
      './near.js',
      './near.jsx',
      './near.tsx',
      './auth.service',
      './Button',
      './only.test',
      './style.css',
      './style.css?inline',
      './more',
      './more/',
      './more/index.mjs',
      './more/old.cjs',
      './more/types',
      './more/x.mjs',
      './more/logo.png',
      './more/theme.css',
      '..',
      '../',
      '../index.js',
      '../util/text',
      '../util/../Logo.vue',
      '../data.json',
      '../data',
      '../pkg',
      './view',
      '../../package.json',
      '.',
    ].filter((path) => path !== '.'),
  )('%s', (path) => {
    expect(isMissing(`import x from '${path}';`)).toBe(false);
  });

  it.each([
    ['../huge/x', 'in a folder that is not known'],
    ['../../../other/x', 'outside of the workspace folder'],
    ['../../../../x', 'above all folders of the path'],
    ['../../build/x.js', 'in a folder that a build writes'],
    ['./.cache/x.js', 'in a hidden folder'],
    ['./schema.generated', 'which a program writes'],
    ['./$types', 'which only a bundler has'],
    ['./%s.js', 'of a template'],
  ])('%s, %s', (path) => {
    expect(isMissing(`import x from '${path}';`)).toBe(false);
  });

  it('which another file imports, or which is open', () => {
    expect(isMissing("import x from './fresh';")).toBe(true);
    expect(isMissing("import x from './fresh';", [{ path: '/w/src/b.ts', text: "import './a/fresh.js';" }])).toBe(
      false,
    );
    expect(isMissing("import x from './fresh';", [{ path: '/w/src/a/fresh.ts', text: '' }])).toBe(false);
    expect(isMissing("import x from './fresh';", [{ path: '/w/src/a/fresh/index.ts', text: '' }])).toBe(false);
  });

  it.each([
    "import x from './ne",
    "import x from './more/ol",
    "import x from '../empty|'",
    "import x from '../empty/|';",
    "// as in './nothing'",
    " * from './nothing'",
    'import x from `./${name}`;',
    "Array.from('./x');",
    "log('from ./nothing');",
    "const x = require('./nothing/' + name + '.json');",
    "await import('./nothing-' + name);",
    "await import('./nothing-'.concat(name));",
    "const x = require('./' + name);",
    "const x = require('./nothing'",
    "@import './nothing';",
    "const x = require('../dist');",
    "const x = require('../lib.js');",
  ])('%s', (line) => {
    expect(isMissing(line)).toBe(false);
  });
});

describe('a script that does not exist is not imported', () => {
  it.each([
    './nothing',
    './file2.js',
    './only',
    './style',
    './near.mjs',
    './util/text',
    './text.js',
    '../near',
    '../empty',
    '../nowhere/x',
    '../nowhere/deep/x.js',
    '../util/text.ts',
    '../../src/b',
    '.',
  ])('%s', (path) => {
    expect(isMissing(`import x from '${path}';`)).toBe(true);
  });

  it.each([
    "export * from './nothing';",
    "import './nothing.css';",
    "const x = require('./nothing');",
    "  const x = await import('./nothing.js');",
    "  load: () => import('./nothing.vue'),",
    "vi.mock('./nothing');",
    'import x from "./nothing"',
    "import x from './nothi",
    "import x from './nothing|';",
    "import x from '../nowhere|'",
  ])('%s', (line) => {
    expect(isMissing(line)).toBe(true);
  });
});

describe('in Python', () => {
  const folders = {
    '/w': ['shop/', 'tests/', 'setup.py', 'tools/', 'space/'],
    '/w/shop': ['__init__.py', 'stock.py', 'core/', 'fast.cpython-311-x86_64-linux-gnu.so', 'plain/', 'unread/'],
    '/w/shop/core': ['__init__.py', 'a.py', 'b.pyi'],
    '/w/shop/plain': ['c.py'],
    '/w/tests': ['test_a.py'],
    '/w/space': ['x/'],
  };
  const INIT = [{ path: '/w/shop/core/__init__.py', text: 'from .a import run\nLIMIT = 3\n' }];
  const wrong = (
    line: string,
    file = '/w/shop/core/a.py',
    others: KnownFile[] = INIT,
    native: string[] = [],
  ): boolean =>
    isMissingPath('python', {
      written: line,
      rest: '',
      file,
      others,
      folders: { ...folders, ...(native.length > 0 ? { '/w/ext': native } : {}) },
    });

  it.each([
    'from . import a, b',
    'from . import run',
    'from . import LIMIT as MOST, b',
    'from .b import x',
    'from .. import stock',
    'from .. import anything',
    'from ..stock import Stock',
    'from ..fast import go',
    'from ..plain import c',
    'from ..plain.c import d',
    'from ..unread.deep import x',
    'from .._version import x',
    'from ... import tools',
    'from ....up import x',
    'from shop.core.b import x',
    'from shop import stock, anything',
    'import shop.stock as stock, os.path',
    'import numpy.linalg',
    'from tools.build import x',
    'from space.x.y import z',
    '    from ._speedups import go',
  ])('%s may be right', (line) => {
    expect(wrong(line)).toBe(false);
  });

  it.each([
    'from .c import x',
    'from ... import x',
    'from . import c',
    'from . import a, c',
    'from ..stocks import Stock',
    'from ..stock.more import x',
    'from ..core.c import x',
    'from ..plain import d',
    'from shop.stocks import Stock',
    'from shop.core import c',
    'import shop.stocks',
    'import os, shop.core.c as c',
    'from ._speedups import go',
    '    from .c import x',
  ])('%s is wrong', (line) => {
    expect(wrong(line)).toBe(true);
  });

  it('a compiled module may be missing', () => {
    expect(wrong('from ._speedups import go', '/w/shop/core/a.py', INIT, ['speedups.c'])).toBe(false);
    expect(wrong('from .speedups import go', '/w/shop/core/a.py', INIT, ['speedups.c'])).toBe(true);
  });

  it('names of a package are judged only where all of its own file is known', () => {
    const other = (text: string, isCut = false) => [{ path: '/w/shop/core/__init__.py', text, isCut }];
    expect(wrong('from . import c', '/w/shop/core/a.py', [])).toBe(false);
    expect(wrong('from . import c', '/w/shop/core/a.py', other('A = 1\n', true))).toBe(false);
    expect(wrong('from . import c', '/w/shop/core/a.py', other('from .a import *\n'))).toBe(false);
    expect(wrong('from . import c', '/w/shop/core/a.py', other('def __getattr__(name):\n'))).toBe(false);
    expect(wrong('from . import c', '/w/shop/core/a.py', other('A = 1\n'))).toBe(true);
  });

  describe('an absolute module', () => {
    const own = (above: Record<string, string[]>, line = 'from openai.types import ChatCompletion', others = INIT) =>
      isMissingPath('python', {
        written: line,
        rest: '',
        file: '/w/app/services/openai/client.py',
        others: [...others, { path: '/w/app/services/openai/__init__.py', text: 'A = 1\n' }],
        folders: {
          '/w': ['app/', 'pyproject.toml'],
          '/w/app': ['services/', '__init__.py'],
          '/w/app/services/openai': ['__init__.py', 'client.py'],
          ...above,
        },
      });
    const inPackage = { '/w/app/services': ['__init__.py', 'openai/'] };

    it.each(['from openai.types import ChatCompletion', 'import openai.types', 'from openai import OpenAI'])(
      'of a library may have the name of a folder: %s',
      (line) => {
        expect(own(inPackage, line)).toBe(false);
        expect(own({ '/w/app/services': ['openai/'] }, line)).toBe(false);
        expect(own({ '/w/app/services': ['openai/', 'setup.py'] }, line)).toBe(true);
      },
    );

    it('is known if it is of Python, or another file imports it', () => {
      const root = { '/w/app/services': ['openai/', 'setup.py'] };
      const others = [{ path: '/w/x.py', text: 'import os, openai.types.chat\n' }];
      expect(own(root, undefined, others)).toBe(false);
      expect(wrong('import email.nothing', '/w/a.py', [])).toBe(false);
      expect(
        isMissingPath('python', {
          ...{ written: 'import email.nothing', rest: '', file: '/w/a.py', others: [] },
          folders: { '/w': ['setup.py', 'email/'], '/w/email': ['__init__.py'] },
        }),
      ).toBe(false);
    });
  });

  it('a relative module that a file of the folder imports is not judged', () => {
    const others = (path: string) => [{ path, text: 'from .c import y\n' }];
    expect(wrong('from .c import x', '/w/shop/core/a.py', others('/w/shop/core/b.py'))).toBe(false);
    expect(wrong('from .c import x', '/w/shop/core/a.py', others('/w/shop/stock.py'))).toBe(true);
  });

  it('a package that two folders have is not judged', () => {
    const two = { ...folders, '/w/tests': ['shop/'] };
    const line = { written: 'from shop.stocks import Stock', rest: '', file: '/w/tests/test_a.py', others: [] };
    expect(isMissingPath('python', { ...line, folders: two })).toBe(false);
    expect(isMissingPath('python', { ...line, folders })).toBe(true);
  });
});

it.each([
  ["require_relative 'a/file.ts'", false],
  ["require_relative 'util/text'", true],
  ["require_relative 'a/lib'", true],
  ["require_relative 'huge/x'", false],
  ["require 'nothing'", false],
  ["require_relative 'util/' + name", false],
])('in Ruby: %s', (line, expected) => {
  expect(isMissing(line, [], '/w/src/b.rb', 'ruby')).toBe(expected);
});

it.each([
  ['mod near;', 'src/lib.rs', false],
  ['pub mod near;', 'src/lib.rs', false],
  ['mod deep;', 'src/near.rs', false],
  ['pub(crate) mod parts;', 'src/lib.rs', false],
  ['mod nothing;', 'src/lib.rs', true],
  ['mod deep;', 'src/lib.rs', true],
  ['    mod nothing;', 'src/lib.rs', false],
  ['mod tests {', 'src/lib.rs', false],
])('in Rust: %s in %s', (written, file, expected) => {
  const folders = { src: ['lib.rs', 'near.rs', 'near/', 'parts/'], 'src/near': ['deep.rs'] };
  const line = { written, rest: '', file, folders };
  expect(isMissingPath('rust', { ...line, others: [] })).toBe(expected);
  expect(isMissingPath('rust', { ...line, others: [{ path: file, text: '#[path = "x.rs"]\nmod x;\n' }] })).toBe(false);
});

it('in Ruby, a compiled module may be missing', () => {
  const missing = (folders: Record<string, string[]>) =>
    isMissingPath('ruby', {
      written: 'require_relative "gem/gem"',
      rest: '',
      file: '/w/lib/gem.rb',
      others: [],
      folders,
    });
  expect(missing({ '/w/lib/gem': ['a.rb'] })).toBe(true);
  expect(missing({ '/w/lib/gem': ['gem.bundle'] })).toBe(false);
  expect(missing({ '/w/lib/gem': ['a.rb'], '/w': ['ext/', 'lib/'] })).toBe(false);
});
