// Records on a plain Redis, and on Holdfast when it is used as one: the same results as with Holdfast's own commands. What needs them
// says so.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { beforeEach, describe, test } from 'node:test';
import {
  CellStore, ExactlyOnceState, NeedsHoldfastError, RecordStore, RunStore, ServerError, Sessions, WrongTypeError, codec,
  type Connection, type Filter,
} from '../src/index.js';
import { Server, collect, everyByte, range } from './server.js';

const holdfast = await Server.start();
const redisBin = process.env['REDIS_BIN'] ?? 'redis-server';
const hasRedis = spawnSync(redisBin, ['--version']).status === 0;
const redis = hasRedis ? await Server.start(redisBin, ['--save', '']) : undefined;

/** What filters find on the first of the servers. */
let expected: unknown;

const servers = [
  { name: 'Redis', server: redis, plain: false },
  { name: 'Holdfast used as a plain Redis', server: holdfast, plain: true },
  { name: 'Holdfast', server: holdfast, plain: false },
];

for (const { name, server, plain } of servers) {
  for (const RESP of [2, 3] as const) {
    describe(`records on ${name}, RESP${RESP}`, { skip: server === undefined && `there is no ${redisBin}` }, () => {
      let connection: Connection;
      let records: RecordStore;

      beforeEach(async () => {
        assert.ok(server !== undefined);
        connection = await server.connect({ RESP, plain });
        records = new RecordStore(connection);
        await connection.client.flushAll();
      });

      test('what the server is', async () => {
        assert.equal(connection.isHoldfast, server === holdfast && !plain);
        assert.equal(await connection.ping(), true);
      });

      test('put, get, fields and delete', async () => {
        assert.equal(await records.get('r'), null);
        await records.put('r', { state: 'pending', attempt: 0, bytes: everyByte });
        assert.equal((await records.get('r'))?.ttlMs, null);
        assert.deepEqual(await records.getField('r', 'bytes'), everyByte);
        await records.put('r', { state: 'done', attempt: null, bytes: null, more: 1 }, 60_000);
        const record = await records.get('r');
        assert.deepEqual(record?.toObject(), { state: 'done', more: '1' });
        assert.ok((record?.ttlMs ?? 0) > 50_000 && (record?.ttlMs ?? 0) <= 60_000);
        await records.setField('r', 'more', null);
        await records.setFields('r', { state: 'new', a: 1 });
        await records.put('r', { b: 2, a: null }, { replace: true });
        const replaced = await records.get('r');
        assert.deepEqual(replaced?.toObject(), { b: '2' });
        assert.ok((replaced?.ttlMs ?? 0) > 50_000, 'without a lifetime the old one stays');
        await records.put('r', { c: 3 }, { lifetime: { untilMs: 4_102_444_800_000 }, stamp: { at: -1000 } });
        assert.equal(await connection.client.pExpireTime('r'), 4_102_444_800_000);
        assert.ok(((await records.get('r'))?.integer('at') ?? 0) > 1_700_000_000_000);
        assert.equal(await records.delete('r'), true);
        assert.equal(await records.delete('r'), false);
        await records.put('gone', { a: 1 });
        await records.setFields('gone', { a: null });
        assert.equal(await records.get('gone'), null);
      });

      test('what is refused changes nothing', async () => {
        await connection.client.set('string', 'x');
        for (const request of [
          () => records.put('string', { a: 1 }), () => records.put('string', { a: null, b: 1 }), () => records.get('string'),
          () => records.getField('string', 'a'), () => records.setField('string', 'a', 1), () => records.compareAndSwap('string', 'a', '1', '2'),
          () => records.exchange('string', { set: { a: 1 } }), () => records.exchange('string', { expected: { a: 1 }, set: { a: 2 } }),
        ]) await assert.rejects(request(), (error) => error instanceof WrongTypeError && error.code === 'WRONGTYPE');
        assert.equal(await connection.client.get('string'), 'x');
        await assert.rejects(records.put('r', {}), RangeError);
        await assert.rejects(records.put('r', { a: 1 }, { lifetime: { ms: 0 } }), ServerError);
        await assert.rejects(records.put('r', { a: 1 }, { stamp: { a: 0 } }), ServerError);
        await assert.rejects(records.exchange('r', { set: { a: 1 }, lifetime: { ms: 0 } }), ServerError);
        await assert.rejects(records.exchange('r', { set: { a: 1 }, stamp: { a: 0 } }), ServerError);
        assert.equal(await records.get('r'), null);
      });

      test('compare and swap has one winner', async () => {
        await records.put('r', { state: 'pending' });
        const won = await Promise.all(range(20, (i) => records.compareAndSwap('r', 'state', 'pending', `w-${i}`)));
        assert.equal(won.filter(Boolean).length, 1);
        assert.equal((await records.get('r'))?.text('state'), `w-${won.indexOf(true)}`);
        assert.equal(await records.compareAndSwap('none', 'state', 'pending', 'x'), false);
        assert.equal(await records.compareAndSwap('r', 'none', '', 'x'), false);
      });

      test('an exchange is all or nothing', async () => {
        const create = { absent: ['state'], set: { state: 'pending', note: 'x' }, stamp: { at: 0 } };
        assert.deepEqual([(await records.exchange('r', create)).applied, (await records.exchange('r', create)).applied], [true, false]);
        assert.ok(((await records.get('r'))?.integer('at') ?? 0) > 1_700_000_000_000);
        const move = { expected: { state: 'pending', note: 'x' }, set: { state: 'running', at: null }, remove: ['note'], lifetime: { ms: 60_000 } };
        const moved = await records.exchange('r', move);
        assert.equal(moved.applied, true);
        assert.deepEqual(moved.current.toObject(), { state: 'running' });
        const record = await records.get('r');
        assert.deepEqual(record?.toObject(), { state: 'running' });
        assert.ok((record?.ttlMs ?? 0) > 50_000);
        const refused = await records.exchange('r', { expected: { none: 1, state: 'pending' }, set: { state: 'lost' }, lifetime: 'persist' });
        assert.equal(refused.applied, false);
        assert.deepEqual(refused.current.toObject(), { state: 'running' });
        assert.ok(((await records.get('r'))?.ttlMs ?? 0) > 50_000);
        assert.equal((await records.exchange('r', { expected: { state: everyByte } })).applied, false);
        assert.equal((await records.exchange('r', { set: { state: everyByte }, lifetime: 'persist' })).applied, true);
        assert.equal((await records.exchange('r', { expected: { state: everyByte }, lifetime: { untilMs: 4_102_444_800_000 } })).applied, true);
        assert.equal(await connection.client.pExpireTime('r'), 4_102_444_800_000);
        assert.equal((await records.exchange('r', { remove: ['state'] })).applied, true);
        assert.equal(await records.get('r'), null);

        await records.put('race', { state: 'pending' });
        const won = await Promise.all(range(20, (i) =>
          records.exchange('race', { expected: { state: 'pending' }, set: { state: 'running', worker: `w-${i}` } })));
        assert.equal(won.filter(({ applied }) => applied).length, 1);
        assert.equal((await records.get('race'))?.text('worker'), `w-${won.findIndex(({ applied }) => applied)}`);
      });

      test('scan finds what passes', async () => {
        await Promise.all(range(1200, (i) => records.put(`job:${i}`, { n: i, kind: i % 3 === 0 ? 'a' : 'b' })));
        await records.put('job:timed', { n: -1 }, { lifetime: { ms: 60_000 } });
        const odd = Buffer.from([0x6a, 0x6f, 0x62, 0x3a, 0xff]);
        await records.put(odd, { n: -2 });
        await records.put('other:1', { n: 1 });
        await records.put('job*[?]\\:1', { n: 1 });
        await connection.client.set('job:string', 'no record');
        const all = new Map((await collect(records.scan('job:'))).map((found) => [found.key, found]));
        assert.equal(all.size, 1202);
        assert.equal(all.get('job:1')?.ttlMs, null);
        assert.ok((all.get('job:timed')?.ttlMs ?? 0) > 0);
        assert.deepEqual(all.get('job:\\xff')?.rawKey, odd);
        const some = await collect(records.scan('job:', {
          filters: [{ field: 'n', op: 'lt', value: 100 }, { field: 'kind', op: 'in', values: ['a', 'c'] }], fields: ['n'],
        }));
        assert.deepEqual(new Set(some.map(({ fields }) => fields.integer('n'))), new Set(range(34, (i) => i * 3)));
        assert.ok(some.every(({ fields }) => fields.size === 1));
        assert.equal((await collect(records.scan('job:', { limit: 700 }))).length, 700);
        assert.equal((await collect(records.scan('job:', { limit: 0 }))).length, 0);
        await assert.rejects(collect(records.scan('job:', { limit: -1 })));
        assert.deepEqual((await collect(records.scan('job*[?]\\:'))).map(({ key }) => key), ['job*[?]\\:1']);
        assert.deepEqual((await collect(records.scan(odd))).map(({ rawKey }) => rawKey), [odd]);
      });

      test('filters mean the same everywhere', async () => {
        const values = [
          '', '0', '-0', '00', '7', '07', '+7', '7.0', '.5', '5.', '1e3', '1000', '-3', 'abc', 'Abc', ' 7', '7 ', 'inf', 'nan', '1e999', '0x10',
          '9223372036854775807', '9223372036854775806', '9223372036854775808', '12345678901234567890', everyByte,
        ];
        for (const [i, value] of values.entries()) await records.put(`v:${i}`, { i, value });
        await records.put('v:none', { i: -1 });
        const found = [];
        for (const op of ['eq', 'ne', 'lt', 'le', 'gt', 'ge'] as const) {
          for (const value of values) {
            const filter: Filter = { field: 'value', op, value };
            const passed = (await collect(records.scan('v:', { filters: [filter] }))).map(({ fields }) => fields.integer('i') ?? 0);
            found.push([op, value.toString(), [...new Set(passed)].sort((a, b) => a - b)]);
          }
        }
        const sets = [['7', 'abc'], []];
        for (const op of ['in', 'notin'] as const) {
          for (const set of sets) {
            const passed = (await collect(records.scan('v:', { filters: [{ field: 'value', op, values: set }] }))).map(({ fields }) => fields.integer('i') ?? 0);
            found.push([op, set, [...new Set(passed)].sort((a, b) => a - b)]);
          }
        }
        expected ??= found;
        assert.deepEqual(found, expected);
      });

      if (server === holdfast && !plain) return;

      test('the rest needs Holdfast', async () => {
        for (const request of [
          () => records.createIndex('i', { prefixes: ['job:'], field: 'at' }), () => records.dropIndex('i'),
          () => records.indexes(), () => records.range('i', 0, 1), () => records.claim({ indexes: ['i'], set: { a: 1 } }),
          () => records.claim({ indexes: ['i'], set: { a: 1 }, block: 10 }), () => records.sweep({ index: 'i', before: 1, set: { a: 1 } }),
        ]) await assert.rejects(request(), NeedsHoldfastError);
        if (server === holdfast) return;
        for (const request of [
          () => new CellStore(connection).cell('c').get(), () => new CellStore(connection).transaction(2, async () => {}),
          () => new CellStore(connection).readTransaction(async () => {}), () => new RunStore(connection).info('r'),
          () => new ExactlyOnceState(connection, 's/', codec.text).get('k'), () => new Sessions(connection).open(),
        ]) await assert.rejects(request(), NeedsHoldfastError);
      });
    });
  }
}
