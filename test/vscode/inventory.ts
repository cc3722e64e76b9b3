/** Sample code to complete, ask about and summarise. It is long enough that its reuse shows. */
export const INVENTORY = `/** Keeps what is in stock, by article number. */
export interface Article {
  id: string;
  name: string;
  price: number;
}

export interface StockEntry {
  article: Article;
  count: number;
}

/** Thrown when more is taken out than is there. */
export class OutOfStockError extends Error {
  constructor(id: string, wanted: number, available: number) {
    super(\`wanted \${wanted} of \${id}, only \${available} in stock\`);
    this.name = 'OutOfStockError';
  }
}

/** The stock of one warehouse. */
export class Inventory {
  private readonly entries = new Map<string, StockEntry>();

  /** Adds articles; the number is counted on top of what is there. */
  add(article: Article, count: number): void {
    if (count <= 0) {
      throw new RangeError('count must be positive');
    }
    const entry = this.entries.get(article.id);
    if (entry) {
      entry.count += count;
    } else {
      this.entries.set(article.id, { article, count });
    }
  }

  /** Takes articles out, or throws and changes nothing. */
  remove(id: string, count: number): void {
    const entry = this.entries.get(id);
    const available = entry ? entry.count : 0;
    if (!entry || available < count) {
      throw new OutOfStockError(id, count, available);
    }
    entry.count -= count;
    if (entry.count === 0) {
      this.entries.delete(id);
    }
  }

  /** How many of an article are there. */
  count(id: string): number {
    const entry = this.entries.get(id);
    return entry ? entry.count : 0;
  }

  /** The value of everything in stock. */
  totalValue(): number {
    let total = 0;
    for (const entry of this.entries.values()) {
      total += entry.count * entry.article.price;
    }
    return total;
  }
}
`;
