/** Formats sizes in bytes for users. */

/** One language for the whole engine, as for its texts. */
let language = 'en';

/** Sets the language for numbers, such as "pt-br". */
export function speakBytes(of: string): void {
  language = of;
}

/** Formats 1234567 as "1.2 MB": decimal units, as in the editor's monitor. */
export function formatBytes(bytes: number): string {
  return bytesWith(bytes, (value, digits) =>
    value.toLocaleString(language, { minimumFractionDigits: digits, maximumFractionDigits: digits }),
  );
}

/** A size whose number `write` formats with the given number of decimals. */
export function bytesWith(bytes: number, write: (value: number, digits: 0 | 1) => string): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const unit = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1000 ** unit;
  return `${write(value, unit === 0 || value >= 100 ? 0 : 1)} ${units[unit]}`;
}
