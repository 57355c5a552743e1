// The fields of a record as a reply has them. Knows no server.

import { bytes, integer, list, shownText, text, type Reply } from '../replies.js';
import { ReplyError } from '../errors.js';

/**
 * Fields of a record: names are text, values are bytes. In a name that is no UTF-8, which only other clients can write, every byte
 * above 0x7f is written as `\xff`.
 */
export class Fields implements Iterable<[name: string, value: Buffer]> {
  readonly #values: ReadonlyMap<string, Buffer>;

  constructor(values: Iterable<readonly [string, Buffer]> = []) {
    this.#values = new Map(values);
  }

  get size(): number {
    return this.#values.size;
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  /** A field's bytes. */
  bytes(name: string): Buffer | undefined {
    return this.#values.get(name);
  }

  /** A field's value as text. Bytes that are no UTF-8 are a ReplyError. */
  text(name: string): string | undefined {
    const value = this.#values.get(name);
    return value === undefined ? undefined : text(value);
  }

  /** A field's value, if it is a whole number of at most 2^53-1. */
  integer(name: string): number | undefined {
    const value = this.#values.get(name)?.toString('latin1');
    if (value === undefined || !/^-?\d+$/.test(value)) return undefined;
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : undefined;
  }

  /** All fields as text. */
  toObject(): Record<string, string> {
    return Object.fromEntries([...this.#values].map(([name, value]) => [name, text(value)]));
  }

  [Symbol.iterator](): Iterator<[string, Buffer]> {
    return this.#values[Symbol.iterator]();
  }
}

/** A whole record: its fields, and how long it still lives. */
export class StoredRecord extends Fields {
  /** The remaining time to live in milliseconds; null if the record stays. */
  readonly ttlMs: number | null;

  constructor(values: Iterable<readonly [string, Buffer]>, ttlMs: number | null) {
    super(values);
    this.ttlMs = ttlMs;
  }
}

/** A time to live as PTTL and WITHTTL give it: below 0 there is none. */
export function ttl(reply: Reply | undefined): number | null {
  const ms = integer(reply);
  return ms < 0 ? null : ms;
}

/** The map of fields in a reply. */
export function fields(reply: Reply | undefined): Fields {
  const items = list(reply);
  if (items.length % 2 !== 0) throw new ReplyError(`a map of fields has ${items.length} items`);
  const values: [string, Buffer][] = [];
  for (let i = 0; i < items.length; i += 2) values.push([shownText(items[i]), bytes(items[i + 1])]);
  return new Fields(values);
}
