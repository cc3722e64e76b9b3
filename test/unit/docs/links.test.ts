/**
 * The documents: links and named files exist, pages stay short, and docs/usage.md describes exactly the existing
 * settings and command line. Does not compare their text.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { OPTIONS } from '../../../engine/cli/commandTable.ts';

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

/** Without code blocks, because their text is not a link. */
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
  test('links only to files and headings that exist', () => {
    for (const [, target] of prose(file).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^\w+:/.test(target!)) continue;
      const [where, anchor] = target!.split('#');
      const linked = where ? path.posix.join(path.posix.dirname(file), where) : file;
      expect(existsSync(path.join(ROOT, linked)), target).toBe(true);
      if (anchor) expect(anchors(linked), target).toContain(anchor);
    }
  });
});

/** Pages that describe the code as it is now. Decisions describe earlier code. */
test.each([...TOP.filter((file) => file !== 'CHANGELOG.md'), ...PAGES])('%s names only files that exist', (file) => {
  const named = [...prose(file).matchAll(/`((?:engine|src|test|scripts|docs|model)\/[\w./-]*)`/g)];
  // In ARCHITECTURE.md the last column of the glossary is relative to engine/.
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
  const topics = ['compression', 'eviction', 'long-contexts', 'models', 'performance', 'quality', 'usage'];
  expect(PAGES).toEqual(topics.map((topic) => `docs/${topic}.md`));
});

test('decisions are few, short and numbered, and have the sections context, decision and figures', () => {
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

/** A section of docs/usage.md, by its heading. */
const usage = (heading: string): string => read('docs/usage.md').split(`\n## ${heading}\n`)[1]!.split('\n## ')[0]!;

/** Names in the first column of a section's table. */
const described = (heading: string, name: RegExp): string[] =>
  [...usage(heading).matchAll(/^\| (`.+?) \|/gm)].flatMap(([, cell]) =>
    [...cell!.matchAll(name)].map(([, found]) => found!),
  );

const manifest = JSON.parse(read('package.json')) as {
  contributes: {
    commands: { command: string; title: string }[];
    configuration: { properties: Record<string, object> };
  };
};

test('docs/usage.md describes every setting of package.json, and no other', () => {
  const settings = Object.keys(manifest.contributes.configuration.properties);
  expect(described('Settings', /`(kvasir\.[\w.]+)`/g).sort()).toEqual(settings.sort());
});

test('docs/usage.md describes every flag of the command line, and no other', () => {
  const flags = new Set(Object.values(OPTIONS).flatMap((options) => Object.keys(options)));
  expect(described('The command line', /`--([\w-]+)/g).sort()).toEqual([...flags].sort());
});

test('docs/usage.md shows every command of the command line, and no other', () => {
  const shown = [...usage('The command line').matchAll(/^npm run -s kvasir -- (\w+)/gm)].map(([, name]) => name!);
  expect(shown.sort()).toEqual(Object.keys(OPTIONS).sort());
});

test('the examples of docs/usage.md use only flags that their command takes', () => {
  for (const [, command, rest] of usage('The command line').matchAll(/^npm run -s kvasir -- (\w+)([^#\n]*)/gm))
    for (const [, flag] of rest!.matchAll(/--([\w-]+)/g)) expect(Object.keys(OPTIONS[command!]!)).toContain(flag);
});

test('documents name only commands of the editor that exist', () => {
  const texts = JSON.parse(read('package.nls.json')) as Record<string, string>;
  const titles = manifest.contributes.commands.map(({ title }) => texts[title.slice(1, -1)]!);
  for (const file of [...TOP, ...PAGES])
    for (const [, name] of read(file).matchAll(/`Kvasir: ([^`]+)`/g)) expect(titles, file).toContain(name);
});
