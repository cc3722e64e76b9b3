/** Numbers as people read them. Pure. */

/** 1234567 as "1.2 MB"; decimal units, as the command line shows them. */
export function formatBytes(bytes: number, locale = 'en'): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const unit = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1000 ** unit;
  const digits = unit === 0 || value >= 100 ? 0 : 1;
  return `${value.toLocaleString(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${units[unit]}`;
}

export function formatCount(count: number, locale = 'en'): string {
  return Math.round(count).toLocaleString(locale);
}

/** 0..1 as "96%"; never "100%" or "0%" unless it is exactly that. */
export function formatShare(share: number): string {
  const percent = Math.round(share * 100);
  if (percent >= 100 && share < 1) return '99%';
  if (percent <= 0 && share > 0) return '1%';
  return `${percent}%`;
}
