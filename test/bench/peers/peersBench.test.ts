/**
 * Tests suite `peers` on its tiny shape with real driver processes. Skips peers that are not set up on this machine.
 */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { DriverProcess } from './driverProcess.ts';
import { modelFile, places, PEERS, type Places } from './participants.ts';
import { peersBench, SCENES } from './peersBench.ts';
import { agreement, medians, peersReport } from './peersReport.ts';
import { MEASURES } from './workload.ts';
import { temporaryFolder } from '../../support/model/fixtures.ts';

const temporary = temporaryFolder();
afterAll(() => temporary.remove());
const options = (at: Places) => ({ shape: 'tiny' as const, scenes: SCENES, rounds: 1, threads: 1, at });

test('Kvasir alone gives every figure, and a second run adds rounds with other prompts', async () => {
  const at = places(temporary.dir);
  const first = await peersBench({ ...options(at), peers: [] });
  const second = await peersBench({ ...options(at), peers: [], scenes: ['small'], earlier: first });
  expect(Object.keys(medians(first.samples))).toEqual(Object.keys(MEASURES));
  for (const { figures, memory } of second.samples) {
    for (const [name, value] of Object.entries(figures)) expect(value, name).toBeGreaterThan(0);
    expect(Math.min(...memory!)).toBeGreaterThan(0);
  }
  expect(peersReport(second)).toContain('| small |');
  expect(second.samples.filter(({ scene }) => scene === 'small').map(({ round }) => round)).toEqual([0, 1]);
  await expect(peersBench({ ...options(at), peers: [], threads: 2, earlier: first })).rejects.toThrow(
    'cannot be added to',
  );
});

test('the error for a peer that is not set up names the command that sets it up', async () => {
  await expect(peersBench({ ...options(places(temporary.dir)), peers: ['llama'] })).rejects.toThrow(
    /^llama: .*q8_0\.gguf is missing.*--setup --peers llama --shape tiny/,
  );
});

test('the error for a driver that dies includes the output of the driver', async () => {
  const log = path.join(temporary.dir, 'driver.log');
  const driver = new DriverProcess(
    'Broken',
    [process.execPath, '-e', 'console.error("out of luck"); process.exit(3)'],
    log,
  );
  await expect(driver.generate({ prompts: [[1]], tokens: 1 })).rejects.toThrow(
    /Broken ended; the last lines of .*:\nout of luck/,
  );
  const absent = new DriverProcess('Absent', [path.join(temporary.dir, 'no-such-program')], log);
  await expect(absent.generate({ prompts: [[1]], tokens: 1 })).rejects.toThrow('ENOENT');
  expect(readFileSync(log, 'utf8')).toContain('no-such-program');
});

const at = places('.cache');
const formats = { llama: 'q4_0-head.gguf', openvino: 'openvino', transformers: 'transformers' } as const;
for (const peer of PEERS) {
  test.skipIf(!existsSync(modelFile(at, 'tiny', formats[peer])))(`${peer} computes the same function`, async () => {
    const { samples, participants } = await peersBench({ ...options(at), peers: [peer] });
    for (const id of Object.keys(participants))
      expect(agreement(samples, 'kvasir', id), id).toBeGreaterThan(
        id === 'llama-q4' || id === 'kvasir-int4' ? 0.5 : 0.8,
      );
  });
}
