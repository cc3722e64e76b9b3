/** PURE: the files that somebody who writes in one of a project has open beside it. */
import { shuffled } from '../eval/holes.ts';
import type { QualityText } from './sources.ts';
import { randomOf } from './trees.ts';

/** So many of the same project and language, the nearest in its folders, of a folder any; the same ones for the same seed. */
export function neighbours(
  texts: readonly QualityText[],
  { source, path: file, language }: Pick<QualityText, 'source' | 'path' | 'language'>,
  n: number,
  seed: number,
): QualityText[] {
  const others = texts.filter((text) => text.source === source && text.language === language && text.path !== file);
  const shared = (other: string): number => {
    const folders = file.split('/');
    return other.split('/').findIndex((name, i) => name !== folders[i]);
  };
  return shuffled(others, randomOf(seed, 'beside', source, file))
    .sort((a, b) => shared(b.path) - shared(a.path))
    .slice(0, n);
}
