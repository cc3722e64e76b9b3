/** Switches off the tasks of a model whose files have a fault, and says why. Does not find faults (see modelText.ts). */
import { t } from '@vscode/l10n';
import { RequestError } from '../../protocol/errors.ts';
import type { Manifest } from './manifest.ts';

/** Faults in the files of a model, as messages in the user's language. */
export interface Faults {
  complete?: string;
  /** Also stops what is made with the chat template: summaries, edits and commit messages. */
  chat?: string;
}

/**
 * The manifest without the tasks that have a fault. Its note says why.
 * @throws RequestError `modelInvalid` if no task is left
 */
export function withoutFaulty(manifest: Manifest, faults: Faults): Manifest {
  const { can, note } = manifest;
  const complete = can.complete ? faults.complete : undefined;
  const chat = can.chat || can.summarize || can.edit ? faults.chat : undefined;
  if (complete === undefined && chat === undefined) return manifest;
  const left: Manifest['can'] = {
    complete: can.complete && complete === undefined,
    chat: can.chat && chat === undefined,
    summarize: can.summarize && chat === undefined,
    edit: can.edit && chat === undefined,
  };
  if (!left.complete && !left.chat && !left.summarize) {
    const found = [complete, chat].filter((fault) => fault !== undefined);
    throw new RequestError('modelInvalid', `${found.join('; ')}.`);
  }
  const said = [
    complete === undefined ? '' : t('It is not used for completions ({0}).', complete),
    chat === undefined ? '' : t('It is not used for chat ({0}).', chat),
  ];
  const add = (own: string): string => [own, ...said].filter(Boolean).join(' ');
  return { ...manifest, can: left, note: { en: add(note.en), pt: add(note.pt) } };
}
