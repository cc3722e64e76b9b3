/**
 * Keybindings for the commands that the tests run most: a key takes a tenth of the time of the palette.
 * commands.test.ts checks that the palette has each command. No keys for commands that open a view, because a view
 * takes the focus late.
 */
const COMMANDS: Record<string, string> = {
  'Kvasir: Trigger Completion': 'kvasir.triggerCompletion',
  'Kvasir: New Conversation': 'kvasir.newChat',
  'Kvasir: Clear Cache': 'kvasir.clearCache',
  'Kvasir: Explain Last Completion': 'kvasir.explainLastCompletion',
  'Kvasir: Restart Engine': 'kvasir.restartEngine',
  'View: Keep Editor': 'workbench.action.keepEditor',
  'View: Toggle Maximized Panel': 'workbench.action.toggleMaximizedPanel',
  'View: Hide Panel': 'workbench.action.closePanel',
  'View: Close Primary Side Bar': 'workbench.action.closeSidebar',
  'Notifications: Clear All Notifications': 'notifications.clearAll',
};

/** Playwright's key name for each title. */
export const KEYS: ReadonlyMap<string, string> = new Map(
  Object.keys(COMMANDS).map((title, i) => [title, `Control+Alt+Shift+F${i + 1}`]),
);

/** The entries of VS Code's keybindings.json for them. */
export const KEYBINDINGS = Object.entries(COMMANDS).map(([title, command]) => ({
  key: KEYS.get(title)!.replace('Control', 'ctrl').toLowerCase(),
  command,
}));
