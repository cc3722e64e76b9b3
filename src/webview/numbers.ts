/** Numbers in the language of the page, which is the editor's. */
import { numbersIn } from '../format.ts';

export const numbers = numbersIn(document.documentElement.lang || 'en');
