// node-redis: scripts that become methods, and transactions with MULTI and WATCH, alone and in a pool.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createClientPool, defineScript, WatchError } from 'redis';
import { nodeRedisClients } from './node-redis-clients.js';
import { address, compareAndSwap, raceForJobs, range } from './support.js';

const scripts = {
  claim: defineScript({
    SCRIPT: compareAndSwap,
    NUMBER_OF_KEYS: 1,
    parseCommand(parser, job, field, expected, next) {
      parser.pushKey(job);
      parser.push(field, expected, next);
    },
    transformReply: (reply) => reply === 1,
  }),
  peek: defineScript({
    SCRIPT: "return redis.call('GET', KEYS[1])",
    NUMBER_OF_KEYS: 1,
    IS_READ_ONLY: true,
    parseCommand(parser, key) { parser.pushKey(key); },
  }),
};

for (const RESP of [2, 3]) {
  describe(`node-redis RESP${RESP}, scripts`, () => {
    const clients = nodeRedisClients(RESP, { scripts });

    test('defineScript', async () => {
      const { client } = clients;
      await client.hSet('job', 'state', 'pending');
      assert.equal(await client.claim('job', 'state', 'pending', 'claimed'), true);
      assert.equal(await client.claim('job', 'state', 'pending', 'claimed'), false);
      assert.equal(await client.hGet('job', 'state'), 'claimed');
    });

    test('a script that the server forgot is sent again', async () => {
      const { client } = clients;
      await client.hSet('job', 'state', 'pending');
      for (const [from, to] of [['pending', 'claimed'], ['claimed', 'running']]) {
        await client.scriptFlush();
        assert.equal(await client.claim('job', 'state', from, to), true);
        assert.deepEqual(await client.scriptExists(scripts.claim.SHA1), [1]);
      }
      await client.set('k', 'v');
      assert.equal(await client.peek('k'), 'v');
      assert.equal(await client.peek('k'), 'v');
    });

    test('the digest is the one the server computes', async () => {
      assert.equal(await clients.client.scriptLoad(compareAndSwap), scripts.claim.SHA1);
    });

    test('scripts in a transaction and in a pipeline', async () => {
      const { client } = clients;
      await client.scriptFlush();
      const both = () => client.multi().hSet('job', { state: 'pending' })
        .claim('job', 'state', 'pending', 'claimed').claim('job', 'state', 'pending', 'claimed').hGet('job', 'state');
      assert.deepEqual(await both().exec(), [1, true, false, 'claimed']);
      assert.deepEqual(await both().execAsPipeline(), [0, true, false, 'claimed']);
    });

    test('what a script returns', async () => {
      const { client } = clients;
      const several = "return {KEYS[1], ARGV[1], 3.99, true, {ok = 'fine'}}";
      assert.deepEqual(await client.eval(several, { keys: ['k'], arguments: ['a'] }), ['k', 'a', 3, 1, 'fine']);
      assert.equal(await client.eval('return false'), null);
      await client.hSet('h', 'f', 'v');
      const whole = await client.eval("redis.setresp(3) return redis.call('HGETALL', KEYS[1])", { keys: ['h'] });
      assert.deepEqual(RESP === 3 ? { ...whole } : whole, RESP === 3 ? { f: 'v' } : ['f', 'v']);
      assert.deepEqual(await client.eval('redis.setresp(3) return true'), RESP === 3 ? true : 1);
    });

    test('every job is claimed once', async () => {
      const { client } = clients;
      await client.scriptFlush();
      const jobs = range(100, (i) => `gbe:state:tasks:email-send:job_${i}`);
      await Promise.all(jobs.map((job) => client.hSet(job, 'state', 'pending')));
      const workers = await Promise.all(range(8, () => clients.connect()));
      const claim = async (worker, job) => Number(await workers[worker].claim(job, 'state', 'pending', String(worker)));
      const wins = await raceForJobs(jobs, claim);
      for (const [worker, won] of wins.entries()) {
        for (const job of won) assert.equal(await client.hGet(job, 'state'), String(worker));
      }
    });
  });

  describe(`node-redis RESP${RESP}, transactions`, () => {
    const clients = nodeRedisClients(RESP);

    test('multi and exec', async () => {
      const { client } = clients;
      const replies = await client.multi().set('k', '1').incr('k').hSet('h', { a: 1 }).hGetAll('h').get('absent').exec();
      assert.deepEqual(replies.map((reply) => (typeof reply === 'object' && reply ? { ...reply } : reply)), [
        'OK', 2, 1, { a: '1' }, null,
      ]);
      assert.deepEqual(await client.multi().exec(), []);
    });

    test('an error at run time hurts only its command', async () => {
      const { client } = clients;
      await assert.rejects(client.multi().set('text', 'abc').incr('text').set('after', 'x').exec(), (error) => {
        assert.deepEqual(error.errorIndexes, [1]);
        assert.deepEqual([error.replies[0], error.replies[2]], ['OK', 'OK']);
        assert.equal(error.replies[1].message, 'ERR value is not an integer or out of range');
        return true;
      });
      assert.equal(await client.get('after'), 'x');
    });

    test('watch finds a change', async () => {
      const { client } = clients;
      const other = await clients.connect();
      await client.watch('k');
      await other.set('k', 'theirs');
      await assert.rejects(client.multi().set('k', 'mine').exec(), WatchError);
      assert.equal(await client.get('k'), 'theirs');
      await client.watch(['k', 'l']);
      await other.set('l', 'x');
      await client.unwatch();
      assert.deepEqual(await client.multi().set('k', 'mine').exec(), ['OK']);
      await client.watch('k');
      await other.get('k');
      assert.deepEqual(await client.multi().set('k', 'again').exec(), ['OK']);
    });

    test('a lost connection ends a watch', async () => {
      const { client } = clients;
      const other = await clients.connect();
      await other.watch('k');
      const ready = new Promise((resolve) => other.once('ready', resolve));
      assert.equal(await client.clientKill({ filter: 'ID', id: await other.clientId() }), 1);
      await ready;
      await assert.rejects(other.multi().set('k', 'mine').exec(), WatchError);
      assert.equal(await client.exists('k'), 0);
    });

    test('isolated connections of a pool lose nothing', async () => {
      const pool = createClientPool({ socket: address, RESP }, { minimum: 1, maximum: 6, acquireTimeout: 60000 });
      clients.owns(pool);
      await pool.connect();
      const add = () => pool.execute(async (client) => {
        for (;;) {
          await client.watch('total');
          const total = Number(await client.get('total'));
          try {
            return await client.multi().set('total', String(total + 1)).exec();
          } catch (error) {
            if (!(error instanceof WatchError)) throw error;
          }
        }
      });
      await Promise.all(range(100, add));
      assert.equal(await pool.get('total'), '100');
      assert.deepEqual(await pool.multi().incr('total').get('total').exec(), [101, '101']);
      await pool.close();
    });
  });
}
