/** The editor's l10n.t for texts that nobody has translated, and languages to go with it. */
import { ENGLISH, numbersIn, type Speech, type Translate } from '../../../src/format.ts';

export const t: Translate = (text, ...values) => text.replace(/\{(\d)\}/g, (_, i) => String(values[Number(i)]));
export const english: Speech = { t, numbers: ENGLISH };
/** Its numbers; the texts stay English. */
export const portuguese: Speech = { t, numbers: numbersIn('pt-br') };
