/**
 * What users of other assistants complain about, each with the tests that hold that it does not happen here. A title that
 * no longer exists, or is skipped for good, fails.
 */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

interface Complaint {
  complaint: string;
  /** Where it was made. */
  seen: string;
  /** Test file, and a title in it (the part that is written out, where the rest is computed). */
  held: [file: string, title: string][];
}

const COMPLAINTS: Complaint[] = [
  {
    complaint: 'CPU hot on every keystroke',
    seen: 'llama.vscode #161',
    held: [
      [
        'test/unit/src/completion/completionProvider.test.ts',
        'twenty quick keys send two requests: one at once on the new line, one after the pause',
      ],
      [
        'test/unit/src/completion/completionProvider.test.ts',
        'typing through ghost text, deleting back and typing again send no request',
      ],
      ['test/unit/text/prompt/layout.test.ts', 'changes only at its end when a character is typed'],
    ],
  },
  {
    complaint: 'work when disabled',
    seen: 'llama.vscode #66, continue #1338',
    held: [
      ['test/unit/src/disposal.test.ts', 'creating the features runs nothing, and stopping them leaves nothing'],
      [
        'test/vscode/disabled.test.ts',
        'complaint: work when disabled. Typing starts no engine and shows nothing; no status bar item, view or command',
      ],
      ['test/vscode/disabled.test.ts', 'switching off during work stops the engine, and nothing uses the processor'],
    ],
  },
  {
    complaint: 'cancel that does not stop compute',
    seen: 'continue #2838',
    held: [
      [
        'test/unit/src/completion/completionProvider.test.ts',
        'a key that differs from the streaming text aborts the request at once',
      ],
      [
        'test/unit/src/client/engineClient.test.ts',
        'an abort reaches the engine, and the request resolves with its answer',
      ],
      ['test/engine/scheduling.test.ts', 'abort at every step, before it and during it'],
    ],
  },
  {
    complaint: 'chat evicting the completion model',
    seen: 'continue #10378',
    held: [
      [
        'test/unit/src/client/engineLifecycle.test.ts',
        'nothing is started before the first request; then one engine and one load for all',
      ],
      [
        'test/model/assistantServer.test.ts',
        'completion, chat and summary of one file share its block, computed once, also after an edit near the end',
      ],
    ],
  },
  {
    complaint: 'prefix cache lost between slots',
    seen: 'llama.vscode PR 155, llama.cpp #28139',
    held: [
      ['test/engine/engine.test.ts', 'eight requests over one prefix compute it once, sent %s'],
      ['test/engine/engine.test.ts', 'a later request finds prompt and answer of an earlier one'],
      [
        'test/vscode/assistant.test.ts',
        'the first question about the file reuses it; a second question does not compute it again',
      ],
    ],
  },
  {
    complaint: 'wrong FIM template is garbage',
    seen: 'twinny #377, #338',
    held: [
      ['test/unit/text/prompt/fim.test.ts', '$family: $prompt'],
      ['test/unit/text/modelText.test.ts', 'are named in the note, and the other tasks still work'],
      ['test/unit/text/modelText.test.ts', 'with the same id are a fault'],
    ],
  },
  {
    complaint: '"nothing happens" and no logs',
    seen: 'twinny #363',
    held: [
      ['test/unit/src/completion/completionTrigger.test.ts', 'the log line of a record says why nothing is shown'],
      ['test/unit/src/completion/silentCompletions.test.ts', 'complaint: nothing happens and no logs'],
      ['test/vscode/commands.test.ts', 'Kvasir: Explain Last Completion opens a page with the reason'],
    ],
  },
  {
    complaint: 'setup too hard',
    seen: 'llama.vscode #178',
    held: [['test/vscode/completion.test.ts', 'ghost text in %s is what `kvasir complete` prints']],
  },
  {
    complaint: 'air-gapped installs',
    seen: 'of most',
    held: [
      ['test/vscode/network.test.ts', 'all editor tests run in a network namespace with loopback only'],
      ['test/vscode/network.test.ts', 'an extension host at work has the same sockets as one without Kvasir'],
    ],
  },
  {
    complaint: 'a native module that fails to load takes the whole extension down',
    seen: 'continue #1233',
    held: [
      [
        'test/model/transport.test.ts',
        'without its native library the load fails in one sentence; with it, the next request works',
      ],
    ],
  },
  {
    complaint: 'memory of the extension host',
    seen: 'continue #856, #4756',
    held: [['test/vscode/recordedSession.test.ts', 'complaint: memory of the extension host']],
  },
  {
    complaint: 'fights with Copilot and IntelliSense',
    seen: 'vscode #316899',
    held: [
      [
        'test/unit/src/completion/completionProvider.test.ts',
        'the completion continues from the selected suggestion, which is sent to the engine',
      ],
      [
        'test/unit/src/completion/completionProvider.test.ts',
        'nothing is shown for a suggestion that is not a prefix match, with that reason',
      ],
    ],
  },
  {
    complaint: 'silent context overflow',
    seen: 'continue #587',
    held: [
      ['test/unit/text/prompt/layout.test.ts', 'says which lines of a large file are left out, and shows the cursor'],
      ['test/unit/text/prompt/layout.test.ts', 'drops the oldest turns first and says so'],
      ['test/unit/tasks/measureChat.test.ts', 'counts the parts that are left out'],
    ],
  },
  {
    // An editor gives each window an extension host; what can be had is that a window without requests has no engine.
    complaint: 'one engine copy per window',
    seen: 'vscode #120490',
    held: [
      [
        'test/vscode/startup.test.ts',
        'no worker and no native module is loaded before the first request, and none is left after the window closes',
      ],
      [
        'test/unit/src/client/idleUnload.test.ts',
        'the model is unloaded after the time without a request, sooner in the background, and loaded by the next request',
      ],
      ['test/vscode/robustness.test.ts', 'after the model is unloaded, the conversation stays and continues'],
    ],
  },
];

test.each(COMPLAINTS)('$complaint ($seen)', ({ held }) => {
  expect(held).not.toEqual([]);
  for (const [file, title] of held) {
    const text = readFileSync(file, 'utf8');
    const at = ["'", '"', '`']
      .map((quote) => text.indexOf(`${quote}${title.replaceAll(quote, `\\${quote}`)}`))
      .find((index) => index >= 0);
    expect(at, `${file} has no test "${title}"`).toBeDefined();
    // What the title is an argument of.
    const call = text.slice(text.lastIndexOf('\n', text.slice(0, at).trimEnd().length - 1), at);
    expect(call, `${file}: "${title}"`).toMatch(/\b(it|test|describe)(\.\w+)*\(/);
    expect(call, `${file}: "${title}"`).not.toMatch(/\.(skip|todo|fails)\(/);
  }
});
