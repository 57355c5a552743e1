// node-redis: subscriptions with a listener for each, also over one connection with other commands, and after it was lost.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { nodeRedisClients } from './node-redis-clients.js';
import { eventually, everyByte, Inbox, range } from './support.js';

for (const RESP of [2, 3]) {
  describe(`node-redis RESP${RESP}, pub/sub`, () => {
    const clients = nodeRedisClients(RESP);

    test('messages arrive in order', async () => {
      const { client } = clients;
      const subscriber = await clients.connect();
      const inbox = new Inbox();
      await subscriber.subscribe(['news', 'weather'], inbox.put);
      assert.deepEqual(await Promise.all(range(100, (i) => client.publish('news', `${i}`))), range(100, () => 1));
      assert.equal(await client.publish('weather', 'rain'), 1);
      assert.deepEqual(await inbox.take(101), [...range(100, (i) => [`${i}`, 'news']), ['rain', 'weather']]);
      await subscriber.unsubscribe('news');
      assert.equal(await client.publish('news', 'x'), 0);
      await subscriber.unsubscribe();
      assert.equal(await client.publish('weather', 'x'), 0);
      assert.ok(inbox.isEmpty);
      // Without subscriptions it is a connection like any other.
      await subscriber.set('k', 'v');
      assert.equal(await client.get('k'), 'v');
    });

    test('several listeners share a subscription', async () => {
      const { client } = clients;
      const subscriber = await clients.connect();
      const [one, two] = [new Inbox(), new Inbox()];
      await subscriber.subscribe('news', one.put);
      await subscriber.subscribe('news', two.put);
      assert.equal(await client.publish('news', 'to both'), 1);
      assert.deepEqual([await one.take(1), await two.take(1)], [[['to both', 'news']], [['to both', 'news']]]);
      await subscriber.unsubscribe('news', one.put);
      assert.equal(await client.publish('news', 'to one'), 1);
      assert.deepEqual(await two.take(1), [['to one', 'news']]);
      assert.ok(one.isEmpty);
    });

    test('patterns', async () => {
      const { client } = clients;
      const subscriber = await clients.connect();
      const [wide, narrow] = [new Inbox(), new Inbox()];
      await subscriber.pSubscribe('news.*', wide.put);
      await subscriber.pSubscribe('n?ws.[ex]u', narrow.put);
      assert.equal(await client.publish('news.us', 'one'), 1);
      assert.equal(await client.publish('news.eu', 'two'), 2);
      assert.deepEqual(await wide.take(2), [['one', 'news.us'], ['two', 'news.eu']]);
      assert.deepEqual(await narrow.take(1), [['two', 'news.eu']]);
      await subscriber.pUnsubscribe('news.*');
      assert.equal(await client.pubSubNumPat(), 1);
    });

    test('shard channels', async () => {
      const { client } = clients;
      const subscriber = await clients.connect();
      const inbox = new Inbox();
      await subscriber.sSubscribe('orders', inbox.put);
      assert.equal(await client.sPublish('orders', 'sharded'), 1);
      assert.equal(await client.publish('orders', 'plain'), 0);
      assert.deepEqual(await inbox.take(1), [['sharded', 'orders']]);
      assert.deepEqual(await client.pubSubShardChannels(), ['orders']);
      assert.deepEqual({ ...(await client.pubSubShardNumSub(['orders', 'none'])) }, { orders: 1, none: 0 });
      await subscriber.sUnsubscribe('orders');
      assert.equal(await client.sPublish('orders', 'x'), 0);
    });

    test('bytes of any kind', async () => {
      const subscriber = await clients.connect();
      const inbox = new Inbox();
      await subscriber.subscribe('bytes', inbox.put, true);
      await clients.client.publish('bytes', everyByte);
      assert.deepEqual(await inbox.take(1), [[everyByte, Buffer.from('bytes')]]);
    });

    test('PUBSUB', async () => {
      const { client } = clients;
      await (await clients.connect()).subscribe(['a', 'b'], () => {});
      await (await clients.connect()).subscribe('a', () => {});
      assert.deepEqual((await client.pubSubChannels()).sort(), ['a', 'b']);
      assert.deepEqual(await client.pubSubChannels('[b-z]'), ['b']);
      assert.deepEqual({ ...(await client.pubSubNumSub(['a', 'b', 'none'])) }, { a: 2, b: 1, none: 0 });
    });

    test('subscriptions come back after CLIENT KILL', async () => {
      const { client } = clients;
      const subscriber = await clients.connect();
      const inbox = new Inbox();
      await subscriber.subscribe('news', inbox.put);
      await subscriber.pSubscribe('w*', inbox.put);
      await subscriber.sSubscribe('orders', inbox.put);
      for (let round = 0; round < 3; round++) {
        const ready = new Promise((resolve) => subscriber.once('ready', resolve));
        assert.equal(await client.sendCommand(['CLIENT', 'KILL', 'TYPE', 'pubsub']), 1);
        await ready;
        await eventually(async () => (await client.pubSubShardNumSub(['orders'])).orders === 1
          && (await client.pubSubNumSub(['news'])).news === 1 && (await client.pubSubNumPat()) === 1);
        assert.equal(await client.publish('news', `${round}`), 1);
        assert.equal(await client.publish('weather', `${round}`), 1);
        assert.equal(await client.sPublish('orders', `${round}`), 1);
        assert.deepEqual(await inbox.take(3), [[`${round}`, 'news'], [`${round}`, 'weather'], [`${round}`, 'orders']]);
      }
    });

    test('other commands over a connection that is subscribed', async () => {
      const subscriber = await clients.connect();
      const inbox = new Inbox();
      await subscriber.subscribe('news', inbox.put);
      assert.equal(await subscriber.ping(), RESP === 2 ? 'pong' : 'PONG');
      if (RESP === 2) {
        await assert.rejects(subscriber.set('k', 'v'), { message: /Can't execute 'set': only \(P\|S\)SUBSCRIBE/ });
      } else {
        const replies = await Promise.all(range(50, async (i) => {
          await subscriber.publish('news', `${i}`);
          return subscriber.incr('n');
        }));
        assert.deepEqual(replies, range(50, (i) => i + 1));
        assert.deepEqual(await inbox.take(50), range(50, (i) => [`${i}`, 'news']));
      }
    });
  });
}
