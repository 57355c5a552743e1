// What a filter means, for servers that do not have HFIND: the same as there. Knows no server.

import { word, type Value } from '../words.js';
import type { Fields } from './fields.js';
import type { Filter } from './requests.js';

/** Whether a record with these fields passes all filters. */
export function passes(fields: Fields, filters: readonly Filter[]): boolean {
  return filters.every((filter) => passesOne(fields.bytes(filter.field), filter));
}

function passesOne(held: Buffer | undefined, filter: Filter): boolean {
  const values = 'values' in filter ? filter.values : [filter.value];
  const any = (holds: (order: number) => boolean): boolean =>
    held !== undefined && values.some((value) => holds(compare(held, bytesOf(value))));
  switch (filter.op) {
    case 'eq':
    case 'in': return any((order) => order === 0);
    case 'ne':
    case 'notin': return !any((order) => order === 0);
    case 'lt': return any((order) => order < 0);
    case 'le': return any((order) => order <= 0);
    case 'gt': return any((order) => order > 0);
    case 'ge': return any((order) => order >= 0);
  }
}

function bytesOf(value: Value): Buffer {
  const sent = word(value);
  return typeof sent === 'string' ? Buffer.from(sent) : sent;
}

/** Two numbers compare as numbers, anything else as bytes. */
function compare(a: Buffer, b: Buffer): number {
  const [textA, textB] = [a.toString('latin1'), b.toString('latin1')];
  // Milliseconds and counters fit a double; 64-bit identifiers do not.
  const [wholeA, wholeB] = [readWhole(textA), readWhole(textB)];
  if (wholeA !== undefined && wholeB !== undefined) return wholeA < wholeB ? -1 : Number(wholeA > wholeB);
  const [doubleA, doubleB] = [readDouble(textA), readDouble(textB)];
  if (doubleA !== undefined && doubleB !== undefined) return doubleA < doubleB ? -1 : Number(doubleA > doubleB);
  return a.compare(b);
}

/** An integer of 64 bits in the form in which it is written. */
function readWhole(text: string): bigint | undefined {
  if (!/^(0|-?[1-9]\d{0,18})$/.test(text)) return undefined;
  const number = BigInt(text);
  return BigInt.asIntN(64, number) === number ? number : undefined;
}

function readDouble(text: string): number | undefined {
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) return undefined;
  const number = Number(text);
  return Number.isFinite(number) ? number : undefined;
}
