/** Tests the `sketch` treatment with the built-in model: it chooses the tokens that a question asks for. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { exercisesOf } from './exercises.ts';
import { KvSubject } from './subject.ts';
import { TREATMENTS } from './treatments.ts';
import { Layout } from '../../../engine/text/prompt/layout.ts';
import { ModelText } from '../../../engine/text/format/modelText.ts';
import { Grammars } from '../../../engine/text/syntax/syntaxTrees.ts';
import { heldoutFiles } from '../kv/heldout.ts';
import { BUILT_IN } from '../../support/builtIn.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'kvasir-sketch-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('the pool holds a distant constant when the prompt asks for it, and not when it asks for something else', async () => {
  const text = await ModelText.load('model');
  const subject = await KvSubject.open('starter', 'model', folder, 2, []);
  try {
    const layout = new Layout(text, {
      contextTokens: subject.model.config.contextTokens,
      numParameters: subject.model.parameters,
    });
    const needles = await exercisesOf(layout, new Grammars('dist/grammars'), heldoutFiles(), {
      contextTokens: 1024,
      scoredTokens: 0,
      numTexts: 0,
      holes: 0,
      questions: 0,
      distances: [1024],
      needles: 6,
      seed: 1,
    });
    const sketch = TREATMENTS.find(({ name }) => name === 'sketch')!;
    let [asked, other] = [0, 0];
    for (const { contextIds, prompts } of needles) {
      const [{ tail }] = prompts as [(typeof prompts)[number]];
      const name = /The value of ([A-Z]+) is/.exec(text.tokenizer.decode(tail.ids))![1]!;
      // The last token of the constant's name.
      let [at, above] = [0, contextIds.length - 1];
      while (at < above) {
        const middle = (at + above) >> 1;
        if (text.tokenizer.decode(contextIds.slice(0, middle + 1)).includes(name)) above = middle;
        else at = middle + 1;
      }
      const context = await subject.compute(contextIds);
      const { slotsFor, bytes } = await sketch.apply(subject, context);
      const chosen = await slotsFor(tail.ids);
      expect(chosen.length).toBeLessThanOrEqual(contextIds.length / 3);
      expect(bytes).toBeLessThan(contextIds.length * 0.6 * (BUILT_IN.kvBytesPerToken - 8));
      asked += Number(chosen.includes(at));
      other += Number((await slotsFor(text.tokenizer.encode('\n\nfunction '))).includes(at));
    }
    expect(needles).toHaveLength(6);
    // No needle is in the newest third of its context.
    expect(asked).toBeGreaterThanOrEqual(5);
    expect(other).toBeLessThan(asked);
  } finally {
    await subject.dispose();
  }
});
