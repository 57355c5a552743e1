// A job that a worker holds, and what the worker may do with it. Every write has the hold as its condition: the attempt,
// which is the fencing token, and the state. Knows how a job is written, refuses to know how it was found.

import { HoldfastError } from '../errors.js';
import { entries, type Changes, type Value } from '../words.js';
import { Fields } from './fields.js';
import type { JobNames } from './queue-config.js';
import type { Indexed, Outcome, RecordStore, Swept } from './record-store.js';
import { expectedOf, type Exchange, type Lifetime } from './requests.js';

/** The job is not this worker's any more: its lease has ended, or it was ended by another. Nothing was changed: stop. */
export class LostError extends HoldfastError {
  static {
    this.prototype.name = 'LostError';
  }

  readonly key: string;
  /** The token under which the worker had it. */
  readonly token: number;
  /** State and attempt as they are now; nothing if the record is gone. */
  readonly current: Fields;

  constructor(key: string, token: number, current: Fields) {
    const now = [...current].map(([name, value]) => `${name}=${value.toString()}`).join(' ');
    super(`attempt ${token} of the job ${key} is over: it ${now === '' ? 'is gone' : `has ${now}`}`);
    this.key = key;
    this.token = token;
    this.current = current;
  }
}

/** What a job knows of its queue. */
export interface JobConfig {
  readonly names: JobNames;
  readonly attemptsMax: number | undefined;
  readonly completedLifetime: Lifetime | undefined;
}

/**
 * A job that this worker has claimed, until its lease ends. Every method writes only if the job is still this worker's, and is
 * a LostError otherwise. After an UnavailableError any of them may be called again: if the first call was made after all, the
 * second one finds the job as it would leave it, and succeeds.
 *
 * A job that is dropped is claimed by another worker when its lease ends.
 */
export class Job {
  readonly key: string;
  /** The bytes of the key: what is written under, also if the key is no UTF-8. */
  readonly rawKey: Buffer;
  /** When it became due, in unix milliseconds. */
  readonly score: number;
  /** Its fields as they were when it was claimed. */
  readonly fields: Fields;
  /** How often it was claimed, this time included. It only grows: other services can refuse a lower one than they have seen. */
  readonly token: number;
  readonly #store: RecordStore;
  readonly #config: JobConfig;

  /** @internal */
  constructor(store: RecordStore, config: JobConfig, claimed: Indexed, token: number) {
    this.key = claimed.key;
    this.rawKey = claimed.rawKey;
    this.score = claimed.score;
    this.fields = claimed.fields;
    this.token = token;
    this.#store = store;
    this.#config = config;
  }

  /** Makes the lease end so long from now. */
  async renew(leaseMs: number): Promise<void> {
    await this.update({ stamp: { [this.#config.names.runAt]: leaseMs } });
  }

  /** Ends the job: it is done, with these fields as its result. */
  async complete(values: Changes = {}): Promise<void> {
    const { names, completedLifetime } = this.#config;
    await this.#leave(names.completed, values, completedLifetime === undefined ? {} : { lifetime: completedLifetime });
  }

  /** Ends the job: it cannot be done, and becomes a dead letter with these fields, such as the error. */
  async fail(values: Changes = {}): Promise<void> {
    await this.#leave(this.#config.names.dead, values, {});
  }

  /** Gives the job back, to be claimed again so long from now. If this was the last attempt, it becomes a dead letter. */
  async retry(afterMs: number, values: Changes = {}): Promise<Swept['fate']> {
    const { names, attemptsMax } = this.#config;
    if (attemptsMax !== undefined && this.token >= attemptsMax) {
      await this.fail(values);
      return 'exhausted';
    }
    await this.#leave(names.pending, values, { stamp: { [names.runAt]: afterMs } });
    return 'requeued';
  }

  /** Changes the record if the job is still this worker's and the exchange's own conditions hold. The outcome says whether those did. */
  async update(exchange: Exchange): Promise<Outcome> {
    const { names } = this.#config;
    const hold = new Map([[names.attempt, this.token.toString()], [names.state, names.running]]);
    const { if: _, ...others } = exchange;
    const held = { ...others, expected: merged<Value>(expectedOf(exchange), hold) };
    const outcome = await this.#store.exchange(this.rawKey, held);
    const now = [...hold.keys()].map((name) => [name, outcome.current.bytes(name)] as const);
    if (outcome.applied || now.every(([name, value]) => value?.toString() === hold.get(name))) return outcome;
    const there = now.flatMap(([name, value]): [string, Buffer][] => (value === undefined ? [] : [[name, value]]));
    throw new LostError(this.key, this.token, new Fields(there));
  }

  /** Leaves the job in another state. One that is there under the same token was left so by a call whose answer was lost. */
  async #leave(state: string, values: Changes, more: Exchange): Promise<void> {
    const { names } = this.#config;
    try {
      await this.update({ ...more, set: merged<Value | null>(values, new Map([[names.state, state]])) });
    } catch (error) {
      const leftSo = error instanceof LostError
        && error.current.integer(names.attempt) === this.token && error.current.text(names.state) === state;
      if (!leftSo) throw error;
    }
  }
}

/** Values, and others that take the place of those with the same name. */
export function merged<T extends Value | null>(
  values: Readonly<Record<string, T>> | ReadonlyMap<string, T>, over: Readonly<Record<string, T>> | ReadonlyMap<string, T>,
): ReadonlyMap<string, T> {
  return new Map([...entries<T>(values), ...entries<T>(over)]);
}
