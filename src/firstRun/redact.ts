/**
 * Removes everything that names a user's files from a message. Rather removes too much than leaves part of a path.
 * Pure.
 */

/** File names that every model has. They tell nothing about the user. */
const MODEL_FILES = new Set([
  'config.json',
  'generation_config.json',
  'tokenizer.json',
  'tokenizer_config.json',
  'kvasir.json',
  'chat_template.jinja',
  'model.safetensors',
  'model.safetensors.index.json',
]);

const SETTING = /^kvasir\.(?:[a-z]+\.)?[a-zA-Z]+$/;

/** `names` are known ones: folders, open files, the user's home and login. */
export function redact(text: string, names: readonly string[] = []): string {
  let safe = text.replace(/\s+/g, ' ').trim();
  // Longest first: a file's path before its name.
  for (const name of [...names].filter((each) => each.length > 1).sort((a, b) => b.length - a.length))
    safe = safe.replaceAll(name, '<name>');
  // A path may contain spaces, so it ends where the sentence clearly continues, or not at all.
  safe = safe.replace(
    /(?:[A-Za-z]:[\\/]|\b[a-z][a-z+.-]*:\/\/|~[\\/]|\\\\|(?<![\w<])\/(?=[^\s/])).*?(?=[:;,"'`)](?:\s|$)|["'`]|$)/g,
    '<path>',
  );
  safe = safe.replace(/[^\s"'`()<>:;,]*[\\/][^\s"'`()<>:;,]*/g, '<path>');
  return safe.replace(/[\w$.@-]*\w\.[A-Za-z]\w{0,9}\b/g, (file) =>
    MODEL_FILES.has(file) || SETTING.test(file) || isNumber(file) ? file : '<file>',
  );
}

function isNumber(text: string): boolean {
  return /^\d+(\.\d+)*$/.test(text);
}
