/** `fetch` that goes through the proxies of HTTP_PROXY, HTTPS_PROXY and NO_PROXY, which Node 20's own ignores. */
import type { Fetch } from '../download/hub.ts';

const NAMES = ['http_proxy', 'https_proxy', 'HTTP_PROXY', 'HTTPS_PROXY'];

export async function proxyFetch(env: Readonly<Record<string, string | undefined>>): Promise<Fetch> {
  if (!NAMES.some((name) => env[name])) return (url, init) => fetch(url, init);
  const { EnvHttpProxyAgent, fetch: proxied } = await import('undici');
  const dispatcher = new EnvHttpProxyAgent();
  return ((url: string, init: object) => proxied(url, { ...init, dispatcher })) as unknown as Fetch;
}
