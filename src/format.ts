/** Numbers and texts for the user, for code that does not import the editor's API. Pure. */
import { bytesWith } from '../engine/protocol/formatBytes.ts';

/** Created once per language: creating an Intl format takes longer than using it a hundred times. */
export interface Numbers {
  readonly language: string;
  /** 1234.5 as "1,235" */
  count(value: number): string;
  /** Always one decimal: 1234 as "1,234.0" */
  decimal(value: number): string;
  /** One decimal where it is significant: 17 as "17", 17.25 as "17.3", 172.5 as "173" */
  figure(value: number): string;
  /** 1234567 as "1.2 MB", in decimal units. */
  bytes(bytes: number): string;
  /** 0..1 as "96%"; "100%" and "0%" only for exactly these. */
  share(share: number): string;
  /** 0..1 as "96.0%" */
  percent(share: number): string;
  /** 0.00123 as "1.2e-3", or without decimals as "1e-3" */
  scientific(value: number, digits?: 0 | 1): string;
  /** Milliseconds: 61.3 as "61 ms", 1234 as "1.2 s" */
  duration(ms: number): string;
}

/** A language that `Intl` knows. A browser under a POSIX locale names its language "en-US@posix", which is no tag. */
export function knownLanguage(language: string): string {
  try {
    return Intl.getCanonicalLocales(language)[0] ?? 'en';
  } catch {
    return 'en';
  }
}

/** `editorLanguage`: as the editor names it, such as "pt-br". */
export function numbersIn(editorLanguage: string): Numbers {
  const language = knownLanguage(editorLanguage);
  const format = (options: Intl.NumberFormatOptions) => {
    const { format } = new Intl.NumberFormat(language, options);
    return format as (value: number) => string;
  };
  const exactly = (digits: number) => ({ minimumFractionDigits: digits, maximumFractionDigits: digits });
  const count = format(exactly(0));
  const decimal = format(exactly(1));
  const upTo1 = format({ maximumFractionDigits: 1 });
  const wholePercent = format({ style: 'percent', ...exactly(0) });
  const powers = [0, 1].map((digits) => format({ notation: 'scientific', ...exactly(digits) }));
  return {
    language,
    count,
    decimal,
    figure: (value) => (value >= 100 ? count(value) : upTo1(value)),
    bytes: (bytes) => bytesWith(bytes, (value, digits) => (digits ? decimal(value) : count(value))),
    share: (share) => {
      const percent = Math.round(share * 100);
      return wholePercent((percent >= 100 && share < 1 ? 99 : percent <= 0 && share > 0 ? 1 : percent) / 100);
    },
    percent: format({ style: 'percent', ...exactly(1) }),
    scientific: (value, digits = 1) => powers[digits]!(value).replace('E', 'e'),
    duration: (ms) => (Math.round(ms) < 1000 ? `${count(ms)} ms` : `${decimal(ms / 1000)} s`),
  };
}

/** For texts that are always in English. */
export const ENGLISH = numbersIn('en');

/**
 * Translates a text: vscode.l10n.t, or a stand-in that fills `{0}` and so on.
 */
export type Translate = (text: string, ...values: (string | number)[]) => string;

/** The user's language: its texts and its number formats. */
export interface Speech {
  t: Translate;
  numbers: Numbers;
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
