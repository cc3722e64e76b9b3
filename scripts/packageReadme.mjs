// Converts the README for the extension's page in VS Code, which has no access to the repository's files. Removes
// pictures, their captions, introductions of picture tables, sections about a checkout (marked after their heading),
// and sentences with links to files that are not in the package. Pure.

const PICTURE = /!\[[^\]]*\]\([^)]*\)/;
const isPictures = (block) =>
  block.split('\n').every((line) => PICTURE.test(line) && line.replace(new RegExp(PICTURE, 'g'), '').trim() === '');
const isTableOfPictures = (block) => block.startsWith('|') && PICTURE.test(block);
const isCaption = (block) => /^\*[^*][\s\S]*[^*]\*$/.test(block);
const CHECKOUT_ONLY = '<!-- about a checkout: not in the package -->';
const LOCAL_LINK = String.raw`\[([^\]]+)\]\((?!\w+:|#)([^)]+)\)`;
const PACKAGED_LINK = /\[([^\]]+)\]\((model\/[^)]+)\)/g;
const SENTENCE_END = /(?<=[.!?]) (?=[A-Z[*`])/;

/** A block of text without references to files that are not in the package. Empty if nothing is left. */
function withoutRepository(block) {
  return block
    .replace(PACKAGED_LINK, '$1 (`$2`)')
    .replace(new RegExp(String.raw` \(${LOCAL_LINK}\)`, 'g'), '')
    .split('\n')
    .map((line) => {
      const [, bullet, text] = /^((?:[-*] )?)(.*)$/.exec(line);
      const sentences = text.split(SENTENCE_END).filter((sentence) => !new RegExp(LOCAL_LINK).test(sentence));
      return sentences.length ? bullet + sentences.join(' ') : null;
    })
    .filter((line) => line !== null)
    .join('\n');
}

/**
 * @param readme Markdown with pictures in paragraphs or tables of their own. Throws if a picture is inside other text.
 */
export function readmeForPackage(readme) {
  // Code blocks stay unchanged.
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
  const texts = kept.map((block) => (block.startsWith('```') ? block : withoutRepository(block))).filter(Boolean);
  return `${texts.join('\n\n')}\n`;
}
