/** The lines of a long file that a chat's block leaves out are shown by their definitions. */
import { beforeAll, expect, test } from 'vitest';
import { ModelText } from '../../../../engine/text/format/modelText.ts';
import { chatPrompt } from '../../../../engine/text/prompt/chatPrompt.ts';
import { Layout } from '../../../../engine/text/prompt/layout.ts';
import { type DefinitionLine, restOutline } from '../../../../engine/text/prompt/restOutline.ts';
import { SourceDocument } from '../../../../engine/text/syntax/sourceDocument.ts';

let layout: Layout;
beforeAll(async () => {
  layout = new Layout(await ModelText.load('model'), { contextTokens: 1024, numParameters: 0 });
});

/** Each function has four lines; of two classes every other line is a member. */
const fileOf = (count: number): SourceDocument =>
  new SourceDocument(
    'a',
    'src/a.ts',
    Array.from({ length: count }, (_, i) => `export function part${i}(text: string) {\n  return text;\n}\n\n`).join(''),
  );
const definitionsOf = (doc: SourceDocument): DefinitionLine[] =>
  doc.lf.split('\n').flatMap((line, i) => (line.startsWith('export') ? [{ line: i + 1, isMember: i % 8 === 4 }] : []));
const ASK = [{ role: 'user' as const, content: 'What is it for?' }];
const prompt = (doc: SourceDocument, definitions?: typeof definitionsOf, content = 'What is it for?') =>
  chatPrompt(layout, { doc, messages: [{ ...ASK[0]!, content }], answerTokens: 100, definitions });

test('the note names the lines, and the block keeps its tokens', () => {
  const doc = fileOf(42);
  const without = prompt(doc);
  const made = prompt(doc, definitionsOf);
  const [, from] = /^src\/a\.ts: lines (\d+)-168 of 168 left out$/.exec(without.notes.join()) ?? [];
  expect(made.notes).toEqual([`src/a.ts: lines ${from}-168 of 168 as outline`]);
  expect(made.numBlockTokens).toBe(without.numBlockTokens);
  expect(made.promptIds.slice(0, made.numBlockTokens)).toEqual(without.promptIds.slice(0, without.numBlockTokens));
  const said = layout.text.tokenizer.decode(made.promptIds.slice(made.numBlockTokens));
  expect(said).toContain(`What is it for?\nsrc/a.ts, outline of lines ${from}-168\n\`\`\`ts\n`);
  const lines = [...said.matchAll(/^(\d+): (.*)$/gm)];
  expect(lines.length).toBeGreaterThan(3);
  for (const [, line, code] of lines) {
    expect(Number(line)).toBeGreaterThanOrEqual(Number(from));
    expect(doc.lf.split('\n')[Number(line) - 1]).toBe(code);
  }
});

test('with little room, members are left out, then the last lines, which the note says', () => {
  const last = (count: number) => {
    const doc = fileOf(count);
    const block = layout.fileBlock(doc);
    const outline = restOutline(layout, doc, block, definitionsOf(doc))!;
    expect(layout.text.tokenizer.encode(outline.text).length).toBeLessThanOrEqual(layout.reservedTokens * 0.4);
    const lines = [...outline.text.matchAll(/^(\d+): /gm)].map(([, line]) => Number(line));
    expect(outline.note.endsWith(`up to line ${lines.at(-1)}`)).toBe(count > 100);
    return lines.some((line) => line % 8 === 5);
  };
  expect([last(42), last(50), last(400)]).toEqual([true, false, false]);
});

test('there is no outline of a file that fits, without definitions there, or for a question that needs the room', () => {
  expect(prompt(fileOf(5), definitionsOf).notes).toEqual([]);
  expect(prompt(fileOf(42), () => []).notes).toEqual(prompt(fileOf(42)).notes);
  const long = 'Why? '.repeat(100);
  expect(prompt(fileOf(42), definitionsOf, long)).toEqual({
    ...prompt(fileOf(42), undefined, long),
    userTexts: expect.any(Function),
  });
});

test('a further file that does not fit is shown by its beginning and the definitions of its rest, which the note says', () => {
  const attached = (...counts: number[]) =>
    counts.map((count, i) => {
      const doc = fileOf(count);
      return { path: `src/b${i}.ts`, text: doc.lf, definitions: () => definitionsOf(doc) };
    });
  const ask = (files: ReturnType<typeof attached>) =>
    chatPrompt(layout, { doc: fileOf(5), attached: files, messages: ASK, answerTokens: 100 });
  const { notes, promptIds, parts } = ask(attached(5, 60, 60));
  expect(notes).toHaveLength(2);
  const said = layout.text.tokenizer.decode(promptIds);
  for (const name of ['b1', 'b2']) {
    const [, from, upTo] =
      new RegExp(`^src/${name}\\.ts: lines (\\d+)-240 of 240 as outline(?:, up to line (\\d+))?$`, 'm').exec(
        notes.join('\n'),
      ) ?? [];
    expect(Number(from)).toBeGreaterThan(4);
    expect(said).toContain(`src/${name}.ts, outline of lines ${from}-240\n\`\`\`ts\n`);
    if (upTo !== undefined) expect(said).toContain(`\n${upTo}: export function part`);
  }
  const limit = layout.contextTokens - 100;
  expect(promptIds.length).toBeLessThanOrEqual(limit);
  expect(parts.slice(1).reduce((sum, { tokens }) => sum + tokens, 0)).toBeLessThanOrEqual(limit / 2);
  // Without definitions, the file is cut at a line end.
  const cut = ask(attached(5, 60, 60).map((each) => ({ ...each, definitions: () => [] })));
  expect(cut.notes).toEqual([1, 2].map((i) => expect.stringMatching(`^src/b${i}.ts: lines \\d+-240 of 240 left out$`)));
});
