/**
 * How many test files use an editor at the same time. Each has a server, a browser and an extension host of its own.
 * Most of a test's time is waiting, so two run side by side also on two processors.
 */
export const WORKERS = Number(process.env.KVASIR_EDITOR_WORKERS ?? 2);
