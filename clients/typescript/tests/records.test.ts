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

    test('put with a lifetime, a stamp, and in place of all fields', async () => {
      await records.put('r', { old: 1 });
      await records.put('r', { new: 1 }, { replace: true, lifetime: { ms: 60_000 }, stamp: { at: -1000 } });
      const fields = await records.get('r');
      assert.deepEqual([...fields ?? []].map(([name]) => name).sort(), ['at', 'new']);
      assert.ok((fields?.integer('at') ?? 0) > 1_700_000_000_000);
      assert.ok((fields?.ttlMs ?? 0) > 50_000 && (fields?.ttlMs ?? 0) <= 60_000);
      const untilMs = 4_102_444_800_000;
      await records.put('r', { new: 2 }, { lifetime: { untilMs } });
      assert.equal(await connection.client.pExpireTime('r'), untilMs);
    });

    test('single fields, and null removes one', async () => {
      assert.equal(await records.getField('r', 'a'), null);
      await records.setField('r', 'a', 1);
      await records.setFields('r', { b: everyByte, c: 'x' });
      assert.deepEqual(await records.getField('r', 'b'), everyByte);
      assert.equal((await records.get('r'))?.ttlMs, null);
      await records.put('r', {}, { stamp: { d: 0 }, lifetime: { ms: 60_000 } });
      await records.setFields('r', { b: null, c: 'y', none: null });
      await records.setField('r', 'd', null);
      const left = await records.get('r');
      assert.deepEqual(left?.toObject(), { a: '1', c: 'y' });
      assert.ok((left?.ttlMs ?? 0) > 0, 'the lifetime stays');
      await records.put('r', { a: null, e: 5 }, { lifetime: { ms: 30_000 } });
      const put = await records.get('r');
      assert.deepEqual(put?.toObject(), { c: 'y', e: '5' });
      assert.ok((put?.ttlMs ?? Infinity) <= 30_000);
      await records.put('r', { c: null, f: 1 }, { replace: true });
      assert.deepEqual((await records.get('r'))?.toObject(), { f: '1' });
      await records.setFields('r', { f: null });
      assert.equal(await records.get('r'), null);
      await records.put('r', { a: 1 });
      await records.put('r', { a: null }, { replace: true });
      assert.equal(await records.get('r'), null);
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

    test('compare and swap has one winner', async () => {
      await records.put('r', { state: 'pending' });
      const won = await Promise.all(range(20, (i) => records.compareAndSwap('r', 'state', 'pending', `w-${i}`)));
      assert.equal(won.filter(Boolean).length, 1);
      assert.equal((await records.get('r'))?.text('state'), `w-${won.indexOf(true)}`);
      assert.equal(await records.compareAndSwap('none', 'state', 'pending', 'x'), false);
    });

    test('an exchange has conditions, changes and a lifetime', async () => {
      const created = await records.exchange('r', { absent: ['state'], set: { state: 'pending', note: 'x' }, stamp: { at: 0 } });
      assert.equal(created.applied, true);
      const again = await records.exchange('r', { absent: ['state'], set: { state: 'pending' } });
      assert.equal(again.applied, false);

      const moved = await records.exchange('r', {
        expected: { state: 'pending' }, set: { state: 'running' }, remove: ['note'], lifetime: { ms: 60_000 },
      });
      assert.equal(moved.applied, true);
      assert.deepEqual(moved.current.toObject(), { state: 'running' });
      assert.ok((await connection.client.pTTL('r')) > 0);
      await records.exchange('r', { lifetime: 'persist' });
      assert.equal(await connection.client.pTTL('r'), -1);

      const refused = await records.exchange('r', { expected: { state: 'pending', none: 1 }, set: { state: 'lost' } });
      assert.equal(refused.applied, false);
      assert.deepEqual(refused.current.toObject(), { state: 'running' });

      // Three words behind the key would be HCAS's short form.
      await records.put('s', { error: 'x', state: 'y' });
      assert.equal((await records.exchange('s', { remove: ['error'] })).applied, true);
      // Without conditions and changes it is no compare-and-swap of a field called IF.
      await records.put('t', { IF: '0' });
      assert.equal((await records.exchange('t', {})).applied, true);
      assert.deepEqual((await records.get('t'))?.toObject(), { IF: '0' });
      assert.equal((await records.exchange('t', { expected: { IF: 0 }, set: { IF: null, a: 1 } })).applied, true);
      assert.deepEqual((await records.get('t'))?.toObject(), { a: '1' });
      await assert.rejects(records.put('t', {}), RangeError);
      assert.deepEqual((await records.get('s'))?.toObject(), { state: 'y' });
    });

    test('scans records under a prefix, with filters, over many pages', async () => {
      await Promise.all(range(1200, (i) => records.put(`job:${i}`, { n: i, kind: i % 3 === 0 ? 'a' : 'b' })));
      await records.put('other:1', { n: 1 });
      await connection.client.set('job:string', 'no record');

      const all = new Set((await collect(records.scan('job:'))).map(({ key }) => key));
      assert.equal(all.size, 1200);
      const some = await collect(records.scan('job:', {
        filters: [{ field: 'n', op: 'lt', value: 100 }, { field: 'kind', op: 'in', values: ['a', 'c'] }], fields: ['n'],
      }));
      assert.deepEqual(some.map(({ fields }) => fields.integer('n')).sort((a = 0, b = 0) => a - b), range(34, (i) => i * 3));
      assert.deepEqual(some.map(({ fields }) => fields.size), range(34, () => 1));
      assert.ok(some.every(({ ttlMs }) => ttlMs === null));
      assert.equal((await collect(records.scan('job:', { limit: 700 }))).length, 700);
      assert.equal((await collect(records.scan('job:', { limit: 0 }))).length, 0);
      await assert.rejects(collect(records.scan('job:', { limit: -1 })), ServerError);
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
