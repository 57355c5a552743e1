// What the BullMQ tests share: the server's address, queues and workers that are closed at the end, worker processes that
// can be killed. Knows nothing about which server answers. The tests empty it.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { FlowProducer, Queue, QueueEvents, Worker } from 'bullmq';
import { Redis } from 'ioredis';

const [host, port] = process.env.HOLDFAST_TEST_ADDR.split(/:(?=\d+$)/);

export const connection = { host, port: Number(port) };

// How soon a job of a killed worker is taken over. A slow machine may lose a lock now and then; the job is done again, so a
// job is allowed more stalls than the tests cause.
export const takeover = { lockDuration: 3000, stalledInterval: 1000, maxStalledCount: 10 };

export const range = (n, make) => Array.from({ length: n }, (_, i) => make(i));

// Waits for something that a worker brings about. A test that waits in vain ends at its time limit.
export async function eventually(condition) {
  while (!(await condition())) await setTimeout(20);
}

// Everything that one test opens. `close` also ends worker processes that are left.
export class Application {
  #opened = [];
  #processes = new Set();
  #connection;

  constructor(of = connection) {
    this.#connection = of;
    this.redis = this.#keep(new Redis(of), of === connection ? 'quit' : 'disconnect');
  }

  #keep(thing, end = 'close') {
    this.#opened.unshift(() => thing[end]());
    return thing;
  }

  queue(name, options = {}) {
    return this.#keep(new Queue(name, { connection: this.#connection, ...options }));
  }

  worker(name, work, options = {}) {
    const worker = this.#keep(new Worker(name, work, { connection: this.#connection, ...options }));
    worker.on('error', (error) => { throw error; });
    return worker;
  }

  async events(name) {
    const events = this.#keep(new QueueEvents(name, { connection: this.#connection, lastEventId: '0-0' }));
    await events.waitUntilReady();
    return events;
  }

  flows() {
    return this.#keep(new FlowProducer({ connection: this.#connection }));
  }

  // worker.js in a process of its own, once it is connected.
  async workerProcess(name, concurrency) {
    const { host, port } = this.#connection;
    const env = { ...process.env, HOLDFAST_TEST_ADDR: `${host}:${port}` };
    const child = fork(new URL('worker.js', import.meta.url), [name, String(concurrency)], { env });
    this.#processes.add(child);
    child.once('exit', () => this.#processes.delete(child));
    await Promise.race([
      once(child, 'message'),
      once(child, 'exit').then(([code]) => { throw new Error(`the worker ended with ${code}`); }),
    ]);
    return child;
  }

  async close() {
    for (const child of this.#processes) await end(child, 'SIGKILL');
    for (const close of this.#opened) await close();
  }
}

export async function end(child, signal) {
  const ended = once(child, 'exit');
  child.kill(signal);
  return ended;
}
