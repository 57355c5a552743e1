// Records over RESP2 and RESP3: put, compare and swap, exchange, scan, indexes, claim and sweep.

import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import {
  NeedsHoldfastError, RecordStore, ReplyError, ServerError, WrongTypeError, type Connection,
} from '../src/index.js';
import { Server, collect, everyByte, eventually, range } from './server.js';

const server = await Server.start();
const skip = await server.lacks('hcas', 'hput', 'hfind', 'idx.create', 'claim', 'sweep');

for (const RESP of [2, 3] as const) {
  describe(`records, RESP${RESP}`, { skip }, () => {
    let connection: Connection;
    let records: RecordStore;

    beforeEach(async () => {
      connection = await server.connect({ RESP });
      records = new RecordStore(connection);
      for (const index of await records.indexes()) await records.dropIndex(index);
      await connection.client.flushAll();
    });

    test('put, get and delete', async () => {
      assert.equal(await records.get('r'), null);
      await records.put('r', { state: 'pending', attempt: 0, big: 2n ** 63n, bytes: everyByte });
      await records.put('r', new Map([['state', 'done'], ['__proto__', 'x']]));
      const fields = await records.get('r');
      assert.equal(fields?.size, 5);
      assert.equal(fields.text('state'), 'done');
      assert.equal(fields.integer('attempt'), 0);
      assert.equal(fields.integer('state'), undefined);
      assert.equal(fields.integer('big'), undefined, 'a number would round it');
      assert.equal(fields.text('big'), '9223372036854775808');
      assert.deepEqual(fields.bytes('bytes'), everyByte);
      assert.throws(() => fields.text('bytes'), ReplyError);
      assert.equal(fields.text('__proto__'), 'x');
      assert.equal(fields.text('none'), undefined);
      assert.equal(fields.has('none'), false);
      assert.equal(await records.delete('r'), true);
      assert.equal(await records.delete('r'), false);
    });

    test('a key that is no UTF-8 ends nothing', async () => {
      const odd = Buffer.concat([Buffer.from('job:'), Buffer.from([0xff, 0xfe])]);
      await records.createIndex('by-at', { prefixes: ['job:'], field: 'at' });
      await records.put(odd, { at: 1 }, { lifetime: { ms: 60_000 } });
      await records.put('job:grün', { at: 2 });
      await connection.ask(['HSET', 'job:names', Buffer.from([0x61, 0xff]), 'odd', 'at', '3']);
      const found = (await collect(records.scan('job:'))).sort((a, b) => Number(a.fields.text('at')) - Number(b.fields.text('at')));
      assert.deepEqual(found.map(({ key }) => key), ['job:\\xff\\xfe', 'job:grün', 'job:names']);
      assert.deepEqual(found[0]?.rawKey, odd);
      assert.ok((found[0]?.ttlMs ?? 0) > 0);
      assert.equal(found[1]?.ttlMs, null);
      assert.equal(found[2]?.fields.text('a\\xff'), 'odd');
      assert.equal((await records.get(found[0]?.rawKey ?? ''))?.text('at'), '1');
      assert.deepEqual((await records.range('by-at', 1, 1)).map(({ rawKey, ttlMs }) => [rawKey, ttlMs !== null]), [[odd, true]]);
      const swept = await records.sweep({ index: 'by-at', before: 2, set: { at: 10 } });
      assert.deepEqual(swept.map(({ rawKey, fate }) => [rawKey, fate]), [[odd, 'requeued']]);
      const [claimed] = await records.claim({ indexes: ['by-at'], min: 10, set: { at: 20 } });
      assert.deepEqual([claimed?.rawKey, claimed?.ttlMs !== null], [odd, true]);
      assert.equal(await records.delete(odd), true);
    });

    test('values that are none are refused before anything is sent', async () => {
      await assert.rejects(records.put('r', { a: Number.NaN }), RangeError);
      await assert.rejects(records.put('r', { a: 1 }, { lifetime: { ms: 1.5 } }), RangeError);
      await assert.rejects(records.put('r', { a: undefined as unknown as string }), TypeError);
      assert.equal(await records.get('r'), null);
    });

    test('an exchange is never taken for a short form', async () => {
      // Three words behind the key would be HCAS's short form.
      await records.put('s', { error: 'x', state: 'y' });
      assert.equal((await records.exchange('s', { remove: ['error'] })).applied, true);
      assert.deepEqual((await records.get('s'))?.toObject(), { state: 'y' });
      // Without conditions and changes it is no compare-and-swap of a field called IF.
      await records.put('t', { IF: '0' });
      assert.equal((await records.exchange('t', {})).applied, true);
      assert.equal((await records.exchange('t', { expected: { IF: 0 }, set: { IF: null, a: 1 } })).applied, true);
      assert.deepEqual((await records.get('t'))?.toObject(), { a: '1' });
    });

    test('an index keeps records in order', async () => {
      const index = { prefixes: ['job:'], field: 'at', exclude: { field: 'state', values: ['done'] } };
      assert.equal(await records.createIndex('by-at', index), true);
      assert.equal(await records.createIndex('by-at', index), false);
      for (const at of [30, 10, 20]) await records.put(`job:${at}`, { at, state: at === 20 ? 'done' : 'open' });
      const found = await records.range('by-at', '-inf', '+inf');
      assert.deepEqual(found.map(({ key, score }) => [key, score]), [['job:10', 10], ['job:30', 30]]);
      assert.deepEqual((await records.range('by-at', 10, '(30', { fields: ['state'] }))[0]?.fields.toObject(), { state: 'open' });
      assert.deepEqual((await records.range('by-at', '-inf', '+inf', { reverse: true, limit: 1 })).map(({ key }) => key), ['job:30']);
      assert.equal(await records.dropIndex('by-at'), true);
      assert.equal(await records.dropIndex('by-at'), false);
      await connection.client.set('taken', 'x');
      await assert.rejects(records.createIndex('taken', index), ServerError);
    });

    test('a claim takes each record once', async () => {
      await records.createIndex('due', { prefixes: ['job:'], field: 'run_at', only: { field: 'state', values: ['pending'] } });
      await Promise.all(range(100, (i) => records.put(`job:${i}`, { state: 'pending', run_at: i, tenant: i % 2 === 0 ? 'x' : 'y' })));
      const claim = {
        indexes: ['due'], max: 'NOW', where: { tenant: ['x'] }, set: { state: 'running', run_at: 'NOW+1000' },
        counter: 'attempt', count: 3, fields: ['attempt', 'state'],
      };
      const [first] = await records.claim({ ...claim, count: 1 });
      assert.equal(first?.key, 'job:0');
      assert.equal(first.score, 0);
      assert.deepEqual(first.fields.toObject(), { attempt: '1', state: 'running' });
      const taken = (await Promise.all(range(20, () => records.claim(claim)))).flat().map(({ key }) => key);
      assert.equal(taken.length, 49);
      assert.equal(new Set(taken).size, 49);
    });

    test('a claim that waits holds up no other request', async () => {
      await records.createIndex('due', { prefixes: ['job:'], field: 'run_at', only: { field: 'state', values: ['pending'] } });
      const claimed = records.claim({ indexes: ['due'], max: 'NOW', set: { state: 'running' }, block: 30_000 });
      await eventually(async () => (await connection.client.info('clients')).includes('blocked_clients:1'));
      await records.put('job:1', { state: 'pending' }, { stamp: { run_at: 0 } });
      assert.deepEqual((await claimed).map(({ key }) => key), ['job:1']);
      assert.deepEqual(await records.claim({ indexes: ['due'], set: { state: 'running' }, block: 1 }), []);
    });

    test('a claim that waits ends with its signal, and takes nothing any more', async () => {
      await records.createIndex('due', { prefixes: ['job:'], field: 'run_at', only: { field: 'state', values: ['pending'] } });
      const abort = new AbortController();
      const claimed = records.claim({ indexes: ['due'], set: { state: 'running' }, block: 30_000, signal: abort.signal });
      const blocked = async (n: number) => (await connection.client.info('clients')).includes(`blocked_clients:${n}`);
      await eventually(() => blocked(1));
      abort.abort(new Error('enough'));
      await assert.rejects(claimed, /enough/);
      await eventually(() => blocked(0));
      await records.put('job:1', { state: 'pending', run_at: 1 });
      assert.equal((await records.get('job:1'))?.text('state'), 'pending');
      await assert.rejects(records.claim({ indexes: ['due'], set: { state: 'x' }, signal: abort.signal }), /enough/);
    });

    test('a sweep gives back, and gives up', async () => {
      await records.createIndex('by-at', { prefixes: ['job:'], field: 'at' });
      await records.put('job:1', { at: 1, state: 'running', retries: 0 });
      await records.put('job:2', { at: 2, state: 'running', retries: 3 });
      await records.put('job:3', { at: 3, state: 'completed', retries: 0 });
      const swept = await records.sweep({
        index: 'by-at', before: 'NOW', where: { field: 'state', values: ['running'] },
        retry: { counter: 'retries', max: 3, else: { state: 'dead' } }, set: { state: 'pending', at: 'NOW+1000' }, limit: 10,
      });
      assert.deepEqual(swept.map(({ key, fate }) => [key, fate]), [['job:1', 'requeued'], ['job:2', 'exhausted']]);
      assert.equal((await records.get('job:1'))?.text('state'), 'pending');
      assert.equal((await records.get('job:2'))?.text('state'), 'dead');
    });

    test('errors are classes with the code of the server', async () => {
      await connection.client.set('string', 'x');
      await assert.rejects(records.put('string', { a: 1 }), (error) => error instanceof WrongTypeError && error.code === 'WRONGTYPE');
      await assert.rejects(records.claim({ indexes: ['none'], set: { a: 1 } }), (error) =>
        error instanceof ServerError && error.code === 'ERR' && error.name === 'ServerError' && !error.isTemporary);
      await assert.rejects(connection.ask(['NO.SUCH.COMMAND']), NeedsHoldfastError);
    });
  });
}
