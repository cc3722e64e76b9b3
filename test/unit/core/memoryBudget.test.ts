/** The budget of the KV cache on a machine whose memory others take and give back. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  mostPrefillTokens,
  MIN_BYTES,
  MemoryBudget,
  MAX_BYTES,
  wantedBytes,
} from '../../../engine/core/memoryBudget.ts';

const GB = 1e9;
const reading = (availableBytes: number, usedBytes = 0, totalBytes = 16 * GB) => ({
  availableBytes,
  totalBytes,
  usedBytes,
});

/** A cache that takes all that it may, on a machine that others leave so much of. */
class Machine {
  now = 0;
  others = 0;
  readonly budget: MemoryBudget;
  readonly totalBytes: number;

  constructor(totalBytes: number, maxBytes: number) {
    this.totalBytes = totalBytes;
    this.budget = new MemoryBudget(maxBytes, reading(totalBytes, 0, totalBytes), 0);
  }

  get reading() {
    const usedBytes = this.budget.budget;
    return reading(Math.max(0, this.totalBytes - this.others - usedBytes), usedBytes, this.totalBytes);
  }

  /** Looks each three seconds. Returns how often the budget changed. */
  wait(seconds: number): number {
    let changes = 0;
    for (const end = this.now + 1000 * seconds; this.now < end; this.now += 3000)
      if (this.budget.follow(this.reading, this.now)) changes++;
    return changes;
  }
}

/** Engines that take all that they may, each looking every three seconds. */
class Windows {
  now = 0;
  readonly budgets: MemoryBudget[] = [];
  readonly #totalBytes: number;
  readonly #maxBytes: number;

  constructor(totalBytes: number, maxBytes: number) {
    this.#totalBytes = totalBytes;
    this.#maxBytes = maxBytes;
  }

  get ceilings(): number[] {
    return this.budgets.map(({ budget }) => budget);
  }

  get sum(): number {
    return this.ceilings.reduce((sum, each) => sum + each, 0);
  }

  open(): void {
    this.budgets.push(new MemoryBudget(this.#maxBytes, this.#reading(0, this.budgets.length + 1), this.now));
  }

  wait(seconds: number): void {
    for (const end = this.now + 1000 * seconds; this.now < end; this.now += 3000)
      for (const budget of this.budgets) budget.follow(this.#reading(budget.budget, this.budgets.length), this.now);
  }

  #reading(usedBytes: number, numEngines: number) {
    return { ...reading(Math.max(0, this.#totalBytes - this.sum), usedBytes, this.#totalBytes), numEngines };
  }
}

test('the automatic budget is a share of the available memory, at most 2 GB and never zero', () => {
  const wanted = (available: number, used: number) => wantedBytes(0, reading(available, used));
  expect([wanted(1 * GB, 0), wanted(64 * GB, 0), wanted(0.5 * GB, 0.5 * GB), wanted(0, 0)]).toEqual([
    0.6 * GB,
    MAX_BYTES,
    0.6 * GB,
    MIN_BYTES,
  ]);
});

test("a budget set by the user is lowered only to leave a twentieth of the machine's memory free", () => {
  const wanted = (available: number, used: number, maxBytes = 4 * GB) =>
    wantedBytes(maxBytes, reading(available, used));
  expect([wanted(0.9 * GB, 4 * GB), wanted(0.1 * GB, 4 * GB), wanted(0, 0), wanted(0, 0, 1e6)]).toEqual([
    4 * GB,
    3.3 * GB,
    MIN_BYTES,
    1e6,
  ]);
});

test('the budget falls within seconds when others take memory and rises by half after a minute at the earliest', () => {
  const machine = new Machine(4 * GB, 0);
  expect(machine.budget.budget).toBe(2 * GB);
  machine.others = 2 * GB;
  machine.wait(3);
  expect(machine.budget.budget).toBe(1.2 * GB);
  machine.others = 0;
  machine.wait(57);
  expect(machine.budget.budget).toBe(1.2 * GB);
  machine.wait(3);
  expect(machine.budget.budget).toBe(1.8 * GB);
  machine.wait(600);
  expect(machine.budget.budget).toBe(2 * GB);
});

test('under memory pressure the budget falls step by step until nothing swaps', () => {
  const machine = new Machine(4 * GB, 0);
  machine.others = 3.5 * GB;
  machine.wait(45);
  expect(machine.budget.budget).toBeLessThan(0.34 * GB);
});

test('fluctuations of a tenth change nothing; a peak restarts the wait before a rise', () => {
  const machine = new Machine(2.5 * GB, 0);
  let changes = 0;
  for (let i = 0; i < 100; i++) {
    machine.others = i % 2 ? 0 : 0.24 * GB;
    changes += machine.wait(30);
  }
  expect([changes, machine.budget.budget]).toEqual([0, 1.5 * GB]);
  machine.others = 2 * GB;
  machine.wait(3);
  for (let i = 0; i < 20; i++) {
    machine.others = 0;
    machine.wait(45);
    machine.others = 2 * GB;
    machine.wait(6);
  }
  // 0.6 ** 3 of 1.5 GB: within a tenth of what is wanted, 0.3 GB.
  expect(machine.budget.budget).toBe(0.324 * GB);
});

test('freed memory that is not available yet does not lower the budget again', () => {
  const budget = new MemoryBudget(0, reading(2 * GB), 0);
  expect(budget.budget).toBe(1.2 * GB);
  expect(budget.follow(reading(0.2 * GB, 1.2 * GB), 3000)).toBe(true);
  expect(budget.budget).toBe(0.84 * GB);
  expect(budget.follow(reading(0.2 * GB, 0.84 * GB), 6000)).toBe(false);
  expect(budget.follow(reading(0.56 * GB, 0.84 * GB), 13_000)).toBe(false);
});

test('a changed budget applies at once', () => {
  const budget = new MemoryBudget(0, reading(1 * GB), 0);
  expect(budget.budget).toBe(0.6 * GB);
  budget.configure(1.5 * GB, reading(8 * GB), 2);
  expect(budget.budget).toBe(1.5 * GB);
  budget.configure(0, reading(1 * GB), 3);
  expect(budget.budget).toBe(0.6 * GB);
});

test('several engines share the maximum and the free memory equally; together they take what one alone would', () => {
  const wanted = (numEngines: number, available: number, used: number, maxBytes = 0) =>
    wantedBytes(maxBytes, { ...reading(available, used), numEngines });
  expect([1, 2, 3].map((n) => wanted(n, 64 * GB, 0))).toEqual([MAX_BYTES, MAX_BYTES / 2, Math.floor(MAX_BYTES / 3)]);
  expect([1, 2, 3].map((n) => wanted(n, 64 * GB, 0, 4 * GB + 1))).toEqual([
    4 * GB + 1,
    2 * GB,
    Math.floor((4 * GB) / 3),
  ]);
  // One has been there alone, on a machine of 2 GB.
  expect([wanted(2, 0.8 * GB, 1.2 * GB), wanted(2, 0.8 * GB, 0)]).toEqual([0.96 * GB, 0.24 * GB]);
  // The reserve is one for all: 0.8 GB of 16.
  expect([wanted(2, 1 * GB, 0.5 * GB, 3 * GB), wanted(2, 0.5 * GB, 0.5 * GB, 3 * GB)]).toEqual([0.6 * GB, 0.35 * GB]);
  // The least is not above a part of the user's.
  expect(wanted(4, 0, 0, 256e6)).toBe(64e6);
});

test.each([0, 1 * GB + 1])(
  'under a budget of %i the other engines fall at the next reading when a window opens, and rise slowly when one closes',
  (maxBytes) => {
    const most = maxBytes || MAX_BYTES;
    const windows = new Windows(64 * GB, maxBytes);
    for (let n = 1; n <= 12; n++) {
      windows.open();
      windows.wait(3);
      expect(new Set(windows.ceilings)).toEqual(new Set([Math.floor(most / n)]));
    }
    windows.budgets.length = 1;
    const [{ budget }] = windows.budgets as [MemoryBudget];
    windows.wait(57);
    expect(windows.budgets[0]!.budget).toBe(budget);
    windows.wait(6);
    expect(windows.budgets[0]!.budget).toBe(Math.floor(1.5 * budget));
    windows.wait(3600);
    expect(windows.budgets[0]!.budget).toBe(most);
  },
);

test('when memory is short, several windows settle at the amount that one alone would take', () => {
  const windows = new Windows(2 * GB, 0);
  windows.open();
  expect(windows.sum).toBe(1.2 * GB);
  for (let n = 2; n <= 4; n++) {
    windows.open();
    windows.wait(3600);
    expect(windows.sum).toBeLessThanOrEqual((1.2 * GB) / 0.9);
    expect(windows.sum).toBeGreaterThan((1.2 * GB) / 1.25);
    expect(Math.max(...windows.ceilings)).toBeLessThan(2.5 * Math.min(...windows.ceilings));
  }
});

test('the maximum budget, and so the lane limit, does not change with a second window', () => {
  for (const maxBytes of [0, 500_000_001]) {
    const alone = new MemoryBudget(maxBytes, reading(64 * GB, 0, 64 * GB), 0);
    const limit = mostPrefillTokens(alone.budget, 24_576, 65_536, alone.most);
    for (const numEngines of [1, 2]) {
      const shared = new MemoryBudget(maxBytes, { ...reading(64 * GB, 0, 64 * GB), numEngines }, 0);
      expect([shared.most, mostPrefillTokens(shared.budget, 24_576, 65_536, shared.most)]).toEqual([alone.most, limit]);
    }
  }
});

test("property: the budget never exceeds the user's setting or the maximum and never falls below the minimum", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(0, 1e6, 0.5 * GB, 6 * GB),
      fc.array(fc.record({ others: fc.double({ min: 0, max: 8 * GB, noNaN: true }), seconds: fc.nat(200) })),
      (maxBytes, steps) => {
        const machine = new Machine(8 * GB, maxBytes);
        const most = maxBytes || MAX_BYTES;
        for (const { others, seconds } of steps) {
          machine.others = others;
          machine.wait(seconds);
          const { budget } = machine.budget;
          expect(budget >= Math.min(MIN_BYTES, most) && budget <= most).toBe(true);
        }
        // It settles: at most a tenth above the wanted budget, and after a while at most a quarter below it.
        machine.wait(3600);
        const wanted = wantedBytes(maxBytes, machine.reading);
        expect(machine.budget.budget).toBeLessThanOrEqual(wanted / 0.9 + 1);
        expect(machine.budget.budget).toBeGreaterThanOrEqual(wanted / 1.25 - 1);
      },
    ),
  );
});
