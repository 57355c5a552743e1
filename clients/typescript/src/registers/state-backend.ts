// What keyed state with versions does, wherever it is: at the server or in the process. Knows no server.

import type { Key, Value } from '../words.js';

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

/** A checkpoint that there is. */
export interface Checkpoint {
  /** The input position that it has; null if it was made without one. */
  readonly position: Buffer | null;
}

/**
 * What became of an update. `applied`: now. `duplicate`: before. `mismatch`: another update was applied, or waits, with this version;
 * this one was not. `stale`: a newer version was applied before; this one was not, or long ago. `buffered`: it waits until all
 * versions before it have come, or until `seal`.
 */
export type Applied = 'applied' | 'duplicate' | 'mismatch' | 'stale' | 'buffered';

/**
 * Keyed state in which every update has a version: an update that is sent again, or comes too late, changes nothing. So input can
 * be replayed from the last checkpoint, and no count is wrong afterwards. A version is a number, which is a round of epoch 0, or an
 * epoch and a round. `ExactlyOnceState` is at the server, `MemoryState` in the process.
 */
export interface StateBackend<T> {
  /** Puts a value, unless a version as new was applied before. */
  put(key: Key, value: T, version: number | StateVersion): Promise<Applied>;
  /**
   * Puts a value in the order of versions. Numbers are applied one by one from 1: one that is ahead waits for those before it.
   * Pairs of epoch and round wait for `seal`. The first ordered update of a key decides which of the two it takes.
   */
  putOrdered(key: Key, value: T, version: number | StateVersion): Promise<Applied>;
  /** What a key holds; null if it holds nothing. */
  get(key: Key): Promise<Held<T> | null>;
  /** The same of several keys, in their order. */
  mget(keys: readonly Key[]): Promise<(Held<T> | null)[]>;
  /** Adds to a number, once for this version. A version that comes after a newer one is lost: where that can happen, use `addOrdered`. */
  add(key: Key, version: number | StateVersion, number: number): Promise<Applied>;
  /** Adds to a number in the order of versions, as `putOrdered` puts. */
  addOrdered(key: Key, version: number | StateVersion, number: number): Promise<Applied>;
  /** Says that no version below this one is still to come, and applies what has waited. Returns how many that were. */
  seal(key: Key, version: number | StateVersion): Promise<number>;
  /** All of the state as one blob, with the input position that it belongs to. */
  snapshot(position?: Value): Promise<Buffer>;
  /** Makes this state what the snapshot has, whichever state it is of. Returns its position; null if it has none. */
  restore(snapshot: Uint8Array): Promise<Buffer | null>;
  /** Takes from a snapshot what is newer than what there is, key by key. Returns its position; null if it has none. */
  merge(snapshot: Uint8Array): Promise<Buffer | null>;
  /** Keeps a snapshot under this key. Returns how many keys of the state are in it. */
  checkpoint(key: Key, position?: Value): Promise<number>;
  /** Makes this state what a checkpoint has. Null if there is no checkpoint, and nothing is changed then. */
  restoreCheckpoint(key: Key): Promise<Checkpoint | null>;
  /** Takes from a checkpoint what is newer than what there is. Null if there is no checkpoint. */
  mergeCheckpoint(key: Key): Promise<Checkpoint | null>;
}
