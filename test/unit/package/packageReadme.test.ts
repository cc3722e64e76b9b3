/** The README of the package: what goes with its pictures, and what stays. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { readmeForPackage } from '../../../scripts/packageReadme.mjs';

it.each([
  ['a picture with its caption', 'A\n\n![x](m/x.png)\n\n*What it\nshows.*\n\nB\n', 'A\n\nB\n'],
  ['a checkout with Windows line ends', 'A\r\n\r\n![x](m/x.png)\r\n\r\nB\r\n', 'A\n\nB\n'],
  [
    'a table of pictures with what introduces it',
    'A\n\nLook here:\n\n| a | b |\n|---|---|\n| ![x](m/x.png) | ![y](m/y.png) |\n\nB\n',
    'A\n\nB\n',
  ],
  [
    'sentences with links to the repository',
    'A. See [docs](docs/a.md) and [below](#b). See [there](https://example.org), v1.2 of [x](#y).\n\n[m](docs/m.md) is a map.\n',
    'A. See [there](https://example.org), v1.2 of [x](#y).\n',
  ],
  ['a reference in parentheses', 'Two of five ([quality](docs/q.md)), [or](#b) so.\n', 'Two of five, [or](#b) so.\n'],
  ['list items', '- A. See [b](b.md).\n- [c](c.md) is C.\n- D.\n', '- A.\n- D.\n'],
  ['a link to a packaged file', 'Its [card](model/CARD.md) says more.\n', 'Its card (`model/CARD.md`) says more.\n'],
  [
    'a section about a checkout',
    '# A\n\n## B\n\n<!-- about a checkout: not in the package -->\n\n```sh\n## npm ci\n```\n\n### C\n\nD\n\n## E\n\nF\n',
    '# A\n\n## E\n\nF\n',
  ],
  [
    'code',
    '```md\n![x](m/x.png)\n\n*as it is*\n\n[y](z.md)\n```\n',
    '```md\n![x](m/x.png)\n\n*as it is*\n\n[y](z.md)\n```\n',
  ],
  [
    'emphasis that is no caption, text before code',
    '*Note.*\n\nRun:\n\n```sh\na\n\nb\n```\n\n| a |\n|---|\n| [b](#c) |\n',
    '*Note.*\n\nRun:\n\n```sh\na\n\nb\n```\n\n| a |\n|---|\n| [b](#c) |\n',
  ],
])('%s', (_, readme, packaged) => {
  expect(readmeForPackage(readme)).toBe(packaged);
});

it('of the real one, nothing is left that needs a checkout', () => {
  const packaged = readmeForPackage(readFileSync('README.md', 'utf8'));
  expect(packaged).not.toMatch(/npm (?:ci|run|start|test)/);
  expect(packaged.replace('`model/MODEL_CARD.md`', '')).not.toMatch(
    /\.md\b|docs\/|\b(?:Measured|performance|compression)\b/,
  );
  for (const heading of ['## In the editor', '## A larger model', '## How it works'])
    expect(packaged).toContain(heading);
});

it('a picture within a text is an error, not a hole', () => {
  expect(() => readmeForPackage('Look: ![x](m/x.png) there.\n')).toThrow(/a picture within a text/);
});
