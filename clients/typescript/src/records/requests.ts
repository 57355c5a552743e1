// What is asked of records: conditions, changes, filters, claims and sweeps, and the words that are sent for them. Knows no
// connection, and refuses to know what a job is.

import {
  countedList, countedValues, entries, splitChanges, whole, word, type Changes, type Key, type Value, type Values, type Word,
} from '../words.js';

/** How long a record lives: so long from now, until a unix time in milliseconds, or for ever. */
export type Lifetime = { readonly ms: number } | { readonly untilMs: number } | 'persist';

/** Fields to set to the server's time plus so many milliseconds: a lease that needs no clock of the client's. */
export type Stamps = Readonly<Record<string, number>>;

export interface PutOptions {
  /** Drops the fields that are not named. */
  readonly replace?: boolean;
  /** Without it the lifetime stays as it is. */
  readonly lifetime?: Exclude<Lifetime, 'persist'>;
  readonly stamp?: Stamps;
}

/** Conditions on a record, and the changes that are made if all of them hold. */
export interface Exchange {
  /** Fields that must hold these values. */
  readonly expected?: Values;
  /**
   * The earlier name of `expected`.
   * @deprecated Use `expected`.
   */
  readonly if?: Values;
  /** Fields that must not be there. */
  readonly absent?: readonly string[];
  /** Fields to write; null removes one. */
  readonly set?: Changes;
  readonly stamp?: Stamps;
  /** Fields to remove, after the writes. A record that loses its last field is gone. */
  readonly remove?: readonly string[];
  /** Without it the lifetime stays as it is. */
  readonly lifetime?: Lifetime;
}

/**
 * A condition on one field. Two numbers compare as numbers, anything else as bytes. A record without the field passes only
 * `ne` and `notin`.
 */
export type Filter =
  | { readonly field: string; readonly op: 'eq' | 'ne' | 'lt' | 'le' | 'gt' | 'ge'; readonly value: Value }
  | { readonly field: string; readonly op: 'in' | 'notin'; readonly values: readonly Value[] };

/** A score as in ZRANGEBYSCORE, such as `'(5'` or `'-inf'`, or `'NOW'`, `'NOW+ms'`, `'NOW-ms'`: the server's time. */
export type Score = string | number;

export interface ScanOptions {
  readonly filters?: readonly Filter[];
  /** How many records at most, in all. */
  readonly limit?: number;
  /** The fields that are wanted, if not all. */
  readonly fields?: readonly string[];
}

export interface RangeOptions extends ScanOptions {
  /** Highest score first. */
  readonly reverse?: boolean;
}

/** An index: the records under some prefixes in the order of a numeric field. */
export interface IndexDefinition {
  readonly prefixes: readonly Key[];
  readonly field: string;
  /** Only records whose field has one of these values. */
  readonly only?: { readonly field: string; readonly values: readonly Value[] };
  /** No records whose field has one of these values; not together with `only`. */
  readonly exclude?: { readonly field: string; readonly values: readonly Value[] };
  /** A write that does not set the field sets it to the server's time. */
  readonly stamp?: boolean;
  /** The field by whose value records are kept apart in groups, which claims take in turns and limits are for. */
  readonly group?: string;
  /** Which records are held, being worked on: what the limit `held` counts. */
  readonly held?: { readonly field: string; readonly values: readonly Value[] };
}

/**
 * Takes the first records of an index that qualify and changes each in the step in which it is found: of any number of
 * workers exactly one gets a record. In the values of `set` and `else`, `NOW`, `NOW+ms` and `NOW-ms` are the server's time.
 */
export interface Claim {
  /** Most urgent first; records come from the first that has any. */
  readonly indexes: readonly string[];
  readonly min?: Score;
  /** `'NOW'` is what is due. */
  readonly max?: Score;
  /** Fields, and the values of which each must hold one. */
  readonly where?: Readonly<Record<string, readonly Value[]>>;
  readonly set: Values;
  /** The field that counts the claims of a record: the attempt, and the fencing token. */
  readonly counter?: string;
  /** How far the counter may grow, and what is written to a record above it, which is then not returned. */
  readonly upTo?: { readonly max: number; readonly else: Values };
  /** How many records at most; 1 if not given. */
  readonly count?: number;
  /** Of an index with groups: they take turns (`'fair'`, the default), or the lowest score of all is first. */
  readonly order?: 'fair' | 'score';
  /** How long to wait if there is none, in milliseconds; 0 does not wait. There is no waiting for ever. */
  readonly block?: number;
  readonly fields?: readonly string[];
  /** Ends the wait. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Gives back what is overdue: each record of an index whose score is below a bound gets other values, with a bound on how
 * often. In the values of `set` and `else`, `NOW`, `NOW+ms` and `NOW-ms` are the server's time.
 */
export interface Sweep {
  readonly index: string;
  /** Unix milliseconds, or `'NOW'`, `'NOW-ms'`. */
  readonly before: Score;
  /** A field, and the values of which it must hold one. */
  readonly where?: { readonly field: string; readonly values: readonly Value[] };
  /** The field that counts, how far it may grow, and what is written to a record that has got there. */
  readonly retry?: { readonly counter: string; readonly max: number; readonly else: Values };
  readonly set: Values;
  readonly limit?: number;
  /** The channel on which the keys are published. */
  readonly publish?: string;
}

/** HPUT cannot remove fields, so a put that does is an HCAS without conditions, or a DEL if nothing is left. */
export function putWords(key: Key, changes: Changes, options: PutOptions): Word[] {
  const { set, remove } = splitChanges(changes);
  const { replace = false, lifetime, stamp } = options;
  const writes = set.size > 0 || (stamp !== undefined && Object.keys(stamp).length > 0);
  if (remove.length > 0 && !replace) {
    return exchangeWords(key, { set, remove, ...(stamp === undefined ? {} : { stamp }), ...(lifetime === undefined ? {} : { lifetime }) });
  }
  if (remove.length > 0 && !writes) return ['DEL', word(key)];
  const words: Word[] = ['HPUT', word(key)];
  if (replace) words.push('REPLACE');
  if (lifetime !== undefined) words.push(...lifetimeWords(lifetime));
  if (stamp !== undefined) words.push('STAMP', ...stampWords(stamp));
  return [...words, 'FIELDS', ...countedValues(set)];
}

/** IF and SET are always there, even if they are empty: three words alone behind the key are HCAS's short form. */
/** The expected fields, under whichever name they are given. */
export function expectedOf(exchange: Exchange): Values {
  if (exchange.expected !== undefined && exchange.if !== undefined) throw new TypeError('`if` is the earlier name of `expected`: give one of them');
  return exchange.expected ?? exchange.if ?? {};
}

export function exchangeWords(key: Key, exchange: Exchange): Word[] {
  const { set, remove } = splitChanges(exchange.set ?? {});
  const words: Word[] = ['HCAS', word(key), 'IF', ...countedValues(expectedOf(exchange)), 'SET', ...countedValues(set)];
  if (exchange.absent !== undefined) words.push('ABSENT', ...countedList(exchange.absent));
  const removed = [...remove, ...(exchange.remove ?? [])];
  if (removed.length > 0) words.push('DEL', ...countedList(removed));
  if (exchange.stamp !== undefined) words.push('STAMP', ...stampWords(exchange.stamp));
  if (exchange.lifetime !== undefined) words.push(...lifetimeWords(exchange.lifetime));
  return [...words, 'WITHCURRENT'];
}

export function indexWords(name: string, index: IndexDefinition): Word[] {
  const words: Word[] = ['IDX.CREATE', name, 'PREFIX', ...countedList(index.prefixes), 'FIELD', index.field];
  if (index.only !== undefined) words.push('ONLY', index.only.field, ...countedList(index.only.values));
  if (index.exclude !== undefined) words.push('EXCLUDE', index.exclude.field, ...countedList(index.exclude.values));
  if (index.stamp === true) words.push('STAMP');
  if (index.group !== undefined) words.push('GROUP', index.group);
  if (index.held !== undefined) words.push('HELD', index.held.field, ...countedList(index.held.values));
  return words;
}

export function findWords(prefix: Key, cursor: Word, limit: number, options: ScanOptions): Word[] {
  const page = ['CURSOR', cursor, 'LIMIT', whole(limit, 'limit')];
  return ['HFIND', word(prefix), ...filterWords(options.filters), ...page, ...fieldWords(options.fields), 'WITHTTL'];
}

export function rangeWords(index: string, min: Score, max: Score, options: RangeOptions): Word[] {
  const words: Word[] = ['IDX.RANGE', index, word(min), word(max)];
  if (options.reverse === true) words.push('REV');
  words.push(...filterWords(options.filters));
  if (options.limit !== undefined) words.push('LIMIT', whole(options.limit, 'limit'));
  return [...words, ...fieldWords(options.fields), 'WITHTTL'];
}

export function claimWords(claim: Claim): Word[] {
  const words: Word[] = ['CLAIM', ...countedList(claim.indexes)];
  if (claim.min !== undefined) words.push('MIN', word(claim.min));
  if (claim.max !== undefined) words.push('MAX', word(claim.max));
  for (const [field, values] of Object.entries(claim.where ?? {})) words.push('WHERE', field, ...countedList(values));
  words.push('SET', ...countedValues(claim.set));
  if (claim.counter !== undefined) words.push('COUNTER', claim.counter);
  if (claim.upTo !== undefined) words.push('UPTO', whole(claim.upTo.max, 'upTo.max'), 'ELSE', ...countedValues(claim.upTo.else));
  if (claim.count !== undefined) words.push('COUNT', whole(claim.count, 'count'));
  if (claim.order !== undefined) words.push('ORDER', claim.order);
  // BLOCK 0 would wait for ever: on a connection that has silently died it would not end.
  if (claim.block !== undefined && claim.block !== 0) words.push('BLOCK', whole(claim.block, 'block'));
  return [...words, ...fieldWords(claim.fields), 'WITHTTL'];
}

export function sweepWords(sweep: Sweep): Word[] {
  const words: Word[] = ['SWEEP', sweep.index, 'BEFORE', word(sweep.before)];
  if (sweep.where !== undefined) words.push('WHERE', sweep.where.field, ...countedList(sweep.where.values));
  if (sweep.retry !== undefined) {
    const { counter, max, else: otherwise } = sweep.retry;
    words.push('RETRY', counter, whole(max, 'retry.max'), 'ELSE', ...countedValues(otherwise));
  }
  words.push('SET', ...countedValues(sweep.set));
  if (sweep.limit !== undefined) words.push('LIMIT', whole(sweep.limit, 'limit'));
  if (sweep.publish !== undefined) words.push('PUBLISH', sweep.publish);
  return words;
}

export function lifetimeWords(lifetime: Lifetime): Word[] {
  if (lifetime === 'persist') return ['PERSIST'];
  if ('ms' in lifetime) return ['PX', whole(lifetime.ms, 'lifetime.ms')];
  return ['PXAT', whole(lifetime.untilMs, 'lifetime.untilMs')];
}

export function stampWords(stamps: Stamps): Word[] {
  const pairs = entries<number>(stamps);
  return [pairs.length.toString(), ...pairs.flatMap(([field, offset]) => [field, whole(offset, `the offset of ${field}`)])];
}

function filterWords(filters: readonly Filter[] = []): Word[] {
  return filters.flatMap((filter) => [
    'FILTER', filter.field, filter.op, ...('values' in filter ? countedList(filter.values) : [word(filter.value)]),
  ]);
}

function fieldWords(names: readonly string[] | undefined): Word[] {
  return names === undefined ? [] : ['FIELDS', ...countedList(names)];
}
