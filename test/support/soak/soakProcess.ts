/**
 * Runs a soak in its own process. The first argument holds the options as JSON. Prints the result as one line of JSON.
 */
import path from 'node:path';
import { soak, type SoakOptions } from './soakRun.ts';

const options = JSON.parse(process.argv[2]!) as SoakOptions;
const library = options.model?.library;
if (library) {
  const load = process.dlopen;
  let isLoaded = false;
  process.dlopen = (module: object, file: string, flags?: number) => {
    const isAddon = path.basename(file) === path.basename(library);
    isLoaded ||= isAddon;
    load.call(process, module, isAddon ? library : file, ...((flags === undefined ? [] : [flags]) as []));
  };
  process.on('exit', () => {
    if (!isLoaded) process.exitCode = 1;
  });
}
console.log(JSON.stringify(await soak(options)));
