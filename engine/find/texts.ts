/** The words for what a search finds: where models come from, and why one cannot be opened. */
import { oneLine } from '../protocol/oneLine.ts';
import type { Translate } from '../protocol/translate.ts';
import type { Fault, NameProblem, Source } from './found.ts';

export function sourceText(source: Source, t: Translate): string {
  switch (source) {
    case 'folder':
      return t('your folders');
    case 'huggingFace':
      return t('Hugging Face cache');
    case 'ollama':
      return 'Ollama';
    case 'lmStudio':
      return 'LM Studio';
    case 'llamaCpp':
      return t('llama.cpp cache');
  }
}

/** What is wrong with a model that a tool lists. The engine finds what else is wrong. */
export function faultText(fault: Fault, t: Translate): string {
  switch (fault) {
    case 'badManifest':
      return t('Its manifest cannot be read: pull the model again.');
    case 'noGguf':
      return t('It is no GGUF file: it runs on a server, or has a format of its own.');
    case 'severalFiles':
      return t('It has several files of weights, which Kvasir does not put together.');
    case 'adapter':
      return t('It needs an adapter (LoRA), which Kvasir does not apply.');
    case 'missing':
      return t('The file with its weights is missing: pull the model again.');
    case 'cut':
      return t('The file with its weights is not whole: pull the model again.');
    case 'denied':
      return t('This user must not read it.');
  }
}

/** One sentence: why a name leads to no model. */
export function nameProblemText(problem: NameProblem, t: Translate): string {
  const name = oneLine(problem.name);
  switch (problem.kind) {
    case 'unknown': {
      const places = problem.places.map(({ source, folder }) => `${sourceText(source, t)} (${oneLine(folder)})`);
      return places.length === 0
        ? t(
            'No model on this machine is called {0}: there is no folder of Hugging Face, Ollama, LM Studio or llama.cpp.',
            name,
          )
        : t('No model on this machine is called {0}. Looked through: {1}.', name, places.join(', '));
    }
    case 'several':
      return t('Several models are called {0}: {1}. Name one of them.', name, problem.names.map(oneLine).join(', '));
    case 'faulty':
      return t('{0} cannot be used: {1}', name, faultText(problem.fault, t));
  }
}
