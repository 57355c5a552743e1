// A worker process: node worker.js QUEUE CONCURRENCY. Counts each job in the hash `done:QUEUE`, as an application would
// write down its results. SIGTERM ends it after the jobs that it has; SIGKILL does not ask it.

import { setTimeout } from 'node:timers/promises';
import { Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { connection, takeover } from './support.js';

const [queue, concurrency] = process.argv.slice(2);
const redis = new Redis(connection);

const worker = new Worker(
  queue,
  async (job) => {
    if (job.data.failures > job.attemptsMade) throw new Error(`failure ${job.attemptsMade + 1} of ${job.id}`);
    // Long enough that a process which is killed has jobs at hand.
    await setTimeout(job.data.milliseconds);
    await redis.hincrby(`done:${queue}`, job.id, 1);
    return job.data.number * 2;
  },
  { connection, concurrency: Number(concurrency), ...takeover },
);
worker.on('error', (error) => console.error(error));

process.once('SIGTERM', async () => {
  await worker.close();
  await redis.quit();
  process.exit(0);
});
// The test is gone: so is the worker.
process.once('disconnect', () => process.exit(1));

await worker.waitUntilReady();
process.send('ready');
