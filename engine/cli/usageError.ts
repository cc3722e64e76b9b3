/** A command line that cannot be understood: exit status 2. */
export class UsageError extends Error {}
