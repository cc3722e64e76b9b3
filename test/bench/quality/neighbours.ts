/** PURE: chooses the files that are open beside an edited file of a project. */
import { shuffled } from '../eval/holes.ts';
import type { QualityText } from './sources.ts';
import { randomOf } from './trees.ts';

/**
 * Up to `n` files of the same project and language, the nearest folders first and random within a folder. The result is
 * the same for the same seed.
 */
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
