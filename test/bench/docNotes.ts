/** Notes that are written by hand into a document which is otherwise made from results: `<!-- notes:NAME -->` and `<!-- /notes -->` around them. Pure. */

const NOTE = /<!-- notes:([\w.-]+) -->\s*([\s\S]*?)<!-- \/notes -->/g;

/** Texts by the names of their places; places without a text are left out. @throws Error where marks do not come in pairs. */
export function notesOf(document: string): Map<string, string> {
  const found = [...document.matchAll(NOTE)];
  for (const mark of ['<!-- notes:', '<!-- /notes'])
    if (document.split(mark).length - 1 !== found.length)
      throw new Error(`a note is not between <!-- notes:NAME --> and <!-- /notes -->; look for ${mark}`);
  return new Map(found.map(([, name, text]): [string, string] => [name!, text!.trim()]).filter(([, text]) => text));
}

/** A place and what is written there, as the document has it. */
export function notePlace(name: string, text: string | undefined): string {
  return `<!-- notes:${name} -->\n${text ? `${text}\n` : ''}<!-- /notes -->`;
}

/** The places of a document that has these, with the notes of the document as it was. @throws Error naming a note that has no place any more. */
export function notesIn<Name extends string>(before: string, places: readonly Name[]): (name: Name) => string {
  const notes = notesOf(before);
  const lost = [...notes.keys()].filter((name) => !places.includes(name as Name));
  if (lost.length) throw new Error(`notes without a place: ${lost.join(', ')}; the places are ${places.join(', ')}`);
  return (name) => notePlace(name, notes.get(name));
}
