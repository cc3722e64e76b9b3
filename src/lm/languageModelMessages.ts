/**
 * Converts messages of VS Code's language model API to the engine's chat messages. Recognizes parts by their shape
 * only. Pure.
 */
import type { ChatMessage, SamplingParams } from '../../engine/protocol/tasks.ts';

/** `role` is 1 for the user, 2 for the assistant, and 3 (a proposed API) for the system. */
export interface RequestMessage {
  role: number;
  content: string | readonly unknown[];
}

/** The text of a message. Calls `onUnreadable` with the kind of a part that this model cannot read. */
export function textOf(content: RequestMessage['content'], onUnreadable: (kind: string) => void = () => {}): string {
  if (typeof content === 'string') return content;
  return content.map((part) => partText(part, onUnreadable)).join('');
}

function partText(part: unknown, onUnreadable: (kind: string) => void): string {
  const { value, mimeType, data, content, callId, name } = part as {
    value?: unknown;
    mimeType?: string;
    data?: Uint8Array;
    content?: unknown[];
    callId?: string;
    name?: string;
  };
  if (typeof value === 'string') return value;
  if (mimeType !== undefined && data) {
    if (/^text\/|json$/.test(mimeType)) return new TextDecoder().decode(data);
    // Markers between parts, such as cache breakpoints, mean nothing to the model.
    if (/^[\w-]+\/[\w.+-]+$/.test(mimeType)) onUnreadable(mimeType);
    return '';
  }
  if (callId === undefined) return '';
  if (name !== undefined) onUnreadable('tool call');
  // Tool results are mostly text and are read as such.
  return (content ?? []).map((each) => partText(each, onUnreadable)).join('');
}

/**
 * Merges consecutive messages of one role, because chat templates refuse them and prompts of extensions often have
 * them. Leaves out empty ones.
 */
export function toChatMessages(
  messages: readonly RequestMessage[],
  onUnreadable?: (kind: string) => void,
): ChatMessage[] {
  const chat: ChatMessage[] = [];
  for (const message of messages) {
    const role = message.role === 2 ? 'assistant' : message.role === 3 ? 'system' : 'user';
    const content = textOf(message.content, onUnreadable);
    const last = chat.at(-1);
    if (!content.trim()) continue;
    if (last?.role === role) last.content += `\n\n${content}`;
    else chat.push({ role, content });
  }
  return chat;
}

/** The options that the engine supports, in both spellings that extensions use. Others take the model's defaults. */
export function toSampling(options: Readonly<Record<string, unknown>> | undefined, maxTokens: number): SamplingParams {
  const number = (...names: string[]) =>
    names
      .map((name) => options?.[name])
      .find((value) => typeof value === 'number' && Number.isFinite(value) && value >= 0) as number | undefined;
  const sampling: SamplingParams = {
    maxTokens: Math.min(maxTokens, Math.max(1, Math.floor(number('maxTokens', 'max_tokens') ?? maxTokens))),
  };
  const temperature = number('temperature');
  const topP = number('topP', 'top_p');
  const seed = number('seed');
  const stop = [options?.stop].flat().filter((text): text is string => typeof text === 'string' && text !== '');
  if (temperature !== undefined) sampling.temperature = temperature;
  if (topP !== undefined && topP > 0 && topP <= 1) sampling.topP = topP;
  if (seed !== undefined) sampling.seed = Math.floor(seed);
  if (stop.length) sampling.stop = stop;
  return sampling;
}
