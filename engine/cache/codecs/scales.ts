/** What may be read back as a scale. */
import { MalformedRun } from './codecFormat.ts';
import { kernels } from './kernels.ts';

/** A scale as it was read, whose codes are up to `mostCode`. @throws MalformedRun when what they stand for is not finite. */
export function finite(scale: number, mostCode: number): number {
  if (!(scale >= 0 && scale * mostCode < 1e38)) throw new MalformedRun(`it has a scale of ${scale}`);
  return scale;
}

/** As above for each of `count` float32 scales in the kernels' memory. */
export function finiteScales(at: number, count: number, mostCode: number): void {
  const view = new DataView(kernels().memory.buffer, at);
  for (let i = 0; i < count; i++) finite(view.getFloat32(4 * i, true), mostCode);
}
