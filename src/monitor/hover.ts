/** The status bar's hover as Markdown. Pure. */
import type { EngineStats, Tier } from '../../engine/protocol.ts';
import { formatBytes, formatCount, formatShare } from '../format.ts';
import type { Translate } from '../translate.ts';

/** A hover is read at a glance; the rest is counted. */
const MOST_FILES = 8;

export function hoverMarkdown(stats: EngineStats, t: Translate): string {
  const lines: string[] = [];
  const { model, requests, tokens, windowSlots } = stats;
  if (model) lines.push(`**${escapeMarkdown(model.name)}** · ${model.precision} · ${formatBytes(model.weightsBytes)} · ${t('{0} tokens of context', formatCount(model.contextTokens))}`, '');
  const used = stats.windowBytes + stats.storeBytes;
  lines.push(t('KV cache: **{0}** of {1} (window {2}, store {3}; {4} a token)', formatBytes(used), formatBytes(stats.maxBytes), formatBytes(stats.windowBytes), formatBytes(stats.storeBytes), formatBytes(stats.kvBytesPerToken)), '');
  lines.push(t('Window: {0} of {1} slots free', formatCount(windowSlots.free), formatCount(windowSlots.total)), '');
  if (tokens.prompt > 0) lines.push(t('Prompt tokens reused: **{0}** ({1} of {2})', formatShare(tokens.promptCached / tokens.prompt), formatCount(tokens.promptCached), formatCount(tokens.prompt)), '');
  lines.push(t('Requests: {0} running, {1} waiting, {2} done', requests.running, requests.waiting, formatCount(requests.done)), '');
  const files = [...stats.files].sort((a, b) => b.bytes - a.bytes);
  if (files.length) {
    lines.push(`| ${t('File')} | ${t('Tokens')} | ${t('Bytes')} | ${t('Tier')} | ${t('Reused')} |`, '|:--|--:|--:|:--|--:|');
    const tiers: Record<Tier, string> = { window: t('window'), store: t('store'), none: '–' };
    for (const file of files.slice(0, MOST_FILES)) {
      lines.push(`| ${escapeMarkdown(shortPath(file.path))} | ${formatCount(file.tokens)} | ${formatBytes(file.bytes)} | ${tiers[file.tier]} | ${file.hits ? formatShare(file.hitRate) : '–'} |`);
    }
    if (files.length > MOST_FILES) lines.push('', t('and {0} more files', files.length - MOST_FILES));
  }
  return lines.join('\n');
}

/** The one line of the status bar, without its icon. */
export function statusText(stats: EngineStats, busy: boolean, t: Translate): string {
  const parts: string[] = [];
  if (busy && stats.tokensPerSecond > 0) parts.push(`${formatCount(stats.tokensPerSecond)} tok/s`);
  parts.push(formatBytes(stats.windowBytes + stats.storeBytes));
  if (stats.tokens.prompt > 0) parts.push(t('{0} reused', formatShare(stats.tokens.promptCached / stats.tokens.prompt)));
  return parts.join(' · ');
}

function shortPath(path: string): string {
  return path.split(/[\\/]/).slice(-2).join('/');
}

/** As plain text on one line: names come from a model's files, messages may quote them. */
export function escapeMarkdown(text: string): string {
  return text.replace(/\s+/g, ' ').replace(/[!-.:-@[-`{-~]/g, '\\$&');
}
