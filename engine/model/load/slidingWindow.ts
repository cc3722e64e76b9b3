/** Reads which sliding windows config.json asks for. Does not decide what the engine does about them. */
import { count, FILE, flag, type Json, number, show } from './configFields.ts';
import type { Family } from './families.ts';
import { unsupported, invalid } from './modelFolder.ts';

const MAX_WINDOW = 2 ** 31 - 1;

/** The shortest window of a layer: up to it all layers attend to everything. Null if there is none. */
export function shortestWindow(config: Json, { window, switched }: Family, numLayers: number): number | null {
  const types = layerTypes(config, numLayers);
  if (window === undefined) return null;
  const tokens = (): number | null =>
    (config.sliding_window === undefined ? window : config.sliding_window) === null
      ? null
      : count(config, 'sliding_window', MAX_WINDOW, window ?? undefined);
  if (!switched) return tokens();
  const used = flag(config, 'use_sliding_window', false);
  const first = number(config, 'max_window_layers', { least: 0, most: MAX_WINDOW, fallback: 28 });
  const slides = types?.includes('sliding_attention');
  if (slides && (!used || tokens() === null))
    throw unsupported(
      `${FILE}: layer_types has sliding_attention, but ${used ? 'sliding_window is null' : 'use_sliding_window is not true'}: ` +
        'correct it, or choose another model.',
    );
  // SmolLM3 has no max_window_layers: there the layers without rope slide.
  return used && (slides ?? (window === null || numLayers > first)) ? tokens() : null;
}

function layerTypes(config: Json, numLayers: number): unknown[] | null {
  const types = config.layer_types ?? null;
  if (types === null) return null;
  if (!Array.isArray(types) || types.length !== numLayers)
    throw invalid(`${FILE}: layer_types must be an array with one entry for each of the ${numLayers} layers.`);
  const other = types.find((t) => t !== 'full_attention' && t !== 'sliding_attention');
  if (other !== undefined)
    throw unsupported(
      `${FILE}: layer_types has ${show(other)}; only full_attention and sliding_attention are supported.`,
    );
  return types;
}
