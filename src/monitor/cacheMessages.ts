/** Messages between the cache panel's page and the extension host, and the page's texts. Plain data only. */
import type { EngineStats, FileStats, MachineInfo, TreeNode } from '../../engine/protocol/stats.ts';
import type { Sample } from './samples.ts';

/** A row of the files table. */
export interface FileRow extends FileStats {
  /** Relative to the workspace, as elsewhere in the editor. */
  name: string;
  /** What its codecs mean. */
  codecNote: string;
  /** A note on approximated tokens. */
  shiftedBytes: number;
}

export interface CacheFigures {
  stats: Omit<EngineStats, 'files' | 'tree'>;
  files: FileRow[];
  tree: TreeNode[];
  machine: MachineInfo | null;
  /** Current values. */
  sample: Sample | null;
}

/** Why there are no figures. */
export interface NoFigures {
  kind: 'stopped' | 'starting' | 'failed';
  title: string;
  text: string;
}

export type ToCachePage =
  | { type: 'figures'; figures: CacheFigures }
  | { type: 'nothing'; why: NoFigures }
  /** Past samples for the charts, sent when the page appears. */
  | { type: 'samples'; samples: Sample[] };

export type CacheCommand = 'clearCache' | 'exportTrace' | 'chooseModel' | 'openChat' | 'showLog' | 'restartEngine';

export type FromCachePage =
  | { type: 'ready' }
  | { type: 'command'; command: CacheCommand }
  | { type: 'pin'; docId: string; pinned: boolean }
  | { type: 'evict'; docId: string }
  | { type: 'open'; docId: string };

/** In the user's language. The page fills `{0}` and so on. */
export interface CacheStrings {
  title: string;
  reused: string;
  reusedNote: string;
  firstToken: string;
  firstTokenNote: string;
  speed: string;
  speedNote: string;
  failedNote: string;
  queueNote: string;
  kept: string;
  keptNote: string;
  advanced: string;
  cacheParts: string;
  rows: string;
  nothingYet: string;
  times: string;
  queued: string;
  toFirst: string;
  eachToken: string;
  quantiles: string;
  medians: string;
  p95: string;
  busy: string;
  draftsRight: string;
  memory: string;
  memoryOf: string;
  shared: string;
  pool: string;
  store: string;
  both: string;
  disk: string;
  onDisk: string;
  diskOf: string;
  diskOff: string;
  diskStopped: string;
  diskTokens: string;
  scratch: string;
  buffers: string;
  free: string;
  none: string;
  weights: string;
  process: string;
  machine: string;
  available: string;
  slots: string;
  graphics: string;
  noGpu: string;
  gpuUnknown: string;
  gpuUsed: string;
  gpuTotal: string;
  gpuEstimate: string;
  gpuSize: string;
  gpuUnused: string;
  threads: string;
  native: string;
  tree: string;
  treeHint: string;
  treeHelp: string;
  treeBack: string;
  header: string;
  fileBlock: string;
  others: string;
  outdated: string;
  background: string;
  kinds: { completion: string; chat: string; summary: string; idle: string; shifted: string };
  tokens: string;
  running: string;
  pinned: string;
  files: string;
  noFiles: string;
  file: string;
  tier: string;
  codec: string;
  tokensColumn: string;
  shiftedTokens: string;
  size: string;
  hits: string;
  hitRate: string;
  lastUse: string;
  actions: string;
  closed: string;
  pin: string;
  unpin: string;
  evict: string;
  open: string;
  history: string;
  chartBytes: string;
  chartReused: string;
  chartSpeed: string;
  chartBatch: string;
  exportTrace: string;
  clear: string;
  chooseModel: string;
  openChat: string;
  showLog: string;
  restart: string;
  now: string;
  secondsAgo: string;
  minutesAgo: string;
  hoursAgo: string;
  cleared: string;
}
