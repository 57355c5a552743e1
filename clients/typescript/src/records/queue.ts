// A queue of jobs: how they are added, and the claims that workers make.

import { ServerError } from '../errors.js';
import { whole, word, type Changes, type Key, type Value } from '../words.js';
import { OutsideIndexError, isDropped, type CreateIndexOptions } from './index-definition.js';
import { Job, merged, type JobConfig } from './job.js';
import type { GroupState, Limits, Scope, ScopeLimits } from './limits.js';
import { DEFAULT_NAMES, type QueueConfig } from './queue-config.js';
import type { Indexed, RecordStore } from './record-store.js';
import type { Claim } from './requests.js';

/** The name of a group has at most so many bytes: a job with a longer one would be in no index, and never claimed. */
const GROUP_BYTES_MAX = 1024;

export interface AddOptions {
  /** The job is to be claimed when so many milliseconds have passed. */
  readonly delayMs?: number;
  /** In a queue with `groupBy`: the value of that field. A job without one is in the group of the empty name. */
  readonly group?: Value;
}

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
  readonly #groupBy: string | undefined;
  /** The prefixes of its indexes, as far as they were asked for. */
  #prefixes: readonly Buffer[] = [];

  constructor(store: RecordStore, config: QueueConfig) {
    this.#store = store;
    this.#indexes = config.indexes;
    this.#leaseMs = config.leaseMs ?? 30_000;
    this.#groupBy = config.groupBy;
    this.#config = {
      names: { ...DEFAULT_NAMES, ...config.names },
      attemptsMax: config.attemptsMax,
      completedLifetime: config.completedLifetime,
    };
  }

  /**
   * Makes an index over the open jobs whose keys begin so. Returns false if there is one of that name with this definition. One with another
   * definition is an IndexDiffersError; `onDifference: 'keep'` leaves it as it is, and `'replace'` puts the new one in its place, while
   * workers go on.
   */
  async createIndex(index: string, prefix: string, options: CreateIndexOptions = {}): Promise<boolean> {
    const { names } = this.#config;
    const group = this.#groupBy;
    const only = { field: names.state, values: [names.pending, names.running] };
    const held = { field: names.state, values: [names.running] };
    const definition = { prefixes: [prefix], field: names.runAt, only, ...(group === undefined ? {} : { group, held }) };
    this.#prefixes = [];
    return this.#store.createIndex(index, definition, options);
  }

  /**
   * Adds a job, to be claimed when a delay has passed. Whether it is new: one that is there is left alone, so this may be
   * repeated. A key without the prefix of one of the queue's indexes is an OutsideIndexError. A number is the delay in milliseconds; options have more.
   */
  async add(key: Key, values: Changes, delayOrOptions: number | AddOptions = 0): Promise<boolean> {
    const { names } = this.#config;
    const { delayMs = 0, group }: AddOptions = typeof delayOrOptions === 'number' ? { delayMs: delayOrOptions } : delayOrOptions;
    const groupFields = this.#groupFields(group);
    await this.#checkPrefix(Buffer.from(word(key)));
    const { applied } = await this.#store.exchange(key, {
      absent: [names.state],
      set: merged<Value | null>(values, new Map([...groupFields, [names.state, names.pending]])),
      stamp: { [names.runAt]: delayMs },
    });
    return applied;
  }

  /**
   * The next job that is due, most urgent index first, then by time. Waits so long if there is none; 0 does not wait. The signal ends the wait:
   * what had come is given back, as if it had not been claimed.
   */
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
    const claimed = await this.#claim(wanted);
    return claimed.flatMap((record) => {
      const token = record.fields.integer(attempt);
      // One without the counter has expired in the step in which it was claimed.
      return token === undefined ? [] : [new Job(this.#store, this.#config, record, token)];
    });
  }

  /**
   * Limits what workers may take from the jobs of one group, of each group, or of all: how many run at a time, how fast they are taken, the
   * share of the turns, a pause. What is not given stays as it is. Limits are those of one index: a queue with several has
   * `RecordStore.limit`.
   */
  async limit(scope: Scope, limits: Limits): Promise<void> {
    await this.#store.limit(this.#onlyIndex(), scope, limits);
  }

  /** Takes back all limits of a scope; without one, of all scopes. */
  async resetLimits(scope?: Scope): Promise<void> {
    await this.#store.resetLimits(this.#onlyIndex(), scope);
  }

  /** The limits that were set. */
  async limits(): Promise<ScopeLimits[]> {
    return this.#store.limits(this.#onlyIndex());
  }

  /** The groups of the queue, page by page: how many jobs are open and how many run, and which limits apply. */
  async *groups(): AsyncGenerator<GroupState, void, undefined> {
    yield* this.#store.groups(this.#onlyIndex());
  }

  async #claim(request: Claim): Promise<Indexed[]> {
    const { block = 0 } = request;
    const end = performance.now() + block;
    for (let left = block; ; left = Math.max(1, Math.round(end - performance.now()))) {
      try {
        return await this.#store.claimOrGiveBack({ ...request, block: left }, (claimed) => this.#giveBack(claimed));
      } catch (error) {
        // One that was replaced is there. If it is not, the next claim says so.
        if (!isDropped(error)) throw error;
      }
    }
  }

  /**
   * Leaves claimed jobs as they were. The attempt does not count: no handler has seen it. So each write is sent once. A second one could meet
   * the same attempt of the next worker.
   */
  async #giveBack(claimed: readonly Indexed[]): Promise<void> {
    const { names } = this.#config;
    await Promise.all(claimed.map(async ({ rawKey, score, fields }) => {
      const token = fields.integer(names.attempt);
      if (token === undefined) return;
      const expected = new Map<string, Value>([[names.attempt, token], [names.state, names.running]]);
      const before: [string, Value | null][] = [[names.attempt, token > 1 ? token - 1 : null], [names.worker, null]];
      await this.#store.exchange(rawKey, { expected, set: new Map([[names.state, names.pending], [names.runAt, score], ...before]) });
    }));
  }

  /** Checks that the key is in an index of the queue. If not all of them are there, it may be in one that is made later. */
  async #checkPrefix(key: Buffer): Promise<void> {
    const isCovered = (prefixes: readonly Buffer[]): boolean => prefixes.some((prefix) => key.subarray(0, prefix.length).equals(prefix));
    if (isCovered(this.#prefixes)) return;
    let found: Buffer[];
    try {
      const there = await Promise.all(this.#indexes.map((index) => this.#store.storedIndex(index)));
      if (there.includes(undefined)) return;
      found = there.flatMap((index) => index?.definition.prefixes ?? []).map((prefix) => Buffer.from(word(prefix)));
    } catch (error) {
      if (error instanceof ServerError) return; // a plain Redis, or a user who may not ask
      throw error;
    }
    this.#prefixes = found;
    if (!isCovered(found)) throw new OutsideIndexError(key.toString(), found.map(String).sort());
  }

  /** Limits are those of one index. */
  #onlyIndex(): string {
    const [index, ...others] = this.#indexes;
    if (index !== undefined && others.length === 0) return index;
    throw new RangeError(`the queue has ${this.#indexes.length} indexes, and each has limits of its own: name one to the store's method`);
  }

  #groupFields(group: Value | undefined): [string, Value][] {
    if (group === undefined) return [];
    if (this.#groupBy === undefined) throw new RangeError('the queue has no groups: its configuration has no groupBy');
    const bytes = Buffer.byteLength(word(group));
    if (bytes > GROUP_BYTES_MAX) throw new RangeError(`the name of a group has at most ${GROUP_BYTES_MAX} bytes, and this one has ${bytes}`);
    return [[this.#groupBy, group]];
  }
}
