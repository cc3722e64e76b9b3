/** What a download's progress says, and what its buttons are called. Pure. */
import type { Progress } from '../../engine/download/download.ts';
import type { KnownModel } from '../../engine/download/knownModels.ts';
import { Rate } from '../../engine/download/rate.ts';
import type { Speech } from '../format.ts';

/** Takes the id of a known model, or nothing for the first one. */
export const DOWNLOAD_COMMAND = 'kvasir.downloadModel';

/** "Download Qwen2.5-Coder 1.5B (about 1.9 GB)" */
export function downloadLabel({ title, aboutBytes }: KnownModel, { t, numbers }: Speech): string {
  return t('Download {0} (about {1})', title, numbers.bytes(aboutBytes));
}

/** Makes a line of each step: how much, how fast, how long. */
export class ProgressLine {
  readonly #speech: Speech;
  readonly #rate: Rate;

  constructor(speech: Speech, clock?: () => number) {
    this.#speech = speech;
    this.#rate = new Rate(clock);
  }

  line({ doneBytes, totalBytes, state }: Progress): string {
    const { t, numbers } = this.#speech;
    if (state === 'loading') this.#rate.add(doneBytes);
    else this.#rate.reset();
    const perSecond = this.#rate.bytesPerSecond;
    const seconds = this.#rate.secondsLeft(totalBytes - doneBytes);
    return [
      t('{0} of {1}', numbers.bytes(doneBytes), numbers.bytes(totalBytes)),
      ...(state === 'checking' ? [t('checking what is here')] : []),
      ...(state === 'waiting' ? [t('loaded by another window')] : []),
      ...(state === 'retrying' ? [t('the connection was cut; trying again')] : []),
      ...(perSecond === null ? [] : [`${numbers.bytes(perSecond)}/s`]),
      ...(seconds === null ? [] : [this.#remaining(seconds)]),
    ].join(' · ');
  }

  #remaining(seconds: number): string {
    const { t } = this.#speech;
    const minutes = Math.round(seconds / 60);
    if (seconds < 90) return t('{0} s left', Math.ceil(seconds));
    if (minutes < 60) return t('{0} min left', minutes);
    return t('{0} h {1} min left', Math.floor(minutes / 60), minutes % 60);
  }
}
