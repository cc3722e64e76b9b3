/** Names of browsers. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect, it } from 'vitest';
import { isBrowserName } from '../../../../engine/text/syntax/browserNames.ts';

/** Fields of the window that are mostly variables, and names of Node. */
const OTHERS =
  /^(on\w+|length|parent|top|status|origin|closed|external|opener|frames|frameElement|(menu|personal|status|tool|location)bar|scrollbars|clientInformation|orientation|name|event|window|self)$/;

it('all classes and functions of the library of TypeScript are known', () => {
  const file = createRequire(import.meta.url).resolve('typescript/lib/lib.dom.d.ts');
  const names = [...readFileSync(file, 'utf8').matchAll(/^declare (?:var|function) (\w+)/gm)].map(
    ([, name = '']) => name,
  );
  expect(names.length).toBeGreaterThan(500);
  expect(names.filter((name) => !isBrowserName(name) && !OTHERS.test(name) && !(name in globalThis))).toEqual([]);
});

it.each(['status', 'parent', 'confirmAll', 'Button', 'serviceName', 'imageUrl'])('%s is not one', (name) => {
  expect(isBrowserName(name)).toBe(false);
});
