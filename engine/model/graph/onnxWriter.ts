/**
 * Builds an ONNX model as protobuf bytes, with the messages and fields that the step graph needs. Field numbers are
 * those of onnx.proto (IR version 10). Large tensors stay in an external file. Knows no operators.
 */
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';

/** Values of onnx.TensorProto.DataType. */
export const DataType = { float32: 1, uint8: 2, int8: 3, int16: 5, int32: 6, int64: 7, bool: 9, float64: 11 } as const;
export type DataTypeName = keyof typeof DataType;

export interface ExternalTensor {
  readonly name: string;
  readonly type: DataTypeName;
  readonly dims: readonly number[];
  /** Bytes from the start of the external file. */
  readonly offset: number;
  readonly length: number;
}

/** Value of an attribute. `number` is an integer, `{ float }` a float, an array a list of integers. */
export type Attribute = number | string | readonly number[] | { readonly float: number };

const ATTRIBUTE_FLOAT = 1;
const ATTRIBUTE_INT = 2;
const ATTRIBUTE_STRING = 3;
const ATTRIBUTE_GRAPH = 5;
const ATTRIBUTE_INTS = 7;
const EXTERNAL = 1;
const OPSET = 21;

type Fill = (writer: BinaryWriter) => void;

function message(writer: BinaryWriter, field: number, fill: Fill): void {
  writer.tag(field, WireType.LengthDelimited).fork();
  fill(writer);
  writer.join();
}

function text(writer: BinaryWriter, field: number, value: string): void {
  writer.tag(field, WireType.LengthDelimited).string(value);
}

function integer(writer: BinaryWriter, field: number, value: number): void {
  writer.tag(field, WireType.Varint).int64(value);
}

/** Type of an input or output of a nested graph, with the known dimensions. */
export interface InnerValue {
  readonly type: DataTypeName;
  readonly dims: readonly (number | string)[];
}

export class OnnxWriter {
  private readonly graph = new BinaryWriter();
  /** The graph or nested graph that gets the next node. Constants and weights always go into the graph. */
  private nodes = this.graph;
  private numNames = 0;
  private readonly constants = new Map<string, string>();

  /** Dimensions are numbers or names of free dimensions. */
  input(name: string, type: DataTypeName, dims: readonly (number | string)[]): string {
    this.value(11, name, type, dims);
    return name;
  }

  output(name: string, type: DataTypeName, dims: readonly (number | string)[]): void {
    this.value(12, name, type, dims);
  }

  /** A small constant inside the graph. Equal constants are written once. */
  constant(
    type: DataTypeName,
    dims: readonly number[],
    data: Float32Array | BigInt64Array | Uint8Array | Int8Array,
  ): string {
    const raw = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    const key = `${type}|${dims.join()}|${Buffer.from(raw).toString('base64')}`;
    const known = this.constants.get(key);
    if (known) return known;
    const name = `c${this.constants.size}`;
    this.constants.set(key, name);
    this.tensor(name, type, dims, (w) => w.tag(9, WireType.LengthDelimited).bytes(raw));
    return name;
  }

  float(value: number): string {
    return this.constant('float32', [], Float32Array.of(value));
  }

  ints(...values: number[]): string {
    return this.constant('int64', [values.length], BigInt64Array.from(values, BigInt));
  }

  external(tensor: ExternalTensor, location: string): string {
    const entry = (w: BinaryWriter, key: string, value: string) =>
      message(w, 13, (e) => {
        text(e, 1, key);
        text(e, 2, value);
      });
    this.tensor(tensor.name, tensor.type, tensor.dims, (w) => {
      entry(w, 'location', location);
      entry(w, 'offset', String(tensor.offset));
      entry(w, 'length', String(tensor.length));
      integer(w, 14, EXTERNAL);
    });
    return tensor.name;
  }

  /** Adds a node and returns the names of its outputs. `outputs`: how many, or their names ('' leaves one out). */
  node(
    op: string,
    inputs: readonly string[],
    outputs: number | readonly string[],
    attributes: Readonly<Record<string, Attribute>> = {},
    domain = '',
  ): string[] {
    const names =
      typeof outputs === 'number' ? Array.from({ length: outputs }, () => `t${this.numNames++}`) : [...outputs];
    message(this.nodes, 1, (w) => {
      for (const name of inputs) text(w, 1, name);
      for (const name of names) text(w, 2, name);
      text(w, 3, `n${this.numNames++}_${op}`);
      text(w, 4, op);
      for (const [name, value] of Object.entries(attributes)) message(w, 5, (a) => attribute(a, name, value));
      if (domain) text(w, 7, domain);
    });
    return names;
  }

  /**
   * Adds an `If` on `condition` (bool []). Each branch writes nodes, may use names from outside, and returns the names
   * of its outputs, which it must create. `names`: of the results. The branch that is not taken costs nothing.
   */
  conditional(
    condition: string,
    names: readonly string[],
    outputs: readonly InnerValue[],
    then: () => readonly string[],
    otherwise: () => readonly string[],
  ): void {
    this.nested('If', [condition], names, {
      then_branch: this.inner([], outputs, then),
      else_branch: this.inner([], outputs, otherwise),
    });
  }

  /**
   * Adds a `Scan`, which runs `body` for each index of the first axis of `over`, in order. `body` gets the states and
   * the items at that index. It returns the next states, then values that are stacked along a new first axis. It may
   * use names from outside, but must create what it returns. `shapes`: of the states, then of the stacked values.
   * Returns the names of the last states, then of the stacks.
   */
  scan(
    states: readonly string[],
    over: readonly (InnerValue & { name: string })[],
    shapes: readonly InnerValue[],
    body: (states: readonly string[], items: readonly string[]) => readonly string[],
  ): string[] {
    const [stateNames, itemNames] = [states, over].map((values) => values.map(() => `i${this.numNames++}`)) as [
      string[],
      string[],
    ];
    const inputs = [
      ...stateNames.map((name, i) => ({ ...shapes[i]!, name })),
      ...itemNames.map((name, i) => ({ ...over[i]!, name })),
    ];
    const results = shapes.map(() => `t${this.numNames++}`);
    this.nested(
      'Scan',
      [...states, ...over.map(({ name }) => name)],
      results,
      { body: this.inner(inputs, shapes, () => body(stateNames, itemNames)) },
      { num_scan_inputs: over.length },
    );
    return results;
  }

  /** Writes a graph for use inside a node. */
  private inner(
    inputs: readonly (InnerValue & { name: string })[],
    outputs: readonly InnerValue[],
    write: () => readonly string[],
  ): Uint8Array {
    const outer = this.nodes;
    this.nodes = new BinaryWriter();
    for (const { name, type, dims } of inputs) this.value(11, name, type, dims, this.nodes);
    const made = write();
    text(this.nodes, 2, `b${this.numNames++}`);
    for (const [i, name] of made.entries()) this.value(12, name, outputs[i]!.type, outputs[i]!.dims, this.nodes);
    const bytes = this.nodes.finish();
    this.nodes = outer;
    return bytes;
  }

  private nested(
    op: string,
    inputs: readonly string[],
    outputs: readonly string[],
    graphs: Readonly<Record<string, Uint8Array>>,
    attributes: Readonly<Record<string, Attribute>> = {},
  ): void {
    message(this.nodes, 1, (w) => {
      for (const name of inputs) text(w, 1, name);
      for (const name of outputs) text(w, 2, name);
      text(w, 3, `n${this.numNames++}_${op}`);
      text(w, 4, op);
      for (const [name, value] of Object.entries(attributes)) message(w, 5, (a) => attribute(a, name, value));
      for (const [name, bytes] of Object.entries(graphs)) {
        message(w, 5, (a) => {
          text(a, 1, name);
          a.tag(6, WireType.LengthDelimited).bytes(bytes);
          integer(a, 20, ATTRIBUTE_GRAPH);
        });
      }
    });
  }

  finish(): Uint8Array {
    const model = new BinaryWriter();
    integer(model, 1, 10);
    text(model, 2, 'kvasir');
    const graph = this.graph;
    text(graph, 2, 'step');
    model.tag(7, WireType.LengthDelimited).bytes(graph.finish());
    for (const [domain, version] of [
      ['', OPSET],
      ['com.microsoft', 1],
    ] as const) {
      message(model, 8, (w) => {
        text(w, 1, domain);
        integer(w, 2, version);
      });
    }
    return model.finish();
  }

  private tensor(name: string, type: DataTypeName, dims: readonly number[], fill: Fill): void {
    message(this.graph, 5, (w) => {
      for (const dim of dims) integer(w, 1, dim);
      integer(w, 2, DataType[type]);
      text(w, 8, name);
      fill(w);
    });
  }

  private value(
    field: number,
    name: string,
    type: DataTypeName,
    dims: readonly (number | string)[],
    graph = this.graph,
  ): void {
    message(graph, field, (w) => {
      text(w, 1, name);
      message(w, 2, (t) =>
        message(t, 1, (tensor) => {
          integer(tensor, 1, DataType[type]);
          message(tensor, 2, (shape) => {
            for (const dim of dims) {
              message(shape, 1, (d) => {
                if (typeof dim === 'number') integer(d, 1, dim);
                else text(d, 2, dim);
              });
            }
          });
        }),
      );
    });
  }
}

function attribute(writer: BinaryWriter, name: string, value: Attribute): void {
  text(writer, 1, name);
  if (typeof value === 'number') {
    integer(writer, 3, value);
    integer(writer, 20, ATTRIBUTE_INT);
  } else if (typeof value === 'string') {
    text(writer, 4, value);
    integer(writer, 20, ATTRIBUTE_STRING);
  } else if ('float' in value) {
    writer.tag(2, WireType.Bit32).float(value.float);
    integer(writer, 20, ATTRIBUTE_FLOAT);
  } else {
    for (const item of value) integer(writer, 8, item);
    integer(writer, 20, ATTRIBUTE_INTS);
  }
}
