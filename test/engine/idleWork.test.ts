/**
 * File blocks in idle time: an edit in the middle computes only what follows it. Any request interrupts the work
 * without losing computed rows.
 */
import { expect, test } from 'vitest';
import { Documents } from '../../engine/server/documents.ts';
import { FileLedger } from '../../engine/server/fileLedger.ts';
import { IdlePrefill } from '../../engine/server/idlePrefill.ts';
import type { LoadedModel } from '../../engine/server/loadedModel.ts';
import { drain, harness, numberDetokenizer, tokens } from '../support/engine/harness.ts';
import { VOCAB_SIZE } from '../support/engine/fakeRunner.ts';

/** A model whose file blocks have one token per character. */
function setUp(parameters = 1) {
  const h = harness({ slots: 4096, tokenBudget: 32 });
  const documents = new Documents();
  const files = new FileLedger();
  const layout = {
    fileBlock: ({ lf }: { lf: string }) => ({
      tokenIds: [...lf].map((c) => c.charCodeAt(0) % VOCAB_SIZE),
      numHeaderTokens: 0,
    }),
  };
  const model = {
    engine: h.engine,
    layout,
    info: { parameters },
    text: { tokenizer: { createDetokenizer: numberDetokenizer } },
  } as unknown as LoadedModel;
  const text = tokens(1000, 1)
    .map((id) => String.fromCharCode(0x4000 + id))
    .join('');
  documents.open('d', 1, 'd.ts', text);
  files.touch('d');
  const idle = new IdlePrefill(documents, files);
  /** Edits the document as the assistant does. */
  const edit = (version: number, start: number, end: number, inserted: string) => {
    documents.edit('d', version, [{ start, end, text: inserted }]);
    files.touch('d');
    idle.stop(model, 'd');
  };
  return { ...h, files, model, idle, edit, computed: () => h.engine.stats().tokens.idleComputed };
}

test('idle prefill after an edit computes only what follows the edit', async () => {
  const { engine, model, idle, edit, computed } = setUp();
  expect(idle.start(model)).toBe(true);
  await drain(engine);
  expect(computed()).toBe(1000);
  expect(idle.start(model)).toBe(false);
  edit(2, 600, 603, '\u4000\u4000\u4000\u4000\u4000');
  expect(idle.start(model)).toBe(true);
  await drain(engine);
  expect(computed()).toBe(1000 + 402);
});

test('another edit stops idle prefill after the current step, and the part before the edit is not computed again', async () => {
  const { engine, model, idle, edit, computed } = setUp();
  idle.start(model);
  for (let i = 0; i < 10; i++) await engine.step();
  expect(computed()).toBe(320);
  edit(2, 900, 901, '\u4001\u4001');
  expect(engine.hasWork()).toBe(false);
  idle.start(model);
  await engine.step();
  // The edit also works in the middle of a step.
  const step = engine.step();
  edit(3, 950, 950, '\u4002');
  await step;
  expect(engine.hasWork()).toBe(false);
  idle.start(model);
  await drain(engine);
  expect(computed()).toBe(1002);
  engine.checkIntegrity();
});

test('a request that interrupts idle prefill reuses its rows', async () => {
  const { engine, model, idle, computed } = setUp();
  idle.start(model);
  for (let i = 0; i < 5; i++) await engine.step();
  idle.stop(model);
  expect(engine.hasWork()).toBe(false);
  expect(computed()).toBe(160);
  expect(idle.due).toBe(true);
  idle.start(model);
  await drain(engine);
  expect(computed()).toBe(1000);
});

test('with a slow model, idle prefill reads a file in parts with a pause between them', async () => {
  // A part has 200 tokens.
  const { engine, model, idle, computed, files } = setUp(5e9);
  for (let parts = 1; parts <= 5; parts++) {
    expect(idle.start(model)).toBe(true);
    expect(idle.due).toBe(false);
    await drain(engine);
    expect(computed()).toBe(200 * parts);
  }
  expect(idle.due).toBe(false);
  // A file that is closed meanwhile is not read any further.
  const other = setUp(5e9);
  other.idle.start(other.model);
  await drain(other.engine);
  other.files.close('d');
  expect(other.idle.due).toBe(false);
  expect(files.hasStale).toBe(false);
});

test('idle prefill computes a limited number of tokens for each version of a text; an edit resets the number', async () => {
  // A part has 20 tokens; the limit for a version is 500.
  const { engine, model, idle, edit, computed } = setUp(5e10);
  while (idle.start(model)) await drain(engine);
  expect(computed()).toBe(500);
  edit(2, 10, 10, '\u4003');
  while (idle.start(model)) await drain(engine);
  expect(computed()).toBe(1000);
});

test.each([1, 0])('after an edit %i steps into a part, everything after the edit is computed', async (numSteps) => {
  // A part has 200 tokens. Three parts are done.
  const { engine, model, idle, edit, computed } = setUp(5e9);
  for (let parts = 1; parts <= 3; parts++) {
    idle.start(model);
    await drain(engine);
  }
  idle.start(model);
  for (let i = 0; i < numSteps; i++) await engine.step();
  expect(computed()).toBe(600 + 32 * numSteps);
  edit(2, 300, 300, '\u4003\u4003');
  while (idle.start(model)) await drain(engine);
  expect(computed()).toBe(600 + 32 * numSteps + 702);
});

test('a part of idle prefill that was stopped before it began is done later', async () => {
  const { engine, model, idle, computed } = setUp(5e9);
  idle.start(model);
  idle.enabled = false;
  idle.stop(model);
  expect(computed()).toBe(0);
  idle.enabled = true;
  while (idle.start(model)) await drain(engine);
  expect(computed()).toBe(1000);
});

test('repeated interruptions do not exceed the token limit of a version', async () => {
  // A part has 20 tokens; the limit for a version is 500. None of these rows are kept.
  const { engine, model, idle, computed } = setUp(5e10);
  for (let i = 0; i < 100 && idle.start(model); i++) {
    if (i % 2) await engine.step();
    idle.stop(model);
    engine.blocks.evict();
  }
  while (idle.start(model)) await drain(engine);
  expect(computed()).toBeLessThanOrEqual(500);
});
