// The README as the extension's page in VS Code shows it, which has neither the repository's pictures nor its files: without
// the pictures, their captions and what introduces a table of them, without sections about a checkout (marked behind their
// heading), and with links within the repository as plain text. Pure.

const PICTURE = /!\[[^\]]*\]\([^)]*\)/;
const isPictures = (block) =>
  block.split('\n').every((line) => PICTURE.test(line) && line.replace(new RegExp(PICTURE, 'g'), '').trim() === '');
const isTableOfPictures = (block) => block.startsWith('|') && PICTURE.test(block);
const isCaption = (block) => /^\*[^*][\s\S]*[^*]\*$/.test(block);
const CHECKOUT_ONLY = '<!-- about a checkout: not in the package -->';

/** @param readme Markdown, pictures in paragraphs or tables of their own. Throws where a picture stands within other text. */
export function readmeForPackage(readme) {
  // Code blocks stay whole, whatever is in them.
  const all = readme
    .replace(/\r\n/g, '\n')
    .trim()
    .split(/(^```[\s\S]*?^```$)|\n{2,}/m)
    .filter((block) => block?.trim())
    .map((block) => block.replace(/^\n+|\n+$/g, ''));
  let dropped = false;
  const blocks = all.filter((block, i) => {
    if (/^##? /.test(block)) dropped = all[i + 1] === CHECKOUT_ONLY;
    return !dropped;
  });
  const kept = blocks.filter((block, i) => {
    if (block.startsWith('```')) return true;
    if (isPictures(block) || isTableOfPictures(block)) return false;
    if (isCaption(block) && isPictures(blocks[i - 1] ?? '')) return false;
    return !(block.endsWith(':') && isTableOfPictures(blocks[i + 1] ?? ''));
  });
  const inText = kept.find((block) => !block.startsWith('```') && PICTURE.test(block));
  if (inText !== undefined)
    throw new Error(`README.md: a picture within a text cannot be left out of the package: ${inText.slice(0, 80)}`);
  return `${kept.map((block) => (block.startsWith('```') ? block : block.replace(/\[([^\]]+)\]\((?!\w+:|#)[^)]*\)/g, '$1'))).join('\n\n')}\n`;
}
