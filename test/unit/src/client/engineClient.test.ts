/** The requests of the editor's client: streams, aborts, priorities, errors, and documents that the engine has lost. */
import { describe, expect, test } from 'vitest';
import type { GenerateRequest } from '../../../../src/client/engineClient.ts';
import { ASK, clientOf, settle, SLOW, USAGE, WORKING } from '../../../support/editor/scriptedChannel.ts';

describe('requests', () => {
  test('chunks stream before the result, and the activity counter goes up and down', async () => {
    const { client, activity, answered } = clientOf();
    const chunks: string[] = [];
    const done = await client.generate({ ...ASK, onChunk: (text) => chunks.push(text) });
    expect(chunks).toEqual(['a', 'b']);
    expect(done).toMatchObject({ text: 'ab', usage: USAGE });
    expect(activity).toEqual([1, 0]);
    expect(answered).toEqual(['raw']);
  });

  test('reasoning goes to who asks for it, and is never a part of the answer', async () => {
    const { client } = clientOf((message, say) => {
      if (message.type === 'generate')
        say({
          type: 'chunk',
          requestId: message.requestId,
          text: '',
          tokenIds: [1],
          logprobs: [0],
          reasoning: 'I think.',
        });
      WORKING(message, say);
    });
    const [chunks, thoughts]: [string[], string[]] = [[], []];
    const onChunk = (text: string) => chunks.push(text);
    await client.generate({ ...ASK, onChunk, onReasoning: (text) => thoughts.push(text) });
    // The models and the participant of VS Code's chat do not ask for it.
    await client.generate({ ...ASK, onChunk });
    expect(chunks).toEqual(['a', 'b', 'a', 'b']);
    expect(thoughts).toEqual(['I think.']);
  });

  test('an abort reaches the engine, and the request resolves with its answer', async () => {
    const { client, engines, answered } = clientOf(SLOW);
    const abort = new AbortController();
    const pending = client.generate({ ...ASK, signal: abort.signal });
    await client.ready();
    await settle();
    abort.abort();
    expect((await pending).finishReason).toBe('abort');
    expect(answered).toEqual([]);
    const [, generate, aborted] = engines[0]!.sent;
    expect(aborted).toEqual({ type: 'abort', requestId: (generate as { requestId: string }).requestId });
  });

  test('a request that the user starts to wait for gets the priority of a completion, also before it is sent', async () => {
    const { client, engines } = clientOf(SLOW);
    const [hurry, abort] = [new AbortController(), new AbortController()];
    const pending = client.generate({ ...ASK, priority: 'summary', hurry: hurry.signal, signal: abort.signal });
    await client.ready();
    await settle();
    hurry.abort();
    const late = client.generate({ ...ASK, priority: 'summary', hurry: hurry.signal, signal: abort.signal });
    await settle();
    abort.abort();
    await Promise.all([pending, late]);
    const [, first, raised, second] = engines[0]!.sent;
    expect(first).toMatchObject({ type: 'generate', priority: 'summary' });
    expect(raised).toEqual({
      type: 'prioritise',
      requestId: (first as { requestId: string }).requestId,
      priority: 'completion',
    });
    expect(second).toMatchObject({ type: 'generate', priority: 'completion' });
    expect(engines[0]!.sent.filter(({ type }) => type === 'prioritise')).toHaveLength(1);
  });

  test('an abort while the model loads ends the request at once and sends nothing', async () => {
    const { client, engines } = clientOf(() => {});
    const abort = new AbortController();
    const pending = client.generate({ ...ASK, signal: abort.signal });
    await settle();
    abort.abort();
    expect((await pending).finishReason).toBe('abort');
    expect(engines[0]!.sent.map((m) => m.type)).toEqual(['load']);
  });

  test('an error of one request does not affect others', async () => {
    const { client, engines, script } = clientOf(SLOW);
    const first = client.generate(ASK);
    const second = client.generate(ASK);
    await client.ready();
    await settle();
    const ids = engines[0]!.sent.filter((m) => m.type === 'generate').map((m) => m.requestId);
    engines[0]!.say({ type: 'error', requestId: ids[0]!, code: 'contextTooLong', message: 'too long' });
    await expect(first).rejects.toMatchObject({ code: 'contextTooLong' });
    script.answers = WORKING;
    WORKING(engines[0]!.sent.find((m) => m.type === 'generate' && m.requestId === ids[1])!, (message) =>
      engines[0]!.say(message),
    );
    expect((await second).text).toBe('ab');
  });
});

describe('documents that the engine has lost', () => {
  test('an error about a document outside a request makes all documents be sent again', async () => {
    const { client, engines } = clientOf();
    await client.ready();
    const { epoch } = client;
    engines[0]!.say({
      type: 'error',
      code: 'badRequest',
      message: 'edits for version 3 of a do not follow version 1; send the whole text',
    });
    expect(client.epoch).toBe(epoch + 1);
    expect(client.state.kind).toBe('ready');
    engines[0]!.say({ type: 'error', code: 'badRequest', message: 'request id "g1" is in use' });
    expect(client.epoch).toBe(epoch + 1);
  });

  test('a request that fails because of it is built and sent once more', async () => {
    const { client, script } = clientOf();
    await client.ready();
    const { epoch } = client;
    let numSent = 0;
    script.answers = (message, say) => {
      if (message.type === 'generate' && numSent++ === 0)
        say({
          type: 'error',
          requestId: message.requestId,
          code: 'unknownDocument',
          message: 'a is not open; send its text first',
        });
      else WORKING(message, say);
    };
    const epochs: number[] = [];
    const task: GenerateRequest['task'] = () => {
      epochs.push(client.epoch);
      return { kind: 'raw', prompt: '' };
    };
    expect((await client.generate({ ...ASK, task })).text).toBe('ab');
    expect(epochs).toEqual([epoch, epoch + 1]);
  });
});
