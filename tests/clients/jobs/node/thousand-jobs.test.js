// BullMQ: a thousand jobs with retries, delays and priorities, while worker processes are killed. None is lost.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Application, end, eventually, range } from './support.js';

const JOBS = 1000;
const CONCURRENCY = 10;
const KILLS = 2;

const app = new Application();
before(() => app.redis.flushall());
after(() => app.close());

// Every 10th job fails twice, every 7th waits, every 3rd has a priority.
const jobs = range(JOBS, (number) => ({
  name: 'work',
  data: { number, milliseconds: 5, failures: number % 10 === 0 ? 2 : 0 },
  opts: {
    jobId: `job-${number}`,
    attempts: 3,
    backoff: { type: number % 20 === 0 ? 'exponential' : 'fixed', delay: 50 },
    delay: number % 7 === 0 ? 500 + number : 0,
    priority: number % 3 === 0 ? 1 + (number % 5) : 0,
  },
}));

test('every job is done, though two workers are killed', { timeout: 60_000 }, async () => {
  const queue = app.queue('thousand');
  const done = () => app.redis.hlen('done:thousand');
  await queue.addBulk(jobs.slice(0, JOBS / 2));
  for (const job of jobs.slice(JOBS / 2)) await queue.add(job.name, job.data, job.opts);

  for (let kill = 1; kill <= KILLS; kill++) {
    const worker = await app.workerProcess('thousand', CONCURRENCY);
    const goal = kill * 200;
    await eventually(async () => (await done()) >= goal && (await queue.getActiveCount()) > 0);
    await end(worker, 'SIGKILL');
    assert.ok((await done()) < JOBS, 'it was killed in the middle');
    assert.notEqual(await queue.getActiveCount(), 0, 'it had jobs at hand');
  }
  const last = await app.workerProcess('thousand', CONCURRENCY);
  await eventually(async () => (await queue.getJobCountByTypes('completed', 'failed')) === JOBS);
  assert.deepEqual(await end(last, 'SIGTERM'), [0, null]);

  assert.deepEqual(await queue.getJobCounts('completed', 'failed', 'active', 'wait', 'delayed', 'prioritized'), {
    completed: JOBS, failed: 0, active: 0, wait: 0, delayed: 0, prioritized: 0,
  });
  const completed = await queue.getCompleted();
  assert.deepEqual(completed.map((job) => job.id).sort(), jobs.map((job) => job.opts.jobId).sort());
  for (const job of completed) {
    assert.equal(job.returnvalue, job.data.number * 2);
    assert.ok(job.attemptsMade > job.data.failures, `${job.id} was tried ${job.attemptsMade} times`);
    assert.ok(job.processedOn >= job.timestamp + job.opts.delay, `${job.id} has waited`);
  }
  assert.ok(completed.some((job) => job.stalledCounter > 0), 'jobs of a killed worker were taken over');
  assert.equal(await done(), JOBS);
});
