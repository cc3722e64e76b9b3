/** The cache panel's page: shows what the extension host sends (cacheMessages.ts) and sends back the user's actions. */
import type {
  CacheCommand,
  CacheFigures,
  CacheStrings,
  FromCachePage,
  NoFigures,
  ToCachePage,
} from '../monitor/cacheMessages.ts';
import { KEPT_MS, type Sample } from '../monitor/samples.ts';
import { Charts } from './cacheCharts.ts';
import { Files, type Sorting } from './cacheFiles.ts';
import { Memory } from './cacheMemory.ts';
import { DOT, fillIn } from './cacheText.ts';
import { Tiles } from './cacheTiles.ts';
import { Times } from './cacheTimes.ts';
import { Tree } from './cacheTree.ts';
import { button, element, fill } from './dom.ts';
import { mark } from './icons.ts';

interface Saved {
  sorting?: Sorting;
  /** The part for those who know the cache's design is open. */
  advanced?: boolean;
}

declare function acquireVsCodeApi(): {
  postMessage(message: FromCachePage): void;
  getState(): Saved | undefined;
  setState(state: Saved): void;
};

const vscode = acquireVsCodeApi();
const strings = JSON.parse(document.body.dataset.strings ?? '{}') as CacheStrings;
let saved = vscode.getState() ?? {};
const save = (part: Saved) => {
  saved = { ...saved, ...part };
  vscode.setState(saved);
};
const send = (message: FromCachePage) => vscode.postMessage(message);
const command = (label: string, name: CacheCommand) =>
  button(label, { class: 'link' }, () => send({ type: 'command', command: name }));

const about = element('p', { class: 'about', 'data-part': 'about' });
const tiles = new Tiles(strings);
const memory = new Memory(strings);
const times = new Times(strings);
const tree = new Tree(strings);
const files = new Files(strings, saved.sorting, {
  open: ({ docId }) => send({ type: 'open', docId }),
  pin: ({ docId }, pinned) => send({ type: 'pin', docId, pinned }),
  evict: ({ docId, name }) => {
    send({ type: 'evict', docId });
    live.textContent = fillIn(strings.cleared, name);
  },
  sorted: (sorting) => save({ sorting }),
});
const charts = new Charts(strings);
const live = element('div', { class: 'live', role: 'status', 'aria-live': 'polite' });
const header = element(
  'header',
  {},
  about,
  element(
    'nav',
    {},
    command(strings.exportTrace, 'exportTrace'),
    command(strings.clear, 'clearCache'),
    command(strings.chooseModel, 'chooseModel'),
  ),
);
const advanced = element(
  'details',
  { class: 'advanced' },
  element('summary', {}, strings.advanced),
  element('div', { class: 'columns' }, element('div', {}, memory.parts, times.root), tree.root),
);
const panel = element(
  'main',
  { class: 'panel', hidden: '' },
  element('h1', { class: 'live' }, strings.title),
  header,
  tiles.root,
  element('div', { class: 'columns' }, memory.root, files.root),
  charts.root,
  advanced,
);
showAdvanced(saved.advanced === true);
advanced.addEventListener('toggle', () => {
  showAdvanced(advanced.open);
  save({ advanced: advanced.open });
});
const empty = element('main', { class: 'empty', hidden: '' });
document.body.append(panel, empty, live);

let samples: Sample[] = [];
window.addEventListener('message', ({ data }: MessageEvent<ToCachePage>) => receive(data));
send({ type: 'ready' });

/** Also shows the columns of the files table that need it. */
function showAdvanced(open: boolean): void {
  advanced.open = open;
  panel.classList.toggle('expert', open);
}

function receive(message: ToCachePage): void {
  if (message.type === 'samples') samples = message.samples;
  else if (message.type === 'figures') showFigures(message.figures);
  else showNothing(message.why);
}

function showFigures(figures: CacheFigures): void {
  const { stats, machine, sample } = figures;
  empty.hidden = true;
  panel.hidden = false;
  if (sample && sample.at > (samples.at(-1)?.at ?? 0))
    samples = [...samples.filter(({ at }) => at > sample.at - KEPT_MS), sample];
  const { model } = stats;
  const graphics = machine
    ? machine.gpus === null
      ? strings.gpuUnknown
      : machine.gpus.length
        ? strings.gpuUnused
        : strings.noGpu
    : '';
  const parts = model
    ? [
        model.precision,
        fillIn(strings.threads, model.threads),
        model.kernels === undefined ? 'onnxruntime' : fillIn(strings.native, model.kernels),
        graphics,
      ].filter((part) => part !== '')
    : [];
  fill(about, element('strong', {}, model?.name ?? ''), parts.map((part) => `${DOT}${part}`).join(''));
  tiles.show(figures, samples);
  memory.show(figures);
  times.show(figures);
  tree.show(figures);
  files.show(figures.files);
  charts.show(samples);
}

function showNothing({ kind, title, text }: NoFigures): void {
  panel.hidden = true;
  empty.hidden = false;
  const actions =
    kind === 'failed'
      ? [
          command(strings.showLog, 'showLog'),
          command(strings.restart, 'restartEngine'),
          command(strings.chooseModel, 'chooseModel'),
        ]
      : kind === 'stopped'
        ? [command(strings.openChat, 'openChat'), command(strings.chooseModel, 'chooseModel')]
        : [];
  const shown = `${kind} ${title} ${text}`;
  // Progress events come many times a second, and the focused element must stay.
  if (empty.dataset.shown === shown) return;
  empty.dataset.shown = shown;
  empty.dataset.state = kind;
  fill(
    empty,
    element('div', { class: 'mark' }, mark()),
    element('h1', {}, title),
    element('p', {}, text),
    element('nav', {}, ...actions),
  );
}
