/**
 * In which form each kind of linear layer is stored, by precision and by what the processor multiplies fastest.
 * Does not know the layers themselves (see weightPlan).
 */
import type { Precision } from '../../protocol/tasks.ts';

/**
 * What the processor is best at (see calibrate/productForm).
 * narrow: 7-bit codes on the left-hand side of integer products, for processors whose 8-bit products add pairs in 16
 * bits and
 * saturate (x86 without VNNI). 127 * 127 * 2 fits, blocks of 8 bits would not.
 * blocks, rows: a few rows are multiplied faster by 8-bit weights in blocks, or by those with one scale per output.
 */
export type ProductForm = 'narrow' | 'rows' | 'blocks';

/** How the weights of a linear layer are stored (see LinearItem). */
export type Form = 'blocks4' | 'blocks8' | 'int8' | 'float32';

export type Forms = Readonly<Record<'feedForward' | 'attention' | 'head', Form>>;

/**
 * In int4 the attention's layers and the head keep 8 bits. They are a small part of most models, and their loss weighs
 * most.
 * Measured on the built-in model, mean KL divergence from float32: 0.015 in this form, 0.023 with a head of 4 bits,
 * 0.047
 * with the attention's layers of 4 bits, 0.054 with both.
 * These 8 bits are in blocks where the processor multiplies a few rows faster by blocks. So is the head of int8, which
 * gets
 * few rows. The layers of int8 get whole prompts as well, which are faster without blocks.
 */
export function formsOf(precision: Precision, products: ProductForm): Forms {
  if (precision === 'float32') return { feedForward: 'float32', attention: 'float32', head: 'float32' };
  const few = products === 'blocks' ? 'blocks8' : 'int8';
  return precision === 'int4'
    ? { feedForward: 'blocks4', attention: few, head: few }
    : { feedForward: 'int8', attention: 'int8', head: few };
}

const isBlocks = (form: Form): boolean => form === 'blocks4' || form === 'blocks8';

/**
 * Whether the rows of the layers and of the head must be padded to a multiple (see blockRowMultiple): those multiplied
 * by blocks.
 */
export function paddedProducts({ precision, products }: { precision: Precision; products: ProductForm }): {
  readonly layers: boolean;
  readonly head: boolean;
} {
  const { feedForward, attention, head } = formsOf(precision, products);
  return { layers: isBlocks(feedForward) || isBlocks(attention), head: isBlocks(head) };
}
