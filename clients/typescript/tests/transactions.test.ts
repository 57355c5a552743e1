// Interactive transactions over RESP2 and RESP3: they read their own writes, are tried again after a conflict, and end with their connection.

import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import {
  CellStore, ClosedError, ConflictError, ExactlyOnceState, RecordStore, RunStore, ServerError, UnavailableError, codec, type Connection,
  type ReadTransaction, type Transaction,
} from '../src/index.js';
import { Proxy } from './proxy.js';
import { Server, range } from './server.js';

const server = await Server.start();
const skip = await server.lacks('txn.begin', 'cell.cas', 'cell.mget');

/** Whether the server has TXN.BEGIN READONLY. */
const skipReads = skip || await (async () => {
  const connection = await server.connect();
  try {
    await new CellStore(connection).readTransaction(async () => {});
    return false;
  } catch (error) {
    if (!(error instanceof ServerError)) throw error;
    return `the server has no TXN.BEGIN READONLY: ${error.message}`;
  } finally {
    await connection.close();
  }
})();

for (const RESP of [2, 3] as const) {
  describe(`transactions, RESP${RESP}`, { skip }, () => {
    let connection: Connection;
    let cells: CellStore;
    let records: RecordStore;
    let proxy: Proxy;

    beforeEach(async () => {
      connection = await server.connect({ RESP });
      cells = new CellStore(connection);
      records = new RecordStore(connection);
      await connection.client.flushAll();
      proxy = await Proxy.start(server.port);
    });

    afterEach(() => proxy.end());

    const get = async (key: string) => (await records.get(key))?.toObject();

    test('all of it or nothing', async () => {
      const done = await cells.transaction(1, async (txn) => {
        await txn.records.put('record', { state: 'new', step: 1, gone: 'x' });
        await txn.records.setFields('record', { gone: null });
        assert.deepEqual((await txn.records.get('record'))?.toObject(), { state: 'new', step: '1' });
        assert.equal((await txn.records.exchange('record', { expected: { step: 1 }, set: { step: 2 } })).applied, true);
        assert.equal(await txn.records.compareAndSwap('record', 'state', 'new', 'old'), true);
        assert.deepEqual(await txn.cell('cell').cas(0, 'x'), { applied: true, version: 1 });
        assert.equal(await txn.cell('number', codec.integer).set(5), 1);
        assert.deepEqual((await txn.getCells([txn.cell('number', codec.integer)]))[0]?.value, 5);
        assert.equal((await txn.runs.appendEvent({ runId: 'run', eventType: 'RunStarted', eventData: {} })).runSeq, 1);
        assert.equal(await new ExactlyOnceState(txn, 's/', codec.text).put('k', 'v', 1), 'applied');
        assert.equal(await txn.send(['INCRBY', 'n', 5]), '5');
        assert.equal(await get('record'), undefined, 'nobody else sees it');
        return 'done';
      });
      assert.equal(done, 'done');
      assert.deepEqual(await get('record'), { state: 'old', step: '2' });
      assert.equal((await cells.cell('cell').get())?.value, 'x');
      assert.equal((await new RunStore(connection).getSnapshot('run'))?.status, 'running');

      const own = new Error("the body's own");
      await assert.rejects(cells.transaction(5, async (txn) => {
        await txn.records.put('record', { state: 'lost' });
        throw own;
      }), own);
      assert.deepEqual(await get('record'), { state: 'old', step: '2' });
      await assert.rejects(cells.transaction(0, async () => {}), RangeError);
    });

    test('a conflict is tried again wherever it shows', async () => {
      const conflict = async (tries: number, interfere: number, where: string): Promise<number> => {
        let ran = 0;
        const returned = await cells.transaction(tries, async (txn) => {
          ran += 1;
          await txn.records.get('r');
          if (ran <= interfere) await records.put('r', { n: ran });
          if (where === 'in a command') await txn.records.put('r', { m: ran });
          if (where === 'in a command of any kind') await txn.send(['HSET', 'r', 'm', ran]);
          if (where === 'in a command whose error is ignored') await txn.records.put('s', { m: ran }).catch(() => {});
          return ran;
        });
        assert.equal(returned, ran);
        return ran;
      };
      for (const where of ['at the end', 'in a command', 'in a command of any kind', 'in a command whose error is ignored']) {
        assert.equal(await conflict(5, 2, where), 3);
        await assert.rejects(conflict(3, 3, where), (error) =>
          error instanceof ConflictError && error.code === 'CONFLICT' && error.message.includes('each of the 3 times'));
      }
    });

    test('a refused command ends nothing', async () => {
      await cells.transaction(1, async (txn) => {
        await txn.records.put('r', { a: 1 });
        await assert.rejects(txn.records.indexes(), ServerError);
        await txn.records.put('r', { b: 2 });
      });
      assert.deepEqual(await get('r'), { a: '1', b: '2' });
    });

    test('nothing leaves the transaction', async () => {
      let kept: Transaction | undefined;
      await cells.transaction(1, async (txn) => {
        kept = txn;
        for (const name of ['TXN.COMMIT', 'txn.rollback', 'TXN.BEGIN', 'RESET', 'QUIT', 'HELLO']) await assert.rejects(txn.send([name]), TypeError);
        await txn.records.put('r', { a: 1 });
      });
      await assert.rejects(kept?.records.put('r', { a: 2 }) ?? Promise.resolve(), ClosedError);
      await assert.rejects(kept?.send(['HSET', 'r', 'a', 2]) ?? Promise.resolve(), ClosedError);
      assert.deepEqual(await get('r'), { a: '1' });
    });

    test('a connection that is lost rolls back, and nothing is sent on another one', async () => {
      const through = new CellStore(await server.connect({ RESP, socket: { host: '127.0.0.1', port: proxy.port } }));
      for (const ignores of [false, true]) {
        await assert.rejects(through.transaction(3, async (txn) => {
          await txn.records.put('r', { a: 1 });
          proxy.cut();
          for (const field of ['b', 'c', 'd']) {
            // node-redis would connect again, and send these outside of the transaction.
            const put = txn.records.put('r', { [field]: 2 });
            if (ignores) await put.catch(() => {});
            else await put;
          }
        }), UnavailableError);
        assert.equal(await get('r'), undefined);
      }
      // Requests that were sent together with the one whose connection is cut.
      await assert.rejects(through.transaction(1, async (txn) => {
        proxy.cutAfter({ request: 30 });
        await Promise.all(range(20, (i) => txn.send(['INCR', `n${i}`])));
      }), UnavailableError);
      assert.equal(await connection.client.dbSize(), 0);
      await through.transaction(1, (txn) => txn.records.put('r', { c: 3 }));
      assert.deepEqual(await get('r'), { c: '3' });
    });

    test('a server that is killed rolls back', async () => {
      await assert.rejects(cells.transaction(1, async (txn) => {
        await txn.records.put('r', { a: 1 });
        await server.kill();
        await server.run();
        await txn.records.put('r', { b: 2 });
      }), UnavailableError);
      assert.equal(await get('r'), undefined);
      await cells.transaction(1, (txn) => txn.records.put('r', { c: 3 }));
      assert.deepEqual(await get('r'), { c: '3' });
    });

    test('commands may be under way together', async () => {
      await cells.transaction(1, async (txn) => Promise.all(range(20, (i) => txn.records.put('r', { [`f${i}`]: i }))));
      assert.equal((await records.get('r'))?.size, 20);
    });

    test('one connection serves transactions one after the other', async () => {
      const clients = async () => (await connection.client.sendCommand<string>(['CLIENT', 'LIST'])).trim().split('\n').length;
      await cells.transaction(1, (txn) => txn.records.put('r', { a: 1 }));
      const before = await clients();
      for (const _ of range(5, () => 0)) {
        await cells.transaction(1, (txn) => txn.records.put('r', { a: 1 }));
        await assert.rejects(cells.transaction(1, async () => { throw new Error('own'); }), /own/);
      }
      assert.equal(await clients(), before);
    });

    test('a transaction is not begun on a closed connection', async () => {
      await connection.close();
      await assert.rejects(cells.transaction(1, async () => {}), ClosedError);
    });

    test('readers see one instant beside writers', { skip: skipReads }, async () => {
      const names = range(10, (i) => `cell:${i}`);
      for (const name of names) await cells.cell(name, codec.integer).set(10);
      let stop = false;
      const write = async (seed: number): Promise<void> => {
        for (let i = seed; !stop; i += 1) {
          await cells.transaction(1000, async (txn) => {
            const [from, to] = [txn.cell(names[i % 10] ?? '', codec.integer), txn.cell(names[(i * 7 + 3) % 10] ?? '', codec.integer)];
            if (from.name === to.name) return;
            await from.set(((await from.get())?.value ?? 0) - 1);
            await to.set(((await to.get())?.value ?? 0) + 1);
          });
        }
      };
      const writers = Promise.all(range(2, write));
      try {
        for (const _ of range(50, () => 0)) {
          const sum = await cells.readTransaction(async (txn: ReadTransaction) => {
            let sum = 0;
            for (const name of names) sum += (await txn.cell(name, codec.integer).get())?.value ?? 0;
            const again = await txn.getCells(names.map((name) => txn.cell(name, codec.integer)));
            assert.equal(again.reduce((all, each) => all + (each?.value ?? 0), 0), sum);
            return sum;
          });
          assert.equal(sum, 100);
        }
      } finally {
        stop = true;
        await writers;
      }
      await assert.rejects(cells.readTransaction((txn) => txn.send(['CELL.SET', 'x', '1'])), ServerError);
    });
  });
}
