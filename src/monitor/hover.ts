/** The status bar's hover as Markdown. Pure. */
import type { EngineStats, FileStats, Gpu, ModelInfo, ShiftQuality } from '../../engine/protocol/stats.ts';
import type { Speech } from '../format.ts';
import { compressionText } from './codecTexts.ts';
import { usedBytes } from './samples.ts';

/** Number of files listed. The others are counted. */
const MAX_FILES = 8;

/** `gpus`: undefined if never queried. */
export function hoverMarkdown(stats: EngineStats, gpus: readonly Gpu[] | undefined, speech: Speech): string {
  const { model, numEngines } = stats;
  const paragraphs = [
    model && modelText(model, speech),
    cacheText(stats, speech),
    numEngines && speech.t('The limit is this window’s share: {0} editor windows share the cache memory', numEngines),
    reuseText(stats, speech),
    model?.shifted && shiftedText(model.shifted, stats, speech),
    diskText(stats, speech),
    ...(model?.compressed ?? []).map((quality) => compressionText(quality, speech)),
    requestsText(stats, speech),
    memoryText(stats, speech),
    gpus && gpusText(gpus, speech),
    filesTable(stats, speech),
  ];
  return paragraphs.filter((text) => text).join('\n\n');
}

function modelText(model: ModelInfo, { t, numbers }: Speech): string {
  const context = t('{0} tokens of context', numbers.count(model.contextTokens));
  const threads = t('{0} threads', model.threads);
  const lane = model.kernels === undefined ? 'onnxruntime' : t('native kernels ({0})', model.kernels);
  return `**${escapeMarkdown(model.name)}** · ${model.precision} · ${context} · ${threads} · ${lane}`;
}

/** Its parts are in the cache panel. */
function cacheText(stats: EngineStats, { t, numbers }: Speech): string {
  return t('Cache: **{0}** of {1}', numbers.bytes(usedBytes(stats)), numbers.bytes(stats.maxBytes));
}

function reuseText({ tokens }: EngineStats, { t, numbers }: Speech): string {
  if (tokens.prompt === 0) return '';
  return t(
    'Prompt tokens reused: **{0}** ({1} of {2})',
    numbers.share(tokens.promptCached / tokens.prompt),
    numbers.count(tokens.promptCached),
    numbers.count(tokens.prompt),
  );
}

function shiftedText({ klMean, bound }: ShiftQuality, { tokens }: EngineStats, { t, numbers }: Speech): string {
  return klMean <= bound
    ? t(
        'Approximated after edits: {0} tokens (mean KL divergence {1})',
        numbers.count(tokens.promptShifted),
        numbers.scientific(klMean),
      )
    : t(
        'Nothing is approximated after edits: with this model the mean KL divergence would be {0}, more than {1}',
        numbers.scientific(klMean),
        numbers.scientific(bound, 0),
      );
}

function requestsText({ requests, tokensPerSecond }: EngineStats, { t, numbers }: Speech): string {
  const speed = tokensPerSecond > 0 ? `${numbers.count(tokensPerSecond)} tok/s · ` : '';
  const failed = requests.failed > 0 ? ` · $(warning) ${t('failed: {0}', numbers.count(requests.failed))}` : '';
  const counts = t(
    'Requests: {0} running, {1} waiting, {2} done',
    numbers.count(requests.running),
    numbers.count(requests.waiting),
    numbers.count(requests.done),
  );
  return speed + counts + failed;
}

function memoryText({ model, memory }: EngineStats, { t, numbers }: Speech): string {
  return t(
    'Memory: weights {0}, process {1}, {2} of {3} available',
    numbers.bytes(model?.residentBytes ?? 0),
    numbers.bytes(memory.processBytes),
    numbers.bytes(memory.availableBytes),
    numbers.bytes(memory.totalBytes),
  );
}

function gpusText(gpus: readonly Gpu[], speech: Speech): string {
  return gpus.length
    ? gpus.map((gpu) => gpuText(gpu, speech)).join(', ')
    : speech.t('No GPU: everything runs on the processor.');
}

function filesTable(stats: EngineStats, speech: Speech): string {
  const { t, numbers } = speech;
  const files = stats.files
    .filter((file) => file.open || file.tokens > 0 || file.diskTokens > 0)
    .sort((a, b) => b.bytes - a.bytes);
  if (files.length === 0) return '';
  const rows = [
    `| ${t('File')} | ${t('Tokens')} | ${t('Bytes')} | ${t('Reused')} |`,
    '|:--|--:|--:|--:|',
    ...files.slice(0, MAX_FILES).map((file) => fileRow(file, speech)),
  ];
  if (files.length > MAX_FILES) rows.push('', t('more files: {0}', numbers.count(files.length - MAX_FILES)));
  return rows.join('\n');
}

function fileRow(file: FileStats, { numbers }: Speech): string {
  const cells = [
    escapeMarkdown(shortPath(file.path)) + (file.pinned ? ' $(pinned)' : ''),
    numbers.count(file.tokens) + (file.diskTokens ? ` + ${numbers.count(file.diskTokens)}` : ''),
    numbers.bytes(file.bytes),
    file.hits ? numbers.share(file.hitRate) : '–',
  ];
  return `| ${cells.join(' | ')} |`;
}

/** undefined: the disk cache is off. */
function diskText({ diskBytes, diskMaxBytes, diskFault }: EngineStats, { t, numbers }: Speech): string | undefined {
  if (diskFault === undefined)
    return diskMaxBytes ? t('On disk: {0} of {1}', numbers.bytes(diskBytes), numbers.bytes(diskMaxBytes)) : undefined;
  const fault = escapeMarkdown(diskFault);
  const [used, limit] = [numbers.bytes(diskBytes), numbers.bytes(diskMaxBytes)];
  const text =
    diskBytes > 0
      ? t('On disk: {0} of {1}; nothing more is kept: {2}', used, limit, fault)
      : t('On disk: nothing is kept: {0}', fault);
  return `$(warning) ${text}`;
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
