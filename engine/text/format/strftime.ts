/** The time as Python's strftime writes it in the C locale. Does not read the language of the user. */

const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
];
const COMPOSED: Record<string, string> = {
  c: '%a %b %e %H:%M:%S %Y',
  D: '%m/%d/%y',
  F: '%Y-%m-%d',
  h: '%b',
  R: '%H:%M',
  T: '%H:%M:%S',
  x: '%m/%d/%y',
  X: '%H:%M:%S',
};

/** @throws Error for an unknown directive */
export function strftime(date: Date, format: string): string {
  return format.replace(/%(-?)([\s\S]?)/gu, (whole, plain: string, directive: string) => {
    const text = directiveText(date, directive);
    if (text === undefined) throw new Error(`strftime_now: ${whole} is not supported`);
    return plain ? text.replace(/^[0 ]+(?=\d)/, '') : text;
  });
}

function directiveText(date: Date, directive: string): string | undefined {
  const two = (value: number, fill = '0'): string => String(value).padStart(2, fill);
  const composed = COMPOSED[directive];
  if (composed !== undefined) return strftime(date, composed);
  const dayOfYear = Math.round(
    (Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) - Date.UTC(date.getFullYear(), 0, 1)) / 86_400_000,
  );
  const weekday = date.getDay();
  const values: Record<string, string> = {
    a: (DAYS[weekday] as string).slice(0, 3),
    A: DAYS[weekday] as string,
    w: String(weekday),
    u: String(weekday || 7),
    d: two(date.getDate()),
    e: two(date.getDate(), ' '),
    b: (MONTHS[date.getMonth()] as string).slice(0, 3),
    B: MONTHS[date.getMonth()] as string,
    m: two(date.getMonth() + 1),
    y: two(date.getFullYear() % 100),
    Y: String(date.getFullYear()),
    C: two(Math.floor(date.getFullYear() / 100)),
    H: two(date.getHours()),
    I: two(date.getHours() % 12 || 12),
    p: date.getHours() < 12 ? 'AM' : 'PM',
    M: two(date.getMinutes()),
    S: two(date.getSeconds()),
    f: String(date.getMilliseconds() * 1000).padStart(6, '0'),
    j: String(dayOfYear + 1).padStart(3, '0'),
    U: two(Math.floor((dayOfYear + 7 - weekday) / 7)),
    W: two(Math.floor((dayOfYear + 7 - ((weekday + 6) % 7)) / 7)),
    Z: '',
    z: '',
    n: '\n',
    t: '\t',
    '%': '%',
  };
  return values[directive];
}
