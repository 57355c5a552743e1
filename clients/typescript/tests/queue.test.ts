// A queue of jobs over RESP2 and RESP3: leases, fencing tokens, retries and dead letters.

import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { LostError, Queue, RecordStore, type Connection, type Job } from '../src/index.js';
import { Server, range } from './server.js';

const server = await Server.start();
const skip = await server.lacks('hcas', 'claim', 'idx.create');

for (const RESP of [2, 3] as const) {
  describe(`a queue, RESP${RESP}`, { skip }, () => {
    let connection: Connection;
    let records: RecordStore;
    let queue: Queue;

    beforeEach(async () => {
      connection = await server.connect({ RESP });
      records = new RecordStore(connection);
      for (const index of await records.indexes()) await records.dropIndex(index);
      await connection.client.flushAll();
      queue = new Queue(records, { indexes: ['due:high', 'due'], attemptsMax: 2, completedLifetime: { ms: 60_000 } });
      await queue.createIndex('due', 'job:');
      await queue.createIndex('due:high', 'urgent:');
    });

    const state = async (key: string) => (await records.get(key))?.text('state');

    /** Ends the lease of a job. */
    const expire = async (key: string) => {
      assert.equal((await records.exchange(key, { expected: { state: 'running' }, stamp: { run_at: -1 } })).applied, true);
    };

    async function claim(worker: string): Promise<Job> {
      const job = await queue.next(worker, 0);
      assert.ok(job !== null);
      return job;
    }

    test('a job is added once, claimed by one worker and completed once', async () => {
      assert.equal(await queue.add('job:7', { image: 'cat.png' }), true);
      assert.equal(await queue.add('job:7', { image: 'dog.png' }), false);
      assert.equal(await queue.add('job:8', {}, 60_000), true);
      const claims = await Promise.all(range(8, (i) => queue.next(`w-${i}`, 0)));
      const [job] = claims.filter((each) => each !== null);
      assert.equal(claims.filter((each) => each !== null).length, 1);
      assert.ok(job !== undefined && job !== null);
      assert.equal(job.key, 'job:7');
      assert.equal(job.token, 1);
      assert.equal(job.fields.text('image'), 'cat.png');
      assert.ok(job.score > 0);

      await job.renew(45_000);
      assert.equal((await job.update({ set: { step: 1 } })).applied, true);
      await job.complete({ result: 'small.png', image: null });
      await job.complete({ result: 'small.png', image: null }); // as after a lost answer
      assert.equal(await records.getField('job:7', 'image'), null);
      assert.deepEqual((await records.get('job:7'))?.text('result'), 'small.png');
      assert.equal(await state('job:7'), 'completed');
      assert.ok((await connection.client.pTTL('job:7')) > 0);
      await assert.rejects(job.renew(1000), LostError);
    });

    test('the most urgent index is first', async () => {
      await queue.add('job:1', {});
      await queue.add('urgent:1', {});
      assert.equal((await claim('w')).key, 'urgent:1');
      assert.equal((await claim('w')).key, 'job:1');
    });

    test('a worker whose lease has ended is refused', async () => {
      await queue.add('job:1', {});
      const first = await claim('slow');
      await expire('job:1');
      const second = await claim('fast');
      assert.equal(second.token, 2);
      for (const write of [first.renew(1000), first.complete(), first.fail(), first.retry(0), first.update({ set: { a: 1 } })]) {
        await assert.rejects(write, (error) => {
          assert.ok(error instanceof LostError);
          assert.equal(error.key, 'job:1');
          assert.equal(error.token, 1);
          assert.deepEqual(error.current.toObject(), { attempt: '2', state: 'running' });
          assert.equal(error.message, 'attempt 1 of the job job:1 is over: it has attempt=2 state=running');
          return true;
        });
      }
      await second.complete();
      await records.delete('job:1');
      await assert.rejects(second.renew(1000), /is gone/);
    });

    test("an update's own conditions are no loss", async () => {
      await queue.add('job:1', { step: 1 });
      const job = await claim('w');
      const outcome = await job.update({ expected: { step: 2 }, set: { step: 3 } });
      assert.equal(outcome.applied, false);
      assert.equal(outcome.current.text('step'), '1');
      assert.equal((await job.update({ expected: { step: 1 }, set: { step: 2 } })).applied, true);
    });

    test('a delayed job is claimed when its time comes', async () => {
      await queue.add('job:1', {}, 50);
      assert.equal((await queue.next('w', 30_000))?.key, 'job:1');
    });

    test('several jobs at once, with some of their fields', async () => {
      await Promise.all(range(5, (i) => queue.add(`job:${i}`, { image: `${i}.png`, size: i })));
      const jobs = await queue.claim({ ...queue.request('w'), count: 10, fields: ['image'] });
      assert.deepEqual(jobs.map(({ key }) => key).sort(), range(5, (i) => `job:${i}`));
      assert.deepEqual([...jobs[0]?.fields ?? []].map(([name]) => name).sort(), ['attempt', 'image']);
      await Promise.all(jobs.map((job) => job.complete()));
    });

    test('other names of fields and states', async () => {
      const named = new Queue(records, {
        indexes: ['mine'], leaseMs: 1000,
        names: { state: 's', runAt: 'at', attempt: 'n', worker: 'by', pending: 'P', running: 'R', completed: 'C', dead: 'D' },
      });
      await named.createIndex('mine', 'task:');
      await named.add('task:1', { x: 1 });
      const job = await named.next('w-1', 0);
      await job?.complete();
      const fields = (await records.get('task:1'))?.toObject() ?? {};
      assert.deepEqual({ ...fields, at: 0 }, { x: '1', s: 'C', at: 0, n: '1', by: 'w-1' });
    });
  });
}
