/** Numbers in the language of the page. */
import { numbersIn } from '../format.ts';

export const numbers = numbersIn(document.documentElement.lang || 'en');
