/** The documents: links and named files exist, pages stay short, every setting is described. Does not compare their text. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const read = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8');
const pagesIn = (folder: string): string[] =>
  readdirSync(path.join(ROOT, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `${folder}/${name}`);

const PAGES = pagesIn('docs');
const DECISIONS = pagesIn('docs/decisions');
const TOP = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md'];
const ALL = [
  ...TOP,
  ...PAGES,
  ...DECISIONS,
  'model/MODEL_CARD.md',
  'test/bench/README.md',
  'test/bench/results/README.md',
];

/** Without code blocks, whose text is no link. */
const prose = (file: string): string => read(file).replace(/^```[\s\S]*?^```$/gm, '');

/** As GitHub makes them: lower case, without punctuation, spaces as hyphens. */
const anchors = (file: string): string[] =>
  [...prose(file).matchAll(/^#+ (.+)$/gm)].map(([, title]) =>
    title!
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s-]/gu, '')
      .replace(/\s/g, '-'),
  );

describe.each(ALL)('%s', (file) => {
  test('has links that lead somewhere', () => {
    for (const [, target] of prose(file).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^\w+:/.test(target!)) continue;
      const [where, anchor] = target!.split('#');
      const linked = where ? path.posix.join(path.posix.dirname(file), where) : file;
      expect(existsSync(path.join(ROOT, linked)), target).toBe(true);
      if (anchor) expect(anchors(linked), target).toContain(anchor);
    }
  });
});

/** Pages that tell how the code is now; decisions tell how it was. */
test.each([...TOP.filter((file) => file !== 'CHANGELOG.md'), ...PAGES])('%s names files that there are', (file) => {
  const named = [...prose(file).matchAll(/`((?:engine|src|test|scripts|docs|model)\/[\w./-]*)`/g)];
  // In ARCHITECTURE.md the last column of the glossary is below engine/.
  const glossary = file === 'ARCHITECTURE.md' ? [...prose(file).matchAll(/\| `([\w./-]+\/[\w./-]*)` \|$/gm)] : [];
  for (const [, name] of [...named, ...glossary]) {
    const exists = [name!, `engine/${name}`].some((each) => existsSync(path.join(ROOT, each)));
    expect(exists, name).toBe(true);
  }
});

const MAX_WORDS = {
  'README.md': 900,
  'ARCHITECTURE.md': 1800,
  ...Object.fromEntries(PAGES.map((page) => [page, 900])),
};

test.each(Object.entries(MAX_WORDS))('%s has at most %i words', (file, most) => {
  expect(read(file).split(/\s+/).filter(Boolean).length).toBeLessThanOrEqual(most);
});

test('there is one page for each topic', () => {
  const topics = ['compression', 'eviction', 'long-contexts', 'performance', 'quality', 'usage'];
  expect(PAGES).toEqual(topics.map((topic) => `docs/${topic}.md`));
});

test('decisions are few, short and numbered, and say context, decision and figures', () => {
  expect(DECISIONS.length).toBeLessThanOrEqual(20);
  DECISIONS.forEach((file, i) => {
    const number = String(i + 1).padStart(4, '0');
    expect(path.basename(file)).toMatch(new RegExp(`^${number}-[a-z0-9-]+\\.md$`));
    const text = read(file);
    expect(text).toMatch(new RegExp(`^# ${number}: `));
    expect([...text.matchAll(/^## (.+)$/gm)].map(([, title]) => title)).toEqual(['Context', 'Decision', 'Figures']);
    const words = text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word));
    expect(words.length, file).toBeLessThanOrEqual(260);
  });
});

test('docs/usage.md describes settings that there are', () => {
  const { contributes } = JSON.parse(read('package.json')) as {
    contributes: { configuration: { properties: Record<string, object> } };
  };
  const table = read('docs/usage.md').split('## Settings')[1]!.split('\n## ')[0]!;
  const described = [...table.matchAll(/^\| (`.+?) \|/gm)].flatMap(([, cell]) =>
    [...cell!.matchAll(/`(kvasir\.[\w.]+)`/g)].map(([, name]) => name!),
  );
  expect(described.length).toBeGreaterThan(10);
  expect(Object.keys(contributes.configuration.properties)).toEqual(expect.arrayContaining(described));
});
