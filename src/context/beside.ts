/** What a completion is offered from other places: snippets for the model, and sources to copy from. */
import type { DocumentMirror } from '../client/documentMirror.ts';
import type { EngineClient } from '../client/engineClient.ts';
import type { Beside } from '../completion/completionRequests.ts';
import type { Settings } from '../config.ts';
import { otherFiles } from './otherFiles.ts';
import type { ProjectFiles } from './projectFiles.ts';
import type { SnippetSource } from './snippetSource.ts';

export function beside(
  source: SnippetSource,
  client: EngineClient,
  mirror: DocumentMirror,
  project: Pick<ProjectFiles, 'near'>,
  settings: Settings,
): Beside {
  return (document, offset) => {
    const snippets = source.gather(document, offset);
    const copySources = otherFiles(document, client, mirror, project, settings);
    return { ...(snippets.length ? { snippets } : {}), ...(copySources.length ? { copySources } : {}) };
  };
}
