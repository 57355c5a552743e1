// ioredis: scripts that become commands, and transactions with MULTI and WATCH.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ioredisClients } from './ioredis-clients.js';
import { compareAndSwap, everyByte, raceForJobs, range } from './support.js';

const scripts = {
  claim: { lua: compareAndSwap, numberOfKeys: 1 },
  echo: { lua: 'return {KEYS, ARGV}' },
  peek: { lua: "return redis.call('GET', KEYS[1])", numberOfKeys: 1, readOnly: true },
  put: { lua: "return redis.call('SET', KEYS[1], ARGV[1])", numberOfKeys: 1 },
};

for (const protocol of [2, 3]) {
  describe(`ioredis RESP${protocol}, scripts`, () => {
    const clients = ioredisClients(protocol);
    const connect = (options = {}) => clients.connect({ scripts, ...options });

    test('defineCommand', async () => {
      const { redis } = clients;
      redis.defineCommand('claim', scripts.claim);
      await redis.hset('job', 'state', 'pending');
      assert.equal(await redis.claim('job', 'state', 'pending', 'claimed'), 1);
      assert.equal(await redis.claim('job', 'state', 'pending', 'claimed'), 0);
      assert.equal(await redis.hget('job', 'state'), 'claimed');
    });

    test('a script that the server forgot is sent again', async () => {
      const redis = connect();
      await redis.hset('job', 'state', 'pending');
      assert.equal(await redis.claim('job', 'state', 'pending', 'claimed'), 1);
      await redis.script('FLUSH');
      assert.equal(await redis.claim('job', 'state', 'claimed', 'running'), 1);
      await redis.script('FLUSH');
      // Of a pipeline, only the script is sent again, after the rest.
      const replies = await redis.pipeline().claim('job', 'state', 'running', 'completed').hget('job', 'state').exec();
      assert.deepEqual(replies, [[null, 1], [null, 'running']]);
      assert.equal(await redis.hget('job', 'state'), 'completed');
    });

    test('the number of keys can come with each call', async () => {
      const redis = connect({ keyPrefix: 'tenant:' });
      assert.deepEqual(await redis.echo(2, 'a', 'b', 'x', 'y'), [['tenant:a', 'tenant:b'], ['x', 'y']]);
      assert.deepEqual(await redis.echo(0, 'x'), [[], ['x']]);
    });

    test('scripts in a pipeline', async () => {
      const pipeline = connect().pipeline();
      for (let i = 0; i < 100; i++) pipeline.put(`k${i}`, i).peek(`k${i}`);
      const replies = await pipeline.exec();
      assert.deepEqual(replies, range(200, (i) => [null, i % 2 === 0 ? 'OK' : String((i - 1) / 2)]));
    });

    test('scripts in a transaction', async () => {
      const redis = connect();
      for (const state of ['pending', 'pending']) {
        const replies = await redis.multi()
          .hset('job', 'state', state)
          .claim('job', 'state', 'pending', 'claimed')
          .claim('job', 'state', 'pending', 'claimed')
          .exec();
        assert.deepEqual(replies.slice(1), [[null, 1], [null, 0]]);
      }
    });

    test('bytes of any kind', async () => {
      const redis = connect();
      assert.equal(await redis.put(everyByte, everyByte), 'OK');
      assert.deepEqual(await redis.peekBuffer(everyByte), everyByte);
    });

    test('every job is claimed once', async () => {
      const { redis } = clients;
      await redis.script('FLUSH');
      const jobs = range(100, (i) => `gbe:state:tasks:email-send:job_${i}`);
      await Promise.all(jobs.map((job) => redis.hset(job, 'state', 'pending')));
      const workers = range(8, () => connect());
      const wins = await raceForJobs(jobs, (worker, job) => workers[worker].claim(job, 'state', 'pending', worker));
      for (const [worker, won] of wins.entries()) {
        for (const job of won) assert.equal(await redis.hget(job, 'state'), String(worker));
      }
    });
  });

  describe(`ioredis RESP${protocol}, transactions`, () => {
    const clients = ioredisClients(protocol);

    test('multi and exec', async () => {
      const { redis } = clients;
      const replies = await redis.multi().set('k', 1).incr('k').hset('h', { a: 1 }).hgetall('h').get('absent').exec();
      assert.deepEqual(replies, [[null, 'OK'], [null, 2], [null, 1], [null, { a: '1' }], [null, null]]);
      assert.deepEqual(await redis.multi([['set', 'k', 'v'], ['get', 'k']]).exec(), [[null, 'OK'], [null, 'v']]);
      assert.deepEqual(await redis.multi().exec(), []);
    });

    test('a transaction command by command', async () => {
      const { redis } = clients;
      assert.equal(await redis.multi({ pipeline: false }), 'OK');
      assert.equal(await redis.set('k', 'v'), 'QUEUED');
      assert.equal(await redis.get('k'), 'QUEUED');
      assert.deepEqual(await redis.exec(), [[null, 'OK'], [null, 'v']]);
      await redis.multi({ pipeline: false });
      assert.equal(await redis.set('k', 'w'), 'QUEUED');
      assert.equal(await redis.discard(), 'OK');
      assert.equal(await redis.get('k'), 'v');
    });

    test('an error at run time stands in its place', async () => {
      const replies = await clients.redis.multi().set('text', 'abc').incr('text').set('after', 'x').exec();
      assert.deepEqual(replies[0], [null, 'OK']);
      assert.equal(replies[1][0].message, 'ERR value is not an integer or out of range');
      assert.deepEqual(replies[2], [null, 'OK']);
    });

    test('watch finds a change', async () => {
      const { redis } = clients;
      const other = clients.connect();
      await redis.watch('k');
      await other.set('k', 'theirs');
      assert.equal(await redis.multi().set('k', 'mine').exec(), null);
      assert.equal(await redis.get('k'), 'theirs');
      // EXEC has forgotten what was watched.
      await other.set('k', 'again');
      assert.deepEqual(await redis.multi().set('k', 'mine').exec(), [[null, 'OK']]);
      await redis.watch('k');
      await other.set('k', 'theirs');
      assert.equal(await redis.unwatch(), 'OK');
      assert.deepEqual(await redis.multi().set('k', 'mine').exec(), [[null, 'OK']]);
    });

    test('transactions of many clients lose nothing', async () => {
      await Promise.all(range(6, async () => {
        const redis = clients.connect();
        for (let done = 0; done < 20;) {
          await redis.watch('total');
          const total = Number(await redis.get('total'));
          if ((await redis.multi().set('total', total + 1).exec()) !== null) done += 1;
        }
      }));
      assert.equal(await clients.redis.get('total'), '120');
    });
  });
}
