export function readmeForPackage(readme: string): string;
