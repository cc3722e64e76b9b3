/**
 * What Linux tells about processes under /proc: who belongs to whom, which libraries and threads one has, which sockets it
 * holds open. Reads only; a process that ends meanwhile counts as empty.
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

/** A process that has ended but whose parent has not asked for its exit status is no longer alive. */
export const isAlive = (pid: number): boolean => /^State:\s+[^ZX]/m.test(text(`/proc/${pid}/status`));

/** The processes that inherited `name=value` in their environment, wherever they ended up in the process tree. */
export function processesWith(name: string, value: string): number[] {
  return allProcesses().filter(
    (pid) => text(`/proc/${pid}/environ`).split('\0').includes(`${name}=${value}`) && isAlive(pid),
  );
}

/** `pid` and everything it started, directly or not. */
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

/** Names of the native modules and shared libraries that are mapped into the process's memory. */
export function mappedFiles(pid: number): string[] {
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

/** Processor time that a process has used so far, and that of its living threads by name, in milliseconds. */
export function cpuMs(pid: number): { all: number; threads: Map<string, number> } {
  // Fields 14 and 15, counted behind the name, which may hold spaces; in ticks of 10 ms.
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

/** Names the network namespace that the process lives in. */
export const networkNamespace = (pid: number): string => quiet(() => readlinkSync(`/proc/${pid}/ns/net`), '');

/**
 * Remote addresses ("127.0.0.1:80", "[::1]:80") of the TCP and UDP sockets that the given processes hold, listening ones
 * ("0.0.0.0:0") left out. Covers every network namespace, because each process is asked about its own.
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
 * The sockets that one process holds by which it could be reached or reach somebody: TCP and UDP by their remote host, without
 * the port, and UNIX sockets that have a name. Sorted, once for each socket.
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

/** How often the process's threads of that name have given up the processor by themselves: each wake-up adds to it. */
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
