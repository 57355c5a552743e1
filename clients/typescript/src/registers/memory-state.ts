// State that takes each update once, in the process: the same as `ExactlyOnceState`, without a server. For tests of programs, and for
// state that a program checkpoints by itself. Knows keys, codecs and snapshots; what a version does is the register's to say.

import { createHash } from 'node:crypto';
import type { Codec } from '../codec.js';
import { ServerError } from '../errors.js';
import { whole, word, type Key, type Value, type Word } from '../words.js';
import { Register, compareVersions, type Buffered, type Operation, type OrderedKind } from './register.js';
import type { Applied, Checkpoint, Held, StateBackend, StateVersion } from './state-backend.js';

export interface MemoryStateOptions {
  /** Where checkpoints are kept. States that share it see each other's, as states at one server do. */
  readonly checkpoints?: Map<string, Buffer>;
}

/** State in the process. Its snapshots have a form of their own: they are not those of the server. */
export class MemoryState<T> implements StateBackend<T> {
  readonly #codec: Codec<T>;
  readonly #checkpoints: Map<string, Buffer>;
  /** By the bytes of the key, one character for each. */
  #registers = new Map<string, Register>();

  constructor(codec: Codec<T>, options: MemoryStateOptions = {}) {
    this.#codec = codec;
    this.#checkpoints = options.checkpoints ?? new Map();
  }

  async put(key: Key, value: T, version: number | StateVersion): Promise<Applied> {
    return this.#update(key, version, { put: toBytes(this.#codec.encode(value)) }, false);
  }

  async putOrdered(key: Key, value: T, version: number | StateVersion): Promise<Applied> {
    return this.#update(key, version, { put: toBytes(this.#codec.encode(value)) }, true);
  }

  async get(key: Key): Promise<Held<T> | null> {
    const current = this.#registers.get(keyName(key))?.current ?? null;
    return current === null ? null : { value: this.#codec.decode(Buffer.from(current.value)), version: current.version };
  }

  async mget(keys: readonly Key[]): Promise<(Held<T> | null)[]> {
    return Promise.all(keys.map((key) => this.get(key)));
  }

  async add(key: Key, version: number | StateVersion, number: number): Promise<Applied> {
    return this.#update(key, version, { add: BigInt(whole(number, 'number')) }, false);
  }

  async addOrdered(key: Key, version: number | StateVersion, number: number): Promise<Applied> {
    return this.#update(key, version, { add: BigInt(whole(number, 'number')) }, true);
  }

  async seal(key: Key, version: number | StateVersion): Promise<number> {
    return this.#change(key, (register) => register.seal(readVersion(version), kindOf(version)));
  }

  async snapshot(position?: Value): Promise<Buffer> {
    return writeSnapshot(this.#registers, position === undefined ? null : toBytes(word(position)));
  }

  async restore(snapshot: Uint8Array): Promise<Buffer | null> {
    const { registers, position } = readSnapshot(snapshot);
    this.#registers = registers;
    return position;
  }

  async merge(snapshot: Uint8Array): Promise<Buffer | null> {
    const { registers, position } = readSnapshot(snapshot);
    for (const [name, register] of registers) {
      const held = this.#registers.get(name);
      // Of two values of one version the one that is there stays.
      if (held === undefined || isNewer(register, held)) this.#registers.set(name, register);
    }
    return position;
  }

  async checkpoint(key: Key, position?: Value): Promise<number> {
    this.#checkpoints.set(keyName(key), await this.snapshot(position));
    return this.#registers.size;
  }

  async restoreCheckpoint(key: Key): Promise<Checkpoint | null> {
    const snapshot = this.#checkpoints.get(keyName(key));
    return snapshot === undefined ? null : { position: await this.restore(snapshot) };
  }

  async mergeCheckpoint(key: Key): Promise<Checkpoint | null> {
    const snapshot = this.#checkpoints.get(keyName(key));
    return snapshot === undefined ? null : { position: await this.merge(snapshot) };
  }

  #update(key: Key, version: number | StateVersion, operation: Operation, isOrdered: boolean): Applied {
    const read = readVersion(version);
    return this.#change(key, (register) => register.update(read, operation, isOrdered ? kindOf(version) : null));
  }

  /** A register that a refused update would be the first of is not made. */
  #change<R>(key: Key, change: (register: Register) => R): R {
    const name = keyName(key);
    const register = this.#registers.get(name) ?? new Register();
    const result = change(register);
    const isThere = register.current !== null || register.sealed !== null || register.buffer.length > 0;
    if (isThere) this.#registers.set(name, register);
    return result;
  }
}

function isNewer(saved: Register, held: Register): boolean {
  if (saved.current === null) return false;
  return held.current === null || compareVersions(saved.current.version, held.current.version) > 0;
}

function keyName(key: Key): string {
  return toBytes(word(key)).toString('latin1');
}

function toBytes(value: Word): Buffer {
  return Buffer.from(value);
}

function kindOf(version: number | StateVersion): OrderedKind {
  return typeof version === 'number' ? 'numbers' : 'pairs';
}

function readVersion(version: number | StateVersion): StateVersion {
  const { epoch, round } = typeof version === 'number' ? { epoch: 0, round: version } : version;
  whole(epoch, 'epoch');
  whole(round, 'round');
  if (epoch < 0 || round < 0) {
    throw new ServerError('ERR', `the version must be a whole number of 64 bits, or two of them as epoch.round, not '${epoch}.${round}'`);
  }
  return { epoch, round };
}

/** Bytes of a snapshot before its JSON: the SHA-256 of that. */
const HASH_BYTES = 32;

interface SavedOperation {
  readonly put?: string;
  readonly add?: string;
}

interface SavedRegister {
  readonly key: string;
  readonly current: { readonly version: StateVersion; readonly operation: SavedOperation; readonly value: string } | null;
  readonly sealed: StateVersion | null;
  readonly kind: OrderedKind | null;
  readonly buffer: readonly { readonly version: StateVersion; readonly operation: SavedOperation }[];
}

interface SavedState {
  readonly position: string | null;
  readonly registers: readonly SavedRegister[];
}

function writeSnapshot(registers: ReadonlyMap<string, Register>, position: Buffer | null): Buffer {
  const saved: SavedState = {
    position: position?.toString('base64') ?? null,
    registers: [...registers].map(([key, { current, sealed, kind, buffer }]) => ({
      key,
      current: current === null ? null
        : { version: current.version, operation: saveOperation(current.operation), value: current.value.toString('base64') },
      sealed,
      kind,
      buffer: buffer.map(({ version, operation }) => ({ version, operation: saveOperation(operation) })),
    })),
  };
  const json = Buffer.from(JSON.stringify(saved));
  return Buffer.concat([hash(json), json]);
}

function readSnapshot(snapshot: Uint8Array): { registers: Map<string, Register>; position: Buffer | null } {
  const blob = Buffer.from(snapshot);
  const json = blob.subarray(HASH_BYTES);
  if (!hash(json).equals(blob.subarray(0, HASH_BYTES))) throw new ServerError('ERR', 'the snapshot is damaged');
  const saved = JSON.parse(json.toString()) as SavedState;
  const registers = new Map(saved.registers.map((each) => [each.key, readRegister(each)]));
  return { registers, position: saved.position === null ? null : Buffer.from(saved.position, 'base64') };
}

function readRegister({ current, sealed, kind, buffer }: SavedRegister): Register {
  const register = new Register();
  if (current !== null) {
    const { version, operation, value } = current;
    register.current = { version, operation: readOperation(operation), value: Buffer.from(value, 'base64') };
  }
  register.sealed = sealed;
  register.kind = kind;
  register.buffer = buffer.map(({ version, operation }): Buffered => ({ version, operation: readOperation(operation) }));
  return register;
}

function saveOperation(operation: Operation): SavedOperation {
  return 'put' in operation ? { put: operation.put.toString('base64') } : { add: operation.add.toString() };
}

function readOperation({ put, add }: SavedOperation): Operation {
  return put === undefined ? { add: BigInt(add ?? '0') } : { put: Buffer.from(put, 'base64') };
}

function hash(data: Buffer): Buffer {
  return createHash('sha256').update(data).digest();
}
