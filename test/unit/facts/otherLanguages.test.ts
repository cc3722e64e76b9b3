/** What is read of files in other languages than TypeScript, JavaScript and Python: members, signatures and calls. */
import { beforeAll, expect, it } from 'vitest';
import { ask, loadAllGrammars } from './askFacts.ts';

const FILES: Readonly<Record<string, string>> = {
  'main.go': `package main

import (
	"errors"
	"fmt"
)

// Account holds money.
type Account struct {
	ID      int
	Balance float64
	owner   *Person
}

type Person struct{ Name string }

type Mover interface {
	Move(to string) error
	Stop()
}

var ErrNoMoney = errors.New("no money")

// Withdraw takes money out.
func (a *Account) Withdraw(amount float64) error {
	if amount > a.Balance {
		return ErrNoMoney
	}
	a.Balance -= amount
	a.log("withdraw")
	return nil
}

func (a *Account) log(what string) { fmt.Println(what, a.ID) }

func newAccount(id int) *Account {
	a := &Account{ID: id}
	a.log("new")
	return a
}

func main() {
	acc := newAccount(1)
	if err := acc.Withdraw(5); err != nil {
		panic(err)
	}
}
`,
  'A.java': `package x;
import java.util.*;
/** Keeps items. */
public class Store<T> implements Keeper {
  private final List<T> items = new ArrayList<>(), spare;
  int size;
  public Store(int size) { this.size = size; }
  @Override
  public boolean put(T item, int n) throws IOException {
    items.add(item);
    if (n > 1) put(item, n - 1);
    Util.log(item);
    return true;
  }
  static <K> Store<K> of(K a) { Store<K> s = new Store<>(1); s.put(a, 1); return s; }
  enum Kind { A, B }
}
interface Keeper { boolean put(Object o, int n); }
`,
  'lib.rs': `/// A point.
pub struct Point { pub x: f64, y: f64 }
pub trait Shape { fn area(&self) -> f64; fn name(&self) -> String { "s".into() } }
impl Shape for Point { fn area(&self) -> f64 { helper(self.x) * self.len() } }
impl Point {
    pub fn new(x: f64, y: f64) -> Self { Point { x, y } }
    fn len(&self) -> f64 { self.x.hypot(self.y) }
}
pub fn helper<T: Copy>(a: T) -> T { println!("x"); a }
fn main() { let p = Point::new(1.0, 2.0); helper::<f64>(p.len()); }
enum E { A(i32), B { c: u8 } }
`,
  's.cpp': `#include <vector>
namespace app {
struct Item { int id; char name[10]; Item *next; int (*cb)(int); };
class Cart : public Base {
 public:
  Cart(int n);
  int total() const { return sum(items_); }
  void add(const Item &i);
 private:
  std::vector<Item> items_;
};
void Cart::add(const Item &i) { items_.push_back(i); total(); }
static int sum(const std::vector<Item> &v) { return (int)v.size(); }
}
int main() { app::Cart c(3); c.add({1}); return app::sum({}); }
`,
  'S.cs': `namespace App;
public class Store : Base {
  private int size, n;
  public string Name { get; set; }
  public Store(int size) { this.size = size; }
  public bool Put(string item) { Log(item); this.Grow(); return true; }
  void Grow() => size++;
  static void Log(string a) { Console.WriteLine(a); }
}
`,
  's.php': `<?php
class Store { private $items = []; public int $n; 
 function put($a, $b = 1) { $this->log($a); helper($a); self::make(); }
 private function log($x) { echo $x; }
 static function make() { return new Store(); }
}
function helper($a) { return strlen($a); }
`,
  's.rb': `class Store
  attr_reader :items
  def initialize(n); @n = n; end
  def put(item, count = 1)
    log(item)
    self.grow
    helper item
  end
  def log(x); puts x; end
  def grow; @n += 1; end
end
def helper(a) = a.size
`,
  's.sh': `log() { echo "$1"; }
build() { log "x"; make; }
build
`,
};
beforeAll(loadAllGrammars);
const asked = async (path: string, question: string) => await ask(question, { [path]: FILES[path] as string });

it.each([
  [
    'main.go',
    '`Account` (line 9): `ID` (line 10), `Balance` (line 11), `owner` (line 12), `Withdraw` (line 25), `log` (line 34)',
  ],
  ['main.go', '`Mover` (line 17): `Move` (line 18), `Stop` (line 19)'],
  [
    'A.java',
    '`Store` (line 4): `items` (line 5), `spare` (line 5), `size` (line 6), `Store` (line 7), `put` (line 9), `of` (line 15)',
  ],
  ['A.java', '`Keeper` (line 18): `put` (line 18)'],
  ['lib.rs', '`Point` (line 2): `x` (line 2), `y` (line 2), `area` (line 4), `new` (line 6), `len` (line 7)'],
  ['lib.rs', '`Shape` (line 3): `area` (line 3), `name` (line 3)'],
  ['lib.rs', '`E` (line 11)'],
  ['s.cpp', '`Item` (line 3): `id` (line 3), `name` (line 3), `next` (line 3), `cb` (line 3)'],
  ['s.cpp', '`Cart` (line 4): `Cart` (line 6), `total` (line 7), `add` (line 8), `items_` (line 10)'],
  [
    'S.cs',
    '`Store` (line 2): `size` (line 3), `n` (line 3), `Name` (line 4), `Store` (line 5), `Put` (line 6), `Grow` (line 7), `Log` (line 8)',
  ],
  ['s.php', '`Store` (line 2): `items` (line 2), `n` (line 2), `put` (line 3), `log` (line 4), `make` (line 5)'],
  [
    's.rb',
    '`Store` (line 1): `items` (line 2), `initialize` (line 3), `put` (line 4), `log` (line 9), `grow` (line 10)',
  ],
])('the outline of %s has %s', async (path, expected) => {
  expect((await asked(path, '/outline'))?.split('\n')).toContain(`- ${expected}`);
});

it.each([
  ['main.go', 'log', 'Callers of `log`:\n\n- `Account.Withdraw` (line 30): `a.log`\n- `newAccount` (line 38): `a.log`'],
  ['main.go', 'newAccount', 'Callers of `newAccount`: `main` (line 43).'],
  ['A.java', 'put', 'Callers of `put`:\n\n- `Store.put` (line 11)\n- `Store.of` (line 15): `s.put`'],
  ['lib.rs', 'helper', 'Callers of `helper`: `Point.area` (line 4), `main` (line 10).'],
  ['lib.rs', 'new', 'Callers of `new`: `main` (line 10).'],
  ['s.cpp', 'sum', 'Callers of `sum`: `Cart.total` (line 7), `main` (line 15).'],
  ['s.cpp', 'add', 'Callers of `add`:\n\n- `main` (line 15): `c.add`'],
  ['S.cs', 'Grow', 'Callers of `Grow`: `Store.Put` (line 6).'],
  ['s.php', 'log', 'Callers of `log`: `Store.put` (line 3).'],
  ['s.php', 'make', 'Callers of `make`: `Store.put` (line 3).'],
  ['s.rb', 'helper', 'Callers of `helper`: `Store.put` (line 7).'],
  ['s.rb', 'grow', 'Callers of `grow`: `Store.put` (line 6).'],
  ['s.sh', 'log', 'Callers of `log`: `build` (line 2).'],
])('in %s the callers of %s are known', async (path, name, expected) => {
  expect(await asked(path, `/callers ${name}`)).toBe(expected);
  expect(await asked(path, `Who calls ${name}?`)).toBe(expected);
});

it.each([
  ['main.go', 'Withdraw', '`Account.Withdraw` is on line 25: `func (a *Account) Withdraw(amount float64) error`'],
  ['A.java', 'of', '`Store.of` is on line 15: `static <K> Store<K> of(K a)`'],
  ['lib.rs', 'helper', '`helper` is on line 9: `pub fn helper<T: Copy>(a: T) -> T`'],
  ['s.cpp', 'total', '`Cart.total` is on line 7: `int total() const`'],
  ['S.cs', 'Put', '`Store.Put` is on line 6: `public bool Put(string item)`'],
  ['s.php', 'put', '`Store.put` is on line 3: `function put($a, $b = 1)`'],
  ['s.rb', 'helper', '`helper` is on line 12: `def helper(a)`'],
])('in %s the signature of %s is known', async (path, name, expected) => {
  expect(await asked(path, `/signature ${name}`)).toBe(`The signature of ${expected}.`);
});

it('members and comments are known, and what is not read is not denied', async () => {
  expect(await asked('main.go', 'Which methods does Mover have?')).toBe(
    'Methods of `Mover`: `Move` (line 18), `Stop` (line 19). Inherited members are not listed.',
  );
  expect(await asked('A.java', 'What does Store do?')).toBe('The comment of `Store` (line 4) says:\n\n> Keeps items.');
  expect(await asked('main.go', 'Quantas funções tem?')).toMatch(/^Funções de `main.go`: /);
  for (const question of ['What does Withdraw return?', 'Which modules are imported?', 'What does Account extend?'])
    expect(await asked('main.go', question), question).toBeUndefined();
  // Without a syntax tree, only the places of a name are known.
  const kotlin = { 'a.kt': 'fun main() {\n  var total = 0\n  total = 3\n}\n' };
  for (const question of ['Where is total changed?', 'What does main throw?', 'What does main do?'])
    expect(await ask(question, kotlin), question).toBeUndefined();
  expect(await ask('/callers main', kotlin)).toBe(
    'Kvasir cannot read this from `a.kt`. `main` appears on line 1: `fun main() {`.',
  );
});

it('a default class without a name and a namespace have members', async () => {
  const files = {
    'a.ts': `export namespace Geometry {
  export function area(w: number) { return w; }
  export class Shape { size() { return 1; } }
}
export default class {
  constructor(private n: number) {}
  run() { return Geometry.area(this.n); }
}
`,
  };
  expect(await ask('/outline', files)).toBe(
    'Outline of `a.ts`:\n\nClasses:\n\n- `default` (line 5): `constructor` (line 6), `run` (line 7)\n\n' +
      'Namespaces:\n\n- `Geometry` (line 1): `area` (line 2), `Shape` (line 3)',
  );
  expect(await ask('Where is run defined?', files)).toMatch(/^`default\.run` is defined on line 7: /);
});

const OTHERS: Readonly<Record<string, string>> = {
  'repo.go':
    'package repo\n\nfunc (r *Repo) Get(id int) *Item { return r.load(id) }\nfunc (Repo) load(id int) *Item { return nil }\ntype ID int\n',
  'Cart.cpp': `#include "Cart.h"
Cart::Cart(int n) : n_(n) {}
static int
helper(int a) { return a; }
template <typename T>
void Box<T>::put(const T &v) { helper(1); }
bool Cart::operator==(const Cart &o) const { return helper(n_) == 1; }
`,
  'cart.h': `struct Vec { union { float x; }; struct { int a; } pos; int (*cb)(int); };
typedef struct { int q; } Anon;
class Cart {
 public:
  Cart(int n);
  ~Cart();
  bool operator==(const Cart &o) const;
  template <typename T> void each(T f);
  friend void swap(Cart &a, Cart &b);
  int size;
};
int area(int w);
static int twice(int a);
static int twice(int a) { return 2 * a; }
`,
  'A.java': `class Outer {
  Runnable r = new Runnable() {
    int z;
    public void run() { inner(); }
  };
  Outer(int a) { this(a, 1); }
  Outer(int a, int b) {}
  void inner() {}
}
record Point(int x, int... rest) {}
interface Limits { int MAX = 1; }
enum Color { RED { void p() {} }; int v; }
`,
  'S.cs': `record struct P(int X);
class S {
  event E Changed;
  ~S() {}
  S(int a) {}
}
`,
  's.php': `<?php
class S { function __construct(private int $size) { \\App\\log(1); } }
$o = new class(1) { function run() {} };
function log($a) {}
`,
  'lib.rs': 'pub struct Tuple(pub i32, String);\npub struct Unit;\nunion U { a: u32 }\n',
  's.ps1': `function Get-Thing {
  param([string]$Name)
  Write-Log $Name
}
function Write-Log($m) { Write-Host $m }
class Store {
  [int]$Size
  Store([int]$s) { $this.Grow() }
  [void] Grow() { $this.Size++ }
}
`,
};

it.each([
  ['repo.go', ['Types: `ID` (line 5).', 'Methods: `Repo.Get` (line 3), `Repo.load` (line 4).']],
  [
    'Cart.cpp',
    ['Functions: `helper` (line 4).', 'Methods: `Cart.Cart` (line 2), `Box.put` (line 6), `Cart.operator==` (line 7).'],
  ],
  [
    'cart.h',
    [
      '- `Vec` (line 1): `x` (line 1), `pos` (line 1), `cb` (line 1)',
      '- `Anon` (line 2): `q` (line 2)',
      '- `Cart` (line 3): `Cart` (line 5), `~Cart` (line 6), `operator==` (line 7), `each` (line 8), `size` (line 10)',
      'Functions: `swap` (line 9), `area` (line 12), `twice` (line 14).',
    ],
  ],
  [
    'A.java',
    [
      '- `Outer` (line 1): `r` (line 2), `Outer` (line 6), `inner` (line 8)',
      '- `Point` (line 10): `x` (line 10), `rest` (line 10)',
      '- `Limits` (line 11): `MAX` (line 11)',
      '- `Color` (line 12): `v` (line 12)',
    ],
  ],
  ['S.cs', ['- `P` (line 1): `X` (line 1)', '- `S` (line 2): `Changed` (line 3), `~S` (line 4), `S` (line 5)']],
  ['s.php', ['- `S` (line 2): `__construct` (line 2), `size` (line 2)', 'Functions: `log` (line 4).']],
  ['lib.rs', ['- `Tuple` (line 1): `0` (line 1), `1` (line 1)', '- `Unit` (line 2)', '- `U` (line 3): `a` (line 3)']],
  ['s.ps1', ['- `Store` (line 6): `Size` (line 7), `Store` (line 8), `Grow` (line 9)']],
])('the outline of %s has what stands apart from its class, and nothing of others', async (path, lines) => {
  const outline = (await ask('/outline', { [path]: OTHERS[path] as string }))?.split('\n');
  expect(outline).toEqual(expect.arrayContaining(lines));
});

it.each([
  ['A.java', 'Which fields does Outer have?', 'Properties of `Outer`: `r` (line 2). Inherited members are not listed.'],
  [
    'A.java',
    '/signature Outer',
    'The signature of `Outer` is:\n\n- on line 6: `Outer(int a)`\n- on line 7: `Outer(int a, int b)`',
  ],
  ['A.java', '/callers inner', 'Callers of `inner`: `run` (line 4).'],
  ['cart.h', 'Which methods does Vec have?', undefined],
  ['Cart.cpp', 'Where is helper defined?', '`helper` is defined on line 4: `helper(int a) { return a; }`.'],
  ['Cart.cpp', '/callers helper', 'Callers of `helper`: `Box.put` (line 6), `Cart.operator==` (line 7).'],
  ['s.php', '/callers log', 'Callers of `log`: `S.__construct` (line 2).'],
  ['s.ps1', '/callers Write-Log', 'Callers of `Write-Log`: `Get-Thing` (line 3).'],
  ['s.ps1', '/callers Grow', 'Callers of `Grow`: `Store.Store` (line 8).'],
  [
    's.ps1',
    '/signature Get-Thing',
    'The signature of `Get-Thing` is on line 1: `function Get-Thing { param([string]$Name)`.',
  ],
])('in %s, "%s" is answered', async (path, question, expected) => {
  expect(await ask(question, { [path]: OTHERS[path] as string })).toBe(expected);
});
