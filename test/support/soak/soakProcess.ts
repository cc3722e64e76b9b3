/**
 * Runs a soak in its own process. The first argument holds the options as JSON. Prints the result as one line of JSON.
 */
import path from 'node:path';
import { soak, type SoakOptions } from './soakRun.ts';

// The engine finds the native kernels by the folder of its module, which modules of this form do not have.
(globalThis as { __dirname?: string }).__dirname = path.join(import.meta.dirname, '../../../engine/model/native');

console.log(JSON.stringify(await soak(JSON.parse(process.argv[2]!) as SoakOptions)));
