/** Reads from the system which instruction sets decide how fast integer products are. */
import { readFileSync } from 'node:fs';

/** As Linux names them. */
const FEATURES = ['avx2', 'avx512f', 'avx_vnni', 'avx512_vnni', 'avx512_bf16', 'amx_int8', 'amx_bf16'];

/** Those of FEATURES that are there; null where the system does not tell. */
export function processorFeatures(): string[] | null {
  try {
    const flags = new Set(/^flags\s*:(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1]?.trim().split(/\s+/));
    return flags.size > 0 ? FEATURES.filter((name) => flags.has(name)) : null;
  } catch {
    return null;
  }
}
