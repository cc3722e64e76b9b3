/** A result as it is kept beside the document that is written from it: six digits, more than any figure shows. The document is written from these, so that it comes out of them again. */
export function keptResult(result: unknown): string {
  return `${JSON.stringify(result, (_, value) => (typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value))}\n`;
}
