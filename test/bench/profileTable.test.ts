import { expect, test } from 'vitest';
import { DataType, OnnxWriter } from '../../engine/model/graph/onnxWriter.ts';
import { buildStepGraph } from '../../engine/model/graph/stepGraph.ts';
import { parseConfig } from '../../engine/model/load/hfConfig.ts';
import { planWeights } from '../../engine/model/load/weightPlan.ts';
import { partsOf, readGraph } from './graphParts.ts';
import { byPart, linearMs, type ProfileEvent, profileOf, profileReport } from './profileTable.ts';
import { SHAPES } from './shapes.ts';

test('the nodes of a graph file are read back as written', () => {
  const g = new OnnxWriter();
  g.input('x', 'float32', [2]);
  const [y] = g.node('Cast', ['x'], 1, { to: DataType.int32 });
  g.node('Add', [y!, y!], ['z']);
  g.output('z', 'int32', [2]);
  expect(readGraph(g.finish()).map(({ op, inputs, outputs }) => ({ op, inputs, outputs }))).toEqual([
    { op: 'Cast', inputs: ['x'], outputs: [y] },
    { op: 'Add', inputs: [y, y], outputs: ['z'] },
  ]);
});

test("every node of the engine's own graph is assigned to its part", () => {
  const config = parseConfig({ ...SHAPES.tiny });
  const nodes = readGraph(
    buildStepGraph(config, planWeights(config, 'int8', true, 'blocks'), { kv: 'int8', weightFile: 'w' }),
  );
  const parts = partsOf(nodes);
  const count = (part: string): number => [...parts.values()].filter((found) => found === part).length;
  expect(parts.size).toBe(nodes.length);
  for (const linear of ['qkv', 'o', 'gate', 'up', 'down'])
    expect(count(`linear: ${linear}`), linear).toBe(config.numLayers);
  expect(count('linear: head')).toBe(1);
  // The head is in blocks here, so its operator codes its input itself.
  expect(count('linear layers: coding their input')).toBe(4 * 4 * config.numLayers);
  // The input projection has a scale and a bias. The scale of `up` multiplies the scale of the input of `down`. The
  // others have only a scale.
  expect(count('linear layers: scaling their output')).toBe(6 * config.numLayers);
  // The graph has the window lane six times: together and separate, each of them alone and beside the prefill lane; for
  // measuring; and in tiles. When separate, its operand is gathered.
  expect(count('attention: queries times window keys')).toBe((4 + 2 * 2) * config.numLayers);
  expect(count('attention: prefill lane')).toBe(config.numLayers);
  expect(count('attention: probabilities times window values')).toBe((4 + 2 * 2) * config.numLayers);
  // In tiles there are three products: for the coefficients, for the window and for the step's own tokens. Elsewhere
  // there are two.
  expect(count('attention: key bias')).toBe((2 * 5 + 3) * config.numLayers);
  expect(count('norms')).toBe(2 * config.numLayers + 1);
});

const node = (name: string, ts: number, dur: number, op: string, shape: number[], input = shape): ProfileEvent => ({
  cat: 'Node',
  name: `${name}_kernel_time`,
  ts,
  dur,
  args: { op_name: op, input_type_shape: [{ float: input }], output_type_shape: [{ float: shape }] },
});
const run = (ts: number, dur: number): ProfileEvent => ({ cat: 'Session', name: 'model_run', ts, dur });
const parts = new Map([
  ['a', 'linear: qkv'],
  ['b', 'attention: queries times window keys'],
  ['c', 'attention: passes'],
  ['d', 'attention: passes'],
  ['e', 'attention: passes'],
]);
const step = (ts: number, factor: number): ProfileEvent[] => [
  node('a', ts + 10, 2000 * factor, 'MatMul', [1, 8]),
  node('b', ts + 2010, 1000, 'MatMul', [1, 2, 100]),
  node('c', ts + 3010, 500, 'Add', [1, 2, 101]),
  node('d', ts + 3510, 100, 'Add', [2, 1], [2, 200]),
  node('e', ts + 3620, 200, 'ReduceMax', [1, 2, 1], [1, 2, 101]),
  node('new', ts + 3610, 50, 'Transpose', [2]),
  run(ts, 5000),
];

test('a profile is the mean over its last runs, by part and by operator', () => {
  const profile = profileOf('x', [...step(0, 100), ...step(300_000, 1), ...step(310_000, 2)], [6, 8], parts);
  expect(profile).toMatchObject({ steps: 2, callMs: 7, runMs: 5 });
  expect(profile.operatorsMs).toBeCloseTo(3 + 1 + 0.5 + 0.1 + 0.2 + 0.05);
  expect(linearMs(profile)).toBeCloseTo(3);
  expect(byPart(profile).map(({ part }) => part)).toEqual([
    'linear: qkv',
    'attention: queries times window keys',
    'attention: passes over the window',
    'attention: passes over the new rows',
    'put in by the runtime',
  ]);
  expect(profile.rows[0]).toMatchObject({ op: 'MatMul', shape: '1×8', count: 1 });
  expect(byPart(profile)[2]!.ms).toBeCloseTo(0.5 + 0.2);
  expect(profileReport(profile, 3.5)).toContain('| call from JavaScript, nothing profiled | 3.50 | 50.0% |');
  expect(profileReport(profile)).toContain('| feeds and outputs across the border | 2.00 | 28.6% |');
});

test('a profile with fewer runs than calls is refused', () => {
  expect(() => profileOf('x', step(0, 1), [1, 2], parts)).toThrow('The profile has 1 runs; 2 were made.');
});
