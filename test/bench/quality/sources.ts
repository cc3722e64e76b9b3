/**
 * Fetches texts for suite `quality`: packages in pinned versions that no model of ours was trained on
 * (model/corpus_sources.json). Uses npm and pip, checks the hash, then unpacks into `.cache/bench/quality`. The
 * repository keeps none of these texts, and no training may use them.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import type { SourceFile } from '../eval/exercises.ts';

export const LANGUAGES = ['typescript', 'javascript', 'python'] as const;
export type QualityLanguage = (typeof LANGUAGES)[number];

export interface Source {
  readonly registry: 'npm' | 'pypi';
  readonly name: string;
  readonly version: string;
  /** Repository of the project. No source of training data may be one of these. */
  readonly repository: string;
  readonly licence: string;
  readonly language: QualityLanguage;
  /** Folders and files of the package that are read. */
  readonly under: readonly string[];
  /** SHA-512 of npm's tarball (base64) or SHA-256 of a wheel (hexadecimal), as the registries write them. */
  readonly hash: string;
}

const npm = (
  language: QualityLanguage,
  name: string,
  version: string,
  repository: string,
  under: readonly string[],
  hash: string,
  licence = 'MIT',
): Source => ({
  registry: 'npm',
  name,
  version,
  repository,
  licence,
  language,
  under: under.map((part) => `package/${part}`),
  hash,
});
const pypi = (
  name: string,
  version: string,
  repository: string,
  licence: string,
  under: readonly string[],
  hash: string,
): Source => ({ registry: 'pypi', name, version, repository, licence, language: 'python', under, hash });

/** Python sources are wheels: they contain the files unchanged, and fetching one runs none of its code. */
export const SOURCES: readonly Source[] = [
  npm(
    'typescript',
    '@tanstack/query-core',
    '5.66.0',
    'TanStack/query',
    ['src'],
    'J+JeBtthiKxrpzUu7rfIPDzhscXF2p5zE/hVdrqkACBP8Yu0M96mwJ5m/8cPPYQE9aRNvXztXHlNwIh4FEeMZw==',
  ),
  npm(
    'typescript',
    '@tanstack/react-query',
    '5.66.0',
    'TanStack/query',
    ['src'],
    'z3sYixFQJe8hndFnXgWu7C79ctL+pI0KAelYyW+khaNJ1m22lWrhJU2QrsTcRKMuVPtoZvfBYrTStIdKo+x0Xw==',
  ),
  npm(
    'typescript',
    'mobx',
    '6.13.6',
    'mobxjs/mobx',
    ['src'],
    'r19KNV0uBN4b+ER8Z0gA4y+MzDYIQ2SvOmn3fUrqPnWXdQfakd9yfbPBDBF/p5I+bd3N5Rk1fHONIvMay+bJGA==',
  ),
  npm(
    'typescript',
    'immer',
    '10.1.1',
    'immerjs/immer',
    ['src'],
    's2MPrmjovJcoMaHtx6K11Ra7oD05NT97w1IC5zpMkT6Atjr7H8LjaDd81iIxUYpMKSRRNMJE703M1Fhr/TctHw==',
  ),
  npm(
    'typescript',
    'reselect',
    '5.1.1',
    'reduxjs/reselect',
    ['src'],
    'K/BG6eIky/SBpzfHZv/dd+9JBFiS4SWV7FIujVyJRux6e45+73RaUHXLmIR1f7WOMaQ0U1km6qwklRQxpJJY0w==',
  ),
  npm(
    'typescript',
    'workbox-core',
    '7.3.0',
    'GoogleChrome/workbox',
    ['src'],
    'Z+mYrErfh4t3zi7NVTvOuACB0A/jA3bgxUN3PwtAVHvfEsZxV9Iju580VEETug3zYJRc0Dmii/aixI/Uxj8fmw==',
  ),
  npm(
    'typescript',
    'workbox-routing',
    '7.3.0',
    'GoogleChrome/workbox',
    ['src'],
    'ZUlysUVn5ZUzMOmQN3bqu+gK98vNfgX/gSTZ127izJg/pMMy4LryAthnYtjuqcjkN4HEAx1mdgxNiKJMZQM76A==',
  ),
  npm(
    'typescript',
    'workbox-strategies',
    '7.3.0',
    'GoogleChrome/workbox',
    ['src'],
    'tmZydug+qzDFATwX7QiEL5Hdf7FrkhjaF9db1CbB39sDmEZJg3l9ayDvPxy8Y18C3Y66Nrr9kkN1f/RlkDgllg==',
  ),
  npm(
    'typescript',
    'workbox-precaching',
    '7.3.0',
    'GoogleChrome/workbox',
    ['src'],
    'ckp/3t0msgXclVAYaNndAGeAoWQUv7Rwc4fdhWL69CCAb2UHo3Cef0KIUctqfQj1p8h6aGyz3w8Cy3Ihq9OmIw==',
  ),
  npm(
    'javascript',
    'fastify',
    '5.2.1',
    'fastify/fastify',
    ['lib', 'fastify.js'],
    'rslrNBF67eg8/Gyn7P2URV8/6pz8kSAscFL4EThZJ8JBMaXacVdVE4hmUcnPNKERl5o/xTiBSLfdowBRhVF1WA==',
  ),
  npm(
    'javascript',
    'koa',
    '2.15.3',
    'koajs/koa',
    ['lib'],
    'j/8tY9j5t+GVMLeioLaxweJiKUayFhlGqNTzf2ZGwL0ZCQijd2RLHK0SLW5Tsko8YyyqCZC2cojIb0/s62qTAg==',
  ),
  npm(
    'javascript',
    'commander',
    '13.1.0',
    'tj/commander.js',
    ['lib'],
    '/rFeCpNJQbhSZjGVwO9RFV3xPqbnERS8MmIQzCtD/zl6gpJuV/bMLuN92oG3F7d8oDEHHRrujSXNUr8fpjntKw==',
  ),
  npm(
    'javascript',
    'mocha',
    '11.1.0',
    'mochajs/mocha',
    ['lib'],
    '8uJR5RTC2NgpY3GrYcgpZrsEd9zKbPDpob1RezyR2upGHRQtHWofmzTMzTMSV6dru3tj5Ukt0+Vnq1qhFEEwAg==',
  ),
  pypi(
    'httpx',
    '0.28.1',
    'encode/httpx',
    'BSD-3-Clause',
    ['httpx'],
    'd909fcccc110f8c7faf814ca82a9a4d816bc5a6dbfea25d6591d6985b8ba59ad',
  ),
  pypi(
    'attrs',
    '25.1.0',
    'python-attrs/attrs',
    'MIT',
    ['attr', 'attrs'],
    'c75a69e28a550a7e93789579c22aa26b0f5b83b75dc4e08fe092980051e1090a',
  ),
  pypi(
    'click',
    '8.1.8',
    'pallets/click',
    'BSD-3-Clause',
    ['click'],
    '63c132bbbed01578a06712a2d1f497bb62d9c1c0d329b7903a866228027263b2',
  ),
];

/** Projects that weights and limits of the product are fitted on (fit.ts). They are neither measured nor trained on. */
export const FITTED_ON: readonly Source[] = [
  npm(
    'typescript',
    'rxjs',
    '7.8.2',
    'ReactiveX/rxjs',
    ['src'],
    'dhKf903U/PQZY6boNNtAGdWbG85WAbjT/1xYoZIC7FAY0yWapOBQVsVrDl58W86//e1VpMNBtRV4MaXfdMySFA==',
    'Apache-2.0',
  ),
  npm(
    'typescript',
    'redux',
    '5.0.1',
    'reduxjs/redux',
    ['src'],
    'M9/ELqF6fy8FwmkpnF0S3YKOqMyoWJ4+CS5Efg2ct3oY9daQvd/Pc71FpGZsVsbl3Cpb+IIcjBDUnnyBdQbq4w==',
  ),
  npm(
    'typescript',
    '@reduxjs/toolkit',
    '2.14.0',
    'reduxjs/redux-toolkit',
    ['src'],
    'm/PxMwRe0xLL6XUsAgy0YjInklHcfi9uMwFhJk+QINqjxqPvyc89T5cMjszA5bDmTE0gwGc7zr9LRO4gL+mhaw==',
  ),
  npm(
    'typescript',
    'zod',
    '4.6.7',
    'colinhacks/zod',
    ['src/v4'],
    'g8W2D2kU6a8untc053fX1uVBKzM7yqAxW/3zwk83+6RyF2+SKOuV+c0wBDhUwzV1PaGapmZH+rmcUzPf+3CGwg==',
  ),
  npm(
    'javascript',
    'express',
    '5.3.0',
    'expressjs/express',
    ['lib'],
    'qCqy1xSoaugxOD4IVHb1ZWdkvCF2W3aE2okKouWj8VwJ+ztskSiXoBnCSJqfKT+cVPJhuJqe9YLbY425+Zh00g==',
  ),
  npm(
    'javascript',
    'webpack',
    '5.112.2',
    'webpack/webpack',
    ['lib'],
    'B2tp1LI9D8GVpPDqprdt12ukTkXXahj9MzqSWJq4faSPgOUM7CdZaGAB6HrL/8E6UwbBpdj4vzWDbKoFnVoU6g==',
  ),
  npm(
    'javascript',
    'undici',
    '7.30.2',
    'nodejs/undici',
    ['lib'],
    'mLyPQnHwUxaM/rideoK/+KL8DaAJLRl4aBCfmX444aCSLnIaomqPLtNRe2jdCYcsk5wZzXrDIQC8ZeYNRAYyIA==',
  ),
  npm(
    'javascript',
    'knex',
    '3.3.0',
    'knex/knex',
    ['lib'],
    'LgWl031hNuLv9Lhxdd9093zULa2aNcoP04Bk29e5NidgRcEr/T0rAr2WYi4BhjTiCDoQiRU56meUE5rppLKZzQ==',
  ),
  pypi(
    'requests',
    '2.34.2',
    'psf/requests',
    'Apache-2.0',
    ['requests'],
    '2a0d60c172f83ac6ab31e4554906c0f3b3588d37b5cb939b1c061f4907e278e0',
  ),
  pypi(
    'flask',
    '3.1.3',
    'pallets/flask',
    'BSD-3-Clause',
    ['flask'],
    'f4bcbefc124291925f1a26446da31a5178f9483862233b23c0c96a20701f670c',
  ),
  pypi(
    'rich',
    '15.0.0',
    'Textualize/rich',
    'MIT',
    ['rich'],
    '33bd4ef74232fb73fe9279a257718407f169c09b78a87ad3d296f548e27de0bb',
  ),
  pypi(
    'werkzeug',
    '3.1.9',
    'pallets/werkzeug',
    'BSD-3-Clause',
    ['werkzeug'],
    '6392e50c78460ba618e5b21f08a71f59c99ce99cdc6cf6e3dd7e6ccca8754fab',
  ),
  pypi(
    'pydantic',
    '2.14.4',
    'pydantic/pydantic',
    'MIT',
    ['pydantic'],
    '653a2ad9f6d8858529c77c72717d0ea991d6c6837fe683246b2f4b2bbfc3fadc',
  ),
  pypi(
    'starlette',
    '1.10.0',
    'encode/starlette',
    'BSD-3-Clause',
    ['starlette'],
    '478c0ab3b4ced6e82719849c118fa406f0278a3499c1a898cd15cd31bdc38ce4',
  ),
];

/** Projects in whose code suite `names` completes. They are neither trained nor fitted on. */
export const NAMES_IN: readonly Source[] = [
  npm(
    'typescript',
    '@tiptap/core',
    '2.11.5',
    'ueberdosis/tiptap',
    ['src'],
    'jb0KTdUJaJY53JaN7ooY3XAxHQNoMYti/H6ANo707PsLXVeEqJ9o8+eBup1JU5CuwzrgnDc2dECt2WIGX9f8Jw==',
  ),
  npm(
    'typescript',
    'prosemirror-model',
    '1.24.1',
    'ProseMirror/prosemirror-model',
    ['src'],
    'YM053N+vTThzlWJ/AtPtF1j0ebO36nvbmDy4U7qA2XQB8JVaQp1FmB9Jhrps8s+z+uxhhVTny4m20ptUvhk0Mg==',
  ),
  npm(
    'javascript',
    'preact',
    '10.24.3',
    'preactjs/preact',
    ['src', 'hooks/src', 'compat/src', 'debug/src'],
    'Z2dPnBnMUfyQfSQ+GBdsGa16hz35YmLmtTLhM169uW944hYL6xzTYkJjC07j+Wosz733pMWx0fgON3JNw1jJQA==',
  ),
  npm(
    'javascript',
    'luxon',
    '3.5.0',
    'moment/luxon',
    ['src'],
    'rh+Zjr6DNfUYR3bPwJEnuwDdqMbxZW7LOQfUN4B54+Cl+0o5zaU9RJ6bcidfDtC1cWCZXQ+nvX8bf6bAji37QQ==',
  ),
  pypi(
    'boltons',
    '24.1.0',
    'mahmoud/boltons',
    'BSD-3-Clause',
    ['boltons'],
    'a1776d47fdc387fb730fba1fe245f405ee184ee0be2fb447dd289773a84aed3b',
  ),
  pypi(
    'arrow',
    '1.3.0',
    'arrow-py/arrow',
    'Apache-2.0',
    ['arrow'],
    'c728b120ebc00eb84e01882a6f5e7927a53960aa990ce7dd2b10f39005a67f80',
  ),
];

/** Projects in which suite `places` empties bodies and literals. No rule of the product was made with them. */
export const PLACES_IN: readonly Source[] = [
  npm(
    'typescript',
    'ajv',
    '8.17.1',
    'ajv-validator/ajv',
    ['lib'],
    'B/gBuNg5SiMTrPkC+A2+cW0RszwxYmn6VYxB/inlBStS5nx6xHIt/ehKRhIMhqusl7a8LjQoZnjCs5vhwxOQ1g==',
  ),
  npm(
    'typescript',
    'pdf-lib',
    '1.17.1',
    'Hopding/pdf-lib',
    ['src'],
    'V/mpyJAoTsN4cnP31vc0wfNA1+p20evqqnap0KLoRUN0Yk/p3wN52DOEsL4oBFcLdb76hlpKPtzJIgo67j/XLw==',
  ),
  npm(
    'typescript',
    'react-native-screens',
    '4.4.0',
    'software-mansion/react-native-screens',
    ['src'],
    'c7zc7Zwjty6/pGyuuvh9gK3YBYqHPOxrhXfG1lF4gHlojQSmIx2piNbNaV+Uykj+RDTmFXK0e/hA+fucw/Qozg==',
  ),
  npm(
    'javascript',
    'leaflet',
    '1.9.4',
    'Leaflet/Leaflet',
    ['src'],
    'nxS1ynzJOmOlHp+iL3FyWqK89GtNL8U8rvlMOsQdTTssxZwCXh8N2NB3GDQOL+YR3XnWyZAxwQixURb+FA74PA==',
    'BSD-2-Clause',
  ),
  npm(
    'javascript',
    'ohm-js',
    '17.1.0',
    'ohmjs/ohm',
    ['src'],
    'xc3B5dgAjTBQGHaH7B58M2Pmv6WvzrJ/3/7LeUzXNg0/sY3jQPdSd/S2SstppaleO77rifR1tyhdfFGNIwxf2Q==',
  ),
];

export interface QualityText extends SourceFile {
  readonly source: string;
  readonly language: QualityLanguage;
}

const EXTENSIONS: Record<QualityLanguage, RegExp> = {
  typescript: /(?<!\.d)\.[mc]?tsx?$/,
  javascript: /(?<!\.min)\.[mc]?jsx?$/,
  python: /\.py$/,
};
const TESTS = /(^|\/)(tests?|__tests__|testing|_?vendor|node_modules)\/|\.(test|spec|test-d)\./;
/** In characters. Shorter files mostly re-export, longer ones are data. */
const SHORTEST = 600;
const LONGEST = 60_000;

/** Whether a person wrote the text and it has no string that looks like a control token of a prompt. */
export function isReadable(file: string, text: string, language: QualityLanguage): boolean {
  const longest = Math.max(...text.split('\n').map(({ length }) => length));
  return (
    EXTENSIONS[language].test(file) &&
    !TESTS.test(file) &&
    text.length >= SHORTEST &&
    text.length <= LONGEST &&
    longest < 400 &&
    !/generated/i.test(text.slice(0, 300)) &&
    !text.includes('<|')
  );
}

/** Compares with the pinned hash. @throws Error with one sentence if it differs. */
export function checkHash(
  { name, version, registry, hash }: Pick<Source, 'name' | 'version' | 'registry' | 'hash'>,
  packed: Buffer,
): void {
  const found =
    registry === 'npm'
      ? createHash('sha512').update(packed).digest('base64')
      : createHash('sha256').update(packed).digest('hex');
  if (found !== hash)
    throw new Error(
      `${name} ${version} is not what it was when this suite was written: its hash is ${found}, not ${hash}. Nothing of it was unpacked.`,
    );
}

/**
 * All texts of the sources. Fetches those that are not in `folder` yet.
 * @throws Error with one sentence for the user.
 */
export function qualityTexts(
  folder: string,
  onProgress: (line: string) => void,
  sources: readonly Source[] = SOURCES,
): QualityText[] {
  return sources.flatMap((source) => {
    const unpacked = path.join(folder, `${source.name.replace('/', '-')}-${source.version}`);
    if (!existsSync(unpacked)) {
      onProgress(
        `fetching ${source.name} ${source.version} (${source.licence}) from ${source.registry === 'npm' ? 'npm' : 'PyPI'}`,
      );
      fetchSource(source, folder, unpacked);
    }
    return filesOf(source, unpacked);
  });
}

function filesOf({ name, language, under }: Source, unpacked: string): QualityText[] {
  const files = readdirSync(unpacked, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => path.relative(unpacked, path.join(parentPath, name)).replaceAll('\\', '/'));
  return files
    .sort()
    .filter(
      (file) => under.some((part) => file === part || file.startsWith(`${part}/`)) && EXTENSIONS[language].test(file),
    )
    .flatMap((file) => {
      const text = readFileSync(path.join(unpacked, file), 'utf8').replaceAll('\r\n', '\n');
      return isReadable(file, text, language)
        ? [{ source: name, language, path: file.replace(/^package\//, ''), text }]
        : [];
    });
}

const onWindows = process.platform === 'win32';
const python = onWindows ? 'python' : 'python3';

function run(command: string, args: readonly string[], cwd: string): void {
  // On Windows npm is a script, which needs a shell. No argument here contains a blank.
  execFileSync(command, args, { cwd, stdio: ['ignore', 'ignore', 'pipe'], shell: onWindows && command === 'npm' });
}

/** The line of npm's or pip's output that has the reason, as a sentence. */
export function reasonIn(output: string): string {
  const lines = output
    .trim()
    .split('\n')
    .filter((line) => !/^npm \S+ (code|syscall|errno|A complete log)\b/.test(line));
  const reason = (lines.find((line) => /\b(error|ERR!)/i.test(line)) ?? lines[0] ?? '')
    .replace(/^(npm (error|ERR!)|ERROR:)\s+/, '')
    .trim();
  return /[.!?]$/.test(reason) ? reason : `${reason}.`;
}

/** Fetches and unpacks next to the target, then moves the whole folder there. */
function fetchSource(source: Source, folder: string, unpacked: string): void {
  mkdirSync(folder, { recursive: true });
  const work = mkdtempSync(path.join(folder, 'fetch-'));
  try {
    const wanted = `${source.name}${source.registry === 'npm' ? '@' : '=='}${source.version}`;
    try {
      if (source.registry === 'npm') run('npm', ['pack', wanted, '--loglevel=error'], work);
      else run(python, ['-m', 'pip', 'download', '--quiet', '--no-deps', '--only-binary', ':all:', wanted], work);
    } catch (error) {
      const { stderr, message } = error as { stderr?: Buffer | null; message: string };
      throw new Error(
        `${wanted} could not be fetched: ${reasonIn(stderr ? stderr.toString() : message)} Suite quality needs npm, pip and a network once; afterwards its texts are in ${folder}.`,
      );
    }
    const [file] = readdirSync(work);
    if (file === undefined) throw new Error(`${wanted} could not be fetched: nothing came.`);
    checkHash(source, readFileSync(path.join(work, file)));
    const target = path.join(work, 'unpacked');
    mkdirSync(target);
    if (source.registry === 'npm') run('tar', ['-xzf', file, '-C', 'unpacked'], work);
    else run(python, ['-m', 'zipfile', '-e', file, 'unpacked'], work);
    renameSync(target, unpacked);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
