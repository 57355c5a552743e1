// The definition of an index: how two are compared, and how one takes the place of another. Knows no connection.

import { HoldfastError, ServerError } from '../errors.js';
import { bytes, integer, list, map, optional, type Reply } from '../replies.js';
import { word, type Value, type Word } from '../words.js';
import { indexWords, type IndexDefinition } from './requests.js';

/**
 * What creating an index does if there is one of that name with another definition: `'raise'` throws an IndexDiffersError, `'keep'` leaves the
 * one that is there, and `'replace'` puts the new one in its place in one step, during which the server does nothing else.
 */
export type OnDifference = 'raise' | 'keep' | 'replace';

export interface CreateIndexOptions {
  /** `'raise'` if not given. */
  readonly onDifference?: OnDifference;
}

/** There is an index of that name with another definition. Nothing was changed. */
export class IndexDiffersError extends HoldfastError {
  static {
    this.prototype.name = 'IndexDiffersError';
  }

  readonly index: string;
  /** What differs, each as a sentence. */
  readonly differences: readonly string[];

  constructor(index: string, differences: readonly string[]) {
    super(`there is an index ${index} already, with another definition: ${differences.join('; ')}. Choose another name, or say with onDifference `
      + 'whether to keep it or to replace it');
    this.index = index;
    this.differences = differences;
  }
}

/** The key of a job has none of the prefixes of its queue's indexes: no worker would claim it. Nothing was changed. */
export class OutsideIndexError extends HoldfastError {
  static {
    this.prototype.name = 'OutsideIndexError';
  }

  readonly key: string;
  /** The prefixes that the indexes have. */
  readonly prefixes: readonly string[];

  constructor(key: string, prefixes: readonly string[]) {
    super(`the key '${key}' is in no index of the queue: their keys begin with ${prefixes.map((prefix) => `'${prefix}'`).join(', ')}`);
    this.key = key;
    this.prefixes = prefixes;
  }
}

/** The parts of a definition, in the words of IDX.CREATE; each as Latin-1 text, so that bytes are compared. */
type Parts = ReadonlyMap<'PREFIX' | 'FIELD' | 'ONLY' | 'EXCLUDE' | 'STAMP' | 'GROUP' | 'HELD', readonly string[]>;

/** An index that is there. */
export interface StoredIndex {
  readonly parts: Parts;
  readonly definition: IndexDefinition;
}

/**
 * Runs commands about an index in one step: that which drops it, one that makes it, one that makes it as it was, and those that limit it.
 * ARGV: n word ... for each.
 */
const REPLACE = `local commands, at = {}, 1
while ARGV[at] do
    local length = tonumber(ARGV[at])
    commands[#commands + 1] = {unpack(ARGV, at + 1, at + length)}
    at = at + 1 + length
end
redis.call(unpack(commands[1]))
local made = redis.pcall(unpack(commands[2]))
if made.err then redis.call(unpack(commands[3])) end
for i = 4, #commands do redis.call(unpack(commands[i])) end
if made.err then return made end
return 1`;

/** Makes an index, or finds that the same is there. A server that does not know IFABSENT refuses it. */
export function createIfAbsentWords(name: string, index: IndexDefinition): Word[] {
  const [create = '', , ...definition] = indexWords(name, index);
  return [create, name, 'IFABSENT', ...definition];
}

/** Drops an index and makes another one in its place; then its limits are set by these commands. */
export function replaceWords(name: string, there: StoredIndex, wanted: IndexDefinition, limits: readonly Word[][]): Word[] {
  const commands = [['IDX.DROP', name], indexWords(name, wanted), indexWords(name, there.definition), ...limits];
  return ['EVAL', REPLACE, '0', ...commands.flatMap((words) => [`${words.length}`, ...words])];
}

/** Reads the reply of IDX.INFO. */
export function readIndex(reply: Reply): StoredIndex {
  const info = map(reply);
  const condition = (part: string): { field: string; values: Buffer[] } | undefined => {
    const [field, ...values] = optional(info.get(part), list) ?? [];
    return field === undefined ? undefined : { field: bytes(field).toString(), values: values.map(bytes) };
  };
  const [only, exclude, held] = ['only', 'exclude', 'held'].map(condition);
  const group = optional(info.get('group'), bytes)?.toString();
  const definition: IndexDefinition = {
    prefixes: list(info.get('prefixes')).map(bytes),
    field: bytes(info.get('field')).toString(),
    stamp: optional(info.get('stamp'), integer) === 1,
    ...(only === undefined ? {} : { only }),
    ...(exclude === undefined ? {} : { exclude }),
    ...(group === undefined ? {} : { group }),
    ...(held === undefined ? {} : { held }),
  };
  return { definition, parts: partsOf(definition) };
}

/** What differs between an index that is there and one that is wanted. */
export function differences(there: StoredIndex, wanted: IndexDefinition): string[] {
  const parts = partsOf(wanted);
  return [...there.parts].flatMap(([part, mine]) => {
    const others = parts.get(part) ?? [];
    return isSame(mine, others) ? [] : [`${part} is ${shown(mine)} there, and ${shown(others)} here`];
  });
}

/** Whether limits of the one have the same meaning in the other: groups and held records are the same. */
export function keepsLimits(there: StoredIndex, wanted: IndexDefinition): boolean {
  const parts = partsOf(wanted);
  return (['GROUP', 'HELD'] as const).every((part) => isSame(there.parts.get(part) ?? [], parts.get(part) ?? []));
}

/** Whether a claim has ended because an index that it waited for was dropped. Another one may be in its place. */
export function isDropped(error: unknown): boolean {
  return error instanceof ServerError && error.message.endsWith('was dropped');
}

function partsOf(index: IndexDefinition): Parts {
  const sorted = (values: readonly Value[]): string[] => [...new Set(values.map(latin1))].sort();
  const condition = (given: IndexDefinition['only']): string[] => (given === undefined ? [] : [latin1(given.field), ...sorted(given.values)]);
  return new Map([
    ['PREFIX', sorted(index.prefixes)],
    ['FIELD', [latin1(index.field)]],
    ['ONLY', condition(index.only)],
    ['EXCLUDE', condition(index.exclude)],
    ['STAMP', index.stamp === true ? ['1'] : []],
    ['GROUP', index.group === undefined ? [] : [latin1(index.group)]],
    ['HELD', condition(index.held)],
  ]);
}

function latin1(value: Value): string {
  return Buffer.from(word(value)).toString('latin1');
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((value, i) => value === other[i]);
}

function shown(part: readonly string[]): string {
  return part.length === 0 ? 'not given' : part.map((value) => Buffer.from(value, 'latin1').toString() || "''").join(' ');
}
