/**
 * Number of test files that use an editor at the same time. Each has its own server, browser and extension host. Tests
 * mostly wait, so two files run in parallel even on two processors.
 */
export const WORKERS = Number(process.env.KVASIR_EDITOR_WORKERS ?? 2);
