// Limits of the groups of an index: the words that set and list them, and what comes back. Knows no connection, and refuses to know what a
// job is.

import { ReplyError } from '../errors.js';
import { bytes, double, integer, list, map, optional, shownText, text, type Reply } from '../replies.js';
import { whole, word, type Value, type Word } from '../words.js';

/**
 * What a limit is for: one group, each group that has no value of its own, or all records of the index together. A group is the value of
 * the group's field; records without the field are in the group `''`.
 */
export type Scope = { readonly group: Value } | 'each' | 'all';

/** How fast records are taken: in any `t` milliseconds at most `burst + t * takes / perMs`. */
export interface Rate {
  readonly takes: number;
  readonly perMs: number;
  /** How many may be taken at once; `takes` if not given. */
  readonly burst?: number;
}

/** What is to be set for a scope; what is not given stays as it is. `'none'` is no limit, whatever is set for each group; `'default'` takes a value back. */
export interface Limits {
  /** How many records may be held at a time. */
  readonly held?: number | 'none' | 'default';
  readonly rate?: Rate | 'none' | 'default';
  /** The share of the turns, 0.01 to 1000; 1 if not set. */
  readonly weight?: number;
  /** Nothing is taken. */
  readonly pause?: boolean;
}

/** What was set for a scope. It can be set again. */
export interface ScopeLimits extends Limits {
  readonly scope: Scope;
  readonly held?: number | 'none';
  readonly rate?: Required<Rate> | 'none';
}

/** The limits that a group has: its own, or those of each group. */
export interface GroupLimits {
  /** How many of its records may be held at a time; null is no limit. */
  readonly held: number | null;
  readonly rate: Required<Rate> | null;
  readonly weight: number;
  readonly pause: boolean;
}

/** How a group fares. */
export interface GroupState {
  /** Its name as text. If it is no UTF-8, every byte above 0x7f is written as `\xff`: use `rawName` then. */
  readonly name: string;
  readonly rawName: Buffer;
  /** Its records in the index. */
  readonly records: number;
  /** Its records that are held, in the index or not. */
  readonly held: number;
  readonly firstScore: number | null;
  /** When its limits allow a claim to take from it, in unix milliseconds: 0 is now, null not by time alone, such as while it is paused. */
  readonly allowedAt: number | null;
  readonly limits: GroupLimits;
}

/** Groups that one page has at most. */
const PAGE = 500;

export function limitWords(index: string, scope: Scope, { held, rate, weight, pause }: Limits): Word[] {
  const words: Word[] = ['IDX.LIMIT', index, ...scopeWords(scope)];
  if (held !== undefined) words.push('HELD', typeof held === 'number' ? whole(held, 'held') : noLimit(held));
  if (typeof rate === 'object') {
    words.push('RATE', whole(rate.takes, 'rate.takes'), whole(rate.perMs, 'rate.perMs'));
    if (rate.burst !== undefined) words.push('BURST', whole(rate.burst, 'rate.burst'));
  } else if (rate !== undefined) {
    words.push('RATE', noLimit(rate));
  }
  if (weight !== undefined) words.push('WEIGHT', word(weight));
  if (pause !== undefined) {
    if (typeof pause !== 'boolean') throw new TypeError(`pause is ${String(pause)}, and has to be true or false`);
    words.push('PAUSE', pause ? 'yes' : 'no');
  }
  return words;
}

export function resetWords(index: string, scope: Scope | undefined): Word[] {
  return ['IDX.LIMIT', index, ...(scope === undefined ? [] : scopeWords(scope)), 'RESET'];
}

export function limitsWords(index: string): Word[] {
  return ['IDX.LIMIT', index];
}

export function groupsWords(index: string, cursor: string): Word[] {
  return ['IDX.GROUPS', index, 'CURSOR', cursor, 'LIMIT', PAGE.toString()];
}

export function readLimits(reply: Reply): ScopeLimits[] {
  return list(reply).map((each) => {
    const values = map(each);
    const held = optional(values.get('held'), (value) => (isNone(value) ? 'none' as const : integer(value)));
    const rate = optional(values.get('rate'), (value) => (isNone(value) ? 'none' as const : readRate(value)));
    const weight = optional(values.get('weight'), double);
    const pause = optional(values.get('pause'), isYes);
    return {
      scope: readScope(values),
      ...(held === undefined ? {} : { held }),
      ...(rate === undefined ? {} : { rate }),
      ...(weight === undefined ? {} : { weight }),
      ...(pause === undefined ? {} : { pause }),
    };
  });
}

/** A page: the next cursor, which is '0' behind the last one, and its groups. */
export function readGroups(reply: Reply): { next: string; groups: GroupState[] } {
  const [next, rows] = list(reply);
  return { next: text(next), groups: list(rows).map(readGroup) };
}

function scopeWords(scope: Scope): Word[] {
  if (typeof scope === 'object') return ['GROUP', word(scope.group)];
  if (scope !== 'each' && scope !== 'all') throw new RangeError(`limits are for 'each', 'all' or { group }, and not for ${String(scope)}`);
  return [scope.toUpperCase()];
}

function noLimit(value: string): Word {
  if (value !== 'none' && value !== 'default') throw new RangeError(`a limit is a number, a rate, 'none' or 'default', and not ${String(value)}`);
  return value.toUpperCase();
}

function readScope(values: ReadonlyMap<string, Reply>): Scope {
  const scope = text(values.get('scope'));
  switch (scope) {
    case 'each':
    case 'all':
      return scope;
    case 'group':
      return { group: nameOf(bytes(values.get('group'))) };
    default:
      throw new ReplyError(`limits are for a group, each or all, and not for ${scope}`);
  }
}

/** Text, or the bytes if they are no UTF-8, so that it can be given back as it is. */
function nameOf(raw: Buffer): string | Buffer {
  const name = raw.toString();
  return Buffer.from(name).equals(raw) ? name : raw;
}

function readGroup(reply: Reply): GroupState {
  const [name, state] = list(reply);
  const values = map(state);
  const limits = map(values.get('limits'));
  const allowedAt = integer(values.get('allowed_at'));
  return {
    name: shownText(name),
    rawName: bytes(name),
    records: integer(values.get('records')),
    held: integer(values.get('held')),
    firstScore: optional(values.get('first_score'), double) ?? null,
    allowedAt: allowedAt < 0 ? null : allowedAt,
    limits: {
      held: optional(limits.get('held'), integer) ?? null,
      rate: optional(limits.get('rate'), readRate) ?? null,
      weight: optional(limits.get('weight'), double) ?? 1,
      pause: optional(limits.get('pause'), isYes) ?? false,
    },
  };
}

function isNone(reply: Reply): boolean {
  return Buffer.isBuffer(reply) && reply.toString() === 'none';
}

function readRate(reply: Reply): Required<Rate> {
  const [takes, perMs, burst] = list(reply).map(integer);
  if (takes === undefined || perMs === undefined || burst === undefined) throw new ReplyError('a rate has three numbers');
  return { takes, perMs, burst };
}

function isYes(reply: Reply): boolean {
  return text(reply) === 'yes';
}
