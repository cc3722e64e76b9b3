/** The running editor server of this test process. Each worker has a server of its own, so files in parallel share nothing. */
import { inject } from 'vitest';
import type { EditorServerAddress } from './server.ts';

/** @returns why there is no server, as a string, where the editor tests cannot run. */
export function ownServer(): EditorServerAddress | string {
  const servers = inject('servers');
  if (typeof servers === 'string') return servers;
  // vitest numbers the processes that run at the same time from 1.
  const server = servers[Number(process.env.VITEST_POOL_ID) - 1];
  if (!server) throw new Error(`no editor server for test process ${process.env.VITEST_POOL_ID} of ${servers.length}`);
  return server;
}
