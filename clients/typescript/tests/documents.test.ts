// The TypeScript of the documents compiles.

import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import assert from 'node:assert/strict';

const root = fileURLToPath(new URL('../..', import.meta.url));

for (const document of ['README.md', '../../docs/jobs.md']) {
  test(`the TypeScript of ${document} compiles`, async () => {
    const blocks = [...readFileSync(join(root, document), 'utf8').matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = '']) => code);
    assert.notEqual(blocks.length, 0);
    // Inside the package, so that `holdfast` is the package itself.
    const folder = join(root, 'dist/documents', document.replaceAll(/\W/g, '_'));
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    const files = blocks.map((_, i) => `block${i}.ts`);
    files.forEach((name, i) => writeFileSync(join(folder, name), blocks[i] ?? ''));
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({
      extends: '../../../tsconfig.json', compilerOptions: { noEmit: true, rootDir: '../../..' }, files, include: [],
    }));
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    await promisify(execFile)(process.execPath, [tsc, '--project', folder]).catch((error: { stdout?: string }) => assert.fail(error.stdout ?? String(error)));
  });
}
