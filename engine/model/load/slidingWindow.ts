/** Reads from config.json which layers have a sliding window. Does not compute masks. */
import { count, FILE, flag, type Json, number, show } from './configFields.ts';
import type { Family } from './families.ts';
import { unsupported, invalid } from './modelFolder.ts';

/** In these layers a token sees so many tokens: itself, and those just before it. */
export interface Window {
  readonly tokens: number;
  readonly layers: readonly number[];
}

const MAX_WINDOW = 2 ** 31 - 1;
const SLIDING = 'sliding_attention';

/** Null if no layer has a window. `unrotated`: layers without rope. */
export function slidingWindow(
  config: Json,
  family: Family,
  numLayers: number,
  unrotated: readonly number[],
): Window | null {
  const { window, switched, windowPattern, namedWindows } = family;
  const types = layerTypes(config, numLayers);
  if (window === undefined) return null;
  const all = Array.from({ length: numLayers }, (_, l) => l);
  const named = types && all.filter((l) => types[l] === SLIDING);
  const tokens = (): number | null =>
    (config.sliding_window === undefined ? window : config.sliding_window) === null
      ? null
      : count(config, 'sliding_window', MAX_WINDOW, window ?? undefined);
  const of = (layers: readonly number[]): Window | null => {
    const size = layers.length > 0 ? tokens() : null;
    return size === null ? null : { tokens: size, layers };
  };
  const wrong = (what: string): Error => unsupported(`${FILE}: ${what}: correct it, or choose another model.`);
  const ofNamed = (layers: readonly number[]): Window | null => {
    if (layers.length > 0 && tokens() === null) throw wrong('layers have a sliding window, but sliding_window is null');
    return of(layers);
  };
  if (windowPattern) {
    const { every, key } = windowPattern;
    const whole = key === undefined ? every : count(config, key, MAX_WINDOW, every);
    return ofNamed(named ?? all.filter((l) => (l + 1) % whole !== 0));
  }
  if (!switched) {
    if (namedWindows && named) return ofNamed(named);
    return namedWindows === 'only' ? null : of(all);
  }
  const used = flag(config, 'use_sliding_window', false);
  if (switched === 'all') return used ? of(all) : null;
  const first = number(config, 'max_window_layers', { least: 0, most: MAX_WINDOW, fallback: 28 });
  if (named && named.length > 0 && (!used || tokens() === null))
    throw wrong(
      `layer_types has ${SLIDING}, but ${used ? 'sliding_window is null' : 'use_sliding_window is not true'}`,
    );
  // SmolLM3 has no max_window_layers: there the layers without rope slide.
  return used ? of(named ?? (family.noRopeLayers ? unrotated : all.slice(first))) : null;
}

function layerTypes(config: Json, numLayers: number): unknown[] | null {
  const types = config.layer_types ?? null;
  if (types === null) return null;
  if (!Array.isArray(types) || types.length !== numLayers)
    throw invalid(`${FILE}: layer_types must be an array with one entry for each of the ${numLayers} layers.`);
  const other = types.find((t) => t !== 'full_attention' && t !== SLIDING);
  if (other !== undefined)
    throw unsupported(`${FILE}: layer_types has ${show(other)}; only full_attention and ${SLIDING} are supported.`);
  return types;
}
