// A queue of jobs: how they are added, and the claims that workers make.

import { whole, word, type Changes, type Key, type Value } from '../words.js';
import { Job, merged, type JobConfig } from './job.js';
import type { GroupState, Limits, Scope, ScopeLimits } from './limits.js';
import { DEFAULT_NAMES, NoGroupsError, type QueueConfig } from './queue-config.js';
import type { RecordStore } from './record-store.js';
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
   * Makes an index over the open jobs whose keys begin so. If there is an index of that name, it is left as it is; a queue with groups
   * needs one that keeps them, and any other is a NoGroupsError.
   */
  async createIndex(index: string, prefix: string): Promise<void> {
    const { names } = this.#config;
    const group = this.#groupBy;
    const only = { field: names.state, values: [names.pending, names.running] };
    const definition = { prefixes: [prefix], field: names.runAt, only };
    if (group === undefined) {
      await this.#store.createIndex(index, definition);
      return;
    }
    const held = { field: names.state, values: [names.running] };
    if (await this.#store.createIndex(index, { ...definition, group, held })) return;
    const there = await this.#store.indexGroups(index);
    const isHeld = (value: string) => there.heldValues.some((each) => each.equals(Buffer.from(value)));
    if (there.group?.equals(Buffer.from(group)) === true && there.heldField?.equals(Buffer.from(names.state)) === true && isHeld(names.running)) return;
    const missing = `GROUP ${group} HELD ${names.state} 1 ${names.running}`;
    throw new NoGroupsError(`there is an index ${index} already, and it was created without ${missing}: drop it, or choose another name`);
  }

  /**
   * Adds a job, to be claimed when a delay has passed. Whether it is new: one that is there is left alone, so this may be
   * repeated. Give its key the prefix of the index that should have it. A number is the delay in milliseconds; options have more.
   */
  async add(key: Key, values: Changes, delayOrOptions: number | AddOptions = 0): Promise<boolean> {
    const { names } = this.#config;
    const { delayMs = 0, group }: AddOptions = typeof delayOrOptions === 'number' ? { delayMs: delayOrOptions } : delayOrOptions;
    const { applied } = await this.#store.exchange(key, {
      absent: [names.state],
      set: merged<Value | null>(values, new Map([...this.#groupFields(group), [names.state, names.pending]])),
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
