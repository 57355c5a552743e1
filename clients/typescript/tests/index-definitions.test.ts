// An index that exists with another definition, and a job that is in no index: each is an error that says what is wrong.

import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import {
  IndexDiffersError, OutsideIndexError, Queue, RecordStore, ServerError, type Connection, type IndexDefinition, type OnDifference,
} from '../src/index.js';
import { Server, eventually, range } from './server.js';

const server = await Server.start();
const skip = await server.lacks('hcas', 'claim', 'idx.create');
const OPEN = { field: 'state', values: ['pending', 'running'] };

for (const RESP of [2, 3] as const) {
  describe(`definitions of indexes, RESP${RESP}`, { skip }, () => {
    let connection: Connection;
    let records: RecordStore;

    beforeEach(async () => {
      connection = await server.connect({ RESP });
      records = new RecordStore(connection);
      for (const index of await records.indexes()) await records.dropIndex(index);
      await connection.client.flushAll();
    });

    const waits = async (): Promise<void> => eventually(async () => /blocked_clients:1\r/.test(await connection.client.info('clients')));

    test('the same definition is no difference', async () => {
      const held = { field: 'state', values: ['running'] };
      const index = { prefixes: ['a:', 'b:'], field: 'at', only: OPEN, stamp: true, group: 'tenant', held };
      const other = { ...index, prefixes: ['b:', 'a:'], only: { field: 'state', values: ['running', 'pending'] } };
      assert.equal(await records.createIndex('i', index), true);
      for (const onDifference of ['raise', 'keep', 'replace'] as const) {
        for (const each of [index, other]) assert.equal(await records.createIndex('i', each, { onDifference }), false);
      }
      const made = await Promise.all(range(8, () => records.createIndex('at-once', index)));
      assert.equal(made.filter((each) => each).length, 1);
    });

    test('what differs is said', async () => {
      const there: IndexDefinition = { prefixes: ['a:'], field: 'at' };
      const others: [string, Partial<IndexDefinition>][] = [
        ['PREFIX is a: there, and b: here', { prefixes: ['b:'] }], ['FIELD is at there, and until here', { field: 'until' }],
        ['ONLY is not given there, and state pending running here', { only: OPEN }],
        ['EXCLUDE is not given there, and state pending running here', { exclude: OPEN }],
        ['STAMP is not given there, and 1 here', { stamp: true }], ['GROUP is not given there, and tenant here', { group: 'tenant' }],
        ['HELD is not given there, and state pending running here', { held: OPEN }],
      ];
      for (const [i, [part, other]] of others.entries()) {
        const wanted = { ...there, ...other };
        await records.createIndex(`i-${i}`, there);
        await assert.rejects(records.createIndex(`i-${i}`, wanted), (error) => {
          assert.ok(error instanceof IndexDiffersError);
          assert.deepEqual([error.index, error.differences], [`i-${i}`, [part]]);
          return error.message.includes(part);
        });
        assert.equal(await records.createIndex(`i-${i}`, wanted, { onDifference: 'keep' }), false);
        assert.equal(await records.createIndex(`i-${i}`, wanted, { onDifference: 'replace' }), true);
        assert.equal(await records.createIndex(`i-${i}`, wanted), false);
      }
    });

    test('a refused definition leaves the index', async () => {
      const there: IndexDefinition = { prefixes: ['a:'], field: 'at' };
      await records.createIndex('i', there);
      for (const wrong of [{ prefixes: [] }, { only: OPEN, exclude: OPEN }]) {
        await assert.rejects(records.createIndex('i', { ...there, ...wrong }, { onDifference: 'replace' }), ServerError);
        assert.equal(await records.createIndex('i', there), false);
      }
      await assert.rejects(records.createIndex('i', there, { onDifference: 'drop' as OnDifference }), RangeError);
    });

    test('a worker that waits goes on while its index is replaced', async () => {
      const queue = new Queue(records, { indexes: ['due'], groupBy: 'tenant' });
      await queue.createIndex('due', 'a:');
      await queue.limit('each', { held: 2 });
      await queue.limit({ group: 'acme' }, { weight: 3, pause: true });
      const limits = await queue.limits();
      const waiting = queue.next('w', 60_000);
      await waits();
      await assert.rejects(queue.createIndex('due', 'b:'), IndexDiffersError);
      assert.equal(await queue.createIndex('due', 'b:', { onDifference: 'replace' }), true);
      await queue.add('b:1', {});
      assert.equal((await waiting)?.key, 'b:1');
      assert.deepEqual(await queue.limits(), limits);

      const inVain = assert.rejects(queue.next('w', 60_000), /there is no index 'due'/);
      await waits();
      await records.dropIndex('due');
      await inVain;
    });

    test('a job outside of the index is refused', async () => {
      const queue = new Queue(records, { indexes: ['due:high', 'due'] });
      await queue.createIndex('due', 'job:');
      assert.equal(await queue.add('zzz:0', {}), true); // the other index may have it
      await queue.createIndex('due:high', 'urgent:');
      for (const key of ['zzz:1', Buffer.from('job')]) {
        await assert.rejects(queue.add(key, {}), (error) => {
          assert.ok(error instanceof OutsideIndexError);
          assert.deepEqual([error.key, error.prefixes], [key.toString(), ['job:', 'urgent:']]);
          return true;
        });
        assert.equal(await records.get(key), null);
      }
      assert.equal(await queue.add('job:1', {}), true);
      assert.equal(await queue.add('urgent:1', {}), true);
    });

    test('`if` is the earlier name of `expected`', async () => {
      await records.put('r', { state: 'pending' });
      assert.equal((await records.exchange('r', { if: { state: 'pending' }, set: { state: 'running' } })).applied, true);
      assert.equal((await records.exchange('r', { expected: { state: 'pending' } })).applied, false);
      await assert.rejects(records.exchange('r', { if: {}, expected: {} }), TypeError);
    });
  });
}
