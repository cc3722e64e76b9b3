/** A result as it is kept beside the document that is written from it: nine digits, so that no figure is rounded twice in what it shows. The document is written from these, so that it comes out of them again. */
export function keptResult(result: unknown): string {
  return `${JSON.stringify(result, (_, value) => (typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(9)) : value))}\n`;
}
