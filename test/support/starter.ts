/** The text side of the built-in model for tests of what is shown. Does not load its weights. */
import { join } from 'node:path';
import { ModelText } from '../../engine/text/format/modelText.ts';
import { Layout } from '../../engine/text/prompt/layout.ts';

/**
 * @param copies whether the model copies. Then each line is held back until it is known to fit. Without, a test sees
 *   what the other rules hold back.
 */
export async function starterLayout({ copies }: { copies: boolean }): Promise<Layout> {
  const text = await ModelText.load(join(import.meta.dirname, '../../model'));
  if (!copies) Object.assign(text.manifest.completion.copy, { share: 0 });
  return new Layout(text, { contextTokens: 2048, numParameters: 7.5e6 });
}
