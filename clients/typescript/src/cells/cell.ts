// A cell: a value with a version, a history and a watch. Knows what can be asked of one; refuses to know what a value means.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Asker } from '../asker.js';
import type { Codec } from '../codec.js';
import { HoldfastError } from '../errors.js';
import { bytes, flag, integer, list, optional, shownText, type Reply } from '../replies.js';
import { whole, word, type Key, type Word } from '../words.js';

/** A value of a cell, and which of its versions it is. */
export interface CellVersion<T> {
  readonly value: T;
  /** 1 is the first. It only grows while the cell is there. */
  readonly version: number;
  /** When it was written, in microseconds by the server's clock. Of two versions of a cell the later has the later time. */
  readonly updatedAtUs: number;
}

/** What became of a compare-and-swap: the new version, or what the cell holds; null if there is no cell. */
export type Swap<T> =
  | { readonly applied: true; readonly version: number }
  | { readonly applied: false; readonly current: { readonly value: T; readonly version: number } | null };

export interface WatchOptions {
  /** Ends the loop, without an error. */
  readonly signal?: AbortSignal | undefined;
  /** Told each time when the server is away. */
  readonly onRetry?: (error: HoldfastError) => void;
}

/** How long one wait of a watch lasts: a connection that has silently died is found after it. */
const WATCH_WAIT_MS = 5_000;
const RETRY_PAUSE_MS = 50;
/** How many versions a watch catches up with at most. */
const HISTORY_MAX = 1000;

/** A value with a version that grows by one with every write, under a name of its own. */
export class Cell<T> {
  /** The key, as text. */
  readonly name: string;
  /** The key. */
  readonly key: Word;
  readonly codec: Codec<T>;
  readonly #asker: Asker;

  /** `CellStore`, `Branch` and `Transaction` make cells. */
  constructor(asker: Asker, name: Key, codec: Codec<T>) {
    this.#asker = asker;
    this.key = word(name);
    this.name = shownText(this.key);
    this.codec = codec;
  }

  /** Writes the value unless there is one. Returns the version that the cell then has. */
  async init(value: T): Promise<number> {
    return integer(await this.#asker.ask(['CELL.INIT', this.key, this.codec.encode(value)]));
  }

  /** What it holds now; null if there is no cell. */
  async get(): Promise<CellVersion<T> | null> {
    return this.#getv([]);
  }

  /** What it held in this version; null if that is not kept. */
  async getVersion(version: number): Promise<CellVersion<T> | null> {
    return this.#getv(['VERSION', whole(version, 'version')]);
  }

  /** What it held at this time, in unix microseconds; null if that is not kept. */
  async getAsOf(timeUs: number): Promise<CellVersion<T> | null> {
    return this.#getv(['ASOF', whole(timeUs, 'timeUs')]);
  }

  /**
   * Waits until the cell has a later version than this, and returns what it holds then. Null when the cell goes, and when the wait is
   * over. After 0 it waits for the cell to come. The wait has a connection to itself; in a session or a transaction nothing waits.
   */
  async waitAfter(version: number, waitMs: number, signal?: AbortSignal): Promise<CellVersion<T> | null> {
    signal?.throwIfAborted();
    const words = ['CELL.GETV', this.key, 'AFTER', whole(version, 'version')];
    // BLOCK 0 would wait for ever: on a connection that has silently died it would not end.
    if (waitMs <= 0) return this.#read(await this.#asker.ask(words));
    return this.#read(await this.#asker.askAndWait([...words, 'BLOCK', whole(waitMs, 'waitMs')], waitMs, signal));
  }

  /**
   * Every change from now on: each new version, and null when the cell goes. Versions that follow each other quickly are read from the
   * history, as far as that is kept; the last one is always seen. Goes on when the server is back after it was away. Ends with its signal.
   */
  async *watch(options: WatchOptions = {}): AsyncGenerator<CellVersion<T> | null, void, undefined> {
    const { signal, onRetry } = options;
    if (!this.#asker.canWait) throw new TypeError('nothing waits in a session or a transaction: watch the cell on a connection');
    let last: CellVersion<T> | null | undefined;
    while (signal?.aborted !== true) {
      let changes: (CellVersion<T> | null)[];
      try {
        if (last === undefined) {
          last = await this.get();
          continue;
        }
        changes = await this.#changesAfter(last, signal);
      } catch (error) {
        if (signal?.aborted) return;
        if (!(error instanceof HoldfastError && error.isTemporary)) throw error;
        onRetry?.(error);
        await sleep(RETRY_PAUSE_MS);
        continue;
      }
      for (const change of changes) {
        last = change;
        yield change;
        if (signal?.aborted) return;
      }
    }
  }

  /** Writes the value, whatever was there, and returns its version. The time to live stays as it is. */
  async set(value: T): Promise<number> {
    return integer(await this.#asker.ask(['CELL.SET', this.key, this.codec.encode(value)]));
  }

  /** Writes the value, and the cell goes after this time unless it is written again. */
  async setFor(value: T, ttlMs: number): Promise<number> {
    return integer(await this.#asker.ask(['CELL.SET', this.key, this.codec.encode(value), 'PX', whole(ttlMs, 'ttlMs')]));
  }

  /**
   * Writes the value if the cell has this version; 0 is that of a cell that does not exist. Of any number of clients that expect the same
   * version one writes. After an UnavailableError it may have been this one: what a repeated call is refused with shows it.
   */
  async cas(expected: number, value: T): Promise<Swap<T>> {
    return this.#cas(expected, value, []);
  }

  /** The same, and the cell goes after this time unless it is written again: a lease. */
  async casFor(expected: number, value: T, ttlMs: number): Promise<Swap<T>> {
    return this.#cas(expected, value, ['PX', whole(ttlMs, 'ttlMs')]);
  }

  /** The versions that are kept, the newest first: at most so many, of those before `before` if it is given. */
  async history(before?: number, limit = 1000): Promise<CellVersion<T>[]> {
    const words = ['CELL.HISTORY', this.key, 'LIMIT', whole(limit, 'limit')];
    if (before !== undefined) words.push('BEFORE', whole(before, 'before'));
    return list(await this.#asker.ask(words)).map((each) => readVersion(each, this.codec));
  }

  /** Removes the cell with its history; whether there was one. */
  async delete(): Promise<boolean> {
    return flag(await this.#asker.ask(['CELL.DEL', this.key]));
  }

  /** Removes the cell if it still has this version. */
  async deleteIf(version: number): Promise<boolean> {
    return flag(await this.#asker.ask(['CELL.DEL', this.key, 'IF', whole(version, 'version')]));
  }

  async #getv(options: readonly Word[]): Promise<CellVersion<T> | null> {
    return this.#read(await this.#asker.ask(['CELL.GETV', this.key, ...options]));
  }

  async #cas(expected: number, value: T, options: readonly Word[]): Promise<Swap<T>> {
    const words = ['CELL.CAS', this.key, whole(expected, 'expected'), this.codec.encode(value), ...options, 'WITHCURRENT'];
    const [done, current, version] = list(await this.#asker.ask(words));
    if (done !== null) return { applied: true, version: integer(done) };
    if (version === null) return { applied: false, current: null };
    return { applied: false, current: { value: this.codec.decode(bytes(current)), version: integer(version) } };
  }

  /** Waits for changes behind what was seen last, which is null if there was no cell. */
  async #changesAfter(last: CellVersion<T> | null, signal: AbortSignal | undefined): Promise<(CellVersion<T> | null)[]> {
    const found = await this.waitAfter(last?.version ?? 0, WATCH_WAIT_MS, signal) ?? await this.get();
    if (found === null) return last === null ? [] : [null];
    if (last === null) return this.#versionsUpTo(0, found);
    if (found.version === last.version && found.updatedAtUs === last.updatedAtUs) return [];
    if (found.version > last.version) {
      const kept = await this.#versionsUpTo(last.version - 1, found);
      const [oldest] = kept;
      const isSameCell = oldest?.version !== last.version || oldest.updatedAtUs === last.updatedAtUs;
      if (isSameCell) return kept.filter((each) => each.version > last.version);
    }
    // It was removed and made anew: it began at 1 again, with later times.
    return [null, ...await this.#versionsUpTo(0, found)];
  }

  /** The kept versions after one up to another, the oldest first. */
  async #versionsUpTo(after: number, found: CellVersion<T>): Promise<CellVersion<T>[]> {
    const between = found.version - after - 1;
    if (between <= 0) return [found];
    const kept = await this.history(found.version, Math.min(between, HISTORY_MAX));
    return [...kept.filter(({ version }) => version > after && version < found.version).reverse(), found];
  }

  #read(reply: Reply): CellVersion<T> | null {
    return optional(reply, (each) => readVersion(each, this.codec)) ?? null;
  }
}

/** `[value, version, time]` */
export function readVersion<T>(reply: Reply, codec: Codec<T>): CellVersion<T> {
  const [value, version, updatedAtUs] = list(reply);
  return { value: codec.decode(bytes(value)), version: integer(version), updatedAtUs: integer(updatedAtUs) };
}
