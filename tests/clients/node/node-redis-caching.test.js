// node-redis's client-side cache over RESP3: replies are kept in the process until the server pushes that a key has changed.

import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { BasicClientSideCache, BasicPooledClientSideCache, createClientPool } from 'redis';
import { nodeRedisClients } from './node-redis-clients.js';
import { address, eventually, Inbox, range } from './support.js';

describe('node-redis RESP3, client-side cache', () => {
  const clients = nodeRedisClients(3);
  let cache;
  let cached;
  let client;

  beforeEach(async () => {
    client = clients.client;
    cache = new BasicClientSideCache({ ttl: 0, maxEntries: 50, evictPolicy: 'LRU' });
    cached = await clients.connect({ clientSideCache: cache });
  });

  // The push travels beside the reply to whoever made the change: it may arrive a moment later.
  const becomes = (read, value) => eventually(async () => (await read()) === value);

  test('a second read stays in the process', async () => {
    await client.set('k', 'v');
    await client.configResetStat();
    for (let i = 0; i < 10; i++) assert.equal(await cached.get('k'), 'v');
    assert.match(await client.info('commandstats'), /^cmdstat_get:calls=1,/m);
    assert.equal(cache.stats().hitCount, 9);
  });

  test('a change reaches the cache', async () => {
    for (let i = 0; i < 30; i++) {
      await client.set('k', `${i}`);
      await becomes(() => cached.get('k'), `${i}`);
    }
  });

  const changes = [
    [['HSET', 'h', 'f', 'new'], 'new'],
    [['HINCRBY', 'h', 'f', '41'], '42'],
    [['HDEL', 'h', 'f'], null],
    [['DEL', 'h'], null],
    [['RENAME', 'h', 'elsewhere'], null],
    [['PEXPIRE', 'h', '1'], null],
    [['FLUSHALL'], null],
    [['EVAL', "return redis.call('HSET', KEYS[1], 'f', 'script')", '1', 'h'], 'script'],
  ];
  for (const [change, value] of changes) {
    test(`${change[0]} reaches the cache`, async () => {
      await client.hSet('h', { f: '1', g: '2' });
      assert.equal(await cached.hGet('h', 'f'), '1');
      assert.equal(await cached.hGet('h', 'f'), '1');
      assert.equal(cache.stats().hitCount, 1);
      await client.sendCommand(change);
      await becomes(() => cached.hGet('h', 'f'), value);
    });
  }

  test('a lost connection empties the cache', async () => {
    await client.set('k', '1');
    assert.equal(await cached.get('k'), '1');
    const ready = new Promise((resolve) => cached.once('ready', resolve));
    await client.clientKill({ filter: 'ID', id: await cached.clientId() });
    await client.set('k', '2');
    await ready;
    assert.equal(await cached.get('k'), '2');
    await client.set('k', '3');
    await becomes(() => cached.get('k'), '3');
  });

  test('a pool shares one cache', async () => {
    const shared = new BasicPooledClientSideCache({ ttl: 0, maxEntries: 1000 });
    const pool = clients.owns(createClientPool({ socket: address, RESP: 3 }, { minimum: 3, maximum: 3, clientSideCache: shared }));
    await pool.connect();
    await client.mSet(range(50, (i) => [`k${i}`, `${i}`]));
    for (let turn = 0; turn < 3; turn++) {
      assert.deepEqual(await Promise.all(range(50, (i) => pool.get(`k${i}`))), range(50, String));
    }
    assert.equal(shared.stats().hitCount, 100);
    await client.mSet(range(50, (i) => [`k${i}`, `${-i}`]));
    for (let i = 0; i < 50; i++) await becomes(() => pool.get(`k${i}`), `${-i}`);
    await pool.close();
  });

  test('what has changed, as events', async () => {
    const tracker = await clients.connect({ emitInvalidate: true });
    const inbox = new Inbox();
    tracker.on('invalidate', (key) => inbox.put(key === null ? null : key.toString()));
    await tracker.mGet(['a', 'b']);
    await client.set('a', '1');
    await client.multi().set('b', '1').set('untracked', '1').exec();
    await client.set('a', '2');
    assert.deepEqual(await inbox.take(2), [['a'], ['b']]);
    await client.flushAll();
    assert.deepEqual(await inbox.take(1), [[null]]);
    assert.ok(inbox.isEmpty);
  });
});
