/** Choosing a model, the walkthrough and the problem report in a real editor. */
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { formatParameters } from '../../src/models/modelItems.ts';
import { BUILT_IN, counted } from '../support/builtIn.ts';
import { english } from '../support/editor/translate.ts';
import { type Editor, PATIENCE, setText } from './editor.ts';
import { ownServer } from './ownServer.ts';
import { editorSuite, INVENTORY } from './suite.ts';

const fixture = (name: string) => path.resolve('test/fixtures', name);

/** Creates a download as Hugging Face's tool does: every file is a link to a blob. */
function snapshot(hub: string, repository: string, source: string): void {
  const root = path.join(hub, repository);
  const dir = path.join(root, 'snapshots', 'abc');
  mkdirSync(dir, { recursive: true });
  mkdirSync(path.join(root, 'blobs'));
  for (const file of readdirSync(source).filter((name) => name !== 'reference')) {
    cpSync(path.join(source, file), path.join(root, 'blobs', `blob-${file}`));
    symlinkSync(`../../blobs/blob-${file}`, path.join(dir, file));
  }
}

/** Creates a model as Ollama does: a manifest of the name, and a blob. */
function pulled(ollama: string, [model, tag]: [string, string], file: string): void {
  const bytes = readFileSync(file);
  const digest = createHash('sha256').update(bytes).digest('hex');
  const folder = path.join(ollama, 'manifests/registry.ollama.ai/library', model);
  mkdirSync(folder, { recursive: true });
  mkdirSync(path.join(ollama, 'blobs'), { recursive: true });
  writeFileSync(path.join(ollama, 'blobs', `sha256-${digest}`), bytes);
  const layer = { mediaType: 'application/vnd.ollama.image.model', digest: `sha256:${digest}`, size: bytes.length };
  writeFileSync(path.join(folder, tag), JSON.stringify({ schemaVersion: 2, layers: [layer] }));
}

editorSuite('platform', { 'src/inventory.ts': INVENTORY }, (editor) => {
  let hub: string;
  let models: string;
  /** Folders of other tools. */
  let tools: string[] = [];
  /** A folder that is not among the model folders. */
  let elsewhere: string;

  beforeAll(() => {
    const server = ownServer();
    if (typeof server === 'string') return;
    hub = path.join(server.folder, 'home/.cache/huggingface/hub');
    models = path.join(server.folder, 'models');
    snapshot(hub, 'models--kvasir-test--tiny-llama', fixture('models/llama-mha-f16'));
    cpSync(fixture('models/qwen3-tied-sharded'), path.join(models, 'tiny-qwen'), { recursive: true });
    cpSync(fixture('models/qwen2-untied-bf16'), path.join(models, 'short-lived'), { recursive: true });
    cpSync(fixture('bad/cfg_no_hidden_size'), path.join(models, 'broken'), { recursive: true });
    tools = ['.ollama/models', '.lmstudio/models', '.cache/llama.cpp'].map((folder) =>
      path.join(server.folder, 'home', folder),
    );
    const [ollama = '', lmStudio = '', llamaCpp = ''] = tools;
    const gguf = fixture('models/gguf-qwen2/gguf-qwen2-q8_0.gguf');
    pulled(ollama, ['tiny-coder', '0.1b'], gguf);
    pulled(ollama, ['no-model', 'latest'], fixture('models/gguf-qwen2/config.json'));
    cpSync(gguf, path.join(lmStudio, 'someone/Tiny-GGUF/a-copy-of-tiny-coder-q8_0.gguf'));
    cpSync(
      fixture('models/gguf-llama/gguf-llama-q4_0.gguf'),
      path.join(lmStudio, 'someone/Llama-GGUF/little-llama-q4_0.gguf'),
    );
    cpSync(fixture('models/gguf-llama/gguf-llama-q8_0.gguf'), path.join(llamaCpp, 'ggml-org_small_small-q8_0.gguf'));
    elsewhere = path.join(server.folder, 'elsewhere');
    cpSync(fixture('models/qwen3-tied-sharded'), path.join(elsewhere, 'own-qwen'), { recursive: true });
    mkdirSync(path.join(elsewhere, 'photos'));
    editor().configureMachine({ 'kvasir.modelFolders': [models] });
  });
  afterAll(() => {
    editor()?.configureMachine({ 'kvasir.modelFolders': undefined, 'kvasir.model': undefined });
    for (const folder of [hub, models, elsewhere, ...tools])
      if (folder) rmSync(folder, { recursive: true, force: true });
  });

  const row = (text: RegExp) => editor().page.locator('.quick-input-list .monaco-list-row', { hasText: text });
  /** Reads the status hover anew, because an open hover keeps its text. */
  async function hover(): Promise<string> {
    const text = await editor().statusHover();
    await editor().unhover();
    return text;
  }
  const machine = () => {
    const server = ownServer();
    if (typeof server === 'string') return {};
    return JSON.parse(readFileSync(path.join(server.folder, 'user/Machine/settings.json'), 'utf8')) as Record<
      string,
      unknown
    >;
  };
  async function openList(window: Editor, filter = ''): Promise<void> {
    const input = window.page.locator('.quick-input-widget input');
    await window.runCommand('Kvasir: Choose Model');
    await window.page.locator('.quick-input-title', { hasText: 'can run here' }).waitFor();
    await setText(input, filter);
  }

  /** Chooses a listed model and waits until it is loaded. */
  async function choose(name: string): Promise<void> {
    await openList(editor(), name);
    await row(new RegExp(name)).waitFor();
    await editor().press('Enter');
    await expect.poll(hover, { timeout: PATIENCE }).toContain(name);
  }

  test('the list has the built-in, folder and Hugging Face models, and the reason why one cannot run', async () => {
    const window = editor();
    await choose('kvasir-starter');
    // The editor applies the folder settings with a delay.
    const listed = async () => {
      await openList(window);
      const there = await row(/tiny-qwen/).count();
      if (!there) await window.press('Escape');
      return there;
    };
    await expect.poll(listed, { timeout: PATIENCE, interval: 500 }).toBe(1);
    await expect
      .poll(() => row(/kvasir-starter/).innerText(), { timeout: PATIENCE })
      .toMatch(
        new RegExp(
          `in use · built in · ${formatParameters(BUILT_IN.parameters, english).replace('.', '\\.')}[\\s\\S]*completions, chat, no edits · reads ${counted(BUILT_IN.contextTokens)} tokens · [\\d.]+ MB of memory when running`,
        ),
      );
    expect(await row(/tiny-qwen/).innerText()).toMatch(/0\.3 million parameters[\s\S]*completions, chat, edits/);
    expect(await row(/kvasir-test\/tiny-llama/).innerText()).toMatch(/chat only/);
    // A placeholder would come back as a tooltip, which covers the title or the list wherever the mouse is.
    expect(await window.page.locator('.quick-input-widget input').getAttribute('placeholder')).toBeFalsy();
    await window.screenshotThemes('choose-model');
    await setText(window.page.locator('.quick-input-widget input'), 'broken');
    expect(await row(/broken/).innerText()).toMatch(/config\.json: hidden_size is missing/);
    await window.screenshot('choose-model-broken');
    await window.press('Escape');
  });

  test('models of other tools are listed by their tools, each once; one of Ollama is used by its name', async () => {
    const window = editor();
    await openList(window);
    const list = window.page.locator('.quick-input-list');
    // Only the rows in view are in the page.
    await list.locator('.monaco-list-row', { hasText: 'tiny-coder:0.1b' }).waitFor();
    await window.screenshot('choose-model-tools');
    expect(await row(/tiny-coder:0\.1b/).innerText()).toMatch(
      /0\.\d million parameters · qwen2 Q8_0 · \d+ kB[\s\S]*completions, chat, edits/,
    );
    await setText(window.page.locator('.quick-input-widget input'), 'llama');
    await row(/little-llama-q4_0/).waitFor();
    await row(/ggml-org_small_small-q8_0/).waitFor();
    await window.screenshot('choose-model-tools-filtered');
    await setText(window.page.locator('.quick-input-widget input'), 'a-copy');
    expect(await row(/a-copy-of-tiny-coder/).count()).toBe(0);
    await setText(window.page.locator('.quick-input-widget input'), 'no-model');
    expect(await row(/no-model:latest/).innerText()).toMatch(/Ollama[\s\S]*It is no GGUF file/);
    await window.screenshot('choose-model-tools-refused');
    await setText(window.page.locator('.quick-input-widget input'), 'tiny-coder');
    await row(/tiny-coder:0\.1b/).waitFor();
    await window.press('Enter');
    await expect.poll(() => machine()['kvasir.model'], { timeout: PATIENCE }).toBe('tiny-coder:0.1b');
    await openList(window, 'tiny-coder');
    await expect.poll(() => row(/tiny-coder:0\.1b/).innerText(), { timeout: PATIENCE }).toContain('in use');
    await window.press('Escape');
    await window.runCommand('Kvasir: Open Chat');
    const answer = await window.ask('What is this?');
    await expect.poll(() => answer.getAttribute('data-state'), { timeout: PATIENCE }).toBe('done');
    // After `ollama rm` it is missed by its name.
    rmSync(path.join(tools[0]!, 'manifests/registry.ollama.ai/library/tiny-coder'), { recursive: true });
    await window.runCommand('Kvasir: Restart Engine');
    await expect
      .poll(() => window.toasts(), { timeout: PATIENCE })
      .toEqual([
        expect.stringMatching(/No model on this machine is called tiny-coder:0\.1b\. Looked through: .*Ollama/),
      ]);
    await window.screenshot('choose-model-name-unknown');
    await window.page.locator('.notification-toast .monaco-button', { hasText: 'Choose Model' }).click();
    await window.page.locator('.quick-input-title', { hasText: 'can run here' }).waitFor();
    await setText(window.page.locator('.quick-input-widget input'), 'tiny-coder');
    expect(await row(/tiny-coder:0\.1b/).innerText()).toMatch(/in use[\s\S]*No model on this machine is called/);
    await setText(window.page.locator('.quick-input-widget input'), 'kvasir-starter');
    await row(/kvasir-starter/).waitFor();
    await window.press('Enter');
    await expect.poll(hover, { timeout: PATIENCE }).toContain('kvasir-starter');
  });

  test('larger models are listed with size, abilities, licence, memory and the basis of the estimate', async () => {
    const window = editor();
    await openList(window, 'Qwen2.5-Coder 0.5B');
    expect(await row(/Qwen2\.5-Coder 0\.5B/).innerText()).toMatch(
      /Download Qwen2\.5-Coder 0\.5B \(about 680 MB\)\s*completions, chat, edits · Apache-2\.0[\s\S]*needs \d{3} MB/,
    );
    await window.screenshot('choose-model-larger');
    await window.press('Escape');
  });

  test('a chosen model is loaded and answers questions', async () => {
    const window = editor();
    await window.openFile('src/inventory.ts');
    await choose('tiny-qwen');
    await window.runCommand('Kvasir: Open Chat');
    const answer = await window.ask('What is this?');
    await expect.poll(() => answer.getAttribute('data-state'), { timeout: PATIENCE }).toBe('done');
    await openList(window, 'tiny-qwen');
    expect(await row(/tiny-qwen/).innerText()).toContain('in use');
    await window.press('Escape');
  });

  test('a model from the Hugging Face cache is loaded through its links', async () => {
    await choose('tiny-llama');
  });

  test('a model that fails gives one message, whose button restores the former model', async () => {
    const window = editor();
    await choose('tiny-llama');
    // The first attempt has deleted it.
    cpSync(fixture('models/qwen2-untied-bf16'), path.join(models, 'short-lived'), { recursive: true });
    await openList(window, 'short-lived');
    await row(/short-lived/).waitFor();
    rmSync(path.join(models, 'short-lived'), { recursive: true });
    await window.press('Enter');
    await expect
      .poll(() => window.toasts(), { timeout: PATIENCE })
      .toEqual([expect.stringMatching(/short-lived|qwen2-untied/)]);
    expect((await window.toasts())[0]).toMatch(/cannot be used: The setting kvasir\.model does not name a folder/);
    await window.screenshot('choose-model-failed');
    await window.page.locator('.notification-toast .monaco-button', { hasText: 'Back to tiny-llama' }).click();
    await expect.poll(hover, { timeout: PATIENCE }).toContain('tiny-llama');
  });

  /** Chooses the folder entry, and then the folder in the editor's dialog. */
  async function browse(folder: string): Promise<void> {
    const window = editor();
    await openList(window, 'Choose a folder');
    await row(/Choose a folder…/).waitFor();
    await window.press('Enter');
    await chooseFolder(folder);
  }
  /** A path that ends with a slash names the folder itself. */
  const chooseFolder = (folder: string): Promise<void> => choosePath('Choose the folder of a model', `${folder}/`);
  async function choosePath(title: string, wanted: string): Promise<void> {
    const window = editor();
    await window.page.locator('.quick-input-title', { hasText: title }).waitFor();
    const input = window.page.locator('.quick-input-widget input').first();
    // While the dialog opens, it writes its start folder into the input.
    const written = async () => {
      const before = await input.inputValue();
      await setText(input, wanted);
      return before;
    };
    await expect.poll(written, { timeout: PATIENCE, interval: 700 }).toBe(wanted);
    await window.page.locator('.quick-input-list .monaco-list-row').first().waitFor();
    await window.screenshot(`choose-folder-${path.basename(wanted)}`);
    await window.page.locator('.quick-input-widget .monaco-button', { hasText: 'Use This Model' }).click();
  }

  test('a chosen folder without a model gives one message, from which another folder can be chosen, loaded and listed', async () => {
    const window = editor();
    await browse(path.join(elsewhere, 'photos'));
    await expect
      .poll(() => window.toasts(), { timeout: PATIENCE })
      .toEqual([expect.stringMatching(/photos cannot be used: .*config\.json/)]);
    await window.screenshot('choose-folder-refused');
    await window.page.locator('.notification-toast .monaco-button', { hasText: 'Choose Another…' }).click();
    await chooseFolder(path.join(elsewhere, 'own-qwen'));
    await expect.poll(hover, { timeout: PATIENCE }).toContain('own-qwen');
    expect(await window.toasts()).toEqual([]);
    await openList(window, 'own-qwen');
    await expect.poll(() => row(/own-qwen/).innerText(), { timeout: PATIENCE }).toContain('in use');
    await window.press('Escape');
  });

  test('a GGUF file is chosen in a dialog, loaded, completes and answers', async () => {
    const window = editor();
    const file = path.join(elsewhere, 'tiny-q8_0.gguf');
    cpSync(fixture('models/gguf-qwen2/gguf-qwen2-q8_0.gguf'), file);
    await openList(window, 'GGUF');
    await row(/Choose a GGUF file…/).waitFor();
    await window.screenshot('choose-model-gguf');
    await window.press('Enter');
    await choosePath('Choose a GGUF file', file);
    await expect.poll(hover, { timeout: PATIENCE }).toContain('tiny-q8_0');
    await window.openFile('src/inventory.ts', 37, 1);
    await window.runCommand('Kvasir: Trigger Completion');
    // The weights are random, so the text may not be worth showing. It is written in any case.
    const explained = async () => {
      await window.runCommand('Kvasir: Explain Last Completion');
      return await window.editorText();
    };
    await expect.poll(explained, { timeout: PATIENCE, interval: 500 }).toMatch(/37:1[\s\S]*[1-9]\d* tokens written/);
    await window.screenshot('gguf-explained');
    await window.runCommand('Kvasir: Open Chat');
    const answer = await window.ask('What is this?');
    await expect.poll(() => answer.getAttribute('data-state'), { timeout: PATIENCE }).toBe('done');
    await window.screenshot('gguf-chat');
    await openList(window, 'tiny-q8_0');
    await expect.poll(() => row(/tiny-q8_0/).innerText(), { timeout: PATIENCE }).toContain('in use');
    await window.screenshot('choose-model-gguf-in-use');
    await window.press('Escape');
  });

  test('choosing the built-in model empties the setting', async () => {
    await choose('tiny-qwen');
    await choose('kvasir-starter');
  });

  test('the walkthrough opens, and each step has its picture', async () => {
    const window = editor();
    await window.runCommand('View: Close Primary Side Bar').catch(() => {});
    await window.runCommand('Kvasir: Get Started');
    const page = window.page.locator('.gettingStartedContainer');
    await page.getByText('Get Started with Kvasir').first().waitFor();
    const steps = page.locator('.getting-started-step');
    expect(await steps.count()).toBe(5);
    for (const [index, title] of [
      'Complete code as you type',
      'Ask about the open file',
      'Summarize files and folders',
      'See what Kvasir keeps in memory',
      'Know the model, or choose a larger one',
    ].entries()) {
      await steps.nth(index).click();
      await steps.nth(index).and(window.page.locator('.expanded')).getByText(title).first().waitFor();
      const picture = page
        .frameLocator('.getting-started-media iframe.webview')
        .frameLocator('iframe#active-frame')
        .locator('svg');
      await picture.first().waitFor();
      // The page is drawn again while the step opens.
      await expect.poll(async () => (await picture.first().boundingBox())?.width ?? 0).toBeGreaterThan(100);
      await window.screenshot(`walkthrough-${index + 1}`);
    }
    await window.screenshotThemes('walkthrough');
    expect(window.problems).toEqual([]);
  });

  test('a problem report has versions and figures, and no code, names or paths', async () => {
    const window = editor();
    await choose('kvasir-starter');
    await window.runCommand('Kvasir: Report Problem');
    await expect.poll(() => window.editorText(), { timeout: PATIENCE }).toContain('# Kvasir: problem report');
    const text = await window.editorText();
    expect(text).toMatch(/Kvasir \d+\.\d+\.\d+, linux-x64, Node \d+/);
    expect(text).toContain(
      `Model: built-in, ${BUILT_IN.architecture}, ${counted(BUILT_IN.parameters)} parameters, ${counted(BUILT_IN.contextTokens)} tokens`,
    );
    expect(text).not.toMatch(/warehouse|inventory|Inventory|\/tmp\//);
    await window.screenshot('problem-report');
  });
});

// In a window of its own: there no question has been answered yet.
editorSuite(
  'walkthrough',
  { 'src/inventory.ts': INVENTORY },
  (editor) => {
    test('its chat step is ticked when a question about a file is answered, not when the chat opens', async () => {
      const window = editor();
      const isTicked = async () => {
        await window.runCommand('Kvasir: Get Started');
        const tick = window.page.locator('.gettingStartedContainer [data-done-step-id$="#chat"]').first();
        await tick.waitFor();
        const ticked = await tick.evaluate((each) => each.classList.contains('complete'));
        // One webview at a time: a step has its picture in one.
        await window.runCommand('View: Close All Editors');
        await window.openFile('src/inventory.ts');
        return ticked;
      };
      await window.openFile('src/inventory.ts');
      const ask = async () => {
        const answer = await window.ask('Which classes are defined here?');
        await expect.poll(() => answer.getAttribute('data-state'), { timeout: PATIENCE }).toBe('done');
      };
      await window.runCommand('Kvasir: Open Chat');
      // With these settings the editor reads walkthroughs when one is opened. It cannot know of this answer.
      await ask();
      expect(await isTicked()).toBe(false);
      await ask();
      await expect.poll(isTicked, { timeout: PATIENCE }).toBe(true);
    });
  },
  { reopen: true },
);
