/** Lines that are true of programs as they are written: no check of names, members, imports or copies cuts one. */
import { beforeAll, describe, expect, it } from 'vitest';
import { fits } from '../../../engine/tasks/fitting.ts';
import { SourceDocument } from '../../../engine/text/syntax/sourceDocument.ts';
import { Syntax } from '../../../engine/text/syntax/syntax.ts';
import { Grammars } from '../../../engine/text/syntax/syntaxTrees.ts';

const grammars = new Grammars();
const syntax = new Syntax(grammars);
beforeAll(async () => {
  await Promise.all(['typescript', 'javascript', 'python', 'tsx'].map((name) => grammars.load(name)));
});

/** Whether a text fits at `|`. */
function fitsAt(
  path: string,
  marked: string,
  written: string,
  others: Record<string, string> = {},
  packages?: string[],
): boolean {
  const offset = marked.indexOf('|');
  const doc = new SourceDocument(path, path, marked.replace('|', ''));
  const place = syntax.at(doc, offset);
  if (!place || !('scan' in place)) throw new Error(`no tree of ${path}`);
  const open = Object.entries(others).map(([name, text]) => new SourceDocument(name, name, text));
  return fits({ doc, offset, place, others: open, packages })(written) === undefined;
}

/** A method of a class with these members, and text below the class. */
const ofClass = (members: string, below = '', above = '') =>
  `${above}class Queue {\n${members}  run() {\n    |\n  }\n}\n${below}`;
const ofPython = (members: string, below = '', above = '', bases = '') =>
  `${above}class Queue${bases}:\n${members}    def run(self):\n        |\n${below}`;

describe('a member that the class has in another way', () => {
  it.each([
    ['a.js', ofClass('  constructor(o) {\n    for (const k in o) this[k] = o[k];\n  }\n'), 'this.width;'],
    ['a.js', ofClass("  constructor() {\n    define.defineProperty(this, 'a');\n  }\n"), 'this.width;'],
    ['a.js', ofClass('', 'applyMixins(Queue, [Emitter]);\n'), 'this.width;'],
    ['a.js', ofClass('  a; b;\n'), 'this.b;'],
    ['a.js', ofClass('', '', 'const self = make();\n'), 'self.postMessage(1);'],
    ['a.ts', ofClass('', '', '@Component({\n  a: 1,\n})\n'), 'this.width;'],
    ['a.ts', ofClass('', '', '@Component({ a: 1,\n  b: 2 })\n'), 'this.width;'],
    ['a.ts', ofClass("  'total' = 1;\n"), 'this.total;'],
    ['a.ts', ofClass('  @Output() changed = new Emitter();\n'), 'this.changed.emit(1);'],
    ['a.ts', ofClass('  constructor(override a: X) {}\n'), 'this.a.go();'],
    ['a.ts', ofClass('  size = 0;\n').replace('run()', 'static run()'), 'this.prototype; this.name;'],
    ['a.py', ofPython('    a, b = 1, 2\n    x = y = 3\n'), 'return self.b + self.y'],
    ['a.py', ofPython('', 'def f(queue):\n    queue.width, queue.height = 3, 4\n'), 'return self.height'],
    ['a.py', ofPython('', 'Queue.help = help_it\n'), 'self.help()'],
    ['a.py', ofPython('', 'class B(Queue, Base):\n    pass\n'), 'self.log()'],
    ['a.py', ofPython('', '', '@attr.s(a=True,\n        b=True)\n'), 'self.evolve()'],
    ['a.py', ofPython('').replace('Queue', 'QueueMixin'), 'self.log()'],
    ['a.py', ofPython('    def __init__(self, **o):\n        vars(self).update(o)\n'), 'self.width'],
  ])('%s %j %s', (path, marked, written) => {
    expect(fitsAt(path, marked, written)).toBe(true);
  });

  it.each([
    ['a.ts', ofClass(''), "declare module './a' {\n  interface Queue {\n    width: number;\n  }\n}\n"],
    ['a.js', ofClass(''), 'Queue.prototype.width = 1;\n'],
    ['a.ts', ofClass(''), "import { Queue } from './a';\nclass B extends Queue {\n  width = 1;\n}\n"],
    ['a.py', ofPython(''), 'from a import Queue\nQueue.width = 1\n'],
  ])('in another file: %s %j %j', (path, marked, other) => {
    const written = path === 'a.py' ? 'self.width' : 'this.width;';
    expect(fitsAt(path, marked, written)).toBe(false);
    expect(fitsAt(path, marked, written, { [path.replace('a', 'b')]: other })).toBe(true);
  });
});

describe('a member of a subclass or type of another file', () => {
  const CLASS = 'class Shape {\n  area() { return 0; }\n}\n';
  const PYTHON = 'from circle import Circle\n\nclass Shape:\n    area = 0\n\ndef f(shape: Shape):\n';
  it.each([
    ['a.ts', `${CLASS}function f(shape: Shape) {\n  |\n}\n`, 'if (shape instanceof Circle) return shape.radius;'],
    ['a.ts', `${CLASS}function f(shape: Shape) {\n  |\n}\n`, 'if (isCircle(shape)) return shape.radius;'],
    ['a.py', `${PYTHON}    if isinstance(shape, Circle):\n        |\n`, 'return shape.radius'],
    ['a.ts', 'const sizes: Record<string, number> = { a: 1 };\n|\n', 'sizes.width;'],
  ])('%s %j %s', (path, marked, written) => {
    expect(fitsAt(path, marked, written)).toBe(true);
  });

  it('is not one of an object that is not tested', () => {
    expect(fitsAt('a.ts', `${CLASS}function f(shape: Shape) {\n  |\n}\n`, 'return shape.radius;')).toBe(false);
  });
});

describe('a member of a name that hides a module', () => {
  it.each([
    ['a.ts', "import path from 'node:path';\nfunction f(path: string) {\n  |\n}\n", 'path.trim();'],
    ['a.ts', "import url from 'url';\n|\n", 'urls.map((url) => url.visit());'],
    ['a.js', "const os = require('os');\nfunction f(ctx) {\n  const { os } = ctx;\n  |\n}\n", 'os.family;'],
    ['a.js', "const url = require('url');\nfor (const url of urls) {\n  |\n}\n", 'url.visit();'],
    ['a.ts', 'function f(console: Output) {\n  |\n}\n', "console.writeLine('x');"],
    ['a.ts', '|\n', 'Math.sumPrecise(x); Map.groupBy(a, f);'],
    [
      'a.py',
      'import os, sys, inspect, logging\n|\n',
      'os.listdrives(), sys.ps1, logging.handlers.A, inspect.ispackage',
    ],
  ])('%s %j %s', (path, marked, written) => {
    expect(fitsAt(path, marked, written)).toBe(true);
  });
});

describe('a member of what a package, the browser or the runtime gives', () => {
  it.each([
    ['a.ts', "const canvas = document.createElement('canvas');\n|\n", 'canvas.toDataURL();'],
    ['a.ts', "const audio = new Audio('a.mp3');\n|\n", 'audio.currentTime;'],
    ['a.js', 'var $el = $(".a");\n|\n', '$el.fadeIn(200);'],
    ['a.js', 'var self = this;\n|\n', 'self.start();'],
    ['a.ts', 'const env = process.env;\n|\n', 'env.databaseUrl;'],
    ['a.ts', 'const pkg = JSON.parse(text);\n|\n', 'pkg.devDependencies;'],
    ['a.ts', 'const options = { ...defaults };\n|\n', 'options.retries;'],
    ['a.ts', "import { a } from 'b';\nconst rows =\n  a();\n|\n", 'rows.rowsAffected;'],
    [
      'a.ts',
      "import { A } from 'b';\nfunction make() {\n  return new A();\n}\nconst a = make();\n|\n",
      'a.rowsAffected;',
    ],
    ['a.ts', "import { A } from 'b';\nconst a = new A();\nconst rows = a.query();\n|\n", 'rows.rowsAffected;'],
    ['a.js', 'class Q {}\nutil.inherits(Q, Emitter);\nconst q = new Q();\n|\n', 'q.emit("a");'],
    ['a.py', 'def numbers():\n    yield 1\nn = numbers()\n|\n', 'n.throw(ValueError)'],
    ['a.py', 'import argparse\np = argparse.ArgumentParser()\nargs = p.parse_args()\n|\n', 'args.output_dir'],
  ])('%s %j %s', (path, marked, written) => {
    expect(fitsAt(path, marked, written)).toBe(true);
  });
});

describe('an import', () => {
  it.each([
    ['src/b.tsx', "import styles from './b.module.css';", { 'src/a.tsx': "import styles from './a.module.css';\n" }],
    ['src/b.ts', "import router from './users';", { 'src/a.ts': "import router from './posts';\n" }],
    ['src/b.js', "const log = require('./log');", { 'src/a.js': "const log = require('../lib/logger');\n" }],
    [
      'src/l/index.ts',
      "export { default as ka } from './ka.js';",
      { 'src/l/a.ts': "export { default as en } from './en';\n" },
    ],
    ['src/c/index.ts', "export { Button } from './Button';", { 'src/app.ts': "import { Button } from './c';\n" }],
    ['src/x/b.ts', "import { trim } from '../util/text';", { 'src/x/a.ts': "import { trim } from '@/util/text';\n" }],
    [
      'packages/app/b.ts',
      "import { Button } from '@acme/ui';",
      { 'packages/ui/B.ts': 'export function Button() {}\n' },
    ],
    [
      'packages/ui/i.ts',
      "export { Button } from './Button';",
      { 'packages/app/b.ts': "import { Button } from '@acme/ui';\n" },
    ],
    [
      'packages/b/x.ts',
      "import { config } from './config';",
      { 'packages/a/x.ts': "import { config } from './config';\n" },
    ],
    ['src/x/b.ts', "import { run } from '..';", { 'src/run.ts': 'export function run() {}\n' }],
    ['src/x/b.ts', "import { run } from '../runtime';", { 'src/x/y/run.ts': 'export function run() {}\n' }],
    ['src/b.ts', "import { version } from '../package.json';", { 'src/a.ts': "export const version = '1';\n" }],
    ['src/sum.ts', "import { Sum } from './money';", { 'src/a.ts': "import { Sum } from './sum';\n" }],
    ['src/make.ts', "import { Sum } from './sum-impl';", { 'src/a.ts': "import { Sum } from './sum';\n" }],
    ['src/make.ts', "import { Sum } from './sum-impl';", { 'src/sum.ts': 'export class Sum {}\n' }],
    ['app/b.py', 'from app import util', { 'app/__init__.py': 'NAME = 1\n' }],
    ['app/x/b.py', 'from app.core import tasks', { 'app/core/__init__.py': 'NAME = 1\n' }],
    ['app/b.py', 'from urllib.parse import urlencode', { 'app/compat.py': 'def urlencode():\n    pass\n' }],
    ['app/b.py', 'from app.people.user import User', { 'app/a.py': 'from app.people import User\n' }],
    ['app/b.py', 'from .paint import Style', { 'app/a.py': 'from app.paint import Style\n' }],
    ['app/b.py', 'from .literals import Literal', { 'app/a.py': 'from typing import Literal\n' }],
  ] as [string, string, Record<string, string>][])('%s %s', (path, written, others) => {
    expect(fitsAt(path, '|\n', written, others)).toBe(true);
  });

  it.each([
    ['a/b.ts', "import { trim } from './text';", { 'b/text.ts': 'export function trim() {}\n' }],
    ['a/b.ts', "import { trim } from './text.js';", { 'b/text.ts': 'export function trim() {}\n' }],
    ['a/b.mts', "import { trim } from './text.mjs';", { 'b/text.mts': 'export function trim() {}\n' }],
    ['a/b.cts', "import { trim } from './text.cjs';", { 'b/text.cts': 'export function trim() {}\n' }],
    ['a/b.ts', "import { Row } from './row.d.ts';", { 'b/row.d.ts': 'export interface Row {}\n' }],
    ['a/b.ts', "import { Row } from './rows.d.ts';", { 'a/rows.d.ts': 'export interface Row {}\n' }],
    ['a/b.ts', "import { Auth } from './auth.service';", { 'b/auth.service.ts': 'export class Auth {}\n' }],
    ['a/b.ts', "import { trim } from './text';", { 'b/text/index.ts': 'export function trim() {}\n' }],
    ['a/b.ts', "import { trim } from './text/index.js';", { 'b/text/index.ts': 'export function trim() {}\n' }],
    ['a/b.ts', "import { trim } from './text/index';", { 'a/text/index.ts': 'export function trim() {}\n' }],
    ['a/b.js', "const { trim } = require('./text');", { 'b/text.js': 'export function trim() {}\n' }],
    ['a/b.ts', "import { trim } from './text';", { 'c/d.ts': "import { trim } from '../b/text';\n" }],
    [
      'packages/a/src/b.ts',
      "import { Button } from './Button';",
      { 'packages/c/src/Button.tsx': 'export function Button() {}\n' },
    ],
    [
      'src/b.tsx',
      "import { Props } from './card';",
      { 'src/x/a.tsx': 'export interface Props {}\n', 'src/x/b.tsx': 'export interface Props {}\n' },
    ],
    ['src/b.ts', "import { run } from './worker.ts?worker';", { 'src/worker.ts': 'export const run = 1;\n' }],
    ['a/b.ts', "import { test } from 'node:test';", {}],
    ['a/b.py', 'from .text import trim', { 'b/text.py': 'def trim():\n    pass\n' }],
    ['a/b.py', 'from .text import trim', { 'b/text/__init__.py': 'def trim():\n    pass\n' }],
    ['api/b.py', 'from util.text import clean', { 'web/util/text.py': 'def trim():\n    pass\n' }],
    ['tests/b.py', 'from shop.stock import Stock', { 'src/shop/stock.py': 'class Stock:\n    pass\n' }],
    [
      'tests/shop/b.py',
      'from shop.fresh import Stock',
      { 'tests/shop/a.py': 'import shop\n', 'src/shop/c.py': 'from .fresh import Stock\n' },
    ],
    ['tests/a/b.py', 'from .conftest import client', { 'tests/c/base.py': 'def client():\n    pass\n' }],
    ['tests/a/b.py', 'from ..conftest import client', { 'tests/c/base.py': 'def client():\n    pass\n' }],
    [
      'app/x/b.py',
      'from app.jobs.mail import send',
      { 'app/jobs/other.py': 'A = 1\n', 'x/mail.py': 'def send(): pass\n' },
    ],
  ] as [string, string, Record<string, string>][])(
    'of a file that another folder has too: %s %s %j',
    (path, written, others) => {
      expect(fitsAt(path, '|\n', written, others)).toBe(true);
    },
  );

  it.each([
    ['a/b.ts', "import { trim } from './texts';", { 'b/text.ts': 'export function trim() {}\n', 'a/c.ts': 'let c;\n' }],
    ['a/b.ts', "import { trim } from './text.js';", { 'a/text.ts': 'export function clip() {}\n' }],
    ['a/b.ts', "import { Row } from './rows.d.ts';", { 'a/rows.d.ts': 'export interface Line {}\n' }],
    [
      'a/b.ts',
      "import { trim } from './text';",
      { 'b/text.ts': 'export function trim() {}\n', 'a/c.ts': "import { trim } from '../b/text';\n" },
    ],
    [
      'a/b.ts',
      "import { Row, Cell } from './table';",
      { 'b/row.ts': 'export class Row {}\n', 'b/cell.ts': 'export class Cell {}\n', 'a/c.ts': 'let c;\n' },
    ],
    ['tests/b.py', 'from shop.stock import Storage', { 'src/shop/stock.py': 'class Stock:\n    pass\n' }],
    ['web/b.py', 'from util.text import clean', { 'web/util/text.py': 'def trim():\n    pass\n' }],
  ] as [string, string, Record<string, string>][])(
    'that the project has elsewhere does not fit: %s %s %j',
    (path, written, others) => {
      expect(fitsAt(path, '|\n', written, others)).toBe(false);
    },
  );

  it('of a package for Python fits if the project may have it', () => {
    const declared = [
      'PyYAML',
      'Pillow',
      'beautifulsoup4',
      'scikit-learn',
      'python-dateutil',
      'opencv-python-headless',
    ];
    const packages = [
      ...declared,
      'protobuf',
      'google-cloud-storage',
      'Flask-SQLAlchemy',
      'pandas',
      'tools',
      'boto3',
      'pywin32',
      'tensorflow-gpu',
      'google-api-python-client',
    ];
    const fits = (written: string, others = {}, path = 'a/b.py') => fitsAt(path, '|\n', written, others, packages);
    for (const line of [
      'import yaml',
      'from PIL import Image',
      'from bs4 import BeautifulSoup',
      'from sklearn.cluster import KMeans',
      'from dateutil import parser',
      'import cv2',
      'from google.protobuf import text_format',
      'from google.cloud import storage',
      'from flask_sqlalchemy import SQLAlchemy',
      'import numpy as np, pandas as pd',
      'import os, sys',
      'from concurrent.futures import Future',
      'from __future__ import annotations',
      'import pytest',
      'import jmespath, urllib3',
      'import win32api, win32file',
      'from tools import build',
      'from . import near',
      'from typing_extensions import Self',
      'import keras',
      'from googleapiclient.discovery import build',
      'import bpy',
      '    import ujson',
    ])
      expect([line, fits(line)]).toEqual([line, true]);
    for (const line of ['import ujson', 'from polars import DataFrame', 'import yaml, ujson', 'import polars as pl'])
      expect([line, fits(line)]).toEqual([line, false]);
    expect(fits('import ujson', { 'c.py': 'import os, ujson\n' })).toBe(true);
    expect(fits('import shop', { 'shop/c.py': 'A = 1\n' })).toBe(true);
    expect(fits('import shop', { 'shop.py': 'A = 1\n' })).toBe(true);
    expect(fits('import shop', { 'src/shop/c.py': 'A = 1\n' })).toBe(true);
    expect(fitsAt('b.py', '|\n', 'import ujson')).toBe(true);
  });

  it('of a folder is cut where scripts name no folders', () => {
    const named = (first: string) => ({
      'src/services/run.ts': `import { a } from 'vite';\nimport { b } from '${first}';\n`,
      'src/b1.ts': "import { a } from 'vite';\nimport { b } from 'node:fs';\n",
      'src/b2.ts': "import { a } from 'vite';\nimport { b } from './b1';\n",
    });
    const fits = (first: string, module = 'services/run', packages = ['vite']) =>
      fitsAt('src/b.ts', '|\n', `import { run } from '${module}';`, named(first), packages);
    expect([fits('./b1'), fits('fs'), fits('services')]).toEqual([false, false, true]);
    expect(fits('src/b1')).toBe(true);
    expect(fits('@services/b')).toBe(true);
    expect(fits('./b1', 'services/run', ['vite', 'services'])).toBe(true);
  });

  it.each([
    ['node:fs', true],
    ['node:sqlite', true],
    ['node:files', false],
    ['virtual:pages', true],
    ['https://a.b/c.js', true],
    ['icons:home', true],
    ['text:home', false],
  ])('with a scheme: %s', (module, expected) => {
    const others = { 'src/a.ts': "import a from 'icons:edit';\n" };
    expect(fitsAt('src/b.ts', '|\n', `import x from '${module}';`, others, ['vite'])).toBe(expected);
    expect(fitsAt('src/b.ts', '|\n', `import x from '${module}';`, others)).toBe(true);
  });

  it('of a folder that a bundler names, or of a part of a package', () => {
    const folder = { 'src/services/run.ts': 'export function run() {}\n' };
    expect(fitsAt('src/b.ts', '|\n', "import { run } from 'services/run';", folder, ['vite'])).toBe(true);
    expect(fitsAt('src/b.ts', '|\n', "import { run } from 'services/run';", {}, ['vite'])).toBe(false);
    expect(fitsAt('src/b.ts', '|\n', "import { expect } from '@jest/globals';", {}, ['jest'])).toBe(true);
    const alias = { 'src/a.js': "import { a } from '@parts/a';\n" };
    expect(fitsAt('src/b.js', '|\n', "import { b } from '@parts/b';", alias, ['vite'])).toBe(true);
    expect(fitsAt('src/b.js', '|\n', "import { b } from '@parts/b';", { 'src/parts/b.js': '' }, ['vite'])).toBe(true);
    expect(fitsAt('src/b.js', '|\n', "import { b } from '@parts/b';", {}, ['vite', 'parts'])).toBe(true);
    expect(fitsAt('src/b.js', '|\n', "import { b } from '@parts/b';", {}, ['vite'])).toBe(false);
  });
});

describe('the beginning of a function and its opposite', () => {
  const NAMES = `class Names {
  getName(id: string) {
    const user = this.users.get(id);
    if (!user) throw new Error('there is no such user');
    return user.name;
  }
  setName(id: string, name: string) {
    |
  }
}
`;
  it('may look up and check the same', () => {
    const start = "const user = this.users.get(id);\n    if (!user) throw new Error('there is no such user');\n";
    expect(fitsAt('a.ts', NAMES, start)).toBe(true);
    expect(fitsAt('a.ts', NAMES, `${start}    return user.name;`)).toBe(false);
  });

  it('may check its parameters, but not the state', () => {
    const rows = (condition: string) =>
      `def export_rows(path, rows):\n    if ${condition}:\n        raise ValueError(path)\n    save(path)\n\ndef import_rows(path):\n    |\n`;
    expect(fitsAt('a.py', rows('not path'), 'if not path:\n        raise ValueError(path)')).toBe(true);
    expect(fitsAt('a.py', rows('path.is_done'), 'if path.is_done:\n        raise ValueError(path)')).toBe(false);
  });
});
