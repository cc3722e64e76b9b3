/** What package.json promises to VS Code: texts in both languages, settings that a workspace may not touch, files that are there. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

interface Setting {
  type: string;
  scope: string;
  default: unknown;
  description?: string;
  markdownDescription?: string;
}
const text = readFileSync('package.json', 'utf8');
const manifest = JSON.parse(text) as {
  extensionKind: string[];
  activationEvents: string[];
  capabilities: {
    untrustedWorkspaces: { supported: string; restrictedConfigurations: string[] };
    virtualWorkspaces: { supported: boolean };
  };
  contributes: {
    commands: { command: string; category: string; enablement: string }[];
    configuration: { properties: Record<string, Setting> };
    keybindings?: unknown;
    walkthroughs: {
      id: string;
      steps: { id: string; description: string; media: { svg: string; altText: string }; completionEvents: string[] }[];
    }[];
    languageModelChatProviders: { vendor: string }[];
    chatParticipants: { id: string }[];
  };
};
const { contributes, capabilities } = manifest;
const texts = Object.fromEntries(
  ['package.nls.json', 'package.nls.pt-br.json'].map((file) => [
    file,
    JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>,
  ]),
);
const source = readdirSync('src', { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => readFileSync(`src/${name}`, 'utf8'))
  .join('\n');

describe('texts', () => {
  const wanted = [...new Set([...text.matchAll(/"%([\w.]+)%"/g)].map(([, key]) => key!))].sort();
  it.each(Object.keys(texts))('%s holds exactly those that are used', (file) => {
    expect(Object.keys(texts[file]!).sort()).toEqual(wanted);
  });
  it('lead to the same commands in both languages', () => {
    const commands = (value: string) => [...value.matchAll(/\(command:([^)?]+)/g)].map(([, command]) => command);
    for (const key of wanted)
      expect(commands(texts['package.nls.pt-br.json']![key]!), key).toEqual(commands(texts['package.nls.json']![key]!));
  });
});

describe('settings', () => {
  const settings = Object.entries(contributes.configuration.properties);
  it('are described', () => {
    for (const [name, { description, markdownDescription }] of settings)
      expect(description ?? markdownDescription, name).toBeTruthy();
  });
  it('of the machine, and what keeps secrets out, are no business of an untrusted workspace', () => {
    const machine = settings.filter(([, { scope }]) => scope === 'machine').map(([name]) => name);
    expect(capabilities.untrustedWorkspaces.supported).toBe('limited');
    expect([...capabilities.untrustedWorkspaces.restrictedConfigurations].sort()).toEqual(
      [...machine, 'kvasir.completion.exclude'].sort(),
    );
  });
  it('with a path, or of the engine, belong to the machine', () => {
    for (const [name, { scope }] of settings)
      if (/^kvasir\.(model|engine|cache)/.test(name)) expect([name, scope]).toEqual([name, 'machine']);
  });
});

describe('surroundings', () => {
  it('run where the files are, in virtual workspaces too, and start after the editor', () => {
    expect(manifest.extensionKind).toEqual(['workspace']);
    expect(capabilities.virtualWorkspaces.supported).toBe(true);
    expect(manifest.activationEvents).toEqual(['onStartupFinished']);
  });
  it('take no key, except Escape while a completion grows', () => {
    const [{ key, when }, ...others] = contributes.keybindings as [{ key: string; when: string }];
    expect(others).toEqual([]);
    expect(key).toBe('escape');
    expect(when).toMatch(/^kvasir\.completionGrows && inlineSuggestionVisible && /);
  });
  it('have the names that the code uses', () => {
    expect(contributes.languageModelChatProviders.map(({ vendor }) => vendor)).toEqual(['kvasir']);
    expect(contributes.chatParticipants.map(({ id }) => id)).toEqual(['kvasir.assistant']);
    expect(source).toContain(`'kvasir.kvasir#${contributes.walkthroughs[0]?.id}'`);
  });
});

describe('the walkthrough', () => {
  const steps = contributes.walkthroughs[0]!.steps;
  it('is one, with few steps', () => {
    expect(contributes.walkthroughs).toHaveLength(1);
    expect(steps).toHaveLength(5);
  });
  it.each(steps.map((step) => [step.id, step] as const))(
    '%s: its picture is packaged and takes its colours from the theme',
    (_, step) => {
      expect(existsSync(step.media.svg)).toBe(true);
      const picture = readFileSync(step.media.svg, 'utf8');
      expect(picture).toContain('var(--vscode-');
      for (const [, fill] of picture.matchAll(/(?:fill|stroke)="([^"]+)"/g)) expect(fill).toMatch(/^(none|var\()/);
      expect(picture).not.toMatch(/<script|href|on\w+=/);
    },
  );
  it('leads to commands that exist, and its steps are done by them', () => {
    const known = new Set(contributes.commands.map(({ command }) => command));
    for (const { description, completionEvents } of steps) {
      const words = texts['package.nls.json']![description.slice(1, -1)]!;
      const commands = [...words.matchAll(/\(command:([^)?]+)/g)].map(([, command]) => command!);
      for (const command of commands)
        expect(command.startsWith('workbench.') || known.has(command) || source.includes(`'${command}'`), command).toBe(
          true,
        );
      for (const event of completionEvents) {
        expect(event).toMatch(/^on(Command|View|Context):kvasir\./);
        const [, kind, name] = /^on(\w+):(.*)$/.exec(event)!;
        if (kind !== 'View') expect(source, event).toContain(`'${name}'`);
      }
    }
  });
  it('ticks a step when what its title names has been done, not when a view or a command offers it', () => {
    expect(Object.fromEntries(steps.map(({ id, completionEvents }) => [id, completionEvents]))).toEqual({
      complete: ['onCommand:kvasir.completionAccepted'],
      chat: ['onContext:kvasir.asked'],
      summarize: ['onContext:kvasir.summarized'],
      memory: ['onView:kvasir.cache'],
      model: ['onCommand:kvasir.chooseModel'],
    });
  });
  it.each(Object.keys(texts))('%s: the editor shows its whole description, in three short lines', (file) => {
    expect(texts[file]!['walkthrough.description']!.length).toBeLessThanOrEqual(60);
  });
});

it('every command is in the category Kvasir and off with the product', () => {
  for (const { command, category, enablement } of contributes.commands)
    expect([command, category, enablement.startsWith('config.kvasir.enable')]).toEqual([command, 'Kvasir', true]);
});
