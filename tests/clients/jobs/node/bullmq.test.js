// BullMQ's features one by one: order, retries, flows, schedulers, limits, events, and what is kept of finished jobs.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import * as runner from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { DelayedError, UnrecoverableError } from 'bullmq';
import { Application, eventually, range } from './support.js';

let app;
runner.beforeEach(async () => {
  app = new Application();
  await app.redis.flushall();
});
runner.afterEach(() => app.close());

// Waiting in vain is a failure of the test that waits, not of the whole file.
const test = (name, body) => runner.test(name, { timeout: 15_000 }, body);

const finished = (queue, count) => eventually(async () => (await queue.getJobCountByTypes('completed', 'failed')) === count);

// A worker that only takes notes, in order.
function recorder(name, options = {}) {
  const names = [];
  const worker = app.worker(name, async (job) => { names.push(job.name); }, options);
  return { names, worker };
}

test('the server is accepted without a warning', async (t) => {
  const warn = t.mock.method(console, 'warn');
  const error = t.mock.method(console, 'error');
  await app.queue('q').waitUntilReady();
  await app.worker('q', async () => {}).waitUntilReady();
  assert.deepEqual([...warn.mock.calls, ...error.mock.calls].map((call) => call.arguments), []);
});

test('first in, first out; lifo jumps the queue; a lower number is a higher priority', async () => {
  const queue = app.queue('order');
  await queue.add('b', {});
  await queue.add('c', {});
  await queue.add('a', {}, { lifo: true });
  for (const priority of [5, 1, 3, 1]) await queue.add(`p${priority}`, {}, { priority });
  const changed = await queue.add('p9', {}, { priority: 9 });
  await changed.changePriority({ priority: 2 });
  assert.deepEqual(await queue.getCountsPerPriority([0, 1, 2, 3, 5, 9]), { 0: 3, 1: 2, 2: 1, 3: 1, 5: 1, 9: 0 });

  const { names } = recorder('order');
  await finished(queue, 8);
  assert.deepEqual(names, ['a', 'b', 'c', 'p1', 'p1', 'p9', 'p3', 'p5']);
});

test('a delayed job waits; promoting it ends the wait', async () => {
  const queue = app.queue('delays');
  const soon = await queue.add('soon', {}, { delay: 300 });
  const later = await queue.add('later', {}, { delay: 3_600_000 });
  const never = await queue.add('never', {}, { delay: 3_600_000 });
  await never.changeDelay(7_200_000);
  assert.equal(await later.getState(), 'delayed');
  const { names } = recorder('delays');
  await later.promote();
  await finished(queue, 2);
  assert.deepEqual(names, ['later', 'soon']);
  const { processedOn, timestamp } = await queue.getJob(soon.id);
  assert.ok(processedOn >= timestamp + 300);
  assert.equal(await queue.promoteJobs(), undefined);
  await finished(queue, 3);
});

test('retries with backoff, until none is left', async () => {
  const queue = app.queue('retries');
  const attempts = {};
  app.worker('retries', async (job) => {
    attempts[job.name] = (attempts[job.name] ?? 0) + 1;
    if (job.name === 'given up') throw new UnrecoverableError('no use');
    if (job.name === 'hopeless' || attempts[job.name] < 3) throw new Error(`attempt ${attempts[job.name]}`);
    return 'well';
  });
  const options = { attempts: 4, backoff: { type: 'exponential', delay: 20 } };
  await queue.addBulk(['third time', 'hopeless', 'given up'].map((name) => ({ name, data: {}, opts: options })));
  await finished(queue, 3);
  assert.deepEqual(attempts, { 'third time': 3, hopeless: 4, 'given up': 1 });

  const [completed] = await queue.getCompleted();
  assert.deepEqual([completed.name, completed.returnvalue, completed.attemptsMade], ['third time', 'well', 3]);
  const failed = await queue.getFailed();
  assert.deepEqual(failed.map((job) => [job.name, job.failedReason]).sort(), [['given up', 'no use'], ['hopeless', 'attempt 4']]);
  assert.equal(failed.find((job) => job.name === 'hopeless').stacktrace.length, 4);

  attempts.hopeless = 0;
  await failed.find((job) => job.name === 'hopeless').retry();
  await eventually(async () => attempts.hopeless === 1 && (await queue.getFailedCount()) === 2);
});

test('a job moves itself to a later time', async () => {
  const queue = app.queue('later');
  let runs = 0;
  app.worker('later', async (job, token) => {
    runs += 1;
    if (runs > 1) return 'done';
    await job.moveToDelayed(Date.now() + 100, token);
    throw new DelayedError();
  });
  const job = await queue.add('job', {});
  await finished(queue, 1);
  assert.deepEqual([runs, await job.getState()], [2, 'completed']);
});

test('progress, logs and data of a job', async () => {
  const queue = app.queue('details');
  app.worker('details', async (job) => {
    await job.updateProgress({ step: 1, ünïcode: '✓' });
    await job.log('first');
    await job.log('second');
    await job.updateData({ ...job.data, seen: true });
    return { deep: [1, null, 'ü'] };
  });
  const { id } = await queue.add('job', { text: 'a\r\nb\u0000', list: [] });
  await finished(queue, 1);
  const job = await queue.getJob(id);
  assert.deepEqual(job.progress, { step: 1, ünïcode: '✓' });
  assert.deepEqual(job.data, { text: 'a\r\nb\u0000', list: [], seen: true });
  assert.deepEqual(job.returnvalue, { deep: [1, null, 'ü'] });
  assert.deepEqual(await queue.getJobLogs(id), { logs: ['first', 'second'], count: 2 });
});

test('a flow: the parent runs after its children, of another queue, and sees their results', async () => {
  const flows = app.flows();
  const order = [];
  app.worker('leaves', async (job) => {
    order.push(job.name);
    return job.data.value;
  }, { concurrency: 4 });
  app.worker('roots', async (job) => {
    order.push(job.name);
    return Object.values(await job.getChildrenValues()).reduce((a, b) => a + b, 0);
  });
  const leaf = (value) => ({ name: `leaf ${value}`, queueName: 'leaves', data: { value }, opts: { delay: value * 10 } });
  const tree = await flows.add({
    name: 'root',
    queueName: 'roots',
    children: [...range(10, leaf), { name: 'branch', queueName: 'roots', children: [leaf(10), leaf(11)] }],
  });
  const roots = app.queue('roots');
  await finished(roots, 2);
  assert.equal(order.length, 14);
  assert.equal(order.at(-1), 'root');
  assert.ok(order.indexOf('branch') > Math.max(order.indexOf('leaf 10'), order.indexOf('leaf 11')));
  assert.equal((await roots.getJob(tree.job.id)).returnvalue, 45 + 21);
  const { processed } = await tree.job.getDependencies();
  assert.equal(Object.keys(processed).length, 11);
});

test('a flow: a child that fails makes its parent fail, or is left out', async () => {
  app.worker('children', async () => { throw new Error('child failed'); });
  const seen = app.queue('parents');
  app.worker('parents', async (job) => Object.values(await job.getIgnoredChildrenFailures()));
  const flow = (opts) => app.flows().add({
    name: 'parent', queueName: 'parents', children: [{ name: 'child', queueName: 'children', opts }],
  });
  const fails = await flow({ failParentOnFailure: true });
  const ignores = await flow({ ignoreDependencyOnFailure: true });
  await finished(seen, 2);
  assert.equal(await fails.job.getState(), 'failed');
  assert.equal(await ignores.job.getState(), 'completed');
  assert.deepEqual((await seen.getJob(ignores.job.id)).returnvalue, ['child failed']);
});

test('a scheduler adds a job again and again, until it is removed', async () => {
  const queue = app.queue('scheduled');
  const { names } = recorder('scheduled');
  await queue.upsertJobScheduler('often', { every: 100 }, { name: 'tick', data: {} });
  await queue.upsertJobScheduler('yearly', { pattern: '0 0 1 1 *' }, { name: 'new year' });
  await queue.upsertJobScheduler('thrice', { every: 50, limit: 3 }, { name: 'limited' });
  assert.equal(await queue.getJobSchedulersCount(), 3);
  assert.equal((await queue.getJobScheduler('yearly')).pattern, '0 0 1 1 *');
  await eventually(() => names.filter((name) => name === 'tick').length >= 4);
  await eventually(() => names.filter((name) => name === 'limited').length >= 3);
  assert.equal(await queue.removeJobScheduler('often'), true);
  assert.equal(await queue.removeJobScheduler('often'), false);
  assert.deepEqual((await queue.getJobSchedulers()).map((scheduler) => scheduler.key).sort(), ['thrice', 'yearly']);
  assert.equal(names.filter((name) => name === 'limited').length, 3);
  assert.equal(names.includes('new year'), false);
  await eventually(async () => (await queue.getDelayedCount()) === 1);
});

test('a rate limit: two jobs a minute, until the limit is lifted', async () => {
  const queue = app.queue('limited');
  await queue.addBulk(range(6, (i) => ({ name: `job ${i}`, data: {} })));
  const { names } = recorder('limited', { limiter: { max: 2, duration: 60_000 }, maximumRateLimitDelay: 50 });
  for (const count of [2, 4, 6]) {
    await finished(queue, count);
    await eventually(async () => (await queue.getRateLimitTtl(2)) > 0);
    assert.equal(names.length, count);
    assert.equal(await queue.removeRateLimitKey(), 1);
  }
});

test('a limit of concurrency for the whole queue', async () => {
  const queue = app.queue('global');
  await queue.setGlobalConcurrency(2);
  let running = 0;
  let most = 0;
  const work = async () => {
    most = Math.max(most, ++running);
    await setTimeout(10);
    running -= 1;
  };
  await queue.addBulk(range(20, (i) => ({ name: `job ${i}`, data: {} })));
  app.worker('global', work, { concurrency: 5 });
  app.worker('global', work, { concurrency: 5 });
  await finished(queue, 20);
  assert.equal(most, 2);
});

test('pause and resume', async () => {
  const queue = app.queue('paused');
  const { names, worker } = recorder('paused');
  await queue.pause();
  await queue.addBulk([{ name: 'a', data: {} }, { name: 'b', data: {}, opts: { priority: 1 } }]);
  assert.equal(await queue.isPaused(), true);
  assert.deepEqual(await queue.getJobCounts('wait', 'prioritized', 'active'), { wait: 1, prioritized: 1, active: 0 });
  await worker.waitUntilReady();
  assert.deepEqual(names, []);
  await queue.resume();
  await finished(queue, 2);
  assert.deepEqual([names, await queue.isPaused()], [['a', 'b'], false]);

  await worker.pause();
  await queue.add('c', {});
  assert.equal(await queue.getWaitingCount(), 1);
  worker.resume();
  await finished(queue, 3);
});

test('QueueEvents tells what happens to jobs, and waits for the end of one', async () => {
  const queue = app.queue('events');
  const events = await app.events('events');
  const seen = [];
  for (const event of ['added', 'waiting', 'active', 'progress', 'completed', 'failed', 'drained']) {
    events.on(event, ({ jobId }) => seen.push(jobId ? `${event} ${jobId}` : event));
  }
  app.worker('events', async (job) => {
    if (job.name === 'bad') throw new Error('bad luck');
    await job.updateProgress(50);
    return 'fine';
  });
  const good = await queue.add('good', {}, { jobId: 'g' });
  assert.equal(await good.waitUntilFinished(events), 'fine');
  const bad = await queue.add('bad', {}, { jobId: 'b' });
  await assert.rejects(bad.waitUntilFinished(events), { message: 'bad luck' });
  const delayed = await queue.add('good', {}, { jobId: 'd', delay: 50 });
  assert.equal(await delayed.waitUntilFinished(events), 'fine');
  await eventually(() => seen.includes('completed d'));
  const of = (job) => seen.filter((event) => event.endsWith(` ${job}`)).map((event) => event.split(' ')[0]);
  assert.deepEqual(of('g'), ['added', 'waiting', 'active', 'progress', 'completed']);
  assert.deepEqual(of('b'), ['added', 'waiting', 'active', 'failed']);

  await queue.trimEvents(0);
  assert.equal(await app.redis.xlen('bull:events:events'), 0);
});

test('what is kept of finished jobs', async () => {
  const queue = app.queue('kept');
  app.worker('kept', async (job) => {
    if (job.data.fails) throw new Error('as told');
  });
  const add = (count, data, opts) => queue.addBulk(range(count, () => ({ name: 'job', data, opts })));
  await add(20, {}, { removeOnComplete: true });
  await add(20, {}, { removeOnComplete: 5 });
  await add(20, { fails: true }, { removeOnFail: { age: 3600, count: 3 } });
  await eventually(async () => (await queue.getJobCountByTypes('wait', 'active')) === 0);
  assert.deepEqual(await queue.getJobCounts('completed', 'failed'), { completed: 5, failed: 3 });
  // The hashes of the others are gone too.
  assert.equal((await app.redis.keys('bull:kept:[0-9]*')).length, 8);

  await queue.retryJobs({ state: 'failed' });
  await eventually(async () => (await queue.getFailedCount()) === 3);
  assert.equal((await queue.clean(0, 100, 'completed')).length, 5);
  assert.equal((await queue.clean(0, 100, 'failed')).length, 3);
  assert.equal((await app.redis.keys('bull:kept:[0-9]*')).length, 0);
});

test('the same job once: by its id, and by deduplication', async () => {
  const queue = app.queue('once');
  await queue.add('first', {}, { jobId: 'same' });
  await queue.add('second', {}, { jobId: 'same' });
  const added = await queue.add('third', {}, { deduplication: { id: 'x' } });
  const again = await queue.add('fourth', {}, { deduplication: { id: 'x', ttl: 60_000 } });
  assert.equal(again.id, added.id);
  const { names } = recorder('once');
  await finished(queue, 2);
  assert.deepEqual(names, ['first', 'third']);
});

test('lists of jobs, page by page', async () => {
  const queue = app.queue('lists');
  await queue.addBulk(range(25, (i) => ({ name: `${i}`, data: {}, opts: i % 5 === 0 ? { delay: 3_600_000 + i } : {} })));
  const names = async (...page) => (await queue.getJobs(...page)).map((job) => job.name);
  assert.deepEqual(await names('wait', 0, 3, true), ['1', '2', '3', '4']);
  assert.deepEqual(await names('wait', 0, 2), ['24', '23', '22']);
  assert.deepEqual(await names('delayed', 1, 2, true), ['5', '10']);
  const [job] = await queue.getJobs('wait', 0, 0, true);
  await job.remove();
  assert.equal(await queue.getWaitingCount(), 19);
  await queue.drain(true);
  assert.deepEqual(await queue.getJobCounts('wait', 'delayed'), { wait: 0, delayed: 0 });
});

test('obliterate leaves nothing behind', async () => {
  const queue = app.queue('gone');
  const { worker } = recorder('gone');
  await queue.addBulk(range(300, (i) => ({ name: `job ${i}`, data: {}, opts: i % 3 === 0 ? { delay: 3_600_000 } : {} })));
  await finished(queue, 200);
  await worker.close();
  await queue.add('one more', {}, { priority: 1 });
  await queue.obliterate();
  assert.deepEqual(await app.redis.keys('bull:gone:*'), []);
});

test('metrics, and the list of workers', async () => {
  const queue = app.queue('seen');
  const worker = app.worker('seen', async () => {}, { name: 'one', metrics: { maxDataPoints: 60 } });
  await worker.waitUntilReady();
  await queue.addBulk(range(10, () => ({ name: 'job', data: {} })));
  await finished(queue, 10);
  assert.equal((await queue.getMetrics('completed')).meta.count, 10);
  const [seen] = await queue.getWorkers();
  assert.ok(seen.rawname.endsWith(':w:one'), seen.rawname);
  assert.equal(await queue.getWorkersCount(), 1);
});

test('a worker that waits is woken by each way to add a job', async () => {
  const queue = app.queue('woken', { streams: { events: { maxLen: 10 } } });
  const { worker } = recorder('woken', { drainDelay: 30 });
  await worker.waitUntilReady();
  for (const opts of [{}, { priority: 1 }, { delay: 20 }, { lifo: true }]) {
    const ended = once(worker, 'completed');
    await queue.add('job', {}, opts);
    await ended;
  }
});
