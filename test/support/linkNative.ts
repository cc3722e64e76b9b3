/** Puts the native kernels beside a bundle that a test has built. */
import { rmSync, symlinkSync } from 'node:fs';
import { resolve } from 'node:path';

/** `folder`: of the bundle. Must exist. */
export function linkNative(folder: string): void {
  const link = resolve(folder, 'native');
  rmSync(link, { recursive: true, force: true });
  symlinkSync(resolve('engine/native/prebuilt'), link, 'junction');
}
