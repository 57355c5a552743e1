// A queue of jobs: how they are added, and the claims that workers make.

import { whole, type Changes, type Key, type Value } from '../words.js';
import { Job, merged, type JobConfig } from './job.js';
import { DEFAULT_NAMES, type QueueConfig } from './queue-config.js';
import type { RecordStore } from './record-store.js';
import type { Claim } from './requests.js';

/**
 * Jobs in a store: a job is a record that is indexed by the time at which it may be claimed. A claim makes that time the end of
 * the lease, so a job whose worker dies becomes due again by itself. It also counts the attempt, which every later write of the
 * worker has as a condition.
 */
export class Queue {
  readonly #store: RecordStore;
  readonly #config: JobConfig;
  readonly #indexes: readonly string[];
  readonly #leaseMs: number;

  constructor(store: RecordStore, config: QueueConfig) {
    this.#store = store;
    this.#indexes = config.indexes;
    this.#leaseMs = config.leaseMs ?? 30_000;
    this.#config = {
      names: { ...DEFAULT_NAMES, ...config.names },
      attemptsMax: config.attemptsMax,
      completedLifetime: config.completedLifetime,
    };
  }

  /** Makes an index over the open jobs whose keys begin so. If there is an index of that name, it is left as it is. */
  async createIndex(index: string, prefix: string): Promise<void> {
    const { names } = this.#config;
    const only = { field: names.state, values: [names.pending, names.running] };
    await this.#store.createIndex(index, { prefixes: [prefix], field: names.runAt, only });
  }

  /**
   * Adds a job, to be claimed when a delay has passed. Whether it is new: one that is there is left alone, so this may be
   * repeated. Give its key the prefix of the index that should have it.
   */
  async add(key: Key, values: Changes, delayMs = 0): Promise<boolean> {
    const { names } = this.#config;
    const { applied } = await this.#store.exchange(key, {
      absent: [names.state],
      set: merged<Value | null>(values, { [names.state]: names.pending }),
      stamp: { [names.runAt]: delayMs },
    });
    return applied;
  }

  /** The next job that is due, most urgent index first, then by time. Waits so long if there is none; 0 does not wait. */
  async next(worker: string, waitMs: number, signal?: AbortSignal): Promise<Job | null> {
    const [job = null] = await this.claim({ ...this.request(worker), block: waitMs, signal });
    return job;
  }

  /** What a worker asks for: one job that is due, without waiting. More can be added before it goes to `claim`. */
  request(worker: string): Claim {
    const { names, attemptsMax } = this.#config;
    return {
      indexes: this.#indexes,
      max: 'NOW',
      set: { [names.state]: names.running, [names.worker]: worker, [names.runAt]: `NOW+${whole(this.#leaseMs, 'leaseMs')}` },
      counter: names.attempt,
      ...(attemptsMax === undefined ? {} : { upTo: { max: attemptsMax, else: { [names.state]: names.dead } } }),
    };
  }

  /** Claims jobs. */
  async claim(request: Claim): Promise<Job[]> {
    const { attempt } = this.#config.names;
    const wanted = request.fields === undefined ? request : { ...request, fields: [...new Set([...request.fields, attempt])] };
    const claimed = await this.#store.claim(wanted);
    return claimed.flatMap((record) => {
      const token = record.fields.integer(attempt);
      // One without the counter has expired in the step in which it was claimed.
      return token === undefined ? [] : [new Job(this.#store, this.#config, record, token)];
    });
  }
}
