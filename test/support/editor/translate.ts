/** The editor's l10n.t without translations, and languages that use it. */
import { ENGLISH, numbersIn, type Speech, type Translate } from '../../../src/format.ts';

export const t: Translate = (text, ...values) => text.replace(/\{(\d)\}/g, (_, i) => String(values[Number(i)]));
export const english: Speech = { t, numbers: ENGLISH };
/** Portuguese numbers with English texts. */
export const portuguese: Speech = { t, numbers: numbersIn('pt-br') };
