/** A problem report has the facts that a maintainer needs, and no code, paths or file names. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EngineStats, ModelInfo } from '../../../../engine/protocol/stats.ts';
import { problemReport, type ReportFacts, redact } from '../../../../src/monitor/problemReport.ts';

const MODEL: ModelInfo = {
  name: 'kvasir-starter',
  architecture: 'qwen3',
  parameters: 7_499_840,
  precision: 'int8',
  kv: 'int8',
  contextTokens: 2048,
  vocabSize: 6144,
  weightsBytes: 11_562_752,
  residentBytes: 7_630_592,
  threads: 2,
  kvBytesPerToken: 1364,
  loadMs: 123.4,
  imported: false,
  canComplete: true,
  canChat: true,
  canEdit: false,
  readsSnippets: false,
  copiesFiles: false,
  note: { en: '', pt: '' },
  chatNote: { en: '', pt: '' },
};
const NO_TIMES = { p50: 0, p95: 0, p99: 0, count: 0, sum: 0 };
const NONE = { queueMs: NO_TIMES, ttftMs: NO_TIMES, tpotMs: NO_TIMES, stepMs: NO_TIMES };
const CLASS = {
  queueMs: { p50: 1, p95: 6, p99: 7, count: 3, sum: 8 },
  ttftMs: { p50: 21, p95: 31, p99: 41, count: 2, sum: 52 },
  tpotMs: { p50: 11, p95: 12, p99: 13, count: 2, sum: 23 },
  stepMs: NO_TIMES,
};
const STATS: EngineStats = {
  model: MODEL,
  maxBytes: 1e9,
  poolBytes: 5e6,
  storeBytes: 0,
  scratchBytes: 0,
  bufferBytes: 0,
  diskBytes: 0,
  diskMaxBytes: 0,
  kvBytesPerToken: 1364,
  poolSlots: { total: 1, free: 0, held: 1 },
  requests: { waiting: 0, running: 1, done: 2, failed: 3, aborted: 4 },
  tokens: {
    prompt: 100,
    promptComputed: 40,
    promptCached: 60,
    promptFromDisk: 0,
    promptShifted: 0,
    idleComputed: 7,
    generated: 9,
    drafted: 0,
    accepted: 0,
  },
  events: { steps: 11, evictions: 0, preemptions: 0, promotions: 0, demotions: 0 },
  tokensPerSecond: 0,
  utilisation: 0.25,
  busyMs: 9,
  stepMs: { p50: 1, p95: 2, p99: 3, count: 11, sum: 9 },
  batchTokens: 4,
  batchSequences: 1,
  ttftMs: { p50: 20, p95: 30, p99: 40, count: 2, sum: 50 },
  classes: { completion: CLASS, chat: NONE, summary: NONE, idle: NONE },
  memory: { processBytes: 3e8, totalBytes: 8e9, availableBytes: 4e9 },
  files: [{ docId: 'file:///home/ann/secret-project/src/plan.ts', path: 'secret-project/src/plan.ts' } as never],
};
const FACTS: ReportFacts = {
  version: '0.1.0',
  platform: 'linux-x64',
  node: '24.1.0',
  editor: 'VS Code 1.104.0 (desktop)',
  language: 'en',
  builtIn: true,
  state: { kind: 'ready', model: MODEL },
  stats: STATS,
  trace:
    '{"traceEvents":[{"ph":"M","name":"process_name"},{"ph":"X","name":"run","dur":4000},{"ph":"X","name":"run","dur":2000},{"ph":"X","name":"completion 7: decode","dur":1500}]}',
  settings: [],
  problems: [],
  completion: undefined,
  names: [],
};
const report = (facts: Partial<ReportFacts> = {}) => problemReport({ ...FACTS, ...facts });

describe('a report', () => {
  it('has versions, platform and statistics', () => {
    const text = report();
    for (const part of [
      'Kvasir 0.1.0, linux-x64, Node 24.1.0',
      'VS Code 1.104.0',
      'Engine: ready',
      'built-in, qwen3, 7,499,840 parameters, 2,048 tokens',
      'can complete, chat',
      'cached files: 1',
      '3 failed',
      'P95 2.0',
      'run 2 times, 3.0 ms each; completion decode 1 times, 1.5 ms each',
      'No completion has been requested.',
    ])
      expect(text).toContain(part);
  });

  it("has the shape of the user's own model, not its name", () => {
    const text = report({
      builtIn: false,
      state: { kind: 'ready', model: { ...MODEL, name: 'acme-internal' } },
      stats: null,
      settings: [{ name: 'kvasir.model', value: '/home/ann/acme-internal' }],
    });
    expect(text).toContain('- Model: custom, qwen3');
    expect(text).toContain('- kvasir.model: custom');
    expect(text).not.toMatch(/acme|ann/);
  });

  it('has changed settings, without values that may be names', () => {
    const text = report({
      settings: [
        { name: 'kvasir.engine.threads', value: 3 },
        { name: 'kvasir.completion.exclude', value: ['**/acme/**'] },
        { name: 'kvasir.modelFolders', value: ['/acme'] },
        { name: 'kvasir.completion.enable', value: false },
      ],
    });
    for (const line of [
      '- kvasir.engine.threads: 3',
      '- kvasir.completion.exclude: changed (1 entries)',
      '- kvasir.modelFolders: changed (1 entries)',
      '- kvasir.completion.enable: false',
    ])
      expect(text).toContain(line);
    expect(text).not.toContain('acme');
  });

  it("has the last completion's reason and times, without its place and text", () => {
    const text = report({
      completion: {
        place: 'src/plan.ts:3:7',
        at: new Date(0),
        trigger: 'typing',
        source: 'engine',
        shown: 'launchRockets()',
        detail: 'plan.ts',
        waitedMs: 50,
        totalMs: 210,
        diagnostics: ['plan.ts: lines 3-9 left out'],
        usage: { promptTokens: 80, cachedTokens: 70, completionTokens: 5, blockTokens: 60 },
        timings: { queueMs: 1, ttftMs: 90, tpotMs: 12 },
      },
    });
    expect(text).toContain('15 characters from engine');
    expect(text).toContain('80 tokens, 70 cached');
    expect(text).not.toMatch(/launchRockets|plan|3:7/);
    expect(
      report({
        completion: {
          place: 'x',
          at: new Date(0),
          trigger: 'explicit',
          reason: 'the engine is down',
          waitedMs: 0,
          totalMs: 1,
          diagnostics: [],
        },
      }),
    ).toContain('nothing shown: the engine is down');
  });

  it('has the last errors without names', () => {
    const text = report({
      state: {
        kind: 'failed',
        retry: true,
        message: 'The setting kvasir.model does not name a folder or a file: /home/ann/secret models/x',
      },
      stats: null,
      trace: null,
      problems: [
        {
          at: new Date(0),
          level: 'error',
          text: 'config.json: hidden_size is missing in /home/ann/secret models/x; a model is a folder with config.json',
        },
      ],
      names: ['ann'],
    });
    expect(text).toContain('Engine: failed: The setting kvasir.model does not name a folder or a file: <path>');
    expect(text).toContain(
      '00:00:00 error: config.json: hidden_size is missing in <path>; a model is a folder with config.json',
    );
    expect(text).not.toMatch(/ann|secret/);
  });

  it('is complete without a readable trace', () => {
    expect(report({ trace: 'x' })).toContain('Trace: not readable');
  });
});

describe('redact', () => {
  it.each([
    ['cannot open C:\\Users\\Ann Lee\\plan.ts: no such file', 'cannot open <path>: no such file'],
    ['file:///home/ann/a%20b.ts is too long', '<path>'],
    ['~/models/acme is no folder', '<path>'],
    ['\\\\server\\share\\acme, or not', '<path>, or not'],
    ['src/engine/plan.ts left out', '<path> left out'],
    ['plan.ts: lines 1-3 of 9 left out', '<file>: lines 1-3 of 9 left out'],
    ['tokenizer.json is not valid JSON at line 3 column 15.', 'tokenizer.json is not valid JSON at line 3 column 15.'],
    ['the engine stopped: it did not start within 30 s', 'the engine stopped: it did not start within 30 s'],
    ['version 2.1 of 3', 'version 2.1 of 3'],
    ['two\nlines', 'two lines'],
  ])('%j', (text, expected) => {
    expect(redact(text)).toBe(expected);
  });

  it('removes absolute paths completely, anywhere in the text', () => {
    const part = fc.stringMatching(/^[a-z]{4,9}( [a-z]{4,9})?$/).map((word) => `q${word}q`);
    const path = fc
      .tuple(fc.constantFrom('/', 'C:\\', '~/', 'file:///', '\\\\'), fc.array(part, { minLength: 1, maxLength: 4 }))
      .map(([root, parts]) => root + parts.join(root.includes('\\') ? '\\' : '/'));
    fc.assert(
      fc.property(
        path,
        fc.constantFrom(
          'cannot open {}: no such file',
          '{} is missing',
          'the folder "{}" is empty',
          'in {}; try again',
        ),
        (where, sentence) => {
          expect(redact(sentence.replace('{}', () => where))).not.toMatch(/q[a-z]+/);
        },
      ),
      { seed: 1, numRuns: 500 },
    );
  });

  it('removes known names', () => {
    expect(redact('the file Quarterly Plan.xlsx of ann', ['Quarterly Plan.xlsx', 'ann'])).toBe(
      'the file <name> of <name>',
    );
  });
});
