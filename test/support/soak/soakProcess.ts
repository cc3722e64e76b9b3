/**
 * Runs a soak in its own process. The first argument holds the options as JSON. Prints the result as one line of JSON.
 */
import { soak, type SoakOptions } from './soakRun.ts';

console.log(JSON.stringify(await soak(JSON.parse(process.argv[2]!) as SoakOptions)));
