/** Acts on a choice of model: writes the setting and loads the model, with a way back. Downloads nothing. */
import { messageOf } from '../format.ts';
import { homedir } from 'node:os';
import * as vscode from '../vscode.ts';
import type { Settings } from '../config.ts';
import type { EngineHost } from '../client/engineHost.ts';
import { withoutLinks } from '../client/failure.ts';
import { expandHome } from '../../engine/download/hubCache.ts';
import { folderName } from '../../engine/find/names.ts';
import { describeModel, isPath } from './locate.ts';

/** Writes `kvasir.model` (empty is the built-in model) and loads it. If that fails, offers the former one. */
export async function useModel(setting: string, name: string, host: EngineHost, settings: Settings): Promise<void> {
  const former = settings.current.model;
  try {
    await host.quietly(() => load(setting, name, host, settings));
    vscode.window.setStatusBarMessage(vscode.l10n.t('Kvasir uses {0} now.', name), 5000);
  } catch (error) {
    const back =
      former === setting
        ? vscode.l10n.t('Use the Built-in Model')
        : vscode.l10n.t('Back to {0}', former ? nameOf(former) : vscode.l10n.t('the built-in model'));
    const message = vscode.l10n.t('{0} cannot be used: {1}', name, messageOf(error));
    if ((await vscode.window.showErrorMessage(`Kvasir: ${withoutLinks(message)}`, back)) !== back) return;
    // engineHost.ts reports what is wrong with that one.
    await load(former === setting ? '' : former, '', host, settings).catch(() => {});
  }
}

/** A name is shown as it is. */
function nameOf(setting: string): string {
  return isPath(setting) ? describeModel({ modelDir: expandHome(setting, homedir()) }).name : setting;
}

/** With progress: a large model is imported at the first load, which takes minutes. */
async function load(setting: string, name: string, host: EngineHost, settings: Settings): Promise<void> {
  if (settings.current.model === setting) {
    if (host.client.state.kind === 'failed') await host.client.stop(vscode.l10n.t('the engine was restarted'));
  } else {
    await vscode.workspace
      .getConfiguration('kvasir')
      .update('model', setting || undefined, vscode.ConfigurationTarget.Global);
    // engineHost.ts has stopped the engine then.
    await settings.until(({ model }) => model === setting);
  }
  const title = name ? vscode.l10n.t('Kvasir: loading {0}', name) : vscode.l10n.t('Kvasir: loading the model');
  await vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title }, async (progress) => {
    let reported = 0;
    const subscription = host.onState((state) => {
      if (state.kind !== 'starting' || state.stage !== 'import') return;
      const percent = Math.round(state.fraction * 100);
      progress.report({
        increment: percent - reported,
        message: vscode.l10n.t('importing, only this once: {0}%', percent),
      });
      reported = percent;
    });
    try {
      await host.client.ready();
    } finally {
      subscription.dispose();
    }
  });
}

/** Lets the user choose a folder, or a GGUF file. Not all platforms have one dialog for both. */
export async function browseForModel(kind: 'folder' | 'file', host: EngineHost, settings: Settings): Promise<void> {
  const [chosen] =
    (await vscode.window.showOpenDialog({
      canSelectFolders: kind === 'folder',
      canSelectFiles: kind === 'file',
      openLabel: vscode.l10n.t('Use This Model'),
      title: kind === 'folder' ? vscode.l10n.t('Choose the folder of a model') : vscode.l10n.t('Choose a GGUF file'),
      ...(kind === 'file' ? { filters: { GGUF: ['gguf'], [vscode.l10n.t('All files')]: ['*'] } } : {}),
    })) ?? [];
  if (!chosen) return;
  try {
    const { name } = await host.client.inspect(chosen.fsPath, settings.current.native);
    await useModel(chosen.fsPath, name, host, settings);
  } catch (error) {
    const again = vscode.l10n.t('Choose Another…');
    const message = vscode.l10n.t('{0} cannot be used: {1}', folderName(chosen.fsPath), messageOf(error));
    if ((await vscode.window.showErrorMessage(`Kvasir: ${withoutLinks(message)}`, again)) === again)
      await browseForModel(kind, host, settings);
  }
}
