// ioredis over RESP2 and RESP3: pipelines, streams of a scan, prefixes, buffers, its ready check, reconnecting.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { Redis } from 'ioredis';
import { address, everyByte, lacks, parseInfo, range } from './support.js';

for (const protocol of [2, 3]) {
  describe(`ioredis RESP${protocol}`, () => {
    let redis;
    let opened = [];

    function connect(options = {}) {
      const made = new Redis({ ...address, protocol, retryStrategy: () => 10, ...options });
      made.on('error', () => {}); // a lost connection is part of some tests
      opened.push(made);
      return made;
    }

    const ask = (...words) => redis.call(...words);
    const clientInfo = async (client) => Object.fromEntries(
      (await client.client('INFO')).trim().split(' ').map((pair) => pair.split(/=(.*)/s, 2)),
    );

    beforeEach(async () => {
      redis = connect();
      await redis.flushall();
    });

    afterEach(() => {
      for (const each of opened) each.disconnect();
      opened = [];
    });

    test('connects, checks that the server is ready, and speaks the protocol asked for', async () => {
      const other = connect();
      await once(other, 'ready');
      assert.equal(other.status, 'ready');
      assert.equal((await clientInfo(other)).resp, String(protocol));
      assert.equal(await other.ping(), 'PONG');
    });

    test('HELLO', async () => {
      const flat = await redis.hello();
      const hello = Object.fromEntries(range(flat.length / 2, (i) => [flat[2 * i], flat[2 * i + 1]]));
      assert.equal(hello.proto, protocol);
      assert.equal(hello.role, 'master');
      await assert.rejects(redis.hello(9), { message: /^NOPROTO unsupported protocol version/ });
    });

    test('connects with a name and a database', async () => {
      const other = connect({ connectionName: 'teller', db: 2 });
      assert.equal(await other.client('GETNAME'), 'teller');
      assert.equal((await clientInfo(other)).db, '2');
      assert.equal(await other.select(1), 'OK');
      assert.equal((await clientInfo(other)).db, '1');
    });

    test('says its library at connect', async (t) => {
      if (await lacks(t, ask, 'client|setinfo')) return;
      const other = connect();
      await once(other, 'ready');
      const info = await clientInfo(other);
      assert.match(info['lib-name'], /^ioredis/);
      assert.match(info['lib-ver'], /^\d+\.\d+\.\d+/);
    });

    test('requirepass', async () => {
      await redis.config('SET', 'requirepass', 'secret');
      try {
        await assert.rejects(connect({ maxRetriesPerRequest: 0 }).get('k'), { message: /NOAUTH|max retries/ });
        assert.equal(await connect({ password: 'secret' }).ping(), 'PONG');
        assert.equal(await connect({ username: 'default', password: 'secret' }).ping(), 'PONG');
      } finally {
        await redis.config('SET', 'requirepass', '');
      }
    });

    test('strings', async () => {
      assert.equal(await redis.set('k', '1', 'NX'), 'OK');
      assert.equal(await redis.set('k', '2', 'NX'), null);
      assert.equal(await redis.set('k', '2', 'EX', 100, 'XX', 'GET'), '1');
      assert.equal(await redis.set('k', '3', 'KEEPTTL'), 'OK');
      assert.ok((await redis.ttl('k')) > 0);
      assert.equal(await redis.getex('k', 'PERSIST'), '3');
      assert.equal(await redis.ttl('k'), -1);
      assert.equal(await redis.setnx('k', '4'), 0);
      assert.equal(await redis.setex('k', 100, '4'), 'OK');
      assert.equal(await redis.getset('k', '5'), '4');
      assert.equal(await redis.getdel('k'), '5');
      assert.equal(await redis.mset({ a: 1, b: 2 }), 'OK');
      assert.equal(await redis.mset(new Map([['c', '3']])), 'OK');
      assert.deepEqual(await redis.mget('a', 'absent', 'c'), ['1', null, '3']);
    });

    test('counters', async () => {
      assert.equal(await redis.incrby('n', 41), 41);
      assert.equal(await redis.incrbyfloat('n', '0.5'), '41.5');
      // Past 2^53 a JavaScript number would lie; the string does not.
      await redis.set('n', '9007199254740993');
      assert.equal(await redis.get('n'), '9007199254740993');
    });

    test('hashes', async () => {
      assert.equal(await redis.hset('h', { a: 1, b: 2 }), 2);
      assert.equal(await redis.hset('h', new Map([['c', 3]])), 1);
      assert.equal(await redis.hmset('h', 'd', 4), 'OK');
      assert.deepEqual(await redis.hgetall('h'), { a: '1', b: '2', c: '3', d: '4' });
      assert.deepEqual(await redis.hgetall('absent'), {});
      assert.deepEqual(await redis.hmget('h', 'a', 'absent'), ['1', null]);
      assert.equal(await redis.hincrby('h', 'a', 1), 2);
      assert.equal(await redis.hincrbyfloat('h', 'a', 0.5), '2.5');
      assert.equal(await redis.hdel('h', 'a', 'b', 'absent'), 2);
    });

    test('HSCAN', async () => {
      await redis.hset('h', Object.fromEntries(range(1000, (i) => [`f${i}`, `v${i}`])));
      const fields = {};
      for await (const flat of redis.hscanStream('h', { count: 100 })) {
        for (let i = 0; i < flat.length; i += 2) fields[flat[i]] = flat[i + 1];
      }
      assert.deepEqual(fields, await redis.hgetall('h'));
      const [cursor, few] = await redis.hscan('h', 0, 'MATCH', 'f99?', 'COUNT', 5000);
      assert.equal(cursor, '0');
      assert.equal(few.length, 20);
    });

    test('pipeline', async () => {
      const pipeline = redis.pipeline();
      for (let i = 0; i < 1000; i++) pipeline.set(`k${i}`, i).get(`k${i}`);
      const replies = await pipeline.exec();
      assert.equal(replies.length, 2000);
      assert.deepEqual(replies[1999], [null, '999']);
      assert.ok(replies.every(([error]) => error === null));
    });

    test('a pipeline carries each error in its place', async () => {
      const replies = await redis.pipeline().set('text', 'abc').incr('text').get('text').exec();
      assert.deepEqual(replies[0], [null, 'OK']);
      assert.equal(replies[1][0].message, 'ERR value is not an integer or out of range');
      assert.deepEqual(replies[2], [null, 'abc']);
    });

    test('automatic pipelining', async () => {
      const auto = connect({ enableAutoPipelining: true });
      await Promise.all(range(500, (i) => auto.set(`k${i}`, i)));
      const values = await Promise.all(range(500, (i) => auto.get(`k${i}`)));
      assert.deepEqual(values, range(500, String));
      const [fine, refused] = await Promise.allSettled([auto.get('k0'), auto.hget('k0', 'f')]);
      assert.equal(fine.value, '0');
      assert.match(refused.reason.message, /^WRONGTYPE/);
    });

    test('scanStream', async () => {
      await redis.mset(Object.fromEntries(range(1000, (i) => [`key:${i}`, i])));
      await redis.hset('h', 'f', 'v');
      const seen = new Set();
      for await (const keys of redis.scanStream({ match: 'key:*', count: 100 })) for (const key of keys) seen.add(key);
      assert.equal(seen.size, 1000);
      const hashes = [];
      for await (const keys of redis.scanStream({ type: 'hash', count: 500 })) hashes.push(...keys);
      assert.deepEqual(hashes, ['h']);
    });

    test('keyPrefix', async () => {
      const tenant = connect({ keyPrefix: 'tenant:' });
      await tenant.set('k', 'v');
      await tenant.hset('h', 'f', 'v');
      await tenant.mset({ a: 1, b: 2 });
      assert.equal(await tenant.get('k'), 'v');
      assert.deepEqual((await redis.keys('*')).sort(), ['tenant:a', 'tenant:b', 'tenant:h', 'tenant:k']);
      assert.equal(await tenant.del('a', 'b'), 2);
    });

    test('bytes of any kind', async () => {
      await redis.set(everyByte, everyByte);
      assert.deepEqual(await redis.getBuffer(everyByte), everyByte);
      await redis.hset('h', everyByte, everyByte);
      assert.deepEqual(await redis.hgetBuffer('h', everyByte), everyByte);
      assert.deepEqual(await redis.hkeysBuffer('h'), [everyByte]);
    });

    test('INFO', async () => {
      const info = parseInfo(await redis.info());
      assert.equal(info.Server.redis_mode, 'standalone');
      assert.equal(info.Persistence.loading, '0');
      assert.ok('used_memory' in info.Memory);
    });

    test('errors', async () => {
      await redis.set('k', 'v');
      await assert.rejects(redis.hget('k', 'f'), { name: 'ReplyError', message: /^WRONGTYPE/ });
      await assert.rejects(redis.call('NOSUCH', 'x'), { message: /^ERR unknown command 'NOSUCH', with args beginning with: 'x'/ });
      await assert.rejects(redis.select(100_000), { message: 'ERR DB index is out of range' });
      assert.equal(await redis.get('k'), 'v');
    });

    test('reconnects after CLIENT KILL, with its name and database', async () => {
      const other = connect({ connectionName: 'phoenix', db: 3 });
      const doomed = await other.client('ID');
      const ready = once(other, 'ready');
      assert.equal(await redis.client('KILL', 'ID', doomed), 1);
      await ready;
      assert.notEqual(await other.client('ID'), doomed);
      const info = await clientInfo(other);
      assert.deepEqual([info.name, info.db], ['phoenix', '3']);
    });

    test('MONITOR', async () => {
      const monitor = await connect().monitor();
      opened.push(monitor);
      const seen = new Promise((resolve) => {
        monitor.on('monitor', (time, args) => args.includes('watched') && resolve(args));
      });
      await redis.set('watched', 'v"\n');
      assert.deepEqual(await seen, ['set', 'watched', 'v"\\n']);
    });
  });
}

describe('ioredis with RESP3 shapes', () => {
  test('maps arrive as objects', async () => {
    const redis = new Redis({ ...address, protocol: 3, replyMapping: 'resp3' });
    assert.deepEqual(await redis.config('GET', 'maxmemory-policy'), { 'maxmemory-policy': 'noeviction' });
    assert.equal((await redis.hello()).proto, 3);
    redis.disconnect();
  });
});
