/** A typical source file, for measurements. They must not read the files of the user. */
export const SAMPLE_TEXT = `/** A warehouse: what is in stock, what is reserved, and which orders can be sent. */
import { readFile } from 'node:fs/promises';

export interface Item {
  sku: string;
  name: string;
  priceCents: number;
  quantity: number;
}

export interface OrderLine {
  sku: string;
  quantity: number;
}

export interface Order {
  id: string;
  customer: string;
  lines: OrderLine[];
  placedAt: number;
}

export class StockError extends Error {
  readonly sku: string;

  constructor(sku: string, message: string) {
    super(message);
    this.sku = sku;
  }
}

const MAX_LINES = 200;
const HEADER = 'sku,name,price,quantity';

export function parseItems(text: string): Item[] {
  const [header, ...lines] = text.split('\\n').filter((line) => line.trim() !== '');
  if (header !== HEADER) throw new Error('unexpected header: ' + header);
  return lines.map((line, index) => {
    const [sku, name, price, quantity] = line.split(',');
    if (sku === undefined || name === undefined) throw new Error('line ' + (index + 2) + ' is too short');
    return { sku, name, priceCents: Math.round(Number(price) * 100), quantity: Number(quantity) };
  });
}

export class Warehouse {
  readonly #items = new Map<string, Item>();
  readonly #reserved = new Map<string, number>();
  readonly #orders: Order[] = [];

  static async load(path: string): Promise<Warehouse> {
    const warehouse = new Warehouse();
    for (const item of parseItems(await readFile(path, 'utf8'))) warehouse.add(item);
    return warehouse;
  }

  add(item: Item): void {
    const known = this.#items.get(item.sku);
    if (known) known.quantity += item.quantity;
    else this.#items.set(item.sku, { ...item });
  }

  available(sku: string): number {
    const item = this.#items.get(sku);
    if (!item) return 0;
    return item.quantity - (this.#reserved.get(sku) ?? 0);
  }

  place(order: Order): void {
    if (order.lines.length === 0) throw new Error('the order is empty');
    if (order.lines.length > MAX_LINES) throw new Error('the order has too many lines');
    for (const { sku, quantity } of order.lines) {
      if (this.available(sku) < quantity) throw new StockError(sku, 'not enough in stock');
    }
    for (const { sku, quantity } of order.lines) {
      this.#reserved.set(sku, (this.#reserved.get(sku) ?? 0) + quantity);
    }
    this.#orders.push(order);
  }

  cancel(orderId: string): boolean {
    const index = this.#orders.findIndex((order) => order.id === orderId);
    if (index < 0) return false;
    const [order] = this.#orders.splice(index, 1);
    this.#release(order.lines);
    return true;
  }

  /** Takes the goods of the oldest order out of stock. */
  send(): Order | null {
    const order = this.#orders.shift();
    if (!order) return null;
    this.#release(order.lines);
    for (const { sku, quantity } of order.lines) {
      const item = this.#items.get(sku);
      if (item) item.quantity -= quantity;
    }
    return order;
  }

  totalCents(order: Order): number {
    let total = 0;
    for (const { sku, quantity } of order.lines) {
      total += (this.#items.get(sku)?.priceCents ?? 0) * quantity;
    }
    return total;
  }

  valueCents(): number {
    let value = 0;
    for (const item of this.#items.values()) value += item.priceCents * item.quantity;
    return value;
  }

  report(): string {
    const rows = [...this.#items.values()].sort((a, b) => a.sku.localeCompare(b.sku));
    const lines = rows.map((item) => [item.sku, item.name, this.available(item.sku)].join('\\t'));
    return ['sku\\tname\\tavailable', ...lines].join('\\n');
  }

  #release(lines: readonly OrderLine[]): void {
    for (const { sku, quantity } of lines) {
      const left = (this.#reserved.get(sku) ?? 0) - quantity;
      if (left > 0) this.#reserved.set(sku, left);
      else this.#reserved.delete(sku);
    }
  }
}

export function formatCents(cents: number): string {
  const sign = cents < 0 ? '-' : '';
  const whole = Math.floor(Math.abs(cents) / 100);
  const rest = String(Math.abs(cents) % 100).padStart(2, '0');
  return sign + whole + '.' + rest;
}

export function receipt(warehouse: Warehouse, order: Order): string {
  const lines = order.lines.map(({ sku, quantity }) => quantity + ' x ' + sku);
  lines.push('total ' + formatCents(warehouse.totalCents(order)));
  return lines.join('\\n');
}
`;
