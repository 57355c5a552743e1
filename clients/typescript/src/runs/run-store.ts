// Runs: append-only logs of events, with an idempotency key for each event and a snapshot that the server keeps. Knows the
// replies of their commands; decides nothing about what an event means.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Asker } from '../asker.js';
import { HoldfastError, ReplyError } from '../errors.js';
import { flag, integer, list, map, optional, text, time } from '../replies.js';
import { countedList, whole, type Word } from '../words.js';
import { appendWords, json, readEvent, type CanonicalEngineEvent, type DataCodec, type NewEvent } from './event.js';
import { readSnapshot, snapshotReducer, type Reducer, type RunSnapshot, type RunStatus } from './snapshot.js';

/** The interface of a store of runs. */
export interface IRunStateStore {
  appendEvent(event: CanonicalEngineEvent): Promise<AppendResult>;
  fetchEvents(runId: string, options: { afterSeq?: number; limit?: number }): Promise<CanonicalEngineEvent[]>;
  getSnapshot(runId: string): Promise<RunSnapshot | null>;
  projectSnapshot(runId: string): Promise<RunSnapshot>;
}

/** What became of an append that had no `ifLast`. */
export type AppendResult = Appended | Duplicate;

/** The event is stored. */
export interface Appended {
  readonly outcome: 'appended';
  readonly runSeq: number;
  readonly idempotent: false;
  readonly persisted: true;
  readonly mismatch: false;
  readonly eventId: string;
  readonly persistedAt: string;
}

/** An event with this idempotency key was stored before; these are its runSeq, eventId and time. Nothing was changed. */
export interface Duplicate {
  readonly outcome: 'duplicate';
  readonly runSeq: number;
  readonly idempotent: true;
  readonly persisted: false;
  /** Its type or its data differ from this one's: the key was used for two events. */
  readonly mismatch: boolean;
  readonly eventId: string;
  readonly persistedAt: string;
}

/** The run's last event is another one than `ifLast` says: another engine goes on with it. Nothing was changed. */
export interface Behind {
  readonly outcome: 'behind';
  /** The run's last runSeq. */
  readonly runSeq: number;
  readonly idempotent: false;
  readonly persisted: false;
}

export interface FetchOptions {
  /** Only events behind this one: the watermark. One beyond the last event of the run is a ServerError: it was made anew. */
  readonly afterSeq?: number;
  /** How many events at most; 1000 if not given. */
  readonly limit?: number;
  /** How long to wait for the next event if there is none, in milliseconds; 0 does not wait. There is no waiting for ever. */
  readonly block?: number;
  /** Ends the wait. */
  readonly signal?: AbortSignal | undefined;
}

export interface FollowOptions {
  /** The watermark to go on from; from the first event if not given. */
  readonly after?: number;
  /** Ends the loop, without an error. */
  readonly signal?: AbortSignal | undefined;
  /** How many events are read at a time; 1000 if not given. */
  readonly pageSize?: number;
  /** Told each time when the server is away. */
  readonly onRetry?: (error: HoldfastError) => void;
  /** Told after each page how far this loop is behind the run, when its events were handled: a metric. */
  readonly onLag?: (lag: Lag) => void;
}

/** How far a projector is behind: 0 and 0 at the end of the run. */
export interface Lag {
  /** The number of events between its position and the run's last one. */
  readonly events: number;
  /** How long ago the oldest of them was stored, in milliseconds by the server's clock. */
  readonly ageMs: number;
}

export interface ProjectOptions {
  /** Only the events up to this one. */
  readonly upTo?: number;
}

export interface RunInfo {
  readonly runId: string;
  readonly status: RunStatus;
  readonly events: number;
  readonly lastEventSeq: number;
  /** When the first and the last event were stored. */
  readonly firstAt?: string;
  readonly lastAt?: string;
  /** The memory that the run takes. */
  readonly bytes: number;
}

export interface ListOptions {
  readonly prefix?: string;
  /** Only runs with one of these. */
  readonly status?: readonly RunStatus[];
}

/** Events that a page has at most, where the caller does not say. */
const PAGE = 1000;
/** How long one wait of `follow` lasts: a connection that has silently died is found after it. */
const FOLLOW_WAIT_MS = 10_000;
const RETRY_PAUSE_MS = 50;

export class RunStore implements IRunStateStore {
  readonly #asker: Asker;
  readonly #codec: DataCodec;

  constructor(asker: Asker, options: { codec?: DataCodec } = {}) {
    this.#asker = asker;
    this.#codec = options.codec ?? json;
  }

  /**
   * Appends an event, once for its idempotency key. After an UnavailableError append the same event again: it is stored once.
   *
   * `ifLast`: only if that is the run's last runSeq (0: a new run), so that two engines cannot both go on. A key that is known
   * is a duplicate all the same.
   */
  async appendEvent(event: NewEvent): Promise<AppendResult>;
  async appendEvent(event: NewEvent, options: { ifLast: number }): Promise<AppendResult | Behind>;
  async appendEvent(event: NewEvent, options?: { ifLast: number }): Promise<AppendResult | Behind> {
    const words = appendWords(event, this.#codec);
    if (options !== undefined) words.push('IFLAST', whole(options.ifLast, 'ifLast'));
    const reply = map(await this.#asker.ask(words));
    const runSeq = integer(reply.get('runSeq'));
    const [persisted, idempotent] = [flag(reply.get('persisted')), flag(reply.get('idempotent'))];
    if (!persisted && !idempotent) return { outcome: 'behind', runSeq, idempotent, persisted };
    const stored = { runSeq, eventId: text(reply.get('eventId')), persistedAt: time(reply.get('persistedAt')) };
    return persisted
      ? { outcome: 'appended', ...stored, idempotent: false, persisted, mismatch: false }
      : { outcome: 'duplicate', ...stored, idempotent: true, persisted, mismatch: flag(reply.get('mismatch')) };
  }

  /** Events in the order of their runSeq. A wait has a connection to itself. */
  async fetchEvents(runId: string, options: FetchOptions = {}): Promise<CanonicalEngineEvent[]> {
    const { afterSeq, limit, block = 0, signal } = options;
    signal?.throwIfAborted();
    const words: Word[] = ['RUN.EVENTS', runId];
    if (afterSeq !== undefined) words.push('AFTER', whole(afterSeq, 'afterSeq'));
    if (limit !== undefined) words.push('LIMIT', whole(limit, 'limit'));
    if (block !== 0) words.push('BLOCK', whole(block, 'block'));
    const reply = block > 0 ? await this.#asker.askAndWait(words, block, signal) : await this.#asker.ask(words);
    return list(reply).map((event) => readEvent(event, this.#codec));
  }

  /**
   * The events of a run, those that are there and then each new one as it comes: every event once and in order. Goes on when
   * the server is back after it was away. Also follows a run that does not exist yet. Ends with its signal; a run that was
   * deleted and made anew with fewer events is a ServerError.
   */
  async *follow(runId: string, options: FollowOptions = {}): AsyncGenerator<CanonicalEngineEvent, void, undefined> {
    const { after = 0, signal, pageSize = PAGE, onRetry, onLag } = options;
    if (!this.#asker.canWait) throw new TypeError('nothing waits in a session or a transaction: follow the run on a connection');
    if (!(pageSize >= 1)) throw new RangeError(`pageSize is ${pageSize}, and has to be at least 1`);
    let watermark = after;
    let hasPage = false;
    while (signal?.aborted !== true) {
      let events: CanonicalEngineEvent[];
      try {
        // Told when the events of the page before were handled.
        if (onLag !== undefined && hasPage) onLag(await this.lag(runId, watermark));
        hasPage = false;
        events = await this.fetchEvents(runId, { afterSeq: watermark, limit: pageSize, block: FOLLOW_WAIT_MS, signal });
        hasPage = true;
      } catch (error) {
        if (signal?.aborted) return;
        if (!(error instanceof HoldfastError && error.isTemporary)) throw error;
        onRetry?.(error);
        await sleep(RETRY_PAUSE_MS);
        continue;
      }
      for (const event of events) {
        watermark = successor(watermark, event);
        yield event;
        if (signal?.aborted) return;
      }
    }
  }

  /** The snapshot that the server keeps, which is never behind; null if there is no such run. */
  async getSnapshot(runId: string): Promise<RunSnapshot | null> {
    return optional(await this.#asker.ask(['RUN.SNAPSHOT', runId]), (reply) => readSnapshot(reply, this.#codec)) ?? null;
  }

  /**
   * A state made of the run's events anew. Without a reducer the server replays them, and the result is that of `getSnapshot`;
   * with one they are read in pages, up to the last. Of a run that does not exist it is the initial state.
   */
  async projectSnapshot(runId: string, reducer?: undefined, options?: ProjectOptions): Promise<RunSnapshot>;
  async projectSnapshot<State>(runId: string, reducer: Reducer<State>, options?: ProjectOptions): Promise<State>;
  async projectSnapshot<State>(
    runId: string, reducer?: Reducer<State>, options: ProjectOptions = {},
  ): Promise<State | RunSnapshot> {
    const { upTo } = options;
    if (reducer === undefined) {
      const words = ['RUN.PROJECT', runId, ...(upTo === undefined ? [] : ['UPTO', whole(upTo, 'upTo')])];
      const snapshot = optional(await this.#asker.ask(words), (reply) => readSnapshot(reply, this.#codec));
      return snapshot ?? snapshotReducer.initial(runId);
    }
    let state = reducer.initial(runId);
    let watermark = 0;
    for (;;) {
      const limit = upTo === undefined ? PAGE : Math.min(PAGE, upTo - watermark);
      const events = await this.fetchEvents(runId, { afterSeq: watermark, limit });
      for (const event of events) {
        watermark = successor(watermark, event);
        state = reducer.apply(state, event);
      }
      if (events.length < PAGE) return state;
    }
  }

  /** How far a projector that has seen all events up to `position` is behind. A position beyond the last event is a ServerError. */
  async lag(runId: string, position: number): Promise<Lag> {
    const [next, info, clock] = await Promise.all([
      this.fetchEvents(runId, { afterSeq: position, limit: 1 }), this.info(runId), this.#asker.ask(['TIME']),
    ]);
    const [oldest] = next;
    if (oldest === undefined || info === null) return { events: 0, ageMs: 0 };
    const [seconds, micros] = list(clock).map(integer);
    const nowMs = (seconds ?? 0) * 1000 + Math.floor((micros ?? 0) / 1000);
    const storedMs = Date.parse(oldest.persistedAt ?? '');
    return { events: info.lastEventSeq - position, ageMs: Math.max(0, nowMs - storedMs) };
  }

  /** Removes a run with all its events; whether there was one. Nothing removes a single event. */
  async delete(runId: string): Promise<boolean> {
    return flag(await this.#asker.ask(['DEL', runId]));
  }

  /** Facts about a run; null if there is none. */
  async info(runId: string): Promise<RunInfo | null> {
    const reply = await this.#asker.ask(['RUN.INFO', runId]);
    if (reply === null) return null;
    const parts = map(reply);
    const [firstAt, lastAt] = [optional(parts.get('firstAt'), time), optional(parts.get('lastAt'), time)];
    return {
      runId: text(parts.get('runId')),
      status: text(parts.get('status')) as RunStatus,
      events: integer(parts.get('events')),
      lastEventSeq: integer(parts.get('lastEventSeq')),
      ...(firstAt === undefined ? {} : { firstAt }),
      ...(lastAt === undefined ? {} : { lastAt }),
      bytes: integer(parts.get('bytes')),
    };
  }

  /** The names of runs, page by page, with SCAN's guarantee: one that is there all the time is listed, and may be twice. */
  async *list(options: ListOptions = {}): AsyncGenerator<string, void, undefined> {
    const words: Word[] = ['RUN.LIST'];
    if (options.prefix !== undefined) words.push('PREFIX', options.prefix);
    if (options.status !== undefined) words.push('STATUS', ...countedList(options.status));
    let cursor = '0';
    do {
      const [next, names] = list(await this.#asker.ask([...words, 'CURSOR', cursor]));
      for (const name of list(names)) yield text(name);
      cursor = text(next);
    } while (cursor !== '0');
  }
}

/** The watermark behind an event. The server leaves no gaps: one here would be an event that was not seen. */
function successor(watermark: number, event: CanonicalEngineEvent): number {
  if (event.runSeq !== watermark + 1) {
    throw new ReplyError(`event ${event.runSeq} of the run ${event.runId} came behind event ${watermark}`);
  }
  return event.runSeq;
}
