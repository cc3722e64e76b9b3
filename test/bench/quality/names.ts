/**
 * Suite `names`: completes behind `object.`, in imports and behind `call(` of projects that are not trained on, and says
 * whether the first name offered is right, exists or is invented. Judges with TypeScript's checker and Python's modules.
 */
import { appendFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import type { Tree } from 'web-tree-sitter';
import { Grammars } from '../../../engine/text/syntax/syntaxTrees.ts';
import { ThreadTransport } from '../../../src/client/transport.ts';
import { shuffled } from '../eval/holes.ts';
import { table } from '../spread.ts';
import { QualityEngine } from './engine.ts';
import { type NameKind, NameJudge, type NamePlace, type Verdict } from './nameJudge.ts';
import { neighbours } from './neighbours.ts';
import { NAMES_IN, type QualityText, qualityTexts } from './sources.ts';
import { inTurn, isInside, randomOf, withTree } from './trees.ts';
import { UnpackedProjects } from './unpacked.ts';

const PROJECT = path.resolve(import.meta.dirname, '../../..');
const SEED = 1;
const BESIDE = 100;
/** Places of each kind, if `--n` is 150. In turn from the languages. */
const COUNTS = { member: 150, import: 60, call: 60 } as const satisfies Record<NameKind, number>;

const PLACES: Record<NameKind, RegExp> = {
  member: /(?<![\p{L}\p{N}_$.)\]])([\p{L}_$][\p{L}\p{N}_$]*)\??\.(?=[\p{L}_$])/gu,
  import: /^(import\b.*\bfrom ['"](?=.)|\} from ['"](?=.)|import (?=\w+$)|from [\w.]+ import (?=\w))/gm,
  call: /(?<!\b(?:function|def|class|new)\s+)(?<![\p{L}\p{N}_$])([\p{L}_$][\p{L}\p{N}_$]*)\((?=[\p{L}_$])/gu,
};
const NO_CALL = /^(if|for|while|switch|catch|return|function|super|constructor|print|import)$/;

/** All places of a kind in random order, at most one per line. Behind the cursor is what editors close by themselves. */
export function namePlaces(tree: Tree, file: QualityText, kind: NameKind): NamePlace[] {
  const { source, path: name, language, text } = file;
  const lines = new Set<number>();
  const found = [...text.matchAll(PLACES[kind])].flatMap(({ 0: whole, index }) => {
    const at = index + whole.length;
    const lineStart = text.lastIndexOf('\n', at - 1) + 1;
    const lineEnd = text.indexOf('\n', at) < 0 ? text.length : text.indexOf('\n', at);
    const line = text.slice(lineStart, lineEnd);
    const isHeader = /^\s*(import|from|export|\})\b|^\} from|^\s*(async )?[\w$]+\(.*\)\s*\{$/.test(line);
    if (kind !== 'import' && (isHeader || isInside(tree, index, /comment|string|regex/))) return [];
    if (lines.has(lineStart) || line.length > 120 || (kind === 'call' && NO_CALL.test(whole.slice(0, -1)))) return [];
    if (kind === 'import' && (language === 'python') !== /^(import \w*$|from [\w.]+ import )/.test(whole)) return [];
    lines.add(lineStart);
    const closer = /['"]$/.test(whole) ? whole.slice(-1) : kind === 'call' ? ')' : '';
    const place = { source, path: name, language, kind, offset: at, taken: text.slice(at, lineEnd), before: whole };
    return [{ ...place, text: text.slice(0, at) + closer + text.slice(lineEnd) }];
  });
  return shuffled(found, randomOf(SEED, kind, source, name));
}

interface NameCell {
  way: 'automatic' | 'asked for';
  kind: NameKind;
  n: number;
  shown: number;
  verdicts: Partial<Record<Verdict, number>>;
}

export interface NamesBench {
  model: string;
  seed: number;
  cells: NameCell[];
}

export async function namesSuite({
  n = '150',
  model = path.join(PROJECT, 'model'),
  threads = '0',
  only = Object.keys(COUNTS).join(),
  beside: openFiles = String(BESIDE),
}: {
  n?: string;
  model?: string;
  threads?: string;
  only?: string;
  beside?: string;
}): Promise<{ result: NamesBench; report: string }> {
  const kinds = only.split(',') as NameKind[];
  const unknown = kinds.find((kind) => !Object.hasOwn(COUNTS, kind));
  if (unknown !== undefined) throw new Error(`--only ${unknown}: it must be one of ${Object.keys(COUNTS).join(', ')}`);
  const folder = path.resolve('.cache/bench/quality');
  const texts = qualityTexts(folder, (line) => console.error(line), NAMES_IN);
  const projects = new UnpackedProjects(folder, NAMES_IN);
  const judge = new NameJudge(texts, projects);
  const places = await drawn(texts, kinds, Number(n) / COUNTS.member);
  const answers = path.join(folder, 'names.jsonl');
  rmSync(answers, { force: true });
  const createTransport: Parameters<typeof QualityEngine.open>[0]['createTransport'] = (t) =>
    new ThreadTransport(path.join(PROJECT, 'dist/worker.js'), t, (text) => process.stderr.write(text));
  const cacheDir = path.resolve('.cache/bench/imported');
  const engine = await QualityEngine.open({ createTransport, modelDir: model, cacheDir, threads: Number(threads) });
  const cells = new Map<string, NameCell>();
  try {
    for (const place of places) {
      const beside = neighbours(texts, place, Number(openFiles), SEED);
      const packages = place.language === 'python' ? {} : { packages: projects.packagesOf(place.source) };
      for (const way of ['automatic', 'asked for'] as const) {
        const shown = await engine.offer(place.path, place.text, place.offset, {
          beside,
          ...packages,
          folders: projects.foldersOf(place.source),
          ...(way === 'asked for' ? { showLowConfidence: true } : {}),
        });
        const verdict = shown.trim() === '' ? undefined : judge.verdict(place, shown);
        const cell = cells.get(`${way} ${place.kind}`) ?? { way, kind: place.kind, n: 0, shown: 0, verdicts: {} };
        cells.set(`${way} ${place.kind}`, cell);
        cell.n++;
        const { kind, before, taken, path: file, offset } = place;
        // For reading only: the file quotes the projects.
        const answer = { way, kind, file, offset, before, taken, shown, verdict };
        appendFileSync(answers, `${JSON.stringify(answer)}\n`);
        if (verdict === undefined) continue;
        cell.shown++;
        cell.verdicts[verdict] = (cell.verdicts[verdict] ?? 0) + 1;
      }
    }
  } finally {
    await engine.dispose();
  }
  const result = { model: engine.model.name, seed: SEED, cells: [...cells.values()] };
  return { result, report: namesReport(result) };
}

/** The places, sorted by file, so that the cache keeps the common text. */
async function drawn(texts: readonly QualityText[], kinds: readonly NameKind[], share: number): Promise<NamePlace[]> {
  const grammars = new Grammars(path.join(PROJECT, 'dist/grammars'));
  const chosen: NamePlace[] = [];
  for (const kind of kinds) {
    const lists = new Map<string, NamePlace[][]>();
    for (const file of shuffled(texts, randomOf(SEED, 'names'))) {
      const found = await withTree(grammars, file.path, file.text, (tree) => namePlaces(tree, file, kind));
      lists.set(file.language, [...(lists.get(file.language) ?? []), found]);
    }
    const count = Math.round(COUNTS[kind] * share);
    chosen.push(
      ...inTurn(
        [...lists.values()].map((list) => inTurn(list, count)),
        count,
      ),
    );
  }
  const key = ({ source, path: file }: NamePlace): string => `${source} ${file}`;
  return chosen.sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : a.offset - b.offset));
}

const VERDICTS: readonly Verdict[] = ['right', 'exists', 'unknown', 'wrong object', 'nowhere', 'none'];

export function namesReport({ model, cells }: NamesBench): string {
  const rows = cells
    .toSorted((a, b) => (a.way < b.way ? 1 : a.way > b.way ? -1 : 0))
    .map(({ way, kind, n, shown, verdicts }) => {
      const of = (verdict: Verdict): number => verdicts[verdict] ?? 0;
      const invented = of('wrong object') + of('nowhere');
      const share = shown === 0 ? '–' : ((100 * invented) / shown).toFixed(1);
      return [way, kind, n, shown, ...VERDICTS.map(of), share];
    });
  const head = ['way', 'place', 'n', 'shown', ...VERDICTS, 'invented of 100 shown'];
  return `${model}, first name offered.\n\n${table(head, rows)}`;
}
