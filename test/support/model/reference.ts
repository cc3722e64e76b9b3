/**
 * A plain float64 forward pass of the three architectures. It is written from the papers and the config only and shares
 * no code with the engine, so agreement on an unseen shape is meaningful.
 */
export interface Tensor {
  shape: number[];
  data: Float32Array;
}

export interface ReferenceConfig {
  model_type: string;
  hidden_size: number;
  intermediate_size: number;
  num_hidden_layers: number;
  num_attention_heads: number;
  num_key_value_heads: number;
  head_dim?: number;
  vocab_size: number;
  rms_norm_eps: number;
  rope_theta?: number;
  rope_scaling?: Record<string, unknown> | null;
  rope_parameters?: Record<string, unknown>;
  tie_word_embeddings?: boolean;
  [key: string]: unknown;
}

function rotaryFrequencies(config: ReferenceConfig, headDim: number): number[] {
  const rope = {
    rope_theta: config.rope_theta ?? 10_000,
    ...(config.rope_parameters ?? {}),
    ...(config.rope_scaling ?? {}),
  } as Record<string, unknown>;
  const base = Array.from({ length: headDim / 2 }, (_, i) => 1 / (rope.rope_theta as number) ** ((2 * i) / headDim));
  const type = (rope.rope_type ?? rope.type ?? 'default') as string;
  const factor = rope.factor as number;
  if (type === 'linear') return base.map((f) => f / factor);
  if (type !== 'llama3') return base;
  const low = rope.low_freq_factor as number;
  const high = rope.high_freq_factor as number;
  const original = rope.original_max_position_embeddings as number;
  return base.map((f) => {
    const wavelength = (2 * Math.PI) / f;
    if (wavelength < original / high) return f;
    if (wavelength > original / low) return f / factor;
    const smooth = (original / wavelength - low) / (high - low);
    return (1 - smooth) * (f / factor) + smooth * f;
  });
}

/** Logits of every position, [ids.length][vocab_size]. */
export function referenceLogits(
  config: ReferenceConfig,
  tensors: Map<string, Tensor>,
  ids: readonly number[],
): number[][] {
  const heads = config.num_attention_heads;
  const kvHeads = config.num_key_value_heads;
  const headDim = config.head_dim ?? config.hidden_size / heads;
  const n = ids.length;
  const get = (name: string) => {
    const tensor = tensors.get(name);
    if (!tensor) throw new Error(name);
    return tensor;
  };
  const linear = (x: number[], name: string): number[] => {
    const { shape, data } = get(`${name}.weight`);
    const bias = tensors.get(`${name}.bias`)?.data;
    return Array.from({ length: shape[0]! }, (_, o) =>
      x.reduce((sum, v, i) => sum + v * data[o * shape[1]! + i]!, bias ? bias[o]! : 0),
    );
  };
  const norm = (x: number[], name: string): number[] => {
    const { data } = get(`${name}.weight`);
    const scale = 1 / Math.sqrt(x.reduce((sum, v) => sum + v * v, 0) / x.length + config.rms_norm_eps);
    return x.map((v, i) => v * scale * data[i]!);
  };
  const frequencies = rotaryFrequencies(config, headDim);
  const half = headDim / 2;
  const rotate = (x: number[], p: number): number[] =>
    x.map((v, i) => {
      const angle = p * frequencies[i % half]!;
      return v * Math.cos(angle) + (i < half ? -x[i + half]! : x[i - half]!) * Math.sin(angle);
    });
  const split = (x: number[], count: number): number[][] =>
    Array.from({ length: count }, (_, h) => x.slice(h * headDim, (h + 1) * headDim));

  const embedding = get('model.embed_tokens.weight');
  let states = ids.map((id) =>
    Array.from(embedding.data.subarray(id * config.hidden_size, (id + 1) * config.hidden_size)),
  );
  for (let l = 0; l < config.num_hidden_layers; l++) {
    const at = `model.layers.${l}`;
    const normed = states.map((x) => norm(x, `${at}.input_layernorm`));
    const perHead = (x: number[], p: number, kind: 'q' | 'k', count: number) =>
      split(linear(x, `${at}.self_attn.${kind}_proj`), count).map((h) =>
        rotate(config.model_type === 'qwen3' ? norm(h, `${at}.self_attn.${kind}_norm`) : h, p),
      );
    const q = normed.map((x, p) => perHead(x, p, 'q', heads));
    const k = normed.map((x, p) => perHead(x, p, 'k', kvHeads));
    const v = normed.map((x) => split(linear(x, `${at}.self_attn.v_proj`), kvHeads));
    const mixed = Array.from({ length: n }, (_, t) =>
      q[t]!.flatMap((query, h) => {
        const g = Math.floor(h / (heads / kvHeads));
        const scores = Array.from(
          { length: t + 1 },
          (_, s) => query.reduce((sum, x, i) => sum + x * k[s]![g]![i]!, 0) / Math.sqrt(headDim),
        );
        const max = Math.max(...scores);
        const weights = scores.map((s) => Math.exp(s - max));
        const total = weights.reduce((a, b) => a + b, 0);
        return Array.from({ length: headDim }, (_, i) =>
          weights.reduce((sum, w, s) => sum + (w / total) * v[s]![g]![i]!, 0),
        );
      }),
    );
    states = states.map((x, t) => linear(mixed[t]!, `${at}.self_attn.o_proj`).map((y, i) => x[i]! + y));
    states = states.map((x) => {
      const y = norm(x, `${at}.post_attention_layernorm`);
      const gate = linear(y, `${at}.mlp.gate_proj`);
      const up = linear(y, `${at}.mlp.up_proj`);
      const hidden = gate.map((value, i) => (value / (1 + Math.exp(-value))) * up[i]!);
      return linear(hidden, `${at}.mlp.down_proj`).map((z, i) => x[i]! + z);
    });
  }
  const head = tensors.has('lm_head.weight') ? 'lm_head' : 'model.embed_tokens';
  return states.map((x) => linear(norm(x, 'model.norm'), head));
}
