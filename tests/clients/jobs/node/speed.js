// How long BullMQ takes from the first enqueue to the last job done, with one worker and jobs that do nothing:
// HOLDFAST_TEST_ADDR=host:port node speed.js JOBS CONCURRENCY. Empties the server. Prints one line; a measurement, not a test.

import { Application, range } from './support.js';

const [jobs, concurrency] = process.argv.slice(2).map(Number);

const app = new Application();
await app.redis.flushall();
const queue = app.queue('speed');
let done = 0;
const worker = app.worker('speed', async () => {}, { concurrency });
const allDone = new Promise((resolve) => {
  worker.on('completed', () => { if (++done === jobs) resolve(); });
});
await worker.waitUntilReady();
await queue.waitUntilReady();

const began = performance.now();
const slice = 500;
for (let from = 0; from < jobs; from += slice) {
  await queue.addBulk(range(Math.min(slice, jobs - from), (i) => ({ name: 'no-op', data: { number: from + i } })));
}
const enqueued = performance.now();
await allDone;
const seconds = (from, to) => ((to - from) / 1000).toFixed(2);
console.log(`${jobs} jobs, concurrency ${concurrency}: ${seconds(began, performance.now())} s, enqueued after ${seconds(began, enqueued)} s`);
await app.close();
