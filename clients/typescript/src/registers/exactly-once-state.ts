// State that takes each update once: registers under a prefix, and checkpoints of all of them. Knows the commands; refuses to know
// what a value means, and where versions come from.

import type { Asker } from '../asker.js';
import type { Codec } from '../codec.js';
import { ReplyError } from '../errors.js';
import { bytes, flag, integer, list, optional, text, type Reply } from '../replies.js';
import { whole, word, type Value, type Word } from '../words.js';

/** A version of an update: a round of an epoch. The epoch counts first. */
export interface StateVersion {
  readonly epoch: number;
  readonly round: number;
}

/** What a key holds, and by which version. */
export interface Held<T> {
  readonly value: T;
  readonly version: StateVersion;
}

/**
 * What became of an update. `applied`: now. `duplicate`: before. `mismatch`: another update was applied, or waits, with this version;
 * this one was not. `stale`: a newer version was applied before; this one was not, or long ago. `buffered`: it waits until all
 * versions before it have come.
 */
export type Applied = 'applied' | 'duplicate' | 'mismatch' | 'stale' | 'buffered';

const APPLIED: ReadonlyMap<string, Applied> = new Map([
  ['APPLIED', 'applied'],
  ['DUPLICATE', 'duplicate'],
  ['MISMATCH', 'mismatch'],
  ['STALE', 'stale'],
  ['BUFFERED', 'buffered'],
]);

/**
 * Keyed state in which every update has a version: an update that is sent again, or comes too late, changes nothing. So input can
 * be replayed from the last checkpoint, and no count is wrong afterwards. A version is a number, which is a round of epoch 0, or an
 * epoch and a round.
 */
export class ExactlyOnceState<T> {
  readonly prefix: string;
  readonly #asker: Asker;
  readonly #codec: Codec<T>;

  constructor(asker: Asker, prefix: string, codec: Codec<T>) {
    this.prefix = prefix;
    this.#asker = asker;
    this.#codec = codec;
  }

  /** Puts a value, unless a version as new was applied before. */
  async put(key: string, value: T, version: number | StateVersion): Promise<Applied> {
    return this.#update(['REG.PUT', this.#key(key), versionWord(version), this.#codec.encode(value)]);
  }

  /** Puts a value when all versions before it, from 1 on, have come. */
  async putOrdered(key: string, value: T, version: number): Promise<Applied> {
    return this.#update(['REG.PUT', this.#key(key), versionWord(version), this.#codec.encode(value), 'ORDERED']);
  }

  /** What a key holds; null if it holds nothing. */
  async get(key: string): Promise<Held<T> | null> {
    return this.#held(await this.#asker.ask(['REG.GET', this.#key(key)]));
  }

  /** The same of several keys, in their order. */
  async mget(keys: readonly string[]): Promise<(Held<T> | null)[]> {
    if (keys.length === 0) return [];
    const replies = list(await this.#asker.ask(['REG.MGET', ...keys.map((key) => this.#key(key))]));
    return replies.map((reply) => this.#held(reply));
  }

  /**
   * Adds to a number, once for this version. A version that comes after a newer one is lost: where that can happen, use
   * `addOrdered`.
   */
  async add(key: string, version: number | StateVersion, number: number): Promise<Applied> {
    return this.#update(['REG.INCRBY', this.#key(key), versionWord(version), whole(number, 'number')]);
  }

  /** Adds to a number when all versions before this one, from 1 on, have come. */
  async addOrdered(key: string, version: number, number: number): Promise<Applied> {
    return this.#update(['REG.INCRBY', this.#key(key), versionWord(version), whole(number, 'number'), 'ORDERED']);
  }

  /** Says that no version below this one is still to come, and applies what has waited. Returns how many that were. */
  async seal(key: string, version: number): Promise<number> {
    return integer(await this.#asker.ask(['REG.SEAL', this.#key(key), versionWord(version)]));
  }

  /** All of the state as one blob, with the input position that it belongs to. */
  async snapshot(position?: Value): Promise<Buffer> {
    return bytes(await this.#asker.ask(this.#snapshotWords(position)));
  }

  /** Makes the state what it was when the blob was made, and returns the position that it has. */
  async restore(snapshot: Uint8Array): Promise<Buffer | null> {
    return position(await this.#asker.ask(['REG.RESTORE', word(snapshot)]));
  }

  /** Takes from the blob what is newer than what there is, and returns the position that it has. */
  async merge(snapshot: Uint8Array): Promise<Buffer | null> {
    return position(await this.#asker.ask(['REG.RESTORE', word(snapshot), 'MERGE']));
  }

  /** Keeps a snapshot at the server, as a string under this key. Returns how many registers are in it. */
  async checkpoint(key: string, position?: Value): Promise<number> {
    return integer(await this.#asker.ask([...this.#snapshotWords(position), 'STORE', key]));
  }

  /**
   * Makes the state what it was at a checkpoint, and returns the position that it has. Without a checkpoint it is null, and nothing
   * is changed.
   */
  async restoreCheckpoint(key: string): Promise<Buffer | null> {
    return this.#fromCheckpoint(key, []);
  }

  /** Takes from a checkpoint what is newer than what there is. */
  async mergeCheckpoint(key: string): Promise<Buffer | null> {
    return this.#fromCheckpoint(key, ['MERGE']);
  }

  async #fromCheckpoint(key: string, policy: readonly Word[]): Promise<Buffer | null> {
    if (!flag(await this.#asker.ask(['EXISTS', key]))) return null;
    return position(await this.#asker.ask(['REG.RESTORE', 'FROM', key, ...policy]));
  }

  async #update(words: readonly Word[]): Promise<Applied> {
    const reply = text(await this.#asker.ask(words));
    const applied = APPLIED.get(reply);
    if (applied === undefined) throw new ReplyError(`the reply should have the fate of an update, and has ${reply}`);
    return applied;
  }

  #snapshotWords(position: Value | undefined): Word[] {
    return ['REG.SNAPSHOT', 'PREFIX', this.prefix, ...(position === undefined ? [] : ['POSITION', word(position)])];
  }

  #key(key: string): string {
    return this.prefix + key;
  }

  #held(reply: Reply): Held<T> | null {
    if (reply === null) return null;
    const [value, version] = list(reply);
    return { value: this.#codec.decode(bytes(value)), version: readVersion(text(version)) };
  }
}

function position(reply: Reply): Buffer | null {
  return optional(list(reply)[1], bytes) ?? null;
}

function versionWord(version: number | StateVersion): string {
  if (typeof version === 'number') return whole(version, 'version');
  return `${whole(version.epoch, 'epoch')}.${whole(version.round, 'round')}`;
}

function readVersion(version: string): StateVersion {
  const dot = version.indexOf('.');
  return { epoch: dot < 0 ? 0 : integer(version.slice(0, dot)), round: integer(version.slice(dot + 1)) };
}
