/** Reads from the system which instruction sets the CPU has that decide the speed of integer products. */
import { readFileSync } from 'node:fs';

/** Names as in Linux. */
const FEATURES = ['avx2', 'avx512f', 'avx_vnni', 'avx512_vnni', 'avx512_bf16', 'amx_int8', 'amx_bf16'];

/** Returns the FEATURES that the CPU has; null if the system does not report them. */
export function processorFeatures(): string[] | null {
  try {
    const flags = new Set(/^flags\s*:(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1]?.trim().split(/\s+/));
    return flags.size > 0 ? FEATURES.filter((name) => flags.has(name)) : null;
  } catch {
    return null;
  }
}
