// Reads the parts of a reply, which have the same form in RESP2 and RESP3 (TYPES). Knows no command.

import { RESP_TYPES } from 'redis';
import { ReplyError } from './errors.js';

/** A reply: text for numbers and status lines, bytes for strings, a flat array for a map. */
export type Reply = null | boolean | string | Buffer | readonly Reply[];

/**
 * How node-redis decodes. A map is the flat array that it is in RESP2. Numbers stay text until they are read: one above
 * 2^53-1 would be rounded without a word.
 */
export const TYPES = {
  [RESP_TYPES.NUMBER]: String,
  [RESP_TYPES.DOUBLE]: String,
  [RESP_TYPES.BIG_NUMBER]: String,
  [RESP_TYPES.BLOB_STRING]: Buffer,
  [RESP_TYPES.VERBATIM_STRING]: Buffer,
  [RESP_TYPES.MAP]: Array,
  [RESP_TYPES.SET]: Array,
} as const;

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Text. Bytes that are no UTF-8 are an error: two different names must not become the same one. */
export function text(reply: Reply | undefined): string {
  if (typeof reply === 'string') return reply;
  const raw = bytes(reply);
  try {
    return UTF8.decode(raw);
  } catch (cause) {
    throw new ReplyError(`a name or text is not UTF-8: ${raw.toString('latin1')}`, { cause });
  }
}

/**
 * A name as text. If its bytes are no UTF-8, every byte above 0x7f is written as `\xff`, so that one odd name does not end a
 * scan; the bytes themselves have to be kept beside it.
 */
export function shownText(reply: Reply | undefined): string {
  if (typeof reply === 'string') return reply;
  const raw = bytes(reply);
  try {
    return UTF8.decode(raw);
  } catch {
    return raw.toString('latin1').replaceAll(/[\x80-\xff]/g, (byte) => `\\x${byte.charCodeAt(0).toString(16)}`);
  }
}

export function bytes(reply: Reply | undefined): Buffer {
  if (typeof reply === 'string') return Buffer.from(reply);
  if (!Buffer.isBuffer(reply)) throw unexpected('a string', reply);
  return reply;
}

export function integer(reply: Reply | undefined): number {
  const digits = Buffer.isBuffer(reply) ? reply.toString('latin1') : reply;
  if (typeof digits !== 'string' || !/^-?\d+$/.test(digits)) throw unexpected('an integer', reply);
  const number = Number(digits);
  if (!Number.isSafeInteger(number)) throw new ReplyError(`${digits} is beyond 2^53-1, and a number cannot hold it`);
  return number;
}

export function double(reply: Reply | undefined): number {
  const digits = text(reply);
  if (digits === 'inf') return Infinity;
  if (digits === '-inf') return -Infinity;
  const number = Number(digits);
  if (digits === '' || Number.isNaN(number)) throw unexpected('a number', reply);
  return number;
}

export function flag(reply: Reply | undefined): boolean {
  if (typeof reply === 'boolean') return reply;
  return integer(reply) !== 0;
}

export function list(reply: Reply | undefined): readonly Reply[] {
  if (!Array.isArray(reply)) throw unexpected('a list', reply);
  return reply;
}

export function map(reply: Reply | undefined): Map<string, Reply> {
  const items = list(reply);
  if (items.length % 2 !== 0) throw unexpected('a map', reply);
  const read = new Map<string, Reply>();
  for (let i = 0; i < items.length; i += 2) read.set(text(items[i]), items[i + 1] ?? null);
  return read;
}

/** Reads what may be absent. */
export function optional<T>(reply: Reply | undefined, read: (reply: Reply) => T): T | undefined {
  return reply === null || reply === undefined ? undefined : read(reply);
}

/** Unix milliseconds as ISO 8601. */
export function time(reply: Reply | undefined): string {
  const date = new Date(integer(reply));
  if (Number.isNaN(date.getTime())) throw unexpected('a time', reply);
  return date.toISOString();
}

function unexpected(what: string, reply: Reply | undefined): ReplyError {
  const shown = JSON.stringify(reply, (_, part: unknown) => (part instanceof Uint8Array ? part.toString() : part)) ?? 'nothing';
  return new ReplyError(`the reply should have ${what}, and has ${shown.slice(0, 200)}`);
}
