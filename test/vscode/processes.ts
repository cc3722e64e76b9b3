/**
 * Reads what Linux shows about processes under /proc: parents, libraries, threads and open sockets. Changes nothing. A
 * process that ends meanwhile counts as empty.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

const quiet = <T>(read: () => T, otherwise: T): T => {
  try {
    return read();
  } catch {
    return otherwise;
  }
};
const text = (file: string) => quiet(() => readFileSync(file, 'utf8'), '');

const allProcesses = (): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);

export const commandLine = (pid: number): string => text(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim();

/** A zombie (an ended process whose parent has not read its exit status) counts as not alive. */
export const isAlive = (pid: number): boolean => /^State:\s+[^ZX]/m.test(text(`/proc/${pid}/status`));

/** The processes that inherited `name=value` in their environment, anywhere in the process tree. */
export function processesWith(name: string, value: string): number[] {
  return allProcesses().filter(
    (pid) => text(`/proc/${pid}/environ`).split('\0').includes(`${name}=${value}`) && isAlive(pid),
  );
}

/** `pid` and all its descendants. */
export function processTree(pid: number): number[] {
  const parents = new Map(
    allProcesses().map((each) => [each, Number(/^PPid:\s+(\d+)/m.exec(text(`/proc/${each}/status`))?.[1] ?? 0)]),
  );
  const tree = [pid];
  for (const parent of tree) for (const [child, itsParent] of parents) if (itsParent === parent) tree.push(child);
  return tree;
}

/** Resident memory of a process in bytes. */
export const residentBytes = (pid: number): number =>
  1024 * Number(/^VmRSS:\s+(\d+)/m.exec(text(`/proc/${pid}/status`))?.[1] ?? 0);

/** The native kernels and the libraries of onnxruntime that are mapped into the process. */
export const engineLibraries = (pid: number): string[] =>
  mappedFiles(pid).filter((file) => /onnxruntime|\/dist\/native\//.test(file));

/** Names of the native modules and shared libraries that are mapped into the process. */
function mappedFiles(pid: number): string[] {
  return [
    ...new Set(
      text(`/proc/${pid}/maps`)
        .split('\n')
        .map((line) => line.split(/\s+/).slice(5).join(' '))
        .filter((file) => file.startsWith('/')),
    ),
  ];
}

export function threadNames(pid: number): string[] {
  return quiet(() => readdirSync(`/proc/${pid}/task`), []).map((task) => text(`/proc/${pid}/task/${task}/comm`).trim());
}

/** Processor time that a process has used so far, and the time of each living thread by name, in milliseconds. */
export function cpuMs(pid: number): { all: number; threads: Map<string, number> } {
  // Fields 14 and 15 in ticks of 10 ms, counted after the name, because the name may contain spaces.
  const used = (file: string): number => {
    const [utime = 0, stime = 0] = text(file)
      .replace(/^.*\) /s, '')
      .split(' ')
      .slice(11, 13)
      .map(Number);
    return 10 * (utime + stime);
  };
  const threads = new Map<string, number>();
  for (const task of quiet(() => readdirSync(`/proc/${pid}/task`), [])) {
    const name = text(`/proc/${pid}/task/${task}/comm`).trim();
    threads.set(name, (threads.get(name) ?? 0) + used(`/proc/${pid}/task/${task}/stat`));
  }
  return { all: used(`/proc/${pid}/stat`), threads };
}

/** Name of the process's network namespace. */
export const networkNamespace = (pid: number): string => quiet(() => readlinkSync(`/proc/${pid}/ns/net`), '');

/**
 * Remote addresses ("127.0.0.1:80", "[::1]:80") of the given processes' TCP and UDP sockets, without listening sockets
 * ("0.0.0.0:0"). Covers every network namespace, because it reads each process's own table.
 */
export function remoteAddresses(pids: number[]): string[] {
  const addresses = new Set<string>();
  for (const pid of pids) {
    const inodes = new Set(
      quiet(() => readdirSync(`/proc/${pid}/fd`), []).map(
        (fd) => /^socket:\[(\d+)\]$/.exec(quiet(() => readlinkSync(`/proc/${pid}/fd/${fd}`), ''))?.[1],
      ),
    );
    for (const table of ['tcp', 'tcp6', 'udp', 'udp6'])
      for (const line of text(`/proc/${pid}/net/${table}`).split('\n').slice(1)) {
        const [, , remote = '', , , , , , , inode] = line.trim().split(/\s+/);
        const [host = '', port = '0'] = remote.split(':');
        if (inodes.has(inode) && !/^0*$/.test(host))
          addresses.add(`${host.length === 8 ? ipv4(host) : ipv6(host)}:${Number.parseInt(port, 16)}`);
      }
  }
  return [...addresses].sort();
}

/**
 * The sockets of a process that can connect it to others: TCP and UDP sockets by remote host without the port, and UNIX
 * sockets that have a name. Sorted, without duplicates.
 */
export function namedSockets(pid: number): string[] {
  const inodes = new Set(
    quiet(() => readdirSync(`/proc/${pid}/fd`), []).flatMap(
      (fd) => /^socket:\[(\d+)\]$/.exec(quiet(() => readlinkSync(`/proc/${pid}/fd/${fd}`), ''))?.[1] ?? [],
    ),
  );
  const rows = (table: string) =>
    text(`/proc/${pid}/net/${table}`)
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/));
  const internet = ['tcp', 'tcp6', 'udp', 'udp6'].flatMap((table) =>
    rows(table)
      .filter((row) => inodes.has(row[9] ?? ''))
      .map((row) => `${table} ${(row[2] ?? '').split(':')[0]}`),
  );
  const local = rows('unix')
    .filter((row) => inodes.has(row[6] ?? '') && row[7])
    .map((row) => `unix ${row[7]}`);
  return [...internet, ...local].sort();
}

export const isLoopback = (address: string): boolean => /^(127\.|\[::1\]|\[::ffff:127\.)/.test(address);

/** The kernel prints an address as 32-bit words, each in the machine's byte order (little-endian). */
const word = (hex: string) => Buffer.from(hex, 'hex').reverse();
const ipv4 = (hex: string) => [...word(hex)].join('.');
function ipv6(hex: string): string {
  const bytes = Buffer.concat([0, 8, 16, 24].map((at) => word(hex.slice(at, at + 8))));
  if (bytes.subarray(0, 12).equals(Buffer.from('00000000000000000000ffff', 'hex')))
    return `[::ffff:${[...bytes.subarray(12)].join('.')}]`;
  const groups = Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(2 * i).toString(16)).join(':');
  return `[${groups === '0:0:0:0:0:0:0:1' ? '::1' : groups}]`;
}

/** How often the process's threads with that name have gone to sleep voluntarily. Each wake-up adds one. */
export function wakeUps(pid: number, name: string): number {
  const tasks = quiet(() => readdirSync(`/proc/${pid}/task`), []).filter((task) =>
    text(`/proc/${pid}/task/${task}/comm`).trim().startsWith(name),
  );
  return tasks.reduce(
    (sum, task) =>
      sum + Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(text(`/proc/${pid}/task/${task}/status`))?.[1] ?? 0),
    0,
  );
}
