/** Sizes as people read them. */

/** One for the whole engine, as that of its texts is. */
let language = 'en';

/** The user's language, such as "pt-br": how numbers are written from now on. */
export function speakBytes(of: string): void {
  language = of;
}

/** 1234567 as "1.2 MB": decimal units, as the editor's monitor shows them. */
export function formatBytes(bytes: number): string {
  return bytesWith(bytes, (value, digits) =>
    value.toLocaleString(language, { minimumFractionDigits: digits, maximumFractionDigits: digits }),
  );
}

/** A size whose number is written by `write`, which gets the number of decimals. */
export function bytesWith(bytes: number, write: (value: number, digits: 0 | 1) => string): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const unit = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1000 ** unit;
  return `${write(value, unit === 0 || value >= 100 ? 0 : 1)} ${units[unit]}`;
}
