/**
 * Suite `places`: empties bodies of functions and literals in projects that are not trained on, asks for completions
 * there, automatically and by the command, and says what is right, what stands elsewhere, and what does not parse.
 */
import { appendFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { placesOf } from '../../../engine/text/copy/copiedLines.ts';
import { ThreadTransport } from '../../../src/client/transport.ts';
import { shuffled } from '../eval/holes.ts';
import { table } from '../spread.ts';
import { QualityEngine } from './engine.ts';
import { neighbours } from './neighbours.ts';
import { type EmptiedPlace, functionAround, linesOf, LITERAL_KINDS, numErrors, parsed, placesIn } from './places.ts';
import { PLACES_IN, type QualityText, qualityTexts } from './sources.ts';
import { inTurn, randomOf } from './trees.ts';
import { UnpackedProjects } from './unpacked.ts';

const PROJECT = path.resolve(import.meta.dirname, '../../..');
const BESIDE = 100;
/** A single line of fewer characters may be equal by chance, and one of two lines. */
const MIN_CHARACTERS = { alone: 25, ofTwo: 4 };

type Place = EmptiedPlace & Pick<QualityText, 'source' | 'path' | 'language'>;

interface PlacesCell {
  way: 'automatic' | 'asked for';
  /** `body`, or the kind of the literal. */
  kind: Place['kind'];
  source: string;
  n: number;
  shown: number;
  /** The first line is the original one. A literal: the text is the original one. */
  right: number;
  /** Lines of bodies that are right from the first one on, and all lines shown. */
  lines: { right: number; shown: number };
  /** Bodies with lines that stand elsewhere but not in the original, by the function that they stand in. */
  copied: { sameName: number; otherName: number };
  /** The file does not parse with the completion. */
  broken: number;
}

export interface PlacesBench {
  model: string;
  seed: number;
  sources: { name: string; version: string }[];
  cells: PlacesCell[];
}

export async function placesSuite({
  n = '100',
  seed = '1',
  model = path.join(PROJECT, 'model'),
  threads = '0',
  beside = String(BESIDE),
}: Partial<Record<'n' | 'seed' | 'model' | 'threads' | 'beside', string>>): Promise<{
  result: PlacesBench;
  report: string;
}> {
  const folder = path.resolve('.cache/bench/quality');
  const texts = qualityTexts(folder, (line) => console.error(line), PLACES_IN).filter(
    ({ path: file, text }) => numErrors(file, text) === 0,
  );
  const projects = new UnpackedProjects(folder, PLACES_IN);
  const answers = path.join(folder, 'places.jsonl');
  rmSync(answers, { force: true });
  const engine = await QualityEngine.open({
    createTransport: (t) =>
      new ThreadTransport(path.join(PROJECT, 'dist/worker.js'), t, (text) => process.stderr.write(text)),
    cacheDir: path.resolve('.cache/bench/imported'),
    modelDir: model,
    threads: Number(threads),
  });
  const cells = new Map<string, PlacesCell>();
  try {
    for (const place of drawn(texts, Number(n), Number(seed))) {
      const others = neighbours(texts, place, Number(beside), Number(seed));
      for (const way of ['automatic', 'asked for'] as const) {
        const shown = await engine.offer(place.path, place.text, place.offset, {
          beside: others,
          packages: projects.packagesOf(place.source),
          folders: projects.foldersOf(place.source),
          ...(way === 'asked for' ? { showLowConfidence: true } : {}),
        });
        const { kind, source } = place;
        const key = `${way} ${kind} ${source}`;
        const cell = cells.get(key) ?? emptyCell(way, kind, source);
        cells.set(key, cell);
        const judged = judge(place, shown, others);
        count(cell, judged);
        // For reading only: the file quotes the projects.
        const { text: _, ...where } = place;
        appendFileSync(answers, `${JSON.stringify({ ...where, way, shown, ...judged })}\n`);
      }
    }
  } finally {
    await engine.dispose();
  }
  const sources = PLACES_IN.map(({ name, version }) => ({ name, version }));
  const result = { model: engine.model.name, seed: Number(seed), sources, cells: [...cells.values()] };
  return { result, report: placesReport(result) };
}

const emptyCell = (way: PlacesCell['way'], kind: Place['kind'], source: string): PlacesCell => ({
  way,
  kind,
  source,
  n: 0,
  shown: 0,
  right: 0,
  lines: { right: 0, shown: 0 },
  copied: { sameName: 0, otherName: 0 },
  broken: 0,
});

/** `n` bodies and `n` literals, the same number of each project as far as it has them, sorted by file. */
function drawn(texts: readonly QualityText[], n: number, seed: number): Place[] {
  const bySource = PLACES_IN.map(({ name }) => {
    const files = shuffled(
      texts.filter(({ source }) => source === name),
      randomOf(seed, 'places', name),
    );
    return files.map((file) =>
      placesIn(file.path, file.text, randomOf(seed, name, file.path)).map(
        (place): Place => ({ ...place, source: name, path: file.path, language: file.language }),
      ),
    );
  });
  const of = (kind: Place['kind']): Place[][] =>
    bySource.map((files) =>
      inTurn(
        files.map((places) => places.filter((place) => place.kind === kind)),
        n,
      ),
    );
  const literals = LITERAL_KINDS.map((kind) => inTurn(of(kind), n));
  const order = (a: Place, b: Place): number =>
    a.source === b.source
      ? a.path === b.path
        ? a.offset - b.offset
        : a.path < b.path
          ? -1
          : 1
      : a.source < b.source
        ? -1
        : 1;
  return [...inTurn(of('body'), n), ...inTurn(literals, n)].sort(order);
}

interface Judged {
  isShown: boolean;
  isRight: boolean;
  isBroken: boolean;
  lines: PlacesCell['lines'];
  /** Lines that stand elsewhere, and the function that they stand in. */
  copied?: { lines: string[]; from: string | undefined; isSameName: boolean };
}

export function judge(place: Place, shown: string, others: readonly QualityText[]): Judged {
  const { kind, text, offset, taken, path: file } = place;
  const isShown = shown.trim() !== '';
  const [written, original] = [linesOf(shown), linesOf(taken)];
  const firstOther = written.findIndex((line, i) => line !== original[i]);
  const lines = { right: firstOther < 0 ? written.length : firstOther, shown: written.length };
  if (!isShown) return { isShown, isRight: false, isBroken: false, lines };
  const done = text.slice(0, offset) + shown + text.slice(offset);
  if (kind !== 'body') return { isShown, isRight: shown === taken, isBroken: numErrors(file, done) > 0, lines };
  const copied = copiedIn(place, shown, others);
  // A body may be continued: what is still open at its end is no error.
  return { isShown, isRight: lines.right > 0, isBroken: false, lines, ...(copied ? { copied } : {}) };
}

/** The first lines of a body that are not in the original and stand at another place of the project. */
function copiedIn(place: Place, shown: string, others: readonly QualityText[]): Judged['copied'] {
  const [lines, original] = [linesOf(shown), linesOf(place.taken)];
  const around = [{ path: place.path, text: place.text }, ...others];
  let i = 0;
  while (i < lines.length && lines[i] === original[i]) i++;
  for (; i < lines.length; i++) {
    if (original.includes(lines[i]!)) continue;
    for (const length of [2, 1]) {
      const some = lines.slice(i, i + length);
      const isShort =
        some.length < length ||
        (length === 1
          ? some[0]!.length < MIN_CHARACTERS.alone
          : some.some((line) => line.length < MIN_CHARACTERS.ofTwo));
      if (isShort) continue;
      const found = around.flatMap(({ path: file, text }) =>
        placesOf(some, [text]).map(({ at }) => ({ file, text, at })),
      );
      // A single line at several places is usual in the project.
      if (found.length === 0 || (length === 1 && found.length > 1)) continue;
      const names = found.map(({ file, text, at }) =>
        functionAround(parsed(file, text), at + text.slice(at).search(/\S/)),
      );
      const isSameName = place.name !== undefined && names.includes(place.name);
      return { lines: some, from: names[0], isSameName };
    }
  }
  return undefined;
}

function count(cell: PlacesCell, { isShown, isRight, isBroken, lines, copied }: Judged): void {
  cell.n++;
  if (isShown) cell.shown++;
  if (isRight) cell.right++;
  if (isBroken) cell.broken++;
  cell.lines.right += lines.right;
  cell.lines.shown += lines.shown;
  if (copied) cell.copied[copied.isSameName ? 'sameName' : 'otherName']++;
}

export function placesReport({ model, cells }: Pick<PlacesBench, 'model' | 'cells'>): string {
  const sum = (some: readonly PlacesCell[], value: (cell: PlacesCell) => number): number =>
    some.reduce((total, cell) => total + value(cell), 0);
  type Value = (cell: PlacesCell) => number;
  const rows = (title: (cell: PlacesCell) => string, some: readonly PlacesCell[], more: readonly Value[]) => {
    const groups = new Map<string, PlacesCell[]>();
    for (const cell of some) {
      const key = `${title(cell)}\0${cell.way}`;
      groups.set(key, [...(groups.get(key) ?? []), cell]);
    }
    const values: Value[] = [({ n }) => n, ({ shown }) => shown, ({ right }) => right, ...more];
    return [...groups].map(([key, group]) => [...key.split('\0'), ...values.map((value) => sum(group, value))]);
  };
  const bodies = cells.filter(({ kind }) => kind === 'body');
  const literals = cells.filter(({ kind }) => kind !== 'body');
  const copies = [
    (cell: PlacesCell) => cell.lines.shown,
    (cell: PlacesCell) => cell.lines.right,
    (cell: PlacesCell) => cell.copied.sameName,
    (cell: PlacesCell) => cell.copied.otherName,
  ];
  const broken = [(cell: PlacesCell) => cell.broken];
  return [
    `${model}, emptied bodies.`,
    table(
      [
        'project',
        'way',
        'n',
        'shown',
        'first line right',
        'lines',
        'right lines',
        'copied, same name',
        'copied, another name',
      ],
      [...rows(({ source }) => source, bodies, copies), ...rows(() => 'all', bodies, copies)],
    ),
    'Emptied literals.',
    table(
      ['what', 'way', 'n', 'shown', 'exact', 'does not parse'],
      [...rows(({ kind }) => kind, literals, broken), ...rows(() => 'all', literals, broken)],
    ),
  ].join('\n\n');
}
