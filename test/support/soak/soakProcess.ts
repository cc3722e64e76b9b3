/** A soak in a process of its own: options as JSON in the first argument, the result as one line of JSON. */
import { soak, type SoakOptions } from './soakRun.ts';

console.log(JSON.stringify(await soak(JSON.parse(process.argv[2]!) as SoakOptions)));
