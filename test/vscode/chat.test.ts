/** The chat view in the editor: questions and their context, answers and their actions, and what survives a reload. */
import type { Locator } from 'playwright-core';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { BUILT_IN, counted } from '../support/builtIn.ts';
import { PATIENCE, setText } from './editor.ts';
import { openQuickFixes } from './menus.ts';
import { editorSuite, INVENTORY, ownEditorSuite } from './suite.ts';

const LARGE = Array.from({ length: 600 }, (_, i) => `export const value${i} = compute(${i});\n`).join('');
const FILES = {
  'src/inventory.ts': INVENTORY,
  'src/large.ts': LARGE,
  'src/prices.ts': 'export function priceOf(id: string): number {\n  return id.length;\n}\n',
  'docs/notes.md': '# Notes\n',
  'src/.env': 'TOKEN=1\n',
  'src/.svn/envelope.ts': 'hidden();\n',
};
/** Polls what the window shows. */
const poll: typeof expect.poll = (get) => expect.poll(get, { timeout: PATIENCE / 3 });
const BLOCK = 'Use this:\n```ts\ntotalValue(): number {\n  return 42;\n}\n```';

const HOSTILE =
  '<img src=x onerror="globalThis.obeyed=1"> [a](command:workbench.action.quit) [b](javascript:globalThis.obeyed=1) [c](https://example.com) <command:x.y>\n\n```ts"><img/src=x/onerror=globalThis.obeyed=1>\n"</code><img src=x onerror=globalThis.obeyed=1>";\n```\n';
/** The page's globals that the test uses. */
interface HostilePage {
  obeyed?: number;
  MessageEvent: new (type: 'message', options: { data: unknown }) => object;
  dispatchEvent(event: object): void;
}

type Box = { x: number; y: number; width: number; height: number };

/**
 * Runs in the page and tries every width. Returns the texts of footers with a line that begins with the dot between two
 * parts, and the largest number of lines.
 */
function begunWithDot(footers: Element[]): { begun: string[]; mostLines: number } {
  const begun: string[] = [];
  let mostLines = 0;
  for (const footer of footers) {
    const figures = footer.lastElementChild as HTMLElement;
    for (let width = 60; width <= 400; width++) {
      figures.style.flex = `0 0 ${width}px`;
      const texts = document.createTreeWalker(figures, NodeFilter.SHOW_TEXT);
      let before = Number.NEGATIVE_INFINITY;
      let numLines = 0;
      for (let text = texts.nextNode(); text; text = texts.nextNode()) {
        for (const [i, letter] of [...(text.textContent ?? '')].entries()) {
          if (letter.trim() === '') continue;
          const range = document.createRange();
          range.setStart(text, i);
          range.setEnd(text, i + 1);
          const { top, height } = range.getBoundingClientRect();
          const isFirst = top > before + height / 2;
          if (isFirst) numLines++;
          if (isFirst && letter === '·') begun.push(`${figures.textContent} in ${width} pixels`);
          before = top;
        }
      }
      mostLines = Math.max(mostLines, numLines);
    }
    figures.removeAttribute('style');
  }
  return { begun, mostLines };
}

ownEditorSuite('chat', FILES, (editor) => {
  const violations: string[] = [];
  const chat = () => editor().chat;
  const input = () => chat().getByRole('textbox', { name: 'Ask Kvasir' });
  const questions = () => chat().locator('[data-role="user"]');
  const lastAnswer = () => editor().answers.last();
  const meter = () => chat().locator('[data-part="meter"] .label');
  const chips = () => chat().locator('[data-part="context"] .name');

  const ended = (answer: Locator) => poll(() => answer.getAttribute('data-state')).toBe('done');

  async function askToTheEnd(question: string): Promise<Locator> {
    const answer = await editor().ask(question);
    await ended(answer);
    return answer;
  }

  /** Starts an empty conversation with inventory.ts attached. */
  async function newConversation(): Promise<void> {
    const window = editor();
    await window.openFile('src/inventory.ts', 1, 1);
    await window.runCommand('Kvasir: Open Chat');
    await window.runCommand('Kvasir: New Conversation');
    await window.chatIsEmpty();
    await poll(() => chips().allInnerTexts()).toEqual(['inventory.ts']);
  }

  /** Starts the same conversation with one question and waits for the model's answer. */
  async function oneTurn(question = 'Explain this code'): Promise<void> {
    await newConversation();
    await askToTheEnd(question);
  }

  beforeAll(async () => {
    const { page } = editor();
    page.on('console', (message) => {
      if (/Content Security Policy/i.test(message.text())) violations.push(message.text());
    });
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  });
  afterEach(async () => {
    expect(violations, 'of the content security policy').toEqual([]);
    expect(editor().problems).toEqual([]);
    expect(await editor().toasts()).toEqual([]);
  });

  /** The meter's text, once it no longer changes: an answer or a key is counted a moment later. */
  async function countedMeter(): Promise<string> {
    let last = '';
    const isCounted = async () => {
      const before = last;
      last = (await meter().textContent()) ?? '';
      return last !== '' && last === before;
    };
    await expect.poll(isCounted, { timeout: PATIENCE, interval: 1000 }).toBe(true);
    return last;
  }

  /** Drags the sidebar's edge. The sidebar keeps its place between the screenshots. */
  async function sidebarWidth(width: number): Promise<void> {
    const { page } = editor();
    const box = await page.locator('.part.sidebar').boundingBox();
    if (!box) throw new Error('no sidebar');
    await page.mouse.move(box.x + box.width, 300);
    await page.mouse.down();
    await page.mouse.move(box.x + width, 300, { steps: 4 });
    await page.mouse.up();
    await page.mouse.move(900, 500);
  }

  async function pictures(name: string): Promise<void> {
    for (const width of [280, 420]) {
      await sidebarWidth(width);
      await editor().screenshotThemes(`${name}-${width}`);
    }
  }

  test.each(['/summarize', 'What is this?'])(
    'the meter shows the size that the answer’s footer reports: %s',
    async (question) => {
      await oneTurn();
      const before = await countedMeter();
      const count = await editor().answers.count();
      await setText(input(), question);
      await poll(() => meter().textContent()).not.toBe(before);
      await countedMeter();
      if (question === '/summarize') await editor().screenshot('chat-summarize-meter');
      const [, tokens] =
        new RegExp(`^([\\d,]+) of ${counted(BUILT_IN.contextTokens)} tokens$`).exec(
          (await meter().textContent()) ?? '',
        ) ?? [];
      await input().press('Enter');
      await poll(() => editor().answers.count()).toBe(count + 1);
      await ended(lastAnswer());
      expect(await lastAnswer().locator('[data-part="footer"]').textContent()).toMatch(
        new RegExp(`^[\\d,]+ of ${tokens} tokens reused`),
      );
      if (question === '/summarize') await editor().screenshot('chat-summarize-answer');
    },
  );

  /** A click is lost while another view is still opening. A click on the icon of the visible view hides that view. */
  async function showByIcon(): Promise<void> {
    const { page } = editor();
    const shown = async () => {
      const checked = await page
        .locator('.activitybar .action-item.checked .action-label[aria-label^="Kvasir"]')
        .count();
      if (!checked) await page.locator('.activitybar .action-label[aria-label^="Kvasir"]').click();
      return checked;
    };
    await expect.poll(shown, { timeout: PATIENCE, interval: 500 }).toBe(1);
  }

  test('an edited question keeps its text while the view is hidden', async () => {
    const window = editor();
    const edit = questions().first().getByRole('button', { name: 'Edit and ask again' });
    const editing = questions().first().getByRole('textbox');
    await oneTurn('What is this file for?');
    await questions().first().hover();
    await edit.click();
    await setText(editing, 'What is the base class?\nAnd why?\nIn three lines.');
    await window.press('Control+Shift+E');
    await window.page.locator('.explorer-folders-view').waitFor();
    await window.page.locator('iframe.webview').waitFor({ state: 'detached' });
    await showByIcon();
    await poll(() => editing.inputValue()).toBe('What is the base class?\nAnd why?\nIn three lines.');
    expect(await editing.evaluate((area) => area.clientHeight >= area.scrollHeight - 2), 'as high as its text').toBe(
      true,
    );
    await window.screenshot('chat-edit-again');
    await editing.press('Escape');
    await poll(() => questions().first().innerText()).toContain('What is this file for');
    await window.press('Control+Shift+E');
    await window.page.locator('iframe.webview').waitFor({ state: 'detached' });
    await showByIcon();
    await poll(() => questions().first().innerText()).toContain('What is this file for');
    expect(await editing.count(), 'cancelled is cancelled').toBe(0);
  });

  test('Copy copies an answer', async () => {
    await newConversation();
    await askToTheEnd('What does `totalValue` return?');
    await lastAnswer().hover();
    await lastAnswer().getByRole('button', { name: 'Copy the answer' }).click();
    await poll(() => editor().page.evaluate('navigator.clipboard.readText()')).toBe(
      `\`Inventory.totalValue\` returns \`number\` (line ${INVENTORY.split('\n').findIndex((text) => text.includes('totalValue(')) + 1}).`,
    );
  });

  test('Up edits the last question, and asking an earlier one again drops the turns after it', async () => {
    await oneTurn('What is this file for?');
    await askToTheEnd('What does `totalValue` return?');
    await input().focus();
    await editor().press('ArrowUp');
    const editing = questions().last().getByRole('textbox');
    await poll(() => editing.evaluate((element) => element.matches(':focus'))).toBe(true);
    await editor().screenshot('chat-edit');
    await setText(editing, 'What does `count` return?');
    await editing.press('Enter');
    await poll(() => questions().allInnerTexts()).toEqual([
      expect.stringContaining('What is this file for?'),
      expect.stringContaining('What does count return?'),
    ]);
    await ended(lastAnswer());
    await questions().first().hover();
    await questions().first().getByRole('button', { name: 'Edit and ask again' }).click();
    await setText(questions().first().getByRole('textbox'), 'Tell me what `Inventory` does');
    await editor().press('Enter');
    await poll(() => questions().allInnerTexts()).toEqual([expect.stringContaining('Tell me what Inventory does')]);
    await ended(lastAnswer());
  });

  test('a fact from the syntax tree is marked as such, and its line number opens the line', async () => {
    await newConversation();
    const answer = await askToTheEnd('Which class does `totalValue` belong to?');
    const line = INVENTORY.split('\n').findIndex((text) => text.includes('totalValue(')) + 1;
    expect(await answer.locator('.body').innerText()).toBe(
      `Inventory.totalValue is defined on line ${line}: totalValue(): number {.`,
    );
    expect(await answer.locator('.note').innerText()).toContain('src/inventory.ts');
    expect(await answer.locator('[data-part="footer"]').count()).toBe(0);
    await pictures('chat-fact');
    await answer.getByRole('button', { name: `line ${line}` }).click();
    await editor()
      .page.locator('[id="status.editor.selection"]', { hasText: `Ln ${line}, Col 1` })
      .waitFor();
  });

  test('@ offers files and folders without hidden and secret ones, and the keyboard picks one', async () => {
    await newConversation();
    await input().pressSequentially('@env');
    await poll(() => chat().getByRole('option').allInnerTexts()).toEqual(['No file matches']);
    await setText(input(), '');
    await input().pressSequentially('compare with @pric');
    await poll(() => chat().getByRole('option').first().innerText()).toContain('prices.ts');
    await input().press('Enter');
    await poll(() => input().inputValue()).toBe('compare with `prices.ts` ');
    await poll(() => chips().allInnerTexts()).toEqual(['inventory.ts', 'prices.ts']);
    await input().pressSequentially('@');
    await poll(() => chat().getByRole('option').count()).toBeGreaterThan(4);
    await editor().screenshot('chat-files');
    await input().press('Escape');
    expect(await chat().getByRole('option').count()).toBe(0);
    const answer = await askToTheEnd('compare with `prices.ts`');
    expect(await questions().last().locator('.file').allInnerTexts()).toEqual(['inventory.ts', 'prices.ts']);
    expect(await answer.locator('.note').count()).toBe(0);
    await chat().getByRole('button', { name: 'Remove prices.ts from the question' }).click();
    await poll(() => chips().allInnerTexts()).toEqual(['inventory.ts']);
  });

  test('/explain is about the definition at the cursor; a command that the model is too small for is refused', async () => {
    await newConversation();
    await input().focus();
    await input().pressSequentially('/');
    await poll(() => chat().getByRole('option').count()).toBe(10);
    await editor().screenshot('chat-slash');
    await input().pressSequentially('ex');
    await input().press('Tab');
    await poll(() => input().inputValue()).toBe('/explain ');
    await editor().openFile('src/inventory.ts', 60, 9);
    await editor().runCommand('Kvasir: Open Chat');
    await input().press('Enter');
    await poll(() => questions().last().locator('.file').allInnerTexts()).toEqual(['inventory.ts', 'totalValue']);
    await ended(lastAnswer());
    await editor().openFile('src/inventory.ts');
    // The question and its place are the same. Only the number of questions distinguishes it from the previous one.
    const before = await questions().count();
    await editor().runCommand('Kvasir: Explain');
    await poll(() => questions().count()).toBe(before + 1);
    await poll(() => questions().last().locator('.file').allInnerTexts()).toEqual(['inventory.ts', 'totalValue']);
    await ended(lastAnswer());
    const answer = await askToTheEnd('/fix');
    expect(await answer.locator('.refusal').innerText()).toMatch(
      /kvasir-starter is too small.*\s+Download Qwen2\.5-Coder 1\.5B \(about 1\.9 GB\)\s+Choose Model\s+Try anyway/s,
    );
    await editor().screenshot('chat-refusal');
    await answer.getByRole('button', { name: 'Try anyway' }).click();
    await poll(() => lastAnswer().locator('[data-part="footer"]').count()).toBe(1);
    const streamed = (await editor().answerHistory()).filter(({ state }) => state === 'streaming');
    expect(new Set(streamed.map(({ length }) => length)).size, 'the answer comes in parts').toBeGreaterThan(1);
  });

  test('a selection is attached automatically, and the light bulb asks about it', async () => {
    const window = editor();
    await newConversation();
    await window.openFile('src/prices.ts', 1, 1);
    await window.press('Shift+ArrowDown');
    await poll(() => chips().allInnerTexts()).toEqual(['prices.ts', 'prices.ts:1']);
    const rows = await openQuickFixes(window.page, 'Kvasir: Explain');
    await rows.filter({ hasText: 'Kvasir: Explain' }).click();
    await poll(() => questions().last().locator('.file').allInnerTexts()).toEqual(['prices.ts', 'prices.ts:1']);
    await ended(lastAnswer());
  });

  test('a code block can be copied, inserted, applied as a diff and put into a new file', async () => {
    const window = editor();
    await oneTurn(BLOCK);
    const block = questions().last().locator('.code');
    await pictures('chat-code');
    await block.getByRole('button', { name: 'Apply to the file, as a diff' }).click();
    await window.page.locator('.diff-editor, .monaco-diff-editor').first().waitFor();
    await window.page.locator('.monaco-diff-editor .modified .view-line', { hasText: 'return 42' }).waitFor();
    // The file stays attached while its diff is in front.
    await poll(() => chips().allInnerTexts()).toEqual(['inventory.ts']);
    await window.screenshot('chat-diff');
    await window.runCommand('Kvasir: Accept Edit');
    // The diff closes after the edit is in the file.
    await window.page.locator('.diff-editor, .monaco-diff-editor').first().waitFor({ state: 'detached' });
    await window.openFile('src/inventory.ts');
    const applied = INVENTORY.replace(
      / {2}totalValue\(\): number \{[\s\S]*?\n {2}\}/,
      '  totalValue(): number {\n    return 42;\n  }',
    );
    expect(await window.savedText('src/inventory.ts')).toBe(applied);
    await window.press('Control+Z');
    expect(await window.savedText('src/inventory.ts')).toBe(INVENTORY);
    await window.goTo(1, 1);
    await block.getByRole('button', { name: 'Insert at cursor' }).click();
    await poll(() => window.editorText()).toContain('  return 42;');
    expect(await window.savedText('src/inventory.ts')).toBe(`totalValue(): number {\n  return 42;\n}${INVENTORY}`);
    await window.press('Control+Z');
    expect(await window.savedText('src/inventory.ts')).toBe(INVENTORY);
    await block.getByRole('button', { name: 'Copy' }).click();
    await poll(() => window.page.evaluate('navigator.clipboard.readText()')).toBe(
      'totalValue(): number {\n  return 42;\n}\n',
    );
    await block.getByRole('button', { name: 'New file with this code' }).click();
    await window.page.locator('.tab.active', { hasText: 'Untitled' }).waitFor();
    await window.page.locator('[id="status.editor.mode"]', { hasText: 'TypeScript' }).waitFor();
    expect(await window.editorText()).toContain('  return 42;');
  });

  test('parts that do not fit are named before the question is sent', async () => {
    const window = editor();
    // The meter shows a count only after the model is loaded.
    await oneTurn();
    await window.openFile('src/large.ts', 300, 1);
    const leftOut = () => chat().locator('[data-part="left-out"]').innerText();
    await poll(leftOut).toMatch(/src\/large\.ts: lines 1-\d+, \d+-600 of 600 left out/);
    expect(await chat().locator('[data-part="omitted"]').innerText()).toMatch(/^[\d,]+ left out$/);
    await window.runCommand('Kvasir: Open Chat');
    await pictures('chat-left-out');
  });

  test('in the narrowest sidebar nothing overlaps or is cut off', async () => {
    await oneTurn(BLOCK);
    await sidebarWidth(170);
    await poll(async () => (await chat().locator('.composer').boundingBox())?.width ?? 0).toBeLessThan(180);
    const composer = chat().locator('.composer');
    await editor().screenshotThemes('chat-narrow');
    // The meter is redrawn after it has counted again.
    await poll(async () => {
      const [label, send] = await Promise.all([meter(), chat().locator('.send')].map((part) => part.boundingBox()));
      return label && send ? label.x + label.width - send.x : Number.POSITIVE_INFINITY;
    }).toBeLessThanOrEqual(0);
    // Language names, names of attached files and their notes may be truncated. Code scrolls.
    expect(
      await chat()
        .locator('body')
        .evaluate((body) =>
          [...body.querySelectorAll('*')]
            .filter(
              (part) =>
                part.scrollWidth > part.clientWidth &&
                part.clientWidth > 1 &&
                !part.closest('pre, .language, .chip [title] > span'),
            )
            .map((part) => part.className),
        ),
    ).toEqual([]);
    await poll(() => input().evaluate((area) => area.clientHeight >= area.scrollHeight)).toBe(true);
    const place = (await composer.boundingBox())!;
    for (const part of await chat().locator('.composer button').all()) {
      const box = (await part.boundingBox())!;
      expect(box.x + box.width, (await part.getAttribute('title')) ?? '').toBeLessThanOrEqual(place.x + place.width);
    }
    // The button that removes a file is on the same line as the file's name.
    for (const chip of await chat().locator('[data-part="context"]').all()) {
      const [name, remove] = (await Promise.all(
        [chip.locator('.name'), chip.locator('button.icon')].map((part) => part.boundingBox()),
      )) as [Box, Box];
      expect(Math.abs(name.y + name.height / 2 - remove.y - remove.height / 2), await chip.innerText()).toBeLessThan(4);
    }
    await sidebarWidth(280);
  });

  test.each([
    [170, 'within its parts', 6],
    [280, 'between its parts', 2],
  ])('a footer in a sidebar of %i pixels breaks %s and begins no line with a dot', async (width, _, numLines) => {
    await oneTurn();
    await sidebarWidth(width);
    await poll(async () => (await chat().locator('.composer').boundingBox())?.width ?? 0).toBeLessThan(width + 10);
    const { begun, mostLines } = await chat().locator('[data-part="footer"]').evaluateAll(begunWithDot);
    expect([...new Set(begun)]).toEqual([]);
    expect(mostLines).toBeGreaterThanOrEqual(numLines);
    await editor().screenshotThemes(`chat-footer-${width}`);
  });

  test('conversations survive a reload and can be created, listed, exported and deleted', async ({ task }) => {
    const window = editor();
    const draft = `half a thou ${task.result?.retryCount ?? 0}`;
    const first = 'Explain this';
    await oneTurn();
    await oneTurn('Where is `count` defined?');
    await setText(input(), draft);
    // A browser writes to its disk with a delay.
    for (const text of ['Where is `count` defined?', draft]) await poll(() => window.stored(text)).toBe(true);
    await window.reload();
    await expect
      .poll(() => questions().allInnerTexts(), { timeout: PATIENCE })
      .toEqual([expect.stringContaining('Where is count defined?')]);
    expect(await editor().answers.last().innerText(), 'not taken for interrupted').not.toContain('Interrupted');
    expect(await input().inputValue()).toBe(draft);
    await window.runCommand('Kvasir: Export Conversation');
    await window.page.locator('.tab.active', { hasText: 'Untitled' }).waitFor();
    await poll(() => window.editorText()).toMatch(/## Where is `count` defined\?[\s\S]*not written by the model/);
    const conversation = await window.runPicker('Kvasir: Open Conversation', first);
    await window.screenshot('chat-conversations');
    await conversation.click();
    await poll(() => questions().first().innerText()).toContain(first);
    const numTurns = await questions().count();
    await window.runCommand('Kvasir: Clear Chat');
    await poll(() => questions().count()).toBe(0);
    const toast = (text: string) => window.page.locator('.notification-toast', { hasText: text });
    const undo = async (text: string) => {
      await toast(text).getByRole('button', { name: 'Undo' }).click();
      await toast(text).waitFor({ state: 'detached' });
    };
    await toast('The conversation is deleted.').waitFor();
    await window.screenshot('chat-deleted');
    await undo('The conversation is deleted.');
    await poll(() => questions().count()).toBe(numTurns);
    expect(await questions().first().innerText()).toContain(first);
    // Chooses from the list, which stays open.
    const row = await window.runPicker('Kvasir: Open Conversation', 'Where is `count` defined?');
    await row.hover();
    await row.locator('.action-label.codicon-trash').click();
    await row.waitFor({ state: 'detached' });
    await toast('Where is `count` defined?').waitFor();
    await window.screenshot('chat-deleted-list');
    expect(await window.page.locator('.quick-input-widget').isVisible()).toBe(true);
    await undo('Where is `count` defined?');
    expect(await questions().count(), 'it was not shown').toBe(numTurns);
    await (await window.runPicker('Kvasir: Open Conversation', 'Where is `count` defined?')).click();
    await poll(() => questions().allInnerTexts()).toEqual([expect.stringContaining('Where is count defined?')]);
  });

  test('a command without a file says so, and a retry uses the file that is attached then', async () => {
    await newConversation();
    await chat().getByRole('button', { name: 'Remove inventory.ts from the question' }).click();
    await poll(() => chips().count()).toBe(0);
    const answer = await askToTheEnd('/summarize');
    expect(await answer.innerText()).toMatch(
      /^\s*Nothing is attached to the question\. Open or attach a file\.\s*Attach /,
    );
    await editor().screenshot('chat-nothing-attached');
    await chat().locator('[data-part="offered"]').click();
    await poll(() => chips().allInnerTexts()).toEqual(['inventory.ts']);
    await answer.hover();
    await answer.getByRole('button', { name: 'Answer again' }).click();
    await poll(() => questions().last().locator('.file').allInnerTexts()).toEqual(['inventory.ts']);
    await ended(lastAnswer());
    expect(await lastAnswer().locator('[data-part="footer"]').count()).toBe(1);
  });

  test('the note on reliability appears once, under the model’s first answer, and not under a fact or a greeting', async () => {
    const window = editor();
    const modelNotes = async () =>
      Promise.all((await window.answers.all()).map((answer) => answer.locator('.model-note').allInnerTexts()));
    const written = () => chat().locator('[data-part="footer"]').count();
    const { note } = BUILT_IN.manifest.chat;
    await newConversation();
    await askToTheEnd('Which class does `totalValue` belong to?');
    expect([await written(), await modelNotes()]).toEqual([0, [[]]]);
    await askToTheEnd('Hi');
    expect([await written(), await modelNotes()]).toEqual([1, [[], []]]);
    const answer = await askToTheEnd('What does this code do?\n```ts\nentry.count -= count;\n```');
    expect([await written(), await modelNotes()]).toEqual([2, [[], [], [note.en]]]);
    await pictures('chat-model-note');
    await sidebarWidth(170);
    const width = async () => (await answer.locator('.model-note').boundingBox())?.width ?? 0;
    await poll(width).toBeLessThan(180);
    expect(await answer.locator('.model-note').evaluate((part) => part.scrollWidth <= part.clientWidth)).toBe(true);
    await answer.locator('.foot').scrollIntoViewIfNeeded();
    await window.screenshot('chat-model-note-narrow');
    await sidebarWidth(280);
    await askToTheEnd('What is this?');
    expect([await written(), await modelNotes()]).toEqual([3, [[], [], [note.en], []]]);
    await window.screenshot('chat-model-note-next');
  });

  test('names in a note are shown as code', async () => {
    await editor().runCommand('Kvasir: Open Chat');
    const notes = ['`flush` does occur in src/a.ts: the model overlooked it'];
    await chat()
      .locator('body')
      .evaluate(
        (_, data) => {
          const page = globalThis as unknown as HostilePage;
          page.dispatchEvent(new page.MessageEvent('message', { data }));
        },
        {
          type: 'conversation',
          id: 'noted',
          turns: [{ id: 't1', role: 'assistant', text: 'There is no `flush` here.', state: 'done', notes }],
        },
      );
    await poll(() => lastAnswer().locator('.note code').allInnerTexts()).toEqual(['flush']);
    expect(await lastAnswer().locator('.note').innerText()).toBe(
      'flush does occur in src/a.ts: the model overlooked it',
    );
    await editor().screenshot('chat-note');
  });

  test('text of the model is shown as text: no command links, pictures or markup', async () => {
    await editor().runCommand('Kvasir: Open Chat');
    const turns = [
      { id: 't1', role: 'user', text: HOSTILE, context: [] },
      { id: 't2', role: 'assistant', text: HOSTILE, state: 'done', notes: [] },
    ];
    await chat()
      .locator('body')
      .evaluate(
        (_, data) => {
          const page = globalThis as unknown as HostilePage;
          page.dispatchEvent(new page.MessageEvent('message', { data }));
        },
        { type: 'conversation', id: 'hostile', turns },
      );
    await poll(() =>
      lastAnswer()
        .locator('.body a')
        .evaluateAll((links) => links.map((link) => link.getAttribute('href'))),
    ).toEqual([null, 'https://example.com', null]);
    expect(await lastAnswer().locator('.body').innerText()).toContain('<img src=x onerror="globalThis.obeyed=1">');
    expect(await chat().locator('.turn').locator('img, script, iframe, form, style, [onerror], [style]').count()).toBe(
      0,
    );
    expect(
      await chat()
        .locator('body')
        .evaluate(() => (globalThis as unknown as HostilePage).obeyed),
    ).toBeUndefined();
  });
});

editorSuite(
  'first question',
  { 'src/inventory.ts': INVENTORY },
  (editor) => {
    const chat = () => editor().chat;
    const lastAnswer = () => editor().answers.last();

    test('the chat works by keyboard alone: open, ask during the load, stop, ask again', async () => {
      const window = editor();
      const input = chat().getByRole('textbox', { name: 'Ask Kvasir' });
      await window.openFile('src/inventory.ts', 37, 1);
      await window.runCommand('Kvasir: Open Chat');
      await poll(() => input.evaluate((element) => element.matches(':focus'))).toBe(true);
      await poll(() => chat().locator('[data-part="context"] .name').allInnerTexts()).toEqual(['inventory.ts']);
      // Nothing is counted before the first question, because counting would load the model.
      expect(await chat().locator('[data-part="meter"] .label').count()).toBe(0);
      await poll(() => chat().locator('[data-part="note"]').innerText()).toBe(BUILT_IN.manifest.note.en);
      await editor().screenshot('chat-empty');
      await input.focus();
      await window.type('What is this file for?');
      await window.press('Enter');
      await chat().getByRole('button', { name: 'Stop' }).waitFor();
      await window.press('Escape');
      await poll(() => lastAnswer().getAttribute('data-state')).toBe('done');
      expect(await lastAnswer().locator('.note').allInnerTexts()).toEqual(['Stopped.']);
      // Shift+Tab moves from the input over the chips to the buttons of the answer.
      for (
        let presses = 0;
        presses < 8 &&
        !(await lastAnswer()
          .locator('.regenerate')
          .evaluate((element) => element.matches(':focus')));
        presses++
      )
        await window.press('Shift+Tab');
      await window.press('Enter');
      await poll(() => lastAnswer().locator('[data-part="footer"]').count()).toBe(1);
      expect(await lastAnswer().locator('.note').allInnerTexts()).not.toContain('Stopped.');
      expect(await lastAnswer().locator('.body').innerText()).not.toBe('');
      expect(await chat().locator('[data-role="user"]').count()).toBe(1);
    });
  },
  { reopen: true },
);
