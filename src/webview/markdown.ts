/**
 * Markdown to safe HTML, and the frame of a code block with its buttons. Uses markdown-it without raw HTML or images,
 * highlight.js for common languages, and DOMPurify last.
 */
import DOMPurify from 'dompurify';
import highlighter from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import css from 'highlight.js/lib/languages/css';
import go from 'highlight.js/lib/languages/go';
import java from 'highlight.js/lib/languages/java';
import json from 'highlight.js/lib/languages/json';
import python from 'highlight.js/lib/languages/python';
import rust from 'highlight.js/lib/languages/rust';
import typescript from 'highlight.js/lib/languages/typescript';
import xml from 'highlight.js/lib/languages/xml';
import MarkdownIt from 'markdown-it';
import type { CodeAction, Strings } from '../chat/chatMessages.ts';
import { confirmCopy, element, iconButton } from './dom.ts';

for (const [name, language] of Object.entries({ bash, css, go, java, json, python, rust, typescript, xml }))
  highlighter.registerLanguage(name, language);
highlighter.registerAliases(['javascript', 'js', 'jsx', 'mjs', 'cjs', 'tsx'], { languageName: 'typescript' });

const markdown = new MarkdownIt({
  html: false,
  breaks: false,
  highlight: (code, language) =>
    highlighter.getLanguage(language) ? highlighter.highlight(code, { language, ignoreIllegals: true }).value : '',
}).disable('image');

/** A paragraph, a list or a code block: one element of the page. */
interface Block {
  /** Equal sources give equal HTML. */
  source: string;
  /** The page's content security policy refuses inline styles. Our own attributes are added afterwards. */
  toHtml(): string;
}

export function toBlocks(text: string): Block[] {
  const env: NonNullable<Parameters<typeof markdown.parse>[1]> = {};
  const tokens = markdown.parse(text, env);
  const lines = text.split(/(?<=\n|\r(?!\n))/);
  // A link's target may be defined after the link.
  const targets = env.references ? JSON.stringify(env.references) : '';
  const blocks: Block[] = [];
  for (let start = 0, end = 0; start < tokens.length; start = end) {
    let depth = 0;
    do depth += tokens[end++]!.nesting;
    while (depth > 0);
    const block = tokens.slice(start, end);
    const [first, behind] = block[0]!.map ?? [0, lines.length];
    const source = lines.slice(first, behind).join('');
    blocks.push({
      source: source.includes('[') ? source + targets : source,
      toHtml: () =>
        DOMPurify.sanitize(markdown.renderer.render(block, markdown.options, env), {
          FORBID_ATTR: ['style'],
          FORBID_TAGS: ['style', 'form', 'input', 'button'],
        }),
    });
  }
  return blocks;
}

/** One code block as a `pre` element. */
export function renderCode(text: string, language: string): string {
  const fence = text.includes('```') ? '`````' : '```';
  return toBlocks(`${fence}${language}\n${text.replace(/\n$/, '')}\n${fence}`)
    .map((block) => block.toHtml())
    .join('');
}

export interface CodeActions {
  copy(text: string): void;
  code(action: CodeAction, text: string, language: string): void;
}

/** Replaces a rendered `pre`. */
export function frameCode(block: HTMLElement, strings: Strings, actions: CodeActions): void {
  const code = block.querySelector('code');
  const text = code?.textContent ?? '';
  const language = /language-([\w+#-]+)/.exec(code?.className ?? '')?.[1] ?? '';
  const copy = iconButton('copy', strings.copy, '', () => {
    actions.copy(text);
    confirmCopy(copy, strings.copied);
  });
  const act = (name: 'insert' | 'apply' | 'newFile') =>
    iconButton(name, strings[name], '', () => actions.code(name, text, language));
  const bar = element(
    'div',
    { class: 'bar' },
    element('span', { class: 'language' }, language),
    copy,
    act('insert'),
    act('apply'),
    act('newFile'),
  );
  const frame = element(
    'div',
    {
      class: 'code',
      role: 'group',
      'aria-label': language ? strings.codeIn.replace('{0}', () => language) : strings.code,
    },
    bar,
  );
  block.replaceWith(frame);
  // Wide lines can be scrolled to by keyboard, too.
  block.tabIndex = 0;
  frame.append(block);
}
