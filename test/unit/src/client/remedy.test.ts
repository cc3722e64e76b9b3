/** The remedy for a failure, by its message and its code. */
import { expect, test } from 'vitest';
import { remedyLabel, remedyOf } from '../../../../src/client/remedy.ts';
import { t } from '../../../support/editor/translate.ts';

test.each([
  [
    '… the KV cache limit of 1.0 MB holds 0. Raise kvasir.cache.maxBytes or send less text.',
    'outOfMemory',
    { kind: 'setting', key: 'kvasir.cache.maxBytes' },
    'Open Setting',
  ],
  [
    'Aumente kvasir.cache.maxBytes ou envie menos texto: cerca de 2.9 MB',
    'outOfMemory',
    { kind: 'setting', key: 'kvasir.cache.maxBytes' },
    'Open Setting',
  ],
  [
    'Raise kvasir.cache.diskBytes or kvasir.cache.maxBytes, or send less text.',
    'diskFull',
    { kind: 'setting', key: 'kvasir.cache.diskBytes' },
    'Open Setting',
  ],
  ['/m: model.safetensors: the file is cut off', 'modelInvalid', { kind: 'model' }, 'Choose Model'],
  ['/m: config.json: no', 'modelUnsupported', { kind: 'model' }, 'Choose Model'],
  ['The setting kvasir.model does not name a folder or a file: /m', undefined, { kind: 'model' }, 'Choose Model'],
] as const)('%s', (message, code, remedy, label) => {
  expect(remedyOf(message, code)).toEqual(remedy);
  expect(remedyLabel(remedyOf(message, code)!, t)).toBe(label);
});

test('most failures have no remedy', () => {
  expect(remedyOf('the engine stopped: kvasir. is restarted', 'engineFailed')).toBeUndefined();
  expect(remedyOf('kvasir.json: can must be an object.', 'engineFailed')).toBeUndefined();
});
