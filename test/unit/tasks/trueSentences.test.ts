/** Sentences of summaries: true ones stay, and those with an invented name, or with a name in the wrong role, are cut. */
import { beforeAll, describe, expect, it } from 'vitest';
import { FileFacts } from '../../../engine/server/fileFacts.ts';
import { prepareSummarize } from '../../../engine/tasks/summarizeTask.ts';
import { ModelText } from '../../../engine/text/format/modelText.ts';
import { Layout } from '../../../engine/text/prompt/layout.ts';
import { SourceDocument } from '../../../engine/text/syntax/sourceDocument.ts';
import { Syntax } from '../../../engine/text/syntax/syntax.ts';
import { Grammars } from '../../../engine/text/syntax/syntaxTrees.ts';

const SCRIPT = `import { readFile } from 'node:fs/promises';
import type { Logger } from './logger.ts';

export interface Options {
  retries: number;
}
export type Color = 'red' | 'blue';
export enum Level { Low, High }
const LIMIT = 100_000;
const handlers = { save() {} };
export const useStore = create(() => ({}));
export const format = (text: string) => text.trim();
const parse = function (text: string) {
  return JSON.parse(text);
};
export class Basket {
  items: string[] = [];
  onChange?: () => void;
  constructor(private readonly log: Logger) {}
  get size() {
    return this.items.length;
  }
  add(item: string) {
    this.items.push(item);
  }
  async load(path: string, options: Options) {
    const text = await readFile(path, 'utf8');
    function check_line(line: string) {
      return line !== '';
    }
    this.items = text.split('\\n').filter(check_line);
    return this;
  }
}
export function later() {
  const late = debounce(() => format(''), 10);
  return late;
}
export function total(basket: Basket, each: (item: string) => number) {
  return basket.items.map((item) => each(item)).reduce((a, b) => a + b, 0);
}
`;
const PYTHON = `"""Reads stocks."""
import asyncio
import os.path
from collections import namedtuple
from enum import Enum

from .shop import Shop, open_shop

Point = namedtuple('Point', 'x y')
MAX_ITEMS = 10
double = lambda x: 2 * x


class Kind(Enum):
    A = 1


class Stock(Shop):
    def __init__(self, path):
        self.path = path
        self.rows = []

    @property
    def count(self):
        return len(self.rows)

    async def read_rows(self, limit=None):
        rows = await asyncio.to_thread(open_shop, self.path)
        for row in rows[:limit]:
            self.rows.append(row)


def twice(work):
    return work


def main(argv):
    stock = Stock(argv[1])
    try:
        asyncio.run(stock.read_rows())
    except ValueError:
        return 1
`;
const GO = `package shop

import "net/http"

type ID string

type Server struct {
	addr string
}

type Store interface {
	Get(id ID) (string, error)
}

const MaxItems = 10

func NewServer(addr string) *Server { return &Server{addr: addr} }

func (s *Server) Start(store Store) error {
	return http.ListenAndServe(s.addr, nil)
}
`;
const RUST = `use std::collections::HashMap;

pub struct Basket {
    items: HashMap<String, u32>,
}
pub trait Price {
    fn price(&self) -> u32;
}
pub enum Level { Low, High }
impl Basket {
    pub fn new() -> Self { Basket { items: HashMap::new() } }
    pub fn add(&mut self, name: &str) { self.items.insert(name.to_string(), 1); }
}
pub fn total_price(basket: &Basket) -> u32 { basket.items.values().sum() }
`;
const SQL = `CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
create view active_users as select id, name from users where deleted_at is null;
CREATE OR REPLACE FUNCTION touch_user() RETURNS trigger AS $$ BEGIN RETURN NEW; END; $$ LANGUAGE plpgsql;
`;
const FILES: Record<string, string> = {
  'src/basket.ts': SCRIPT,
  'shop/stock.py': PYTHON,
  'shop/server.go': GO,
  'src/basket.rs': RUST,
  'db/users.sql': SQL,
};

const TRUE: Record<string, string[]> = {
  'src/basket.ts': [
    'Uses the function `readFile`.',
    'This file defines the function `late`.',
    'The class `Basket` calls the function `readFile` and the method `push`.',
    'It imports the function `readFile` from `node:fs/promises`.',
    'It imports `Logger`.',
    'This file defines the class `Basket` and the functions `format`, `parse` and `total`.',
    'This file defines the interface `Options`, the type `Color` and the enum `Level`.',
    'The `Basket` class has the methods `add` and `load`.',
    'The function `check_line` is inside the method `load`.',
    'The `total` function takes the function `each`.',
    'The method `Basket.load` is async.',
    'The method `load(path, options)` reads a file.',
    'The function `useStore` is a hook.',
    'The function `onChange` is called by `Basket`.',
    'The constant `format` is a function.',
    'The parameter `basket` has the type `Basket`.',
    'The variable `LIMIT` is `100_000`, which is 1e5 or `0x186A0`.',
    'Returns a value of type `Promise<Basket>` for `load`.',
    'Returns a `Promise` of `Basket`.',
    'The method `load` uses `async` and `await`, and `return`.',
    'With `try` and `catch`, `load` would `throw` an error.',
    'Calls to `load` need the keyword `await` because they `yield`.',
    'See https://example.org/a_page/readMe for `Basket`.',
    'See `https://example.org/a_page?is_open=1` for `Basket`.',
    'See [the page](https://example.org/a_page_b) for `Basket`.',
    'Write to shop_owner@example.org about `Basket`.',
    'It is like `src/util/read_lines.ts` and `package.json` for `Basket`.',
    'It is like src/util/read_lines.ts and `./other_file` for `Basket`.',
    'The `.env` file and the folder `node_modules` are not read by `Basket`.',
    'Run `npm run build_all` before `Basket`, or pass `--dry_run` or --noEmit.',
    'The option `-v` and the option `--max-size=10` are not read by `Basket`.',
    'Waits `10ms` or `5px` for `Basket`, of version `v1.2.3` or `2.0.0`.',
    'The function `total` needs O(n) time, or `O(n log n)`.',
    'The method `load` sends no `GET` and no `POST` request.',
    'It runs on macOS and iOS with `Basket`.',
    'Dates look like `YYYY-MM-DD` in `Basket`, and lines end with `\\n`.',
    'Calls total(first) and total(second).',
    'The names of `Basket` are in camelCase, not in snake_case.',
    'Use it as follows:\n\n```ts\nconst my_basket = new Basket(console);\nmy_basket.addAll(1);\n```\n\nThen `total` is right.',
    '1. `Basket` holds items.\n2. `total` adds them.',
    'All names `on*` are of `Basket`.',
    'It returns a `list` of `items`, or an `object`.',
    'For example, e.g. `add`, it adds an item.',
    'Class `Basket` and function `total` are exported.',
    'The content type `application/json` is not read by `Basket`.',
    'The method `map` is called by `total`.',
  ],
  'shop/stock.py': [
    'Uses the function `open_shop`.',
    'The class `Stock` extends the class `Shop`.',
    'This file defines the classes `Kind` and `Stock`, and the function `main`.',
    'This file defines the class `Point` and the function `double`.',
    'It imports the class `Shop`.',
    'The method `read_rows` is `async`, and its first parameter is `self`.',
    'The method `Stock.read_rows` calls `asyncio.to_thread`.',
    'The enum `Kind` has `A`.',
    'The `__init__` method sets `self.path` and `self.rows`.',
    'The method `count` returns the length of `rows`.',
    'The function `main` handles `ValueError` with `except`, and does not `raise`.',
    'Install it with `pip install -r requirements.txt` and run `main`.',
    'The function `main` returns `None` or `1`.',
    'Returns a `list` or a sorted `dict` from `read_rows`.',
    'The function `twice` returns the function `work`.',
    'The constant `MAX_ITEMS` is `10`.',
    'The function `stock.read_rows()` is run.',
  ],
  'shop/server.go': [
    'This file defines the struct `Server`, the type `ID` and the interface `Store`.',
    'The function `NewServer` returns a `*Server`.',
    'The method `Start` calls the function `http.ListenAndServe`.',
    'The method `Server.Start` returns an `error`.',
    'It imports `net/http`.',
    'The constant `MaxItems` is `10`.',
    'The function `NewServer` starts no goroutine with `go` or `defer`.',
    'Run `go test ./...` for `Server`.',
  ],
  'src/basket.rs': [
    'This file defines the struct `Basket`, the trait `Price` and the enum `Level`.',
    'The function `total_price` takes the parameter `basket`.',
    'The method `add` calls the method `insert` of the type `HashMap`.',
    'The function `Basket::new` makes a `HashMap`.',
    'The method `add` needs `&mut self`.',
    'The function `total_price` has no `loop` and no `match`.',
    'Run `cargo build --release` for `Basket`.',
  ],
  'db/users.sql': [
    'Creates the table `users` and the view `active_users`.',
    'Creates the table `USERS` with `ID`.',
    'The function `touch_user` returns a trigger.',
    'The view `active_users` is a `SELECT` on the table `users`.',
    'Does not `JOIN` tables.',
  ],
};
const FALSE: Record<string, string[]> = {
  'src/basket.ts': [
    'Uses the function `writeFile`.',
    'This file defines the function `readFile`.',
    'This file defines the class `Basket` and the function `readFile`.',
    'This file defines the class `total`.',
    'This file defines the method `push`.',
    'The class `format` is exported.',
    'The `total` class holds items.',
    'The `Basket` function adds items.',
    'The functions `format` and `Basket` are exported.',
    'The `format` and `Basket` functions are exported.',
    'The method `total` adds.',
    'The method `parse` reads.',
    'The function `LIMIT` is used.',
    'The function `handlers` is used.',
    'The function `basket` adds items.',
    'The class `item` is used.',
    'The interface `Basket` is exported.',
    'The enum `Options` is exported.',
    'The parameter `Basket` is read.',
    'The constant `total` is read.',
    'It imports `total`.',
    'It imports the class `Basket`.',
    'Calls the method `forEach`.',
    'The method `set` is called.',
    'Calls `error` and `get`.',
    'This file defines the function `each`.',
    'Uses the constant `COUNT`.',
    'Calls `error`.',
    'Calls removeItem.',
    'Reads max_size.',
    'Reads `max_size`.',
    'Calls `Basket.removeAll()`.',
    'Reads `options.timeout`.',
    'All names `use_*` are of `Basket`.',
    'Uses `add` and `add`.',
    'Use it:\n```ts\nnew Basket();\n```\nIt calls `clear`.',
    'See https://example.org/a_page for `Shop`.',
    'The file `package.json` has `shopName`.',
    'Calls `size`, `add` and `size`.',
    `The class \`Basket\` is ${'very '.repeat(400)}large.`,
  ],
  'shop/stock.py': [
    'This file defines the function `open_shop`.',
    'This file defines the class `Shop`.',
    'The class `main` reads.',
    'The method `main` reads.',
    'The function `Stock` reads.',
    'The class `read_rows` reads.',
    'It imports the class `Stock`.',
    'Calls `self.write_rows`.',
    'Calls `write_rows()`.',
    'Raises `KeyError`.',
    'The function `MAX_ITEMS` is called.',
    'The parameter `Stock` is read.',
    'Calls the method `map`.',
    'Is of the method `map`, as the function `list`.',
  ],
  'shop/server.go': [
    'This file defines the function `ListenAndServe`.',
    'The struct `Start` is used.',
    'The function `Server` starts.',
    'The method `NewServer` starts.',
    'Calls `Shutdown`.',
    'The type `NewServer` is used.',
  ],
  'src/basket.rs': [
    'The struct `total_price` is used.',
    'The method `total_price` is used.',
    'The function `Basket` is used.',
    'Calls `remove`.',
    'The trait `add` is used.',
  ],
  'db/users.sql': [
    'Creates the table `active_users`.',
    'The view `users` is read.',
    'Creates the table `orders`.',
    'The function `users` is called.',
  ],
};

const syntax = new Syntax(new Grammars());
const facts = new FileFacts(syntax);
const documents = Object.entries(FILES).map(([path, text]) => new SourceDocument(path, path, text));
let layout: Layout;
beforeAll(async () => {
  layout = new Layout(await ModelText.load('model'), { contextTokens: 2048, numParameters: 0 });
  for (const document of documents) await syntax.prepare(document);
});

function shown(path: string, text: string): string {
  const document = documents.find(({ docId }) => docId === path) as SourceDocument;
  const prepared = prepareSummarize(layout, document, undefined);
  return facts.checkedSummary(prepared, document, layout).shape(text, true).text;
}
const cases = (all: Record<string, string[]>): [string, string][] =>
  Object.entries(all).flatMap(([path, texts]) => texts.map((text): [string, string] => [path, text]));

describe('a sentence of a summary', () => {
  it.each(cases(TRUE))('stays if it is true: %s: %s', (path, text) => {
    expect(shown(path, text)).toBe(text);
  });

  it.each(cases(FALSE))('is cut if a name is wrong: %s: %s', (path, text) => {
    expect(shown(path, text)).not.toContain(text.split('\n').at(-1));
  });
});
