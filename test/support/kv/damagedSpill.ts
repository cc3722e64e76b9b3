/** Damages a spill file that is in use. On Linux the file has no name, so this uses the open handle of the process. */
import { closeSync, openSync, readdirSync, readlinkSync, readSync, writeSync } from 'node:fs';
import path from 'node:path';

/** On other systems the file has no name, and the process has no such handle. */
export const CAN_REACH = process.platform === 'linux' || process.platform === 'win32';

/** The open spill files of a folder. */
export function openSpillFiles(folder: string): string[] {
  const start = path.join(folder, '.spill-');
  if (process.platform === 'win32')
    return readdirSync(folder)
      .map((name) => path.join(folder, name))
      .filter((file) => file.startsWith(start));
  const isOurs = (fd: string): boolean => {
    try {
      return readlinkSync(fd).startsWith(start);
    } catch {
      return false;
    }
  };
  return readdirSync('/proc/self/fd')
    .map((fd) => `/proc/self/fd/${fd}`)
    .filter(isOurs);
}

/** Changes one bit in each of these bytes of the folder's only spill file. */
export function damage(folder: string, ...places: readonly number[]): void {
  const [file, ...others] = openSpillFiles(folder);
  if (!file || others.length > 0) throw new Error(`There is not one spill file in ${folder}.`);
  const fd = openSync(file, 'r+');
  const byte = new Uint8Array(1);
  for (const at of places) {
    if (readSync(fd, byte, 0, 1, at) < 1) throw new Error(`The spill file ends before ${at}.`);
    byte[0]! ^= 4;
    writeSync(fd, byte, 0, 1, at);
  }
  closeSync(fd);
}
