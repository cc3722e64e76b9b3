/** Chat templates render as in the reference, or are refused with a reason: never other text. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { JinjaTemplate } from '../../../../engine/text/format/jinja.ts';
import { strftime } from '../../../../engine/text/format/strftime.ts';

const file = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../../fixtures/template_features/templates.json'), 'utf8'),
) as {
  messages: object[];
  cases: { name: string; template: string; text?: string; error?: string }[];
  times: { time: string; texts: [string, string][] }[];
};

const VARIABLES = {
  messages: file.messages,
  tools: null,
  documents: null,
  add_generation_prompt: true,
  bos_token: '<s>',
  eos_token: '<|im_end|>',
};
/** What the library cannot parse. */
const REFUSED: Record<string, RegExp> = {
  'bool & none print': /Identifier/,
  'comparison chain': /a chain of comparisons is not supported/,
};

it.each(file.cases)('$name', ({ name, template, text, error }) => {
  const render = () => new JinjaTemplate(template).render(VARIABLES);
  const refused = REFUSED[name];
  if (refused !== undefined) expect(render).toThrow(refused);
  else if (error !== undefined) expect(render).toThrow();
  else expect(render()).toBe(text);
});

// The text is that of jinja2 3.1.6.
it('tests take an argument', () => {
  const template =
    "{{ 3 is not divisibleby(2) }} {{ 'a' is ne('b') }} {{ not 1 is gt(2) }} {{ 'x' ~ (2 is ge(2)) }} " +
    "{{ [1] is eq([1]) }} {{ 'b' is lt('a') }} {{ 4 is divisibleby(2) and 2 is le(1.5) }} " +
    "{% if messages[0].role is equalto('system') %}s{% endif %}";
  expect(new JinjaTemplate(template).render(VARIABLES)).toBe('True True True xTrue True False False s');
});

describe('strftime_now', () => {
  it.each(file.times)('$time', ({ time, texts }) => {
    for (const [format, text] of texts) expect([format, strftime(new Date(time), format)]).toEqual([format, text]);
  });

  it('refuses what it does not know', () => {
    expect(() => strftime(new Date(0), '%Q')).toThrow('strftime_now: %Q is not supported');
  });
});

it.each([
  ["{{ 'a'.zfill(3) }}", /not a function/],
  ['{{ 1 is divisibleby(0) }}', /division by zero/],
  ["{{ 1 is lt('a') }}", /instead of a number/],
  ["{{ 'a' | shuffle }}", /Unknown StringValue filter: shuffle/],
  ['{% with a = 1, b = a %}{{ b }}{% endwith %}', /a with block that uses a in its own values/],
  ["{{ 'ab' * 100000 }}", /a text of more than 100000 characters/],
  ['{{ [1] | batch(100000000, 0) }}', /batch\(100000000\) is not supported/],
  ["{{ '%5d' % 3 }}", /the format %5 is not supported/],
])('%s is refused by name', (template, reason) => {
  expect(() => new JinjaTemplate(template).render(VARIABLES)).toThrow(reason);
});

it.each([
  [
    "a\n{% for m in messages %}\n{{ m.content }}\n{% endfor %}\n{% include 'x' %}\nb",
    'line 5: Unknown statement type: include',
  ],
  ['a\n{% for m in messages %}\n{{ m }}\n', 'line 2: a block is not closed'],
  ['a\n{{ b | }}\n{{ c }}', 'line 2: Unexpected token: CloseExpression'],
  ['a\n\n{% if a < b < c %}\n{% endif %}\n{% if a %}', 'line 3: a chain of comparisons is not supported'],
  ["a {% include 'x' %}", 'Unknown statement type: include'],
])('a fault of %j is told with its line, if there are several', (source, message) => {
  expect(() => new JinjaTemplate(source)).toThrow(new Error(message));
});

it('a template with much white space without a break is refused, which the library would read for seconds', () => {
  const message = 'it has more than 1000 spaces or line ends without a break';
  for (const space of [' ', '\n', ' \n'])
    expect(() => new JinjaTemplate(`a${space.repeat(1001)}{{ b }}`)).toThrow(new Error(message));
  expect(new JinjaTemplate(`a${'\n'.repeat(1000)}{{ b }}`).render({ b: 1 })).toBe(`a${'\n'.repeat(1000)}1`);
});
