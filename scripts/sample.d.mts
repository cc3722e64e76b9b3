/** Writes the sample of `npm start` into a folder. Returns the path of the file in front. */
export function writeSample(folder: string): string;
