/**
 * Which larger models are recommended for a machine: the table's figures equal the import's, and fitting is arithmetic.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it, test } from 'vitest';
import { kvBytesPerToken } from '../../../../engine/kv/kvRows.ts';
import { parseConfig } from '../../../../engine/model/load/hfConfig.ts';
import { kvShape } from '../../../../engine/model/load/importedModel.ts';
import { planWeights } from '../../../../engine/model/load/weightPlan.ts';
import { inspectFolder } from '../../../../engine/server/inspection.ts';
import { cacheBytesAtWork } from '../../../../engine/core/memoryBudget.ts';
import {
  describeInspected,
  describeRecommended,
  describeRefused,
  formatParameters,
} from '../../../../src/models/modelItems.ts';
import { recommend } from '../../../../src/models/recommend.ts';
import { KNOWN_MODELS } from '../../../../engine/download/knownModels.ts';
import { english, portuguese, t } from '../../../support/editor/translate.ts';

/** The values of each repository's config.json. */
const CONFIGS: Record<string, Record<string, unknown>> = {
  'Qwen/Qwen2.5-Coder-0.5B-Instruct': {
    model_type: 'qwen2',
    hidden_size: 896,
    intermediate_size: 4864,
    num_hidden_layers: 24,
    num_attention_heads: 14,
    num_key_value_heads: 2,
    vocab_size: 151_936,
    tie_word_embeddings: true,
  },
  'Qwen/Qwen3-0.6B': {
    model_type: 'qwen3',
    hidden_size: 1024,
    intermediate_size: 3072,
    num_hidden_layers: 28,
    num_attention_heads: 16,
    num_key_value_heads: 8,
    head_dim: 128,
    vocab_size: 151_936,
    tie_word_embeddings: true,
  },
  'Qwen/Qwen2.5-Coder-1.5B-Instruct': {
    model_type: 'qwen2',
    hidden_size: 1536,
    intermediate_size: 8960,
    num_hidden_layers: 28,
    num_attention_heads: 12,
    num_key_value_heads: 2,
    vocab_size: 151_936,
    tie_word_embeddings: true,
  },
  'Qwen/Qwen3-1.7B': {
    model_type: 'qwen3',
    hidden_size: 2048,
    intermediate_size: 6144,
    num_hidden_layers: 28,
    num_attention_heads: 16,
    num_key_value_heads: 8,
    head_dim: 128,
    vocab_size: 151_936,
    tie_word_embeddings: true,
  },
  'Qwen/Qwen3-4B': {
    model_type: 'qwen3',
    hidden_size: 2560,
    intermediate_size: 9728,
    num_hidden_layers: 36,
    num_attention_heads: 32,
    num_key_value_heads: 8,
    head_dim: 128,
    vocab_size: 151_936,
    tie_word_embeddings: true,
  },
  'Qwen/Qwen2.5-Coder-7B-Instruct': {
    model_type: 'qwen2',
    hidden_size: 3584,
    intermediate_size: 18_944,
    num_hidden_layers: 28,
    num_attention_heads: 28,
    num_key_value_heads: 4,
    vocab_size: 152_064,
    tie_word_embeddings: false,
  },
};

describe('the table', () => {
  it.each(KNOWN_MODELS)('$id has the sizes that the engine computes for it', (model) => {
    const config = parseConfig({ rope_theta: 1e6, ...CONFIGS[model.id] });
    // The resident size that `inspect` reports.
    const resident = (precision: 'int8' | 'int4') => {
      const plan = planWeights(config, precision, config.tied, 'native');
      return ['embedding', 'embedding.scales'].reduce((sum, name) => sum - plan.stored.get(name)!.length, plan.bytes);
    };
    const { parameters } = planWeights(config, 'int8', config.tied, 'native');
    expect(model).toMatchObject({
      parameters,
      residentBytes: { int8: resident('int8'), int4: resident('int4') },
      cacheBytes: cacheBytesAtWork(kvBytesPerToken(kvShape(config, 'int8')), 0, 32_768),
    });
  });
});

it('a running model takes its weights and the rows of its context; with onnxruntime the scratch for reading a prompt, too', async () => {
  const native = await inspectFolder('model');
  for (const precision of ['int8', 'int4'] as const)
    expect(native.memoryBytes[precision]).toBe(
      native.residentBytes[precision] + native.contextTokens * native.kvBytesPerToken.int8,
    );
  const { memoryBytes, residentBytes, kvBytesPerToken: perToken, contextTokens } = await inspectFolder('model', false);
  // The scratch has float32 rows in steps of 512, with one row of padding.
  // Next to a long one there is one for short prompts.
  const longRows = 512 * Math.ceil((contextTokens + 1) / 512);
  const scratchRows = longRows + (longRows < 4096 ? 0 : 1024);
  const cacheBytes = contextTokens * perToken.int8 + scratchRows * perToken.float32;
  expect(memoryBytes).toEqual({
    int8: residentBytes.int8 + cacheBytes,
    int4: residentBytes.int4 + cacheBytes,
    float32: residentBytes.float32 + contextTokens * perToken.float32,
  });
  // A long context is counted up to an ordinary file and conversation, and the scratch takes a quarter of the cache's budget at most.
  expect(cacheBytesAtWork(1000, 4000, 1e6)).toBe(8192 * 1000 + 9728 * 4000);
  expect(cacheBytesAtWork(100_000, 500_000, 1e6)).toBe(8192 * 100_000 + 512 * 500_000);
});

test('the README has the memory figures of the list', () => {
  const readme = readFileSync('README.md', 'utf8');
  const rows = readme
    .slice(readme.indexOf('| model (computed sizes)'))
    .split('\n\n', 1)[0]!
    .split('\n')
    .slice(2)
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  expect(rows.length).toBeGreaterThan(0);
  for (const [name, , int8, int4] of rows) {
    const { residentBytes, cacheBytes } = KNOWN_MODELS.find(({ id }) => id === `Qwen/${name}`)!;
    const needed = (['int8', 'int4'] as const).map(
      (precision) => `${((residentBytes[precision] + cacheBytes) / 1e9).toFixed(1)} GB`,
    );
    expect([name, int8, int4]).toEqual([name, ...needed]);
  }
});

describe('a machine', () => {
  const ids = (availableBytes: number, readBytesPerSecond: number | null, except?: Set<string>) =>
    recommend({ availableBytes, readBytesPerSecond }, 'int8', except).map(
      ({ model, precision }) => `${model.id.split('/')[1]}${precision === 'int8' ? '' : ` in ${precision}`}`,
    );

  it('of 4 GB that reads 20 GB/s gets the models that fit', () => {
    expect(ids(4e9, 20e9)).toEqual([
      'Qwen2.5-Coder-1.5B-Instruct',
      'Qwen2.5-Coder-0.5B-Instruct',
      'Qwen3-1.7B',
      'Qwen3-0.6B',
    ]);
  });
  it('of 32 GB that reads 100 GB/s gets all models', () => {
    expect(ids(32e9, 100e9)).toHaveLength(KNOWN_MODELS.length);
  });
  it('with much but slow memory gets only models that are fast enough', () => {
    expect(ids(32e9, 8e9)).toEqual(['Qwen2.5-Coder-0.5B-Instruct', 'Qwen3-0.6B']);
  });
  it('of unknown speed is judged by its memory', () => {
    expect(ids(1.8e9, null)).toEqual([
      'Qwen2.5-Coder-1.5B-Instruct in int4',
      'Qwen2.5-Coder-0.5B-Instruct',
      'Qwen3-0.6B',
    ]);
    expect(recommend({ availableBytes: 1.8e9, readBytesPerSecond: null }, 'int8')[0]?.tokensPerSecond).toBeNull();
  });
  it('of 0.5 GB gets no recommendation', () => {
    expect(ids(0.5e9, 50e9)).toEqual([]);
  });
  it('does not get models that it already has', () => {
    expect(ids(4e9, 20e9, new Set(['Qwen/Qwen2.5-Coder-1.5B-Instruct']))[0]).toBe('Qwen2.5-Coder-0.5B-Instruct');
  });
  it('has an upper speed limit that follows from its memory', () => {
    const [best] = recommend({ availableBytes: 4e9, readBytesPerSecond: 15_515_304_960 }, 'int8');
    expect(best?.tokensPerSecond).toBe(10);
    expect(best?.memoryBytes).toBe(1_551_530_496 + 125_403_136);
  });
});

describe('the line of a model', () => {
  it('describes a built-in model in use', async () => {
    const sizes = {
      parameters: 7_499_840,
      contextTokens: 2048,
      memoryBytes: { int8: 24e6, int4: 22e6, float32: 72e6 },
    };
    const line = describeInspected(
      { ...(await inspectFolder('model')), ...sizes },
      { name: 'x', current: true, builtIn: true, bytes: 25e6, availableBytes: 1, precision: 'int8' },
      english,
    );
    expect(line).toEqual({
      label: '$(check) kvasir-starter',
      description: 'in use · built in · 7.5 million parameters · qwen3 int8 · 25.0 MB',
      detail: 'completions, chat, no edits · reads 2,048 tokens · 24.0 MB of memory when running',
    });
  });
  it('says that a model is larger than the free memory', async () => {
    const line = describeInspected(
      await inspectFolder('test/fixtures/models/llama-mha-f16'),
      { name: 'a/b', current: false, builtIn: false, bytes: 0, availableBytes: 1, precision: 'int8' },
      english,
    );
    expect(line.label).toBe('$(circle-large-outline) a/b');
    expect(line.detail).toContain('more than is free');
    expect(line.detail).toContain('chat only, no completions');
    const unknown = { ...(await inspectFolder('test/fixtures/models/llama-mha-f16')), completionFault: 'its tokens' };
    const found = {
      name: 'a/b',
      current: false,
      builtIn: false,
      bytes: 0,
      availableBytes: null,
      precision: 'int8',
    } as const;
    expect(describeInspected(unknown, found, english).detail).toContain('chat only: its tokens · ');
    expect(describeInspected({ ...unknown, canChat: false }, found, english).detail).toContain(
      'neither completions nor chat: its tokens · ',
    );
  });
  it('says that a model fits only with 4 bits', async () => {
    const model = { ...(await inspectFolder('model')), memoryBytes: { int8: 3.1e9, int4: 2.1e9, float32: 12e9 } };
    const line = (precision: 'int8' | 'int4') =>
      describeInspected(
        model,
        { name: 'a/b', current: false, builtIn: false, bytes: 0, availableBytes: 2.5e9, precision },
        english,
      ).detail;
    expect(line('int8')).toBe(
      'completions, chat, no edits · $(warning) needs 3.1 GB, more than is free; 2.1 GB in 4 bits',
    );
    expect(line('int4')).toMatch(/ · 2.1 GB of memory when running$/);
    const [best] = recommend({ availableBytes: 1.8e9, readBytesPerSecond: null }, 'int8');
    expect(describeRecommended(best!, 'int8', null, 0, english).detail).toBe('needs 1.1 GB with int4 (int8: 1.7 GB)');
  });
  it('gives the reason why a model cannot run', () => {
    expect(
      describeRefused(
        'config.json: hidden_size is missing',
        {
          name: 'a',
          current: false,
          builtIn: false,
          source: 'Ollama',
          bytes: 0,
          availableBytes: null,
          precision: 'int8',
        },
        english,
      ),
    ).toEqual({ label: '$(error) a', description: 'Ollama', detail: 'config.json: hidden_size is missing' });
  });
  it('shows a recommended model with the basis of its estimate', () => {
    const [best] = recommend({ availableBytes: 4e9, readBytesPerSecond: 20e9 }, 'int8');
    expect(describeRecommended(best!, 'int8', 20e9, 0, english).detail).toBe(
      'needs 1.7 GB · estimate: at most 13 tokens/s (20.0 GB/s ÷ 1.6 GB)',
    );
    expect(describeRecommended({ ...best!, tokensPerSecond: null }, 'int8', null, 0, english).detail).not.toContain(
      'estimate',
    );
    const { label, description } = describeRecommended(best!, 'int8', null, 0, english);
    expect(label).toBe('$(cloud-download) Download Qwen2.5-Coder 1.5B (about 1.9 GB)');
    expect(description).toBe('completions, chat, edits · Apache-2.0');
    expect(describeRecommended(best!, 'int8', null, 9e8, english).description).toBe(
      '900 MB are here already · Apache-2.0',
    );
  });
  it('fits the width of the list in both languages', async () => {
    const inspected = await inspectFolder('model');
    const sized = {
      ...inspected,
      contextTokens: 131_072,
      canEdit: true,
      memoryBytes: { int8: 20.1e9, int4: 12.1e9, float32: 99e9 },
    };
    const texts = JSON.parse(readFileSync('l10n/bundle.l10n.pt-br.json', 'utf8')) as Record<string, string>;
    for (const words of [
      english,
      { ...portuguese, t: (text: string, ...values: (string | number)[]) => t(texts[text]!, ...values) },
    ]) {
      const of = (availableBytes: number) =>
        [true, false].map((canEdit) =>
          describeInspected(
            { ...sized, canEdit },
            { name: 'a/b', current: false, builtIn: false, bytes: 0, availableBytes, precision: 'int8' },
            words,
          ).detail.replace('$(warning)', '⚠'),
        );
      const recommended = [23.1e9, 6e9, 2.2e9].flatMap((availableBytes) =>
        recommend({ availableBytes, readBytesPerSecond: 95e9 }, 'int8').map(
          (each) => describeRecommended(each, 'int8', 95e9, 0, words).detail,
        ),
      );
      for (const line of [...of(30e9), ...of(15e9), ...of(1e9), ...recommended])
        expect([line, line.length < 85]).toEqual([line, true]);
    }
  });
  it('formats numbers of parameters', () => {
    expect(formatParameters(7_499_840, english)).toBe('7.5 million parameters');
    expect(formatParameters(494_032_768, english)).toBe('494 million parameters');
    expect(formatParameters(7_615_616_512, portuguese)).toBe('7,6 billion parameters');
  });
});
