// State that takes each update once: registers under a prefix, and checkpoints of all of them. Knows the commands; refuses to know
// what a value means, and where versions come from.

import type { Asker } from '../asker.js';
import type { Codec } from '../codec.js';
import { ReplyError, ServerError } from '../errors.js';
import { bytes, flag, integer, list, optional, text, type Reply } from '../replies.js';
import { whole, word, type Key, type Value, type Word } from '../words.js';
import type { Applied, Checkpoint, Held, StateBackend, StateVersion } from './state-backend.js';

const APPLIED: ReadonlyMap<string, Applied> = new Map([
  ['APPLIED', 'applied'],
  ['DUPLICATE', 'duplicate'],
  ['MISMATCH', 'mismatch'],
  ['STALE', 'stale'],
  ['BUFFERED', 'buffered'],
]);

/** State at the server: the registers whose keys begin with a prefix. Keys and the prefix are text or bytes. */
export class ExactlyOnceState<T> implements StateBackend<T> {
  readonly prefix: Key;
  readonly #asker: Asker;
  readonly #codec: Codec<T>;

  constructor(asker: Asker, prefix: Key, codec: Codec<T>) {
    this.prefix = prefix;
    this.#asker = asker;
    this.#codec = codec;
  }

  async put(key: Key, value: T, version: number | StateVersion): Promise<Applied> {
    return this.#update(['REG.PUT', this.#key(key), versionWord(version), this.#codec.encode(value)]);
  }

  async putOrdered(key: Key, value: T, version: number | StateVersion): Promise<Applied> {
    return this.#update(['REG.PUT', this.#key(key), versionWord(version), this.#codec.encode(value), 'ORDERED']);
  }

  async get(key: Key): Promise<Held<T> | null> {
    return this.#held(await this.#asker.ask(['REG.GET', this.#key(key)]));
  }

  async mget(keys: readonly Key[]): Promise<(Held<T> | null)[]> {
    if (keys.length === 0) return [];
    const replies = list(await this.#asker.ask(['REG.MGET', ...keys.map((key) => this.#key(key))]));
    return replies.map((reply) => this.#held(reply));
  }

  async add(key: Key, version: number | StateVersion, number: number): Promise<Applied> {
    return this.#update(['REG.INCRBY', this.#key(key), versionWord(version), whole(number, 'number')]);
  }

  async addOrdered(key: Key, version: number | StateVersion, number: number): Promise<Applied> {
    return this.#update(['REG.INCRBY', this.#key(key), versionWord(version), whole(number, 'number'), 'ORDERED']);
  }

  async seal(key: Key, version: number | StateVersion): Promise<number> {
    return integer(await this.#asker.ask(['REG.SEAL', this.#key(key), versionWord(version)]));
  }

  async snapshot(position?: Value): Promise<Buffer> {
    return bytes(await this.#asker.ask(this.#snapshotWords(position)));
  }

  async restore(snapshot: Uint8Array): Promise<Buffer | null> {
    return position(await this.#asker.ask(['REG.RESTORE', word(snapshot), 'INTO', word(this.prefix)]));
  }

  async merge(snapshot: Uint8Array): Promise<Buffer | null> {
    return position(await this.#asker.ask(['REG.RESTORE', word(snapshot), 'MERGE', 'INTO', word(this.prefix)]));
  }

  /** Keeps a snapshot at the server, as a string under this key. */
  async checkpoint(key: Key, position?: Value): Promise<number> {
    return integer(await this.#asker.ask([...this.#snapshotWords(position), 'STORE', word(key)]));
  }

  async restoreCheckpoint(key: Key): Promise<Checkpoint | null> {
    return this.#fromCheckpoint(key, []);
  }

  async mergeCheckpoint(key: Key): Promise<Checkpoint | null> {
    return this.#fromCheckpoint(key, ['MERGE']);
  }

  async #fromCheckpoint(key: Key, policy: readonly Word[]): Promise<Checkpoint | null> {
    try {
      const reply = await this.#asker.ask(['REG.RESTORE', 'FROM', word(key), ...policy, 'INTO', word(this.prefix)]);
      return { position: position(reply) };
    } catch (error) {
      // Asked only now, so that no other request comes in between.
      if (error instanceof ServerError && error.code === 'ERR' && !flag(await this.#asker.ask(['EXISTS', word(key)]))) return null;
      throw error;
    }
  }

  async #update(words: readonly Word[]): Promise<Applied> {
    const reply = text(await this.#asker.ask(words));
    const applied = APPLIED.get(reply);
    if (applied === undefined) throw new ReplyError(`the reply should have the fate of an update, and has ${reply}`);
    return applied;
  }

  #snapshotWords(position: Value | undefined): Word[] {
    return ['REG.SNAPSHOT', 'PREFIX', word(this.prefix), ...(position === undefined ? [] : ['POSITION', word(position)])];
  }

  #key(key: Key): Word {
    if (typeof this.prefix === 'string' && typeof key === 'string') return this.prefix + key;
    return Buffer.concat([Buffer.from(word(this.prefix)), Buffer.from(word(key))]);
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
