// The files of the package import each other in one direction only.

import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import assert from 'node:assert/strict';

const source = fileURLToPath(new URL('../../src', import.meta.url));

/** What each file imports or exports from others, by their paths in `src`. */
function readImports(): Map<string, string[]> {
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  return new Map(files.map((file) => {
    const text = readFileSync(join(source, file), 'utf8');
    const imported = [...text.matchAll(/\bfrom '(\.[^']*)\.js'/g)].map(([, path = '']) => join(dirname(file), `${path}.ts`));
    return [file, imported];
  }));
}

/** The files of a circle, with the first again at the end; undefined if there is none. */
function findCircle(imports: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): string[] | undefined => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return undefined;
    for (const imported of imports.get(file) ?? []) {
      const circle = visit(imported, [...path, file]);
      if (circle !== undefined) return circle;
    }
    done.add(file);
    return undefined;
  };
  for (const file of imports.keys()) {
    const circle = visit(file, []);
    if (circle !== undefined) return circle;
  }
  return undefined;
}

test('a circle of imports is found', () => {
  const imports = new Map([['a.ts', ['b.ts', 'c.ts']], ['b.ts', []], ['c.ts', ['d.ts']], ['d.ts', ['c.ts']]]);
  assert.deepEqual(findCircle(imports), ['c.ts', 'd.ts', 'c.ts']);
  assert.equal(findCircle(new Map([['a.ts', ['b.ts', 'c.ts']], ['b.ts', ['c.ts']], ['c.ts', []]])), undefined);
});

test('no files of the package import each other', () => {
  const imports = readImports();
  for (const imported of imports.values()) for (const file of imported) assert.ok(imports.has(file), file);
  assert.ok((imports.get('connection.ts') ?? []).includes('own-connections.ts'));
  assert.equal(findCircle(imports)?.join(' -> '), undefined);
});
