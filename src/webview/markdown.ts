/** Markdown to safe HTML: markdown-it without raw HTML or images, highlight.js for the usual languages, DOMPurify last. */
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

for (const [name, language] of Object.entries({ bash, css, go, java, json, python, rust, typescript, xml })) highlighter.registerLanguage(name, language);
highlighter.registerAliases(['javascript', 'js', 'jsx', 'mjs', 'cjs', 'tsx'], { languageName: 'typescript' });

const markdown = new MarkdownIt({
  html: false,
  breaks: false,
  highlight: (code, language) => (highlighter.getLanguage(language) ? highlighter.highlight(code, { language, ignoreIllegals: true }).value : ''),
}).disable('image');

/** Inline styles are refused by the page's content security policy anyway; attributes of ours are added afterwards. */
export function toHtml(text: string): string {
  return DOMPurify.sanitize(markdown.render(text), { FORBID_ATTR: ['style'], FORBID_TAGS: ['style', 'form', 'input', 'button'] });
}
