/** What of a processor decides how fast integer products are: read from the system where it tells, said in few words. */
import { readFileSync } from 'node:fs';

/** As Linux names them. */
const FEATURES = ['avx2', 'avx512f', 'avx_vnni', 'avx512_vnni', 'avx512_bf16', 'amx_int8', 'amx_bf16'];

/** Of FEATURES those that are there; null where the system does not tell. */
export function processorFeatures(): string[] | null {
  try {
    const flags = new Set(/^flags\s*:(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1]?.trim().split(/\s+/));
    return flags.size > 0 ? FEATURES.filter((name) => flags.has(name)) : null;
  } catch {
    return null;
  }
}

export interface Processor {
  cpu?: string;
  features?: readonly string[] | null;
}

export const hasAmx = ({ features }: Processor): boolean => features?.includes('amx_int8') ?? false;

/** "AMD EPYC with VNNI". */
export function processorName({ cpu = 'unknown processor', features }: Processor): string {
  if (!features) return cpu;
  const best = features.includes('amx_int8')
    ? 'AMX'
    : features.some((name) => name.endsWith('_vnni'))
      ? 'VNNI'
      : features.includes('avx2')
        ? 'AVX2, without VNNI'
        : 'neither AVX2 nor VNNI';
  return `${cpu.replace(/\((R|TM)\)/g, '').replace(/ Processor$/, '')} with ${best}`;
}
