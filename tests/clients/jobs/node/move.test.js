// BullMQ while its queue moves from a Redis to Holdfast, by the steps of docs/moving-in.md: jobs are added and done meanwhile.
// Every job is done, once.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { Queue } from 'bullmq';
import { Application, end, eventually } from './support.js';

const PREPARED = 200;
const tool = process.env.HOLDFAST_BIN;
const target = `redis://${process.env.HOLDFAST_TEST_ADDR}`;

const answers = (program) => program && spawnSync(program, ['--version']).status === 0;
const skip = !answers('redis-server') ? 'there is no redis-server on this machine'
  : !answers(tool) || !spawnSync(tool, ['--version']).stdout.includes('holdfast') ? 'HOLDFAST_BIN names no holdfast' : false;

async function freePort() {
  const listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address();
  listener.close();
  await once(listener, 'close');
  return port;
}

// What a process says on stderr, and that it has ended.
function watch(child) {
  const watched = { said: '', code: undefined };
  child.stderr.on('data', (bytes) => { watched.said += bytes; });
  child.on('exit', (code) => { watched.code = code; });
  return watched;
}

const here = new Application();
const processes = [];
let there, redis, dir, port;

before(async () => {
  if (skip) return;
  await here.redis.flushall();
  dir = await mkdtemp(join(tmpdir(), 'holdfast-move-'));
  port = await freePort();
  redis = spawn('redis-server', ['--port', port, '--bind', '127.0.0.1', '--save', '', '--dir', dir], { stdio: 'ignore' });
  processes.push(redis);
  there = new Application({ host: '127.0.0.1', port });
  // It starts, and is killed.
  there.redis.on('error', () => {});
  await there.redis.ping();
});

after(async () => {
  for (const child of processes) child.kill('SIGKILL');
  await Promise.all([there?.close(), here.close()]);
  if (dir) await rm(dir, { recursive: true });
});

// Retries, delays and priorities.
const options = (number) => ({
  jobId: `job-${number}`,
  attempts: 3,
  backoff: { type: 'fixed', delay: 50 },
  delay: number % 7 === 0 ? 3000 + number : 0,
  priority: number % 3 === 0 ? 1 + (number % 5) : 0,
});
const data = (number) => ({ number, milliseconds: 5, failures: number % 10 === 0 ? 1 : 0 });

// Adds jobs, one after the other, until it is told to stop. What the old server does not answer is added to the new one: jobs of
// the same id are one job.
class Enqueuer {
  count = PREPARED;
  #stops = false;
  #next;
  #tellMoved;
  #moved = new Promise((resolve) => { this.#tellMoved = resolve; });
  #running;

  constructor(old) {
    this.#running = this.#run(old);
  }

  async #run(old) {
    while (!this.#stops) {
      const number = this.count;
      const add = (queue) => queue.add('work', data(number), options(number));
      if (!this.#next) await Promise.race([add(old).catch(() => this.#moved), this.#moved]);
      if (this.#next) await add(this.#next);
      this.count = number + 1;
      await setTimeout(5);
    }
  }

  move(next) {
    this.#next = next;
    this.#tellMoved();
  }

  async stop() {
    this.#stops = true;
    await this.#running;
  }
}

test('a live queue is moved, and every job is done once', { skip, timeout: 80_000 }, async () => {
  // The old server is stopped while requests wait for it.
  const old = new Queue('moving', { connection: { host: '127.0.0.1', port, retryStrategy: () => null } });
  old.on('error', () => {});
  await old.addBulk([...Array(PREPARED).keys()].map((number) => ({ name: 'work', data: data(number), opts: options(number) })));
  const enqueuer = new Enqueuer(old);
  const worker = await there.workerProcess('moving', 3);
  await eventually(async () => (await there.redis.hlen('done:moving')) > 20);

  const follower = spawn(tool, ['import', '--follow', `redis://127.0.0.1:${port}`, '--to', target, '--replace'], { stdio: ['ignore', 'ignore', 'pipe'] });
  processes.push(follower);
  const followed = watch(follower);
  await eventually(() => followed.said.includes('all data has come') || followed.code !== undefined);
  assert.equal(followed.code, undefined, followed.said);

  // The worker ends what it has, and takes no more. Others go on adding.
  assert.deepEqual(await end(worker, 'SIGTERM'), [0, null]);
  const promotion = spawn(tool, ['import', '--promote', '--to', target, '--pause-source', '30'], { stdio: ['ignore', 'ignore', 'pipe'] });
  const promoted = watch(promotion);
  await eventually(() => promoted.code !== undefined);
  assert.equal(promoted.code, 0, promoted.said + followed.said);
  await eventually(() => followed.code !== undefined);
  assert.equal(followed.code, 0, followed.said);

  // The old server must not take the jobs that wait for its pause to end.
  there.redis.disconnect();
  redis.kill('SIGKILL');
  const next = here.queue('moving');
  enqueuer.move(next);
  const last = await here.workerProcess('moving', 10);
  await eventually(async () => (await here.redis.hlen('done:moving')) > PREPARED);
  await enqueuer.stop();
  await old.close().catch(() => {});
  await eventually(async () => (await next.getJobCountByTypes('completed', 'failed')) === enqueuer.count);
  assert.deepEqual(await end(last, 'SIGTERM'), [0, null]);

  assert.deepEqual(await next.getJobCounts('completed', 'failed', 'active', 'wait', 'delayed', 'prioritized'), {
    completed: enqueuer.count, failed: 0, active: 0, wait: 0, delayed: 0, prioritized: 0,
  });
  const done = await here.redis.hgetall('done:moving');
  assert.equal(Object.keys(done).length, enqueuer.count);
  for (const [id, times] of Object.entries(done)) assert.equal(times, '1', id);
});
