// The TypeScript and JavaScript of the documents compiles and runs: block by block from top to bottom, on an empty server for each
// document. A block behind `<!-- not run: reason -->` is only compiled.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Server } from './server.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const repository = join(root, '../..');
const redirect = join(root, 'tests/redirect.cjs');

interface Block {
  readonly code: string;
  readonly isTypeScript: boolean;
  readonly line: number;
  /** Why it is not run. */
  readonly notRun: string | undefined;
}

function blocksOf(document: string): Block[] {
  const fence = /(?:^<!-- not run: (.+?) -->\n+)?^```(ts|typescript|js|javascript)\b[^\n]*\n(.*?)^```$/gms;
  return [...document.matchAll(fence)].map((match) => ({
    code: match[3] ?? '',
    isTypeScript: match[2]?.startsWith('t') === true,
    line: document.slice(0, match.index + match[0].indexOf('```')).split('\n').length,
    notRun: match[1],
  }));
}

test('blocks are found', () => {
  const document = 'a\n\n```ts\none\n```\n<!-- not run: needs a mail server -->\n```js\ntwo\n```\n```python\nthree\n```\n```typescript title\nfour\n```\n';
  assert.deepEqual(blocksOf(document), [
    { code: 'one\n', isTypeScript: true, line: 3, notRun: undefined },
    { code: 'two\n', isTypeScript: false, line: 7, notRun: 'needs a mail server' },
    { code: 'four\n', isTypeScript: true, line: 13, notRun: undefined },
  ]);
});

const documents = [
  join(repository, 'README.md'),
  ...readdirSync(join(repository, 'docs'), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md')).map((name) => join(repository, 'docs', name)),
  join(root, 'README.md'),
].map((path) => ({ name: relative(repository, path), blocks: blocksOf(readFileSync(path, 'utf8')) })).filter(({ blocks }) => blocks.length > 0);

test('there are examples', () => {
  const names = documents.map(({ name }) => name);
  for (const name of ['clients/typescript/README.md', 'docs/jobs.md']) assert.ok(names.includes(name), name);
});

// Inside the package, so that `holdfast-client` is the package itself.
const folder = join(root, 'dist/documents');
const run = promisify(execFile);

/** Where a block of a document is, without the ending. */
const placeOf = (name: string, block: number) => join(name.replaceAll(/\W/g, '_'), `block${block}`);

test('the examples compile', async () => {
  rmSync(folder, { recursive: true, force: true });
  const files = documents.flatMap(({ name, blocks }) => blocks.map(({ code, isTypeScript }, i) => ({ path: `${placeOf(name, i)}.${isTypeScript ? 'ts' : 'js'}`, code })));
  for (const { path, code } of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), code);
  }
  const options = { rootDir: '../..', outDir: 'out', declaration: false, sourceMap: false, allowJs: true, moduleDetection: 'force' };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ extends: '../../tsconfig.json', compilerOptions: options, files: files.map(({ path }) => path), include: [] }));
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  await run(process.execPath, [tsc, '--project', folder]).catch((error: { stdout?: string }) => assert.fail(error.stdout ?? String(error)));
});

for (const { name, blocks } of documents) {
  // FLUSHALL would leave the indexes of other documents.
  const server = await Server.start();
  const skip = await server.lacks('hcas', 'claim', 'cell.fork', 'run.append', 'reg.restore', 'session.call');

  test(`the examples of ${name} run`, { skip }, async () => {
    for (const [i, { line, notRun }] of blocks.entries()) {
      if (notRun !== undefined) continue;
      const program = join(folder, 'out', relative(root, folder), `${placeOf(name, i)}.js`);
      const env = { ...process.env, HOLDFAST_TEST_PORT: `${server.port}` };
      await run(process.execPath, ['--require', redirect, program], { env, timeout: 30_000 })
        .catch((error: { stdout?: string; stderr?: string }) => assert.fail(`${name}:${line}\n${error.stdout}${error.stderr}`));
    }
  });
}
