// One register in the process: what REG.PUT, REG.INCRBY and REG.SEAL do at the server, step by step. Knows versions and
// operations; refuses to know keys, codecs and snapshots.

import { ServerError } from '../errors.js';
import type { Applied, StateVersion } from './state-backend.js';

/** What one version does: sets the value, or adds to it. */
export type Operation = { readonly put: Buffer } | { readonly add: bigint };

/** The version of an ordered register as it was written: a number, or a pair. A register takes one kind. */
export type OrderedKind = 'numbers' | 'pairs';

interface Current {
  readonly version: StateVersion;
  readonly operation: Operation;
  readonly value: Buffer;
}

export interface Buffered {
  readonly version: StateVersion;
  readonly operation: Operation;
}

/** As the server's `reg-buffer-max`. */
const BUFFER_MAX = 1024;

const NOT_INTEGER = 'not a whole number of 64 bits';
const OVERFLOW = 'the sum does not fit in 64 bits';

export class Register {
  current: Current | null = null;
  /** The first version that is not sealed, if it is ahead of the newest one. */
  sealed: StateVersion | null = null;
  /** Which versions it takes in order: the first that it applied or kept decides. */
  kind: OrderedKind | null = null;
  /** What waits, in the order of versions. */
  buffer: Buffered[] = [];

  /** Applies an operation, keeps it for later, or says why neither is done. `kind` is that of an ordered one. */
  update(version: StateVersion, operation: Operation, kind: OrderedKind | null): Applied {
    if (kind !== null) this.#passKind(version, kind);
    const closed = this.#closed(version, operation);
    if (closed !== null) return closed;
    const waiting = this.buffer.find((each) => compareVersions(each.version, version) === 0);
    if (waiting !== undefined && !isSame(waiting.operation, operation)) return 'mismatch';
    const isDue = kind === null || (kind === 'numbers' && compareVersions(version, this.#open()) === 0);
    if (!isDue) {
      if (waiting === undefined) this.#wait(version, operation);
      this.kind = kind;
      return 'buffered';
    }
    const applied = apply(this.current, version, operation);
    if (applied === NOT_INTEGER) throw new ServerError('ERR', `the value of the register is ${NOT_INTEGER}`);
    if (applied === OVERFLOW) throw new ServerError('ERR', OVERFLOW);
    const goesOn = this.kind === 'numbers' && version.epoch === 0;
    this.#set(goesOn ? this.#applyWithoutGap(applied, version.round + 1).current : applied);
    if (kind !== null) this.kind = kind;
    return 'applied';
  }

  /** Applies what waits below a version, and numbers from it on without a gap. Returns how many were applied. */
  seal(below: StateVersion, kind: OrderedKind): number {
    this.#passKind(below, kind);
    const open = this.#open();
    if (compareVersions(below, open) <= 0) return 0;
    let { current } = this;
    let count = 0;
    for (const { version, operation } of this.buffer.filter((each) => compareVersions(each.version, below) < 0)) {
      const applied = apply(current, version, operation);
      if (typeof applied === 'string') {
        const why = applied === NOT_INTEGER ? `the value before it is ${NOT_INTEGER}` : applied;
        throw new ServerError('ERR', `the buffered REG.INCRBY of version ${shownVersion(version)} cannot be applied: ${why}`);
      }
      current = applied;
      count += 1;
    }
    if (this.kind === 'numbers') {
      const more = this.#applyWithoutGap(current, below.round);
      current = more.current;
      count += more.count;
    }
    if (current !== null && count > 0) this.#set(current);
    // What was applied may have reached the seal already.
    const reached = current === null ? open : successor(current.version);
    if (compareVersions(below, reached) > 0) this.sealed = below;
    return count;
  }

  /** The fate of a version that comes too late; null if it does not. */
  #closed(version: StateVersion, operation: Operation): Applied | null {
    const { current, sealed } = this;
    const isClosed = (current !== null && compareVersions(version, current.version) <= 0)
      || (sealed !== null && compareVersions(version, sealed) < 0);
    if (!isClosed) return null;
    if (current === null || compareVersions(current.version, version) !== 0) return 'stale';
    return isSame(current.operation, operation) ? 'duplicate' : 'mismatch';
  }

  #passKind(version: StateVersion, kind: OrderedKind): void {
    if (kind === 'numbers' && version.round < 1) {
      throw new ServerError('ERR', 'ordered versions are 1, 2, 3 and so on: send 1 as the first one, or pairs of epoch and round');
    }
    if (this.kind !== null && this.kind !== kind) {
      throw new ServerError('ERR', `the ordered versions of the register are ${this.kind === 'pairs' ? 'pairs of epoch and round' : 'numbers'}`);
    }
  }

  /** The lowest version that is not closed. */
  #open(): StateVersion {
    const { current, sealed, kind } = this;
    if (sealed !== null) return sealed;
    if (current !== null) return successor(current.version);
    return { epoch: 0, round: kind === 'pairs' ? 0 : 1 };
  }

  #wait(version: StateVersion, operation: Operation): void {
    if (this.buffer.length >= BUFFER_MAX) {
      throw new ServerError('ERR', `${BUFFER_MAX} versions of the register wait for their turn: no more can (reg-buffer-max)`);
    }
    this.buffer.push({ version, operation });
    this.buffer.sort((a, b) => compareVersions(a.version, b.version));
  }

  /** Applies the numbers that wait from `next` on, up to the first gap or the first that cannot be applied. */
  #applyWithoutGap<From extends Current | null>(from: From, next: number): { current: Current | From; count: number } {
    let current: Current | From = from;
    let count = 0;
    for (const { version, operation } of this.buffer.filter((each) => each.version.round >= next)) {
      if (version.round !== next + count) break;
      const applied = apply(current, version, operation);
      if (typeof applied === 'string') break;
      current = applied;
      count += 1;
    }
    return { current, count };
  }

  #set(current: Current): void {
    this.current = current;
    this.buffer = this.buffer.filter((each) => compareVersions(each.version, current.version) > 0);
    if (this.sealed !== null && compareVersions(this.sealed, successor(current.version)) <= 0) this.sealed = null;
  }
}

/** The register after one operation, or why it cannot be applied. A missing value counts as 0. */
function apply(current: Current | null, version: StateVersion, operation: Operation): Current | typeof NOT_INTEGER | typeof OVERFLOW {
  if ('put' in operation) return { version, operation, value: operation.put };
  const before = current === null ? 0n : readInteger(current.value);
  if (before === undefined) return NOT_INTEGER;
  const sum = before + operation.add;
  if (BigInt.asIntN(64, sum) !== sum) return OVERFLOW;
  return { version, operation, value: Buffer.from(sum.toString()) };
}

function readInteger(value: Buffer): bigint | undefined {
  const digits = value.toString('latin1');
  if (!/^(0|-?[1-9]\d{0,18})$/.test(digits)) return undefined;
  const number = BigInt(digits);
  return BigInt.asIntN(64, number) === number ? number : undefined;
}

function successor({ epoch, round }: StateVersion): StateVersion {
  return { epoch, round: round + 1 };
}

export function compareVersions(a: StateVersion, b: StateVersion): number {
  return a.epoch - b.epoch || a.round - b.round;
}

/** The shorter form: without an epoch where it is 0. */
export function shownVersion({ epoch, round }: StateVersion): string {
  return epoch === 0 ? `${round}` : `${epoch}.${round}`;
}

function isSame(a: Operation, b: Operation): boolean {
  if ('put' in a) return 'put' in b && a.put.equals(b.put);
  return 'add' in b && a.add === b.add;
}
