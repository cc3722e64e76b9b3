/** Tests the fit of the copy weights. */
import { expect, test } from 'vitest';
import { type CopyCase, copyLoss, fitCopy } from './copyFit.ts';
import { randomOf } from './trees.ts';

const START = { doubt: 0, match: 0, agreement: 0, confidence: 0 };
const TRUE = { doubt: 1.5, match: 0.9, agreement: 1.2, confidence: 2 };

/** Random cases. The copy is right as often as TRUE says. Otherwise the model's likeliest token is right. */
function cases(count: number): CopyCase[] {
  const random = randomOf(1, 'copyFit');
  return Array.from({ length: count }, () => {
    const [longest, agreement, likeliest] = [1 + Math.floor(12 * random()), random(), random()];
    const isCopied =
      random() <
      1 /
        (1 +
          Math.exp(
            -(TRUE.match * Math.log(longest) + TRUE.agreement * agreement - TRUE.confidence * likeliest - TRUE.doubt),
          ));
    return { longest, agreement, likeliest, model: isCopied ? 0 : 1, copied: isCopied ? 1 : 0 };
  });
}

test('the fit finds the weights that made the copies', () => {
  const some = cases(4000);
  const fitted = fitCopy(some, START);
  for (const name of ['doubt', 'match', 'agreement', 'confidence'] as const)
    expect(fitted[name], name).toBeCloseTo(TRUE[name], 0);
  expect(copyLoss(some, fitted)).toBeLessThanOrEqual(copyLoss(some, TRUE) + 1e-3);
  expect(copyLoss(some, fitted)).toBeLessThan(copyLoss(some, START) - 0.05);
});
