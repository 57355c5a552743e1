// ioredis: connections that subscribe, their events, and how they come back after they were lost.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { ioredisClients } from './ioredis-clients.js';
import { eventually, everyByte, Inbox, range } from './support.js';

for (const protocol of [2, 3]) {
  describe(`ioredis RESP${protocol}, pub/sub`, () => {
    const clients = ioredisClients(protocol);

    function inboxOf(subscriber, event) {
      const inbox = new Inbox();
      subscriber.on(event, inbox.put);
      return inbox;
    }

    test('messages arrive in order', async () => {
      const { redis } = clients;
      const subscriber = clients.connect();
      const inbox = inboxOf(subscriber, 'message');
      assert.equal(await subscriber.subscribe('news', 'weather'), 2);
      assert.deepEqual(await Promise.all(range(100, (i) => redis.publish('news', i))), range(100, () => 1));
      assert.equal(await redis.publish('weather', 'rain'), 1);
      const expected = [...range(100, (i) => ['news', String(i)]), ['weather', 'rain']];
      assert.deepEqual(await inbox.take(101), expected);
      assert.equal(await subscriber.unsubscribe('news'), 1);
      assert.equal(await redis.publish('news', 'x'), 0);
      assert.equal(await subscriber.unsubscribe(), 0);
      assert.ok(inbox.isEmpty);
      // Without subscriptions it is a connection like any other.
      assert.equal(await subscriber.set('k', 'v'), 'OK');
    });

    test('patterns', async () => {
      const { redis } = clients;
      const subscriber = clients.connect();
      const inbox = inboxOf(subscriber, 'pmessage');
      assert.equal(await subscriber.psubscribe('news.*', 'n?ws.[ex]u'), 2);
      assert.equal(await redis.publish('news.us', 'one'), 1);
      assert.deepEqual(await inbox.take(1), [['news.*', 'news.us', 'one']]);
      assert.equal(await redis.publish('news.eu', 'two'), 2);
      assert.deepEqual((await inbox.take(2)).map(([pattern]) => pattern).sort(), ['n?ws.[ex]u', 'news.*']);
      assert.equal(await subscriber.punsubscribe('news.*'), 1);
      assert.equal(await redis.pubsub('NUMPAT'), 1);
    });

    test('shard channels', async () => {
      const { redis } = clients;
      const subscriber = clients.connect();
      const inbox = inboxOf(subscriber, 'smessage');
      assert.equal(await subscriber.ssubscribe('orders'), 1);
      assert.equal(await redis.spublish('orders', 'sharded'), 1);
      assert.equal(await redis.publish('orders', 'plain'), 0);
      assert.deepEqual(await inbox.take(1), [['orders', 'sharded']]);
      assert.deepEqual(await redis.pubsub('SHARDCHANNELS'), ['orders']);
      assert.equal(await subscriber.sunsubscribe('orders'), 0);
      assert.equal(await redis.spublish('orders', 'x'), 0);
    });

    test('bytes of any kind', async () => {
      const subscriber = clients.connect();
      const inbox = inboxOf(subscriber, 'messageBuffer');
      await subscriber.subscribe(everyByte.subarray(0, 128));
      await clients.redis.publish(everyByte.subarray(0, 128), everyByte);
      assert.deepEqual(await inbox.take(1), [[everyByte.subarray(0, 128), everyByte]]);
    });

    test('PUBSUB', async () => {
      const { redis } = clients;
      await clients.connect().subscribe('a', 'b');
      await clients.connect().subscribe('a');
      assert.deepEqual((await redis.pubsub('CHANNELS')).sort(), ['a', 'b']);
      assert.deepEqual(await redis.pubsub('NUMSUB', 'a', 'b', 'none'), ['a', 2, 'b', 1, 'none', 0]);
    });

    test('subscriptions come back after CLIENT KILL', async () => {
      const { redis } = clients;
      const subscriber = clients.connect();
      const inbox = new Inbox();
      for (const event of ['message', 'pmessage', 'smessage']) subscriber.on(event, (...words) => inbox.put(words.at(-1)));
      await subscriber.subscribe('news');
      await subscriber.psubscribe('w*');
      await subscriber.ssubscribe('orders');
      for (let round = 0; round < 3; round++) {
        const ready = once(subscriber, 'ready');
        assert.equal(await redis.client('KILL', 'TYPE', 'pubsub'), 1);
        await ready;
        await eventually(async () => (await redis.pubsub('SHARDNUMSUB', 'orders'))[1] === 1);
        assert.equal(await redis.publish('news', `${round}`), 1);
        assert.equal(await redis.publish('weather', `${round} pattern`), 1);
        assert.equal(await redis.spublish('orders', `${round} shard`), 1);
        assert.deepEqual(await inbox.take(3), [[`${round}`], [`${round} pattern`], [`${round} shard`]]);
      }
    });

    test('what a connection may do while it is subscribed', async () => {
      const subscriber = clients.connect();
      await subscriber.subscribe('news');
      if (protocol === 3) {
        assert.equal(await subscriber.set('k', 'v'), 'OK');
        assert.equal(await subscriber.publish('news', 'to all, and to myself'), 1);
      } else {
        await assert.rejects(subscriber.set('k', 'v'), { message: /subscriber mode/ });
      }
    });
  });
}
