/** Installs the VS Code and the browser of the editor tests, so that `npm test` can do it beside its other parts. */
import path from 'node:path';
import { prepareEditor } from './setup.ts';

if (`${process.platform}-${process.arch}` === 'linux-x64') await prepareEditor(path.resolve('.cache'));
