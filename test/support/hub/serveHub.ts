/**
 * A FakeHub as a process, for tests whose editor has a network of its own: serves the built-in model under other names.
 * Each line of its input changes faults; each line of its output is what it has been asked for so far.
 * `node serveHub.ts PORT`
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { type Faults, FakeHub } from './fakeHub.ts';

const files: Record<string, Buffer> = {};
for (const name of readdirSync('model').filter((each) => /\.(json|safetensors)$/.test(each)))
  files[name] = readFileSync(path.join('model', name));
const manifest = JSON.parse(String(files['kvasir.json'])) as object;
files['kvasir.json'] = Buffer.from(JSON.stringify({ ...manifest, name: 'downloaded-model' }));
delete files['corpus_sources.json'];

const hub = await new FakeHub({
  'Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF': files,
  'kvasir-test/other': files,
  'kvasir-test/third': files,
  'kvasir-test/gated': files,
}).start(Number(process.argv[2]));
const tell = () => console.log(JSON.stringify(hub.seen));
for await (const line of createInterface({ input: process.stdin })) {
  const { cut, ...faults } = JSON.parse(line) as Partial<Faults> & { cut?: boolean };
  Object.assign(hub.faults, faults);
  if (cut) hub.cut();
  tell();
}
await hub.stop();
