/** The built-in model as its own files describe it: what is expected of the editor then holds with another one, too. */
import { readFileSync } from 'node:fs';
import { inspectModel } from '../../engine/model/importModel.ts';

export const BUILT_IN = await inspectModel('model');

/** What the tests need of its manifest. */
export const MANIFEST = JSON.parse(readFileSync('model/kvasir.json', 'utf8')) as { version: string; note: { en: string; pt: string }; chat: { maxTokens: number; note: { en: string; pt: string } } };

/** A count as the editor shows it. */
export const counted = (value: number): string => value.toLocaleString('en');
