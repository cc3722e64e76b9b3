/** The editor server of this test process. Each worker has its own server, so parallel test files share nothing. */
import { inject } from 'vitest';
import type { EditorServerAddress } from './server.ts';

/** @returns the server, or the reason (a string) why the editor tests cannot run. */
export function ownServer(): EditorServerAddress | string {
  const servers = inject('servers');
  if (typeof servers === 'string') return servers;
  // vitest numbers parallel processes from 1.
  const server = servers[Number(process.env.VITEST_POOL_ID) - 1];
  if (!server) throw new Error(`no editor server for test process ${process.env.VITEST_POOL_ID} of ${servers.length}`);
  return server;
}
