// Cells and branches over RESP2 and RESP3: versions, history, waits, watches, names, forks.

import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { CellStore, WrongTypeError, codec, type CellVersion, type Connection } from '../src/index.js';
import { Server, eventually, everyByte, range } from './server.js';

const server = await Server.start();
const skip = await server.lacks('cell.cas', 'cell.mget', 'cell.fork');

for (const RESP of [2, 3] as const) {
  describe(`cells, RESP${RESP}`, { skip }, () => {
    let connection: Connection;
    let cells: CellStore;

    beforeEach(async () => {
      connection = await server.connect({ RESP });
      cells = new CellStore(connection);
      await connection.client.flushAll();
    });

    const blocked = async (n: number) => (await connection.client.info('clients')).includes(`blocked_clients:${n}`);

    test('the past is found by time, and names are text', async () => {
      const cell = cells.cell('config/limit', codec.integer);
      assert.equal(cell.name, 'config/limit');
      await cell.init(10);
      const first = await cell.get();
      await cell.set(20);
      assert.deepEqual(await cell.getAsOf(first?.updatedAtUs ?? 0), first);
      assert.equal(await cell.getAsOf(1), null);
    });

    test('values are what the codec says', async () => {
      await cells.cell('text').set('grün');
      assert.equal((await cells.cell('text').get())?.value, 'grün');
      await cells.cell('json', codec.json).set({ a: [1, null] });
      assert.deepEqual((await cells.cell('json', codec.json).get())?.value, { a: [1, null] });
      const key = Buffer.from([0xff, 0x01]);
      await cells.cell(key, codec.raw).set(everyByte);
      assert.deepEqual((await cells.cell(key, codec.raw).get())?.value, everyByte);
      assert.equal(cells.cell(key).name, '\\xff\x01');
      await connection.client.set('string', 'x');
      await assert.rejects(cells.cell('string').get(), WrongTypeError);
      await assert.rejects(cells.cell('n', codec.integer).set(1.5), RangeError);
    });

    test('a wait ends with a write, with the end of the cell, with time and with its signal', async () => {
      const cell = cells.cell('c');
      const created = cell.waitAfter(0, 30_000);
      await eventually(() => blocked(1));
      await cell.set('one');
      assert.equal((await created)?.value, 'one');
      const written = cell.waitAfter(1, 30_000);
      await eventually(() => blocked(1));
      await cell.set('two');
      assert.equal((await written)?.version, 2);
      assert.equal(await cell.waitAfter(2, 1), null);
      assert.equal(await cell.waitAfter(2, 0), null);
      assert.equal((await cell.waitAfter(1, 0))?.version, 2);
      const gone = cell.waitAfter(2, 30_000);
      await eventually(() => blocked(1));
      await cell.delete();
      assert.equal(await gone, null);
      const abort = new AbortController();
      const aborted = assert.rejects(cell.waitAfter(0, 30_000, abort.signal), /enough/);
      await eventually(() => blocked(1));
      abort.abort(new Error('enough'));
      await aborted;
    });

    test('a watch sees every change, deletions too, over a restart of the server', async () => {
      const cell = cells.cell('c', codec.integer);
      await cell.set(1);
      const stop = new AbortController();
      const seen: (CellVersion<number> | null)[] = [];
      const retried: unknown[] = [];
      const watching = (async () => {
        for await (const change of cell.watch({ signal: stop.signal, onRetry: (error) => retried.push(error) })) seen.push(change);
      })();
      await eventually(() => blocked(1));
      await Promise.all(range(20, (i) => cell.set(i + 2)));
      await eventually(() => seen.length === 20);
      assert.deepEqual(seen.map((each) => each?.version), range(20, (i) => i + 2), 'versions that follow quickly are not skipped');
      await eventually(() => blocked(1));
      await cell.delete();
      await eventually(() => seen.at(-1) === null);
      await eventually(() => blocked(1));
      await cell.set(50);
      await eventually(() => seen.at(-1)?.value === 50);
      await server.kill();
      await eventually(() => retried.length > 0);
      await server.run();
      await cell.set(51);
      await eventually(() => seen.at(-1)?.value === 51);
      stop.abort();
      await watching;
      assert.deepEqual(seen.slice(20).map((each) => each?.value ?? null), [null, 50, 51]);
    });

    test('a watch of a cell that was made anew while nobody looked', async () => {
      const cell = cells.cell('c');
      for (const value of ['a', 'b', 'c']) await cell.set(value);
      const changes = cell.watch();
      const first = changes.next();
      await eventually(() => blocked(1));
      await cell.set('d');
      const seen = [(await first).value?.value];
      await cell.delete();
      for (const value of ['A', 'B', 'C', 'D', 'E']) await cell.set(value);
      for await (const change of changes) {
        seen.push(change?.value);
        if (change?.value === 'E') break;
      }
      assert.deepEqual(seen, ['d', undefined, 'A', 'B', 'C', 'D', 'E']);
    });

    test('several cells of one instant, each with its type', async () => {
      const [a, b, none] = [cells.cell('a', codec.integer), cells.cell('b'), cells.cell('none', codec.json)];
      await a.set(1);
      await b.set('two');
      const [first, second, third] = await cells.getCells([a, b, none]);
      const sum: number = (first?.value ?? 0) + 1;
      const text: string | undefined = second?.value;
      assert.deepEqual([sum, text, third], [2, 'two', null]);
      assert.deepEqual(await cells.getCells([]), []);
      const names = await cells.getCells(['b', Buffer.from('a'), 'none']);
      assert.deepEqual(names.map((each) => each?.value), ['two', '1', undefined]);
      const [number] = await cells.getCells(['a'], codec.integer);
      const one: number | undefined = number?.value;
      assert.equal(one, 1);
    });

    test('names of branches and cells are checked', async () => {
      for (const name of ['', 'a/b', 'a:b', 'a\0b']) assert.throws(() => cells.branch(name), RangeError);
      const main = cells.branch('main');
      for (const name of ['', 'a\0b', '_strata/x', 'x'.repeat(1025), 'ü'.repeat(513), Buffer.from('_strata/x')]) {
        assert.throws(() => main.cell(name), RangeError);
      }
      for (const name of ['_strata', 'a/b:c', 'x'.repeat(1000)]) assert.equal(await main.cell(name).set('v'), 1);
      main.cell('x'.repeat(1024));
      await assert.rejects(main.fork('a/b'), RangeError);
    });
  });
}
