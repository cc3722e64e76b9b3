/** What the user can do about a failure, besides trying again. Pure. */
import type { ErrorCode } from '../../engine/protocol/tasks.ts';
import type { Translate } from '../format.ts';

export type Remedy = { kind: 'model' } | { kind: 'setting'; key: string };

/** undefined: no known remedy. */
export function remedyOf(message: string, code?: ErrorCode): Remedy | undefined {
  // Messages name the setting to change, in every language.
  const [key] = /\bkvasir\.(?:model\b|(?:cache|chat|completion|engine|summary)\.\w+)/.exec(message) ?? [];
  if (code === 'modelInvalid' || code === 'modelUnsupported' || key === 'kvasir.model') return { kind: 'model' };
  return key === undefined ? undefined : { kind: 'setting', key };
}

export function remedyLabel(remedy: Remedy, t: Translate): string {
  return remedy.kind === 'model' ? t('Choose Model') : t('Open Setting');
}
