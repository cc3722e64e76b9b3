/**
 * `node liveEngine.ts FOLDER`: counts as one of the engines in the folder until its input ends. Prints the number of
 * engines whenever it changes. A test may kill it.
 */
import { writeSync } from 'node:fs';
import { LiveEngines } from '../../engine/server/liveEngines.ts';

const tell = (): void => void writeSync(1, `${engines.num}\n`);
const engines = await LiveEngines.join(process.argv[2]!, tell, (line) => writeSync(2, `${line}\n`), 50);
tell();
process.stdin.on('end', () => void engines.leave()).resume();
