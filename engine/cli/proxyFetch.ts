/** `fetch` that goes through the proxies of HTTP_PROXY, HTTPS_PROXY and NO_PROXY, which Node 20's own ignores. */
import type { Fetch } from '../download/hub.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** @throws Error that names the variable whose value is no proxy */
export async function proxyFetch(env: Environment): Promise<Fetch> {
  const httpProxy = proxyOf(env, 'http_proxy', 'HTTP_PROXY');
  const httpsProxy = proxyOf(env, 'https_proxy', 'HTTPS_PROXY');
  if (!httpProxy && !httpsProxy) return (url, init) => fetch(url, init);
  const { EnvHttpProxyAgent, fetch: proxied } = await import('undici');
  const dispatcher = new EnvHttpProxyAgent({ httpProxy, httpsProxy });
  return ((url: string, init: object) => proxied(url, { ...init, dispatcher })) as unknown as Fetch;
}

/** The first of the variables that is set; empty: no proxy. `host:port` is a proxy over http, as for other tools. */
function proxyOf(env: Environment, ...names: string[]): string {
  const name = names.find((each) => env[each] !== undefined);
  const value = env[name ?? '']?.trim();
  if (!value) return '';
  const url = value.includes('://') ? value : `http://${value}`;
  // The value may hold a password.
  if (!/^(?:https?|socks5?):/i.test(url) || !URL.canParse(url))
    throw new Error(`${name} is not the address of a proxy, such as http://127.0.0.1:3128.`);
  return url;
}
