import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Author } from '../support/session/author.ts';
import { readSession } from '../support/session/session.ts';

const writes = readSession().events.filter((event) => event.do === 'write');

test('without completions the author presses the keys of the trace, one by one', () => {
  for (const event of writes) {
    const author = new Author(event);
    for (const [wait, key, to] of event.keys) {
      const act = author.next()!;
      expect(act.wait).toBe(wait);
      if (act.do === 'undo') {
        expect([key, act.to]).toEqual(['Undo', to]);
        author.undone(event.text.slice(0, to));
      } else {
        expect(act.do === 'backspace' ? 'Backspace' : act.text).toBe(key);
        author.typed(act);
      }
    }
    expect(author.next()).toBeNull();
    expect(author.written).toBe(event.text);
  }
});

test('the passage is always complete in the end, with no key pressed twice, after any acceptances and undos', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...writes),
      fc.array(fc.tuple(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 1, max: 40 })), { maxLength: 12 }),
      fc.nat(30),
      (event, accepts, undoneTooMuch) => {
        const author = new Author(event);
        const due = accepts.map(([keys, length]) => ({ keys, length }));
        let acts = 0;
        for (let act = author.next(); act; act = author.next()) {
          if (++acts > 3 * event.keys.length) throw new Error('the author does not come to an end');
          const accept = due[0];
          const shown =
            accept && event.text.startsWith(author.written)
              ? event.text.slice(author.written.length, author.written.length + accept.length)
              : '';
          if (accept && accept.keys-- <= 0 && act.do === 'type' && author.wants(shown)) {
            due.shift();
            author.accepted(shown);
          } else if (act.do === 'undo') {
            if (author.written.length > act.to) author.undone(event.text.slice(0, Math.max(0, act.to - undoneTooMuch)));
            else author.undone(author.written);
          } else author.typed(act);
        }
        expect(author.written).toBe(event.text);
      },
    ),
    { numRuns: 500 },
  );
});

test('the author wants only a completion that continues the passage and saves some keys', () => {
  const author = new Author({ wait: 0, do: 'write', line: 1, column: 1, text: 'const a = 1;', keys: [[100, 'c']] });
  expect(['const', '', 'co', 'const b', 'onst'].map((shown) => author.wants(shown))).toEqual([
    true,
    false,
    false,
    false,
    false,
  ]);
});
