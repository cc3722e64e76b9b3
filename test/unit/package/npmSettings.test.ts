/** The settings of npm that the project brings. npm warns about one that it does not know at every command. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { expect, it } from 'vitest';

it('npm knows each setting', () => {
  // Outside of the project, so that its settings are not in the list.
  const listed = spawnSync('npm', ['config', 'list', '--json', '--long'], {
    cwd: tmpdir(),
    encoding: 'utf8',
    shell: process.platform === 'win32',
    env: Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name))),
  });
  const known = Object.keys(JSON.parse(listed.stdout) as object);
  const settings = readFileSync('.npmrc', 'utf8')
    .split('\n')
    .flatMap((line) => /^\s*([^#;=\s][^=\s]*)\s*=/.exec(line)?.[1] ?? []);
  expect(settings).toContain('ignore-scripts');
  expect(settings.filter((name) => !known.includes(name))).toEqual([]);
});
