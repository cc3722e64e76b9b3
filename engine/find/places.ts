/** Where tools for language models keep their files on this machine, by their own variables and files. */
import path from 'node:path';
import { expandHome, hubFolder, type Machine } from '../download/hubCache.ts';
import type { Place } from './found.ts';
import { shortText } from './look.ts';

const MAX_FILE_BYTES = 1e6;

/** In the order of the lists. Which of them exist is not checked. */
export async function placesOf(folders: readonly string[], machine: Machine): Promise<Place[]> {
  const places: Place[] = [
    ...folders.map((folder) => ({ source: 'folder' as const, folder: expandHome(folder, machine.home) })),
    { source: 'huggingFace', folder: hubFolder(machine) },
    ...ollamaFolders(machine).map((folder) => ({ source: 'ollama' as const, folder })),
    ...(await lmStudioFolders(machine)).map((folder) => ({ source: 'lmStudio' as const, folder })),
    { source: 'llamaCpp', folder: llamaCppFolder(machine) },
  ];
  return places.filter(({ folder }) => path.isAbsolute(folder));
}

/** The service of Linux runs as a user of its own. */
function ollamaFolders({ env, home, platform }: Machine): string[] {
  return [
    ...(env.OLLAMA_MODELS ? [expandHome(env.OLLAMA_MODELS, home)] : []),
    path.join(home, '.ollama', 'models'),
    ...(platform === 'linux' ? ['/usr/share/ollama/.ollama/models'] : []),
  ];
}

/** Its home is moved by a file with the new path; the folder of the models also by its settings. */
async function lmStudioFolders({ home }: Machine): Promise<string[]> {
  const pointer = (await shortText(path.join(home, '.lmstudio-home-pointer'), MAX_FILE_BYTES))?.split('\n')[0]?.trim();
  const homes = [pointer ?? '', path.join(home, '.lmstudio'), path.join(home, '.cache', 'lm-studio')];
  const folders: string[] = [];
  for (const each of homes.filter((folder) => path.isAbsolute(folder))) {
    const own = await downloadsFolder(path.join(each, 'settings.json'));
    folders.push(...(own === undefined ? [] : [own]), path.join(each, 'models'));
  }
  return [...new Set(folders)];
}

async function downloadsFolder(settings: string): Promise<string | undefined> {
  try {
    const found = JSON.parse((await shortText(settings, MAX_FILE_BYTES)) ?? '') as { downloadsFolder?: unknown } | null;
    return typeof found?.downloadsFolder === 'string' ? found.downloadsFolder : undefined;
  } catch {
    return undefined;
  }
}

function llamaCppFolder({ env, home, platform }: Machine): string {
  if (env.LLAMA_CACHE) return expandHome(env.LLAMA_CACHE, home);
  if (platform === 'darwin') return path.join(home, 'Library', 'Caches', 'llama.cpp');
  if (platform === 'win32') return path.join(env.LOCALAPPDATA || path.join(home, 'AppData', 'Local'), 'llama.cpp');
  return path.join(env.XDG_CACHE_HOME || path.join(home, '.cache'), 'llama.cpp');
}
