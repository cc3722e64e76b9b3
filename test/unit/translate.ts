/** The editor's l10n.t for texts that nobody has translated. */
import type { Translate } from '../../src/translate.ts';

export const t: Translate = (text, ...values) => text.replace(/\{(\d)\}/g, (_, i) => String(values[Number(i)]));
