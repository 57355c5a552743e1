// Records: hashes with conditional writes, filtered scans, and indexes that the server keeps. Knows the replies of their
// commands; decides nothing about what a record means.

import type { Asker } from '../asker.js';
import { NeedsHoldfastError, ReplyError, ServerError, WrongTypeError } from '../errors.js';
import { bytes, double, flag, list, optional, shownText, text, type Reply } from '../replies.js';
import { entries, word, type Changes, type Key, type Value } from '../words.js';
import { Fields, StoredRecord, fields, ttl } from './fields.js';
import { passes } from './filters.js';
import {
  IndexDiffersError, createIfAbsentWords, differences, keepsLimits, readIndex, replaceWords, type CreateIndexOptions, type StoredIndex,
} from './index-definition.js';
import {
  groupsWords, limitWords, limitsWords, readGroups, readLimits, resetWords, type GroupState, type Limits, type Scope, type ScopeLimits,
} from './limits.js';
import * as plainRedis from './plain-redis.js';
import {
  claimWords, exchangeWords, expectedOf, findWords, indexWords, putWords, rangeWords, sweepWords,
  type Claim, type Exchange, type IndexDefinition, type PutOptions, type RangeOptions, type ScanOptions, type Score, type Sweep,
} from './requests.js';

/** How an exchange went. */
export interface Outcome {
  /** Whether every condition held, and so every change was made. */
  readonly applied: boolean;
  /** The fields of `expected` as they are now, those that are there. */
  readonly current: Fields;
}

/** A record that was found. */
export interface Found extends NamedKey {
  readonly fields: Fields;
  /** The remaining time to live in milliseconds; null if the record stays. */
  readonly ttlMs: number | null;
}

/** The key of a record that the server names. */
export interface NamedKey {
  /** The key as text. If it is no UTF-8, every byte above 0x7f is written as `\xff`: use `rawKey` then. */
  readonly key: string;
  /** The bytes of the key, which every method takes as a key too. */
  readonly rawKey: Buffer;
}

/** A record of an index. A claim's score is the one that the record had. */
export interface Indexed extends Found {
  readonly score: number;
}

/** What a sweep has written to a record: the values for another try, or those for one that has used up its retries. */
export interface Swept extends NamedKey {
  readonly fate: 'requeued' | 'exhausted';
}

/** Records that one page of a scan has at most. */
const PAGE = 500;

/**
 * Records of a server. On a plain Redis or Valkey `get`, `put`, `delete`, `getField`, `setField`, `setFields`, `compareAndSwap`,
 * `exchange` and `scan` work too, with the same results; the rest is a NeedsHoldfastError. Keys are text or bytes.
 */
export class RecordStore {
  readonly #asker: Asker;

  constructor(asker: Asker) {
    this.#asker = asker;
  }

  /** A record with its time to live, both of one instant; null if there is none. */
  async get(key: Key): Promise<StoredRecord | null> {
    const [values, ttlMs] = list(await this.#asker.ask(plainRedis.getWords(key)));
    const found = new StoredRecord(fields(values), ttl(ttlMs));
    return found.size === 0 ? null : found;
  }

  /**
   * Writes fields, removes those that are null, and sets the record's time to live if one is given, in one step. A number is the time to
   * live in milliseconds; options have more. Without one the time to live stays as it is.
   */
  async put(key: Key, values: Changes, ttlOrOptions: number | PutOptions = {}): Promise<void> {
    const options = typeof ttlOrOptions === 'number' ? { lifetime: { ms: ttlOrOptions } } : ttlOrOptions;
    if (entries(values).length === 0 && Object.keys(options.stamp ?? {}).length === 0) throw new RangeError('there are no fields to write');
    const isPlain = !this.#asker.knows('hput') || !this.#asker.knows('hcas');
    await this.#asker.ask(isPlain ? plainRedis.putWords(key, values, options) : putWords(key, values, options));
  }

  /** Removes a record; whether there was one. */
  async delete(key: Key): Promise<boolean> {
    return flag(await this.#asker.ask(['DEL', word(key)]));
  }

  /** The bytes of one field; null if the record has none. */
  async getField(key: Key, field: string): Promise<Buffer | null> {
    return optional(await this.#asker.ask(['HGET', word(key), field]), bytes) ?? null;
  }

  /** Writes one field; null removes it. A record that loses its last field is gone. The lifetime stays as it is. */
  async setField(key: Key, field: string, value: Value | null): Promise<void> {
    await this.#asker.ask(value === null ? ['HDEL', word(key), field] : ['HSET', word(key), field, word(value)]);
  }

  /** Writes some fields and removes those that are null, in one step. The lifetime stays as it is. */
  async setFields(key: Key, values: Changes): Promise<void> {
    await this.put(key, values);
  }

  /** Writes a field if it holds `expected`; whether it did. Of several that expect the same value, one is told true. */
  async compareAndSwap(key: Key, field: string, expected: Value, value: Value): Promise<boolean> {
    const words = this.#asker.knows('hcas')
      ? ['HCAS', word(key), field, word(expected), word(value)]
      : plainRedis.compareAndSwapWords(key, field, expected, value);
    return flag(await this.#asker.ask(words));
  }

  /** Changes a record if it holds what is expected, in one step. */
  async exchange(key: Key, exchange: Exchange): Promise<Outcome> {
    const words = this.#asker.knows('hcas') ? exchangeWords(key, exchange) : plainRedis.exchangeWords(key, exchange);
    const [applied, values] = list(await this.#asker.ask(words));
    const current = list(values);
    const there = entries(expectedOf(exchange)).flatMap(([name], i): [string, Buffer][] => {
      const value = current[i];
      return Buffer.isBuffer(value) ? [[name, value]] : [];
    });
    return { applied: flag(applied), current: new Fields(there) };
  }

  /**
   * The records under a prefix that pass all filters, page by page. One that is there all the time is found; one that comes or
   * goes meanwhile may be, and one may be found twice. Keys of other types, and keys that are no UTF-8, do not end it.
   */
  async *scan(prefix: Key, options: ScanOptions = {}): AsyncGenerator<Found, void, undefined> {
    let left = options.limit ?? Infinity;
    let cursor = '0';
    do {
      const { next, records } = this.#asker.knows('hfind')
        ? await this.#find(prefix, cursor, Math.min(left, PAGE), options)
        : await this.#scan(prefix, cursor, left, options);
      for (const record of records) {
        yield record;
        left -= 1;
        if (left === 0) return;
      }
      cursor = next;
      if (cursor === '0') return;
    } while (left > 0);
  }

  /**
   * Makes an index, and returns when existing records are in it. Returns false if there is one of that name with this definition. One with
   * another definition is an IndexDiffersError, unless `onDifference` says to keep or to replace it.
   */
  async createIndex(name: string, index: IndexDefinition, options: CreateIndexOptions = {}): Promise<boolean> {
    const { onDifference = 'raise' } = options;
    if (!['raise', 'keep', 'replace'].includes(onDifference)) {
      throw new RangeError(`onDifference is ${String(onDifference)}, and has to be 'raise', 'keep' or 'replace'`);
    }
    this.#needs('idx.create');
    try {
      return flag(await this.#asker.ask(createIfAbsentWords(name, index)));
    } catch (error) {
      if (!(error instanceof ServerError && error.code === 'ERR')) throw error;
    }
    // There is another definition, or the server does not know IFABSENT.
    let there = await this.storedIndex(name);
    if (there === undefined) {
      try {
        await this.#asker.ask(indexWords(name, index));
        return true;
      } catch (error) {
        there = await this.storedIndex(name); // which another program has made meanwhile
        if (there === undefined) throw error;
      }
    }
    const differing = differences(there, index);
    if (differing.length === 0 || onDifference === 'keep') return false;
    if (onDifference === 'raise') throw new IndexDiffersError(name, differing);
    const limits = keepsLimits(there, index) ? await this.limits(name) : [];
    const setAgain = limits.map(({ scope, ...each }) => limitWords(name, scope, each));
    return flag(await this.#asker.ask(replaceWords(name, there, index, setAgain)));
  }

  /** Removes an index, not its records; whether there was one. */
  async dropIndex(name: string): Promise<boolean> {
    this.#needs('idx.create');
    return flag(await this.#asker.ask(['IDX.DROP', name]));
  }

  /** The names of all indexes. */
  async indexes(): Promise<string[]> {
    this.#needs('idx.create');
    return list(await this.#asker.ask(['IDX.LIST'])).map(text);
  }

  /**
   * Limits what claims may take from one group of an index, from each group that has no value of its own, or from all records together.
   * What is not given stays as it is.
   */
  async limit(index: string, scope: Scope, limits: Limits): Promise<void> {
    this.#needs('idx.create');
    await this.#asker.ask(limitWords(index, scope, limits));
  }

  /** Takes back all limits of a scope; without one, all limits of the index. */
  async resetLimits(index: string, scope?: Scope): Promise<void> {
    this.#needs('idx.create');
    await this.#asker.ask(resetWords(index, scope));
  }

  /** The limits of an index that were set. */
  async limits(index: string): Promise<ScopeLimits[]> {
    this.#needs('idx.create');
    return readLimits(await this.#asker.ask(limitsWords(index)));
  }

  /** The groups of an index, page by page, in no order. One that is there all the time is listed. */
  async *groups(index: string): AsyncGenerator<GroupState, void, undefined> {
    this.#needs('idx.create');
    let cursor = '0';
    do {
      const { next, groups } = readGroups(await this.#asker.ask(groupsWords(index, cursor)));
      yield* groups;
      cursor = next;
    } while (cursor !== '0');
  }

  /**
   * An index that is there; undefined if there is none of that name.
   *
   * @internal
   */
  async storedIndex(index: string): Promise<StoredIndex | undefined> {
    this.#needs('idx.create');
    try {
      return readIndex(await this.#asker.ask(['IDX.INFO', index]));
    } catch (error) {
      if (error instanceof NeedsHoldfastError || !(error instanceof ServerError && error.code === 'ERR')) throw error;
      return undefined;
    }
  }

  /** Records of an index with a score from `min` to `max`, lowest first. The limit counts those that pass the filters. */
  async range(index: string, min: Score, max: Score, options: RangeOptions = {}): Promise<Indexed[]> {
    this.#needs('idx.range');
    return list(await this.#asker.ask(rangeWords(index, min, max, options))).map(indexed);
  }

  /**
   * Takes the first records of an index that qualify: each goes to exactly one client, changed as the claim says. Returns
   * them as they are now.
   *
   * A claim that waits has a connection to itself. When its answer is lost, by an UnavailableError or its signal, it may have
   * taken records, which then stay as it has written them: a queue finds them again when their lease ends.
   */
  async claim(claim: Claim): Promise<Indexed[]> {
    return this.claimOrGiveBack(claim);
  }

  /**
   * The same. What had come when the signal comes, or the connection is closed, is given to `giveBack`, in the place of the caller.
   *
   * @internal
   */
  async claimOrGiveBack(claim: Claim, giveBack?: (claimed: Indexed[]) => Promise<void>): Promise<Indexed[]> {
    const { block = 0, signal } = claim;
    signal?.throwIfAborted();
    this.#needs('claim');
    const words = claimWords(claim);
    if (block === 0) return list(await this.#asker.ask(words)).map(indexed);
    const undo = giveBack && ((reply: Reply) => giveBack(list(reply).map(indexed)));
    return list(await this.#asker.askAndWait(words, block, signal, undo)).map(indexed);
  }

  /** Gives overdue records back; which ones, and what became of each. */
  async sweep(sweep: Sweep): Promise<Swept[]> {
    this.#needs('sweep');
    return list(await this.#asker.ask(sweepWords(sweep))).map((row) => {
      const [key, fate] = list(row);
      const word = text(fate);
      if (word !== 'requeued' && word !== 'exhausted') throw new ReplyError(`a record was neither requeued nor exhausted but ${word}`);
      return { ...named(key), fate: word };
    });
  }

  async #find(prefix: Key, cursor: string, limit: number, options: ScanOptions): Promise<Page> {
    const [next, rows] = list(await this.#asker.ask(findWords(prefix, cursor, limit, options)));
    const records = list(rows).map((row): Found => {
      const [key, values, ttlMs] = list(row);
      return { ...named(key), fields: fields(values), ttlMs: ttl(ttlMs) };
    });
    return { next: text(next), records };
  }

  async #scan(prefix: Key, cursor: string, limit: number, options: ScanOptions): Promise<Page> {
    if (limit < 0) throw new RangeError(`limit is ${limit}, and has to be at least 0`);
    if (limit === 0) return { next: '0', records: [] };
    const { next, keys } = plainRedis.readScan(await this.#asker.ask(plainRedis.scanWords(prefix, cursor)));
    const found = await Promise.all(keys.map(async (key): Promise<Found[]> => {
      try {
        const record = await this.get(bytes(key));
        // One that is null was deleted since SCAN named it.
        if (record === null || !passes(record, options.filters ?? [])) return [];
        return [{ ...named(key), fields: chosen(record, options.fields), ttlMs: record.ttlMs }];
      } catch (error) {
        if (error instanceof WrongTypeError) return []; // another value has taken its place since
        throw error;
      }
    }));
    return { next, records: found.flat() };
  }

  #needs(command: string): void {
    if (!this.#asker.knows(command)) {
      throw new NeedsHoldfastError('ERR', `the server has no ${command.toUpperCase()}: this needs Holdfast`);
    }
  }
}

interface Page {
  /** '0' at the end. */
  readonly next: string;
  readonly records: readonly Found[];
}

function named(key: Reply | undefined): NamedKey {
  return { key: shownText(key), rawKey: bytes(key) };
}

function indexed(row: Reply): Indexed {
  const [key, score, values, ttlMs] = list(row);
  return { ...named(key), score: double(score), fields: fields(values), ttlMs: ttl(ttlMs) };
}

/** The fields of these names, or all. */
function chosen(record: Fields, names: readonly string[] | undefined): Fields {
  return new Fields(names === undefined ? record : [...record].filter(([name]) => names.includes(name)));
}
