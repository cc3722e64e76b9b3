/** Kvasir opens no network connection: a working extension host has the same sockets as one without Kvasir. */
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { Editor, PATIENCE } from './editor.ts';
import {
  isLoopback,
  namedSockets,
  networkNamespace,
  processesWith,
  processTree,
  remoteAddresses,
} from './processes.ts';
import { type EditorServerAddress, RUN_VARIABLE } from './server.ts';
import { ownServer } from './ownServer.ts';
import { editorSuite, INVENTORY } from './suite.ts';

editorSuite('network', { 'src/inventory.ts': INVENTORY }, (editor) => {
  test('a completion and a chat open no connection beyond loopback', async () => {
    const window = editor();
    const seen = new Set<string>();
    const watch = setInterval(() => {
      for (const address of remoteAddresses(processTree(window.extensionHost))) seen.add(address);
    }, 50);
    try {
      await window.openFile('src/inventory.ts', 37, 1);
      await window.runCommand('Kvasir: Trigger Completion');
      await window.runCommand('Kvasir: Open Chat');
      const answer = await window.ask('What is this file for?');
      await expect.poll(() => answer.getAttribute('data-state'), { timeout: 2 * PATIENCE }).toBe('done');
    } finally {
      clearInterval(watch);
    }
    expect([...seen].filter((address) => !isLoopback(address))).toEqual([]);
  });

  test('Choose Model, a summary and the cache panel open no connection', async () => {
    const window = editor();
    const seen = new Set<string>();
    const watch = setInterval(() => {
      for (const address of remoteAddresses(processTree(window.extensionHost))) seen.add(address);
    }, 50);
    try {
      await window.openFile('src/inventory.ts');
      const summary = window.answers.nth(await window.answers.count());
      await window.runCommand('Kvasir: Summarize File');
      await expect.poll(() => summary.getAttribute('data-state'), { timeout: 2 * PATIENCE }).toBe('done');
      await window.runCommand('Kvasir: Show Cache');
      await window.page
        .frameLocator('iframe.webview')
        .last()
        .frameLocator('iframe#active-frame')
        .locator('body')
        .waitFor();
      await window.runPicker('Kvasir: Choose Model', 'kvasir-starter');
      await window.press('Escape');
    } finally {
      clearInterval(watch);
    }
    expect([...seen].filter((address) => !isLoopback(address))).toEqual([]);
  });

  test('an extension host at work has the same sockets as one without Kvasir', async () => {
    const without = await Editor.open(
      ownServer() as EditorServerAddress,
      { 'src/inventory.ts': INVENTORY },
      { withoutExtensions: true },
    );
    try {
      await without.openFile('src/inventory.ts');
      // The editor gives each window a socket whose name contains its own id.
      const kinds = (pid: number) => [
        ...new Set(
          namedSockets(pid)
            // The tests' own.
            .filter((socket) => !/\/driver-\d+\.sock$/.test(socket))
            .map((socket) =>
              socket
                .replace(/[\da-f]{8}-[\da-f-]{27}/, 'ID')
                .replace(/(?<=vscode-git-)[\da-f]+/, 'ID')
                .replace(/\d+/g, '#'),
            ),
        ),
      ];
      // The editor's own extensions start at their own times.
      const more = () => {
        const others = kinds(without.extensionHost);
        return kinds(editor().extensionHost).filter((socket) => !others.includes(socket));
      };
      await expect.poll(more, { timeout: PATIENCE }).toEqual([]);
    } finally {
      await without.close();
    }
  });

  // onnxruntime collects and sends telemetry unless it is told not to before it starts. Its id and its queue would be
  // in the home folder. (The editor has an id of its own there.)
  test('onnxruntime writes no record to the home folder', () => {
    const left = readdirSync(path.join((ownServer() as EditorServerAddress).folder, 'home'), {
      recursive: true,
      encoding: 'utf8',
    });
    expect(left.filter((name) => /onnxruntime/i.test(name))).toEqual([]);
  });

  const server = ownServer();
  const isolated = typeof server === 'string' ? server : server.isolated;
  test.skipIf(isolated !== true)(
    `all editor tests run in a network namespace with loopback only${isolated === true ? '' : ` (${isolated})`}`,
    () => {
      // The test really sees sockets: it finds the browser's connection to the server.
      const everything = processesWith(RUN_VARIABLE, (server as EditorServerAddress).runId);
      const addresses = remoteAddresses(everything);
      expect(addresses.filter(isLoopback)).not.toEqual([]);
      expect(everything.map(networkNamespace)).not.toContain(networkNamespace(process.pid));
    },
  );
});
