/** The status bar's hover as Markdown. Pure. */
import type { EngineStats, Gpu, Tier } from '../../engine/protocol/stats.ts';
import type { Speech } from '../translate.ts';
import { compressionText } from './codecTexts.ts';

/** Number of files listed. The others are counted. */
const MAX_FILES = 8;

/** `gpus`: undefined if never queried. */
export function hoverMarkdown(stats: EngineStats, gpus: readonly Gpu[] | undefined, speech: Speech): string {
  const { t, numbers } = speech;
  const lines: string[] = [];
  const { model, requests, tokens, memory } = stats;
  if (model) {
    const about = [
      model.precision,
      t('{0} tokens of context', numbers.count(model.contextTokens)),
      t('{0} threads', model.threads),
    ];
    lines.push(`**${escapeMarkdown(model.name)}** · ${about.join(' · ')}`, '');
  }
  lines.push(
    t(
      'KV cache: **{0}** of {1} (pool {2}, store {3}, scratch {4}, buffers {5}; {6} per token, {7})',
      numbers.bytes(usedBytes(stats)),
      numbers.bytes(stats.maxBytes),
      numbers.bytes(stats.poolBytes),
      numbers.bytes(stats.storeBytes),
      numbers.bytes(stats.scratchBytes),
      numbers.bytes(stats.bufferBytes),
      numbers.bytes(stats.kvBytesPerToken),
      model?.kv ?? '',
    ),
    '',
  );
  if (stats.numEngines)
    lines.push(t('The limit is this window’s share: {0} editor windows share the cache memory', stats.numEngines), '');
  if (tokens.prompt > 0)
    lines.push(
      t(
        'Prompt tokens reused: **{0}** ({1} of {2})',
        numbers.share(tokens.promptCached / tokens.prompt),
        numbers.count(tokens.promptCached),
        numbers.count(tokens.prompt),
      ),
      '',
    );
  if (model?.shifted) {
    const { klMean, bound } = model.shifted;
    if (klMean <= bound)
      lines.push(
        t(
          'Approximated after edits: {0} tokens (mean KL divergence {1})',
          numbers.count(tokens.promptShifted),
          numbers.scientific(klMean),
        ),
        '',
      );
    else
      lines.push(
        t(
          'Nothing is approximated after edits: with this model the mean KL divergence would be {0}, more than {1}',
          numbers.scientific(klMean),
          numbers.scientific(bound, 0),
        ),
        '',
      );
  }
  const disk = diskText(stats, speech);
  if (disk) lines.push(disk, '');
  for (const quality of model?.compressed ?? []) lines.push(compressionText(quality, speech), '');
  const speed = stats.tokensPerSecond > 0 ? `${numbers.count(stats.tokensPerSecond)} tok/s · ` : '';
  const failed = requests.failed > 0 ? ` · $(warning) ${t('failed: {0}', numbers.count(requests.failed))}` : '';
  lines.push(
    speed +
      t(
        'Requests: {0} running, {1} waiting, {2} done',
        numbers.count(requests.running),
        numbers.count(requests.waiting),
        numbers.count(requests.done),
      ) +
      failed,
    '',
  );
  lines.push(
    t(
      'Memory: weights {0}, process {1}, {2} of {3} available',
      numbers.bytes(model?.residentBytes ?? 0),
      numbers.bytes(memory.processBytes),
      numbers.bytes(memory.availableBytes),
      numbers.bytes(memory.totalBytes),
    ),
    '',
  );
  if (gpus)
    lines.push(
      gpus.length ? gpus.map((gpu) => gpuText(gpu, speech)).join(', ') : t('No GPU: everything runs on the processor.'),
      '',
    );
  const files = stats.files
    .filter((file) => file.open || file.tokens > 0 || file.diskTokens > 0)
    .sort((a, b) => b.bytes - a.bytes);
  if (files.length) {
    // Right-aligned columns would touch the left-aligned column after them.
    lines.push(
      `| ${t('File')} | ${t('Tokens')} | ${t('Bytes')} | &nbsp;&nbsp;${t('Tier')} | ${t('Reused')} |`,
      '|:--|--:|--:|:--|--:|',
    );
    const tiers: Record<Tier, string> = {
      pool: t('pool'),
      store: t('store'),
      disk: t('disk'),
      none: t('not cached'),
    };
    for (const file of files.slice(0, MAX_FILES)) {
      lines.push(
        `| ${escapeMarkdown(shortPath(file.path))}${file.pinned ? ' $(pinned)' : ''} | ${numbers.count(file.tokens)}${file.diskTokens ? ` + ${numbers.count(file.diskTokens)}` : ''} | ${numbers.bytes(file.bytes)} | &nbsp;&nbsp;${file.twice ? t('pool + store') : tiers[file.tier]} | ${file.hits ? numbers.share(file.hitRate) : '–'} |`,
      );
    }
    if (files.length > MAX_FILES) lines.push('', t('more files: {0}', numbers.count(files.length - MAX_FILES)));
  }
  return lines.join('\n');
}

/** undefined: the disk cache is off. */
function diskText({ diskBytes, diskMaxBytes, diskFault }: EngineStats, { t, numbers }: Speech): string | undefined {
  if (diskFault === undefined)
    return diskMaxBytes ? t('On disk: {0} of {1}', numbers.bytes(diskBytes), numbers.bytes(diskMaxBytes)) : undefined;
  const fault = escapeMarkdown(diskFault);
  return `$(warning) ${diskBytes > 0 ? t('On disk: {0} of {1}; nothing more is kept: {2}', numbers.bytes(diskBytes), numbers.bytes(diskMaxBytes), fault) : t('On disk: nothing is kept: {0}', fault)}`;
}

/** Kvasir computes on the processor only. Other programs use the GPU memory. */
function gpuText({ name, totalBytes, usedBytes, estimated }: Gpu, { t, numbers }: Speech): string {
  const label = escapeMarkdown(name);
  if (totalBytes === null) return t('{0}: memory unknown, not used', label);
  if (usedBytes !== null)
    return t('{0}: {1} of {2} in use, none by Kvasir', label, numbers.bytes(usedBytes), numbers.bytes(totalBytes));
  return estimated
    ? t('{0}: about {1} (estimate), not used', label, numbers.bytes(totalBytes))
    : t('{0}: {1}, not used', label, numbers.bytes(totalBytes));
}

/** Everything that counts against the memory budget. */
function usedBytes({ poolBytes, storeBytes, scratchBytes, bufferBytes }: EngineStats): number {
  return poolBytes + storeBytes + scratchBytes + bufferBytes;
}

/** The single line of the status bar, without its icon. */
export function statusText(stats: EngineStats, busy: boolean, { t, numbers }: Speech): string {
  const parts: string[] = [];
  if (busy && stats.tokensPerSecond > 0) parts.push(`${numbers.count(stats.tokensPerSecond)} tok/s`);
  parts.push(numbers.bytes(usedBytes(stats)));
  if (stats.tokens.prompt > 0)
    parts.push(t('{0} reused', numbers.share(stats.tokens.promptCached / stats.tokens.prompt)));
  return parts.join(' · ');
}

function shortPath(path: string): string {
  return path.split(/[\\/]/).slice(-2).join('/');
}

/** Plain text on one line: names come from a model's files, and messages may quote them. */
export function escapeMarkdown(text: string): string {
  return text.replace(/\s+/g, ' ').replace(/[!-.:-@[-`{-~]/g, '\\$&');
}
