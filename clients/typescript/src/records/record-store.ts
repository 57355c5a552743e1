// Records: hashes with conditional writes, filtered scans, and indexes that the server keeps. Knows the replies of their
// commands; decides nothing about what a record means.

import type { Asker } from '../asker.js';
import { ReplyError } from '../errors.js';
import { double, flag, integer, list, text, type Reply } from '../replies.js';
import { entries, word, type Value, type Values } from '../words.js';
import { Fields, fields } from './fields.js';
import {
  claimWords, exchangeWords, findWords, indexWords, putWords, rangeWords, sweepWords,
  type Claim, type Exchange, type FindOptions, type IndexDefinition, type PutOptions, type RangeOptions, type Score, type Sweep,
} from './requests.js';

/** How an exchange went. */
export interface Outcome {
  /** Whether every condition held, and so every change was made. */
  readonly applied: boolean;
  /** The fields of `if` as they are now, those that are there. */
  readonly current: Fields;
}

export interface Found {
  readonly key: string;
  readonly fields: Fields;
}

/** A record of an index. A claim's score is the one that the record had. */
export interface Indexed extends Found {
  readonly score: number;
}

/** What a sweep has written to a record: the values for another try, or those for one that has used up its retries. */
export interface Swept {
  readonly key: string;
  readonly fate: 'requeued' | 'exhausted';
}

/** Records that one page of a scan has at most. */
const PAGE = 500;

export class RecordStore {
  readonly #asker: Asker;

  constructor(asker: Asker) {
    this.#asker = asker;
  }

  /** The fields of a record, or null if there is none. */
  async get(key: string): Promise<Fields | null> {
    const found = fields(await this.#asker.ask(['HGETALL', key]));
    return found.size === 0 ? null : found;
  }

  /** Writes fields, and the record's lifetime if one is given, in one step. Returns how many fields are new. */
  async put(key: string, values: Values, options: PutOptions = {}): Promise<number> {
    return integer(await this.#asker.ask(putWords(key, values, options)));
  }

  /** Removes a record; whether there was one. */
  async delete(key: string): Promise<boolean> {
    return flag(await this.#asker.ask(['DEL', key]));
  }

  /** Writes a field if it holds `expected`; whether it did. Of several that expect the same value, one is told true. */
  async compareAndSwap(key: string, field: string, expected: Value, value: Value): Promise<boolean> {
    return flag(await this.#asker.ask(['HCAS', key, field, word(expected), word(value)]));
  }

  /** Changes a record if it holds what is expected, in one step. */
  async exchange(key: string, exchange: Exchange): Promise<Outcome> {
    const [applied, values] = list(await this.#asker.ask(exchangeWords(key, exchange)));
    const current = list(values);
    const there = entries(exchange.if ?? {}).flatMap(([name], i): [string, Buffer][] => {
      const value = current[i];
      return Buffer.isBuffer(value) ? [[name, value]] : [];
    });
    return { applied: flag(applied), current: new Fields(there) };
  }

  /**
   * The records under a prefix that pass all filters, page by page. One that is there all the time is found; one that comes or
   * goes meanwhile may be, and one may be found twice.
   */
  async *find(prefix: string, options: FindOptions = {}): AsyncGenerator<Found, void, undefined> {
    let left = options.limit ?? Infinity;
    let cursor = '0';
    do {
      const [next, page] = list(await this.#asker.ask(findWords(prefix, cursor, Math.min(left, PAGE), options)));
      for (const row of list(page)) {
        const [key, values] = list(row);
        yield { key: text(key), fields: fields(values) };
        left -= 1;
        if (left === 0) return;
      }
      cursor = text(next);
      if (cursor === '0') return;
    } while (left > 0);
  }

  /** Makes an index, once existing records are in it. If there is one of that name, it is left as it is: false. */
  async createIndex(name: string, index: IndexDefinition): Promise<boolean> {
    try {
      await this.#asker.ask(indexWords(name, index));
      return true;
    } catch (error) {
      // Asked only now, so that of two programs that start at once both succeed.
      if ((await this.indexes()).includes(name)) return false;
      throw error;
    }
  }

  /** Removes an index, not its records; whether there was one. */
  async dropIndex(name: string): Promise<boolean> {
    return flag(await this.#asker.ask(['IDX.DROP', name]));
  }

  /** The names of all indexes. */
  async indexes(): Promise<string[]> {
    return list(await this.#asker.ask(['IDX.LIST'])).map(text);
  }

  /** Records of an index with a score from `min` to `max`, lowest first. The limit counts those that pass the filters. */
  async range(index: string, min: Score, max: Score, options: RangeOptions = {}): Promise<Indexed[]> {
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
    const { block = 0, signal } = claim;
    signal?.throwIfAborted();
    const words = claimWords(claim);
    const reply = block > 0 ? await this.#asker.askAndWait(words, block, signal) : await this.#asker.ask(words);
    return list(reply).map(indexed);
  }

  /** Gives overdue records back; which ones, and what became of each. */
  async sweep(sweep: Sweep): Promise<Swept[]> {
    return list(await this.#asker.ask(sweepWords(sweep))).map((row) => {
      const [key, fate] = list(row).map(text);
      if (key === undefined || (fate !== 'requeued' && fate !== 'exhausted')) {
        throw new ReplyError(`a record was neither requeued nor exhausted but ${fate}`);
      }
      return { key, fate };
    });
  }
}

function indexed(row: Reply): Indexed {
  const [key, score, values] = list(row);
  return { key: text(key), score: double(score), fields: fields(values) };
}
