// Every name that docs/packages.md gives for TypeScript exists: classes and their members at run time, interfaces and fields for the compiler.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import * as api from '../src/index.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The names of the column, as they are written. */
function namesOf(document: string): string[] {
  const rows = document.split('\n').filter((line) => line.startsWith('|')).map((line) => line.split('|').slice(1, -1).map((cell) => cell.trim()));
  const [head, , ...body] = rows;
  const column = head?.indexOf('TypeScript') ?? -1;
  assert.notEqual(column, -1, 'the table has no column TypeScript');
  return body.flatMap((cells) => {
    if (/^\*\*.*\*\*$/.test(cells[0] ?? '')) return []; // a heading
    const [, name] = /^`([^`]+)`$/.exec(cells[column] ?? '') ?? [];
    assert.ok(name !== undefined, `the row "${cells[0]}" has no name for TypeScript`);
    return [name];
  });
}

/** Why a name does not exist at run time; undefined if it does. */
function missing(name: string): string | undefined {
  const [owner = '', member] = name.split('.');
  const exported = (api as Readonly<Record<string, unknown>>)[owner];
  if (typeof exported !== 'function') return `${owner} is no class`;
  if (member === undefined || member in exported || member in (exported.prototype as object)) return undefined;
  return `${owner} has no ${member}`;
}

const names = namesOf(readFileSync(join(root, '../../docs/packages.md'), 'utf8'));
/** Types, and the fields of types, which the compiler knows alone. */
const typed = names.filter((name) => !((name.split('.')[0] ?? '') in api));

test('the table is read', () => {
  assert.ok(names.length > 100, `${names.length}`);
  for (const name of ['Connection.open', 'RecordStore.getField', 'Transaction.records', 'PreparedRequest.send', 'StateBackend']) assert.ok(names.includes(name), name);
  assert.equal(missing('Cell.nothing'), 'Cell has no nothing');
  assert.equal(missing('Nothing.at'), 'Nothing is no class');
});

test('every member exists', () => {
  assert.deepEqual(names.filter((name) => !typed.includes(name)).map(missing).filter((why) => why !== undefined), []);
});

/** Whether the compiler finds these types, and fields of types, in the package, of which this is the inside. */
async function compiles(types: readonly string[]): Promise<boolean> {
  const folder = join(root, 'dist/names');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const owners = [...new Set(types.map((name) => name.split('.')[0]))];
  const fields = types.map((name) => name.split('.')).filter(([, field]) => field !== undefined);
  const uses = fields.map(([owner, field], i) => `export type T${i} = ${owner}['${field}'];\n`);
  const imports = `import type { ${owners.join(', ')} } from 'holdfast-client';\nexport type { ${owners.join(', ')} };\n`;
  writeFileSync(join(folder, 'names.ts'), imports + uses.join(''));
  const options = { noEmit: true, rootDir: '../..' };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ extends: '../../tsconfig.json', compilerOptions: options, files: ['names.ts'], include: [] }));
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  return promisify(execFile)(process.execPath, [tsc, '--project', folder]).then(() => true, () => false);
}

test('every interface and every field exists', async () => {
  for (const name of ['StateBackend', 'Exchange.expected', 'OnDifference']) assert.ok(typed.includes(name), name);
  assert.equal(await compiles(typed), true);
  assert.equal(await compiles([...typed, 'NoSuchInterface']), false);
  assert.equal(await compiles([...typed, 'Exchange.nothing']), false);
});
