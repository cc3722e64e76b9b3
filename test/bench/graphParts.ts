/**
 * Finds the part of the model that each node of a step graph belongs to, so that a profile can be read. Reads the ONNX
 * file's nodes in the order in which they were written and identifies each by the weights and feeds that it takes.
 * Knows the names of weightPlan and stepGraph; calls unknown nodes "other". Pure.
 */
import { BinaryReader } from '@bufbuild/protobuf/wire';

export interface GraphNode {
  name: string;
  op: string;
  inputs: string[];
  outputs: string[];
}

/** The fields of a message, by number. */
function* fields(bytes: Uint8Array): Generator<{ field: number; bytes?: Uint8Array }> {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [field, wire] = reader.tag();
    if (wire === 2) yield { field, bytes: reader.bytes() };
    else {
      reader.skip(wire);
      yield { field };
    }
  }
}

/** Operators that contain a graph. Their time is the time of the nodes inside them. */
export const NESTING = new Set(['If', 'Scan']);

/**
 * The nodes of an ONNX model file. The nodes of an inner graph follow the node that contains it. Their inputs have the
 * names of the outer graph. Field numbers are those of onnx.proto.
 */
export function readGraph(model: Uint8Array): GraphNode[] {
  const nodes: GraphNode[] = [];
  for (const { field, bytes: graph } of fields(model)) if (field === 7 && graph) readNodes(graph, nodes, new Map());
  return nodes;
}

/** @param outside maps names of the graph's inputs to names in the outer graph. */
function readNodes(graph: Uint8Array, nodes: GraphNode[], outside: ReadonlyMap<string, string>): void {
  const decoder = new TextDecoder();
  for (const { field: part, bytes } of fields(graph)) {
    if (part !== 1 || !bytes) continue;
    const node: GraphNode = { name: '', op: '', inputs: [], outputs: [] };
    nodes.push(node);
    const inside: Uint8Array[] = [];
    for (const { field: which, bytes: text } of fields(bytes)) {
      if (!text) continue;
      if (which === 1) node.inputs.push(outside.get(decoder.decode(text)) ?? decoder.decode(text));
      else if (which === 2) node.outputs.push(decoder.decode(text));
      else if (which === 3) node.name = decoder.decode(text);
      else if (which === 4) node.op = decoder.decode(text);
      else if (which === 5)
        for (const { field, bytes: branch } of fields(text)) if (field === 6 && branch) inside.push(branch);
    }
    for (const body of inside)
      readNodes(
        body,
        nodes,
        new Map([...outside, ...inputsOf(body).map((name, i) => [name, node.inputs[i]!] as const)]),
      );
  }
}

/**
 * Names of a graph's inputs, in the order of the node's inputs. A branch has none. The body of a scan has the tensors
 * that the scan iterates over.
 */
function inputsOf(graph: Uint8Array): string[] {
  const decoder = new TextDecoder();
  return [...fields(graph)].flatMap(({ field, bytes }) =>
    field === 11 && bytes
      ? [...fields(bytes)].flatMap((part) => (part.field === 1 && part.bytes ? [decoder.decode(part.bytes)] : []))
      : [],
  );
}

const LINEAR = /^(?:l\d+\.(qkv|o|gate|up|down)|(head))$/;
const PRODUCT = /MatMul|Gemm/;
const CODING = new Set(['Abs', 'ReduceMax', 'Div', 'QuantizeLinear']);

export const LINEAR_PREFIX = 'linear: ';
/** The result of these products has a column for each window slot. */
export const WINDOW_KEYS = 'attention: queries times window keys';
/** Element-wise operators. Their size shows which of them cover the whole window. */
export const PASSES = 'attention: passes';

/** The part of each node, by node name. */
export function partsOf(nodes: readonly GraphNode[]): Map<string, string> {
  const producer = new Map(nodes.flatMap((node) => node.outputs.map((output) => [output, node] as const)));
  const consumers = new Map<string, GraphNode[]>();
  for (const node of nodes)
    for (const input of node.inputs) consumers.set(input, [...(consumers.get(input) ?? []), node]);
  const parts = new Map<string, string>();
  /** The passes that convert an operand to codes belong to its product. */
  const markCoding = (value: string | undefined): void => {
    const node = value === undefined ? undefined : producer.get(value);
    if (!node || parts.has(node.name) || !CODING.has(node.op)) return;
    parts.set(node.name, 'linear layers: coding their input');
    for (const input of node.inputs.slice(0, 2)) markCoding(input);
  };

  for (const node of nodes) {
    const layer = PRODUCT.test(node.op) && node.inputs.map((input) => LINEAR.exec(input)).find(Boolean);
    if (!layer) continue;
    parts.set(node.name, LINEAR_PREFIX + (layer[1] ?? layer[2]));
    markCoding(node.inputs[0]);
    // First the scale of the rows, then the bias.
    for (
      let [output] = node.outputs, next = consumers.get(output!)?.[0];
      next && (next.op === 'Mul' || next.op === 'Add') && !parts.has(next.name);
      output = next.outputs[0], next = consumers.get(output!)?.[0]
    ) {
      if (next.op === 'Add' && !next.inputs.some((input) => /Bias$/.test(input))) break;
      parts.set(next.name, 'linear layers: scaling their output');
    }
  }

  let place = 'embedding';
  for (const node of nodes) {
    const known = parts.get(node.name);
    if (known?.startsWith(LINEAR_PREFIX)) place = known.slice(LINEAR_PREFIX.length);
    if (known) continue;
    if (/LayerNorm/.test(node.op) && !node.inputs.some((input) => /qkNorm/.test(input))) parts.set(node.name, 'norms');
    else if (place === 'embedding') parts.set(node.name, 'embedding');
    else if (place === 'qkv') parts.set(node.name, attentionPart(node, producer));
    else if (place === 'gate' || place === 'up') parts.set(node.name, 'activation of the FFN');
    else parts.set(node.name, 'other');
  }
  return parts;
}

/** The part of a node between the input and output projections of attention. */
function attentionPart({ op, inputs }: GraphNode, producer: ReadonlyMap<string, GraphNode>): string {
  const right = producer.get(inputs[1] ?? '');
  // Pages are gathered when tokens attend separately.
  const all = right?.op === 'Gather' ? [...inputs, ...right.inputs] : inputs;
  const takes = (pattern: RegExp): boolean => all.some((input) => pattern.test(input));
  if (NESTING.has(op)) return PASSES;
  if (op === 'GroupQueryAttention') return 'attention: prefill lane';
  if (takes(/^k\d+$/)) return WINDOW_KEYS;
  if (takes(/^v\d+$/)) return 'attention: probabilities times window values';
  if (!PRODUCT.test(op)) return PASSES;
  return takes(/\.keyBias$|^rotations$|^poolRotations$|^newRotations$/)
    ? 'attention: key bias'
    : "attention: products with the step's own tokens";
}
