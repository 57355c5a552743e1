// A node of a pipeline that keeps state for each key: it applies each input once, and gives the outputs of the last one again when
// its input comes again. Knows a backend of state; refuses to know where inputs come from and where outputs go.

import { createHash } from 'node:crypto';
import { json, type Codec } from '../codec.js';
import { word, type Key, type Value } from '../words.js';
import { compareVersions, shownVersion } from './register.js';
import type { StateBackend, StateVersion } from './state-backend.js';

/** What a node keeps for a key. */
export interface NodeEntry<State, Output> {
  readonly state: State;
  /** The outputs of the last input. */
  readonly outputs: readonly Output[];
}

/** An output, and the id by which a sink that has it already knows it. */
export interface NodeOutput<Output> {
  /** SHA-256, in lower-case hex, of `node|key|version|index`. */
  readonly id: string;
  readonly value: Output;
}

/** Makes the new state, and the outputs, of the state before; that is null for the first input of a key. */
export type NodeUpdate<State, Output> =
  (state: State | null) => NodeEntry<State, Output> | Promise<NodeEntry<State, Output>>;

/**
 * A stateful node. Of one key, one program at a time processes inputs, in the order of their versions: a program that computes on the
 * state of another one would lose what that has written. Calls for one key in one program take turns.
 *
 * After a crash: `recover`, then the input again from the position that it returns.
 */
export class StatefulNode<State, Output> {
  readonly name: string;
  readonly #backend: StateBackend<NodeEntry<State, Output>>;
  readonly #checkpointKey: Key;
  /** The last call for each key that is under way. */
  readonly #turns = new Map<string, Promise<unknown>>();

  /** `checkpointKey` is where `checkpoint` keeps the state; the name with `:checkpoint` behind it if not given. */
  constructor(name: string, backend: StateBackend<NodeEntry<State, Output>>, checkpointKey: Key = `${name}:checkpoint`) {
    this.name = name;
    this.#backend = backend;
    this.#checkpointKey = checkpointKey;
  }

  /** What a backend stores for a node: JSON. */
  static codec<State, Output>(): Codec<NodeEntry<State, Output>> {
    return json as Codec<NodeEntry<State, Output>>;
  }

  /**
   * Applies one input, once. For a version that is new it calls `update` and returns the outputs; for the version that was applied last
   * it returns the same outputs under the same ids, and calls nothing; for an older one it returns null.
   */
  async process(
    key: Key, version: number | StateVersion, update: NodeUpdate<State, Output>,
  ): Promise<NodeOutput<Output>[] | null> {
    const turn = Buffer.from(word(key)).toString('latin1');
    const before = this.#turns.get(turn) ?? Promise.resolve();
    const result = before.then(() => this.#process(key, version, update));
    const settled = result.then(() => {}, () => {});
    this.#turns.set(turn, settled);
    try {
      return await result;
    } finally {
      if (this.#turns.get(turn) === settled) this.#turns.delete(turn);
    }
  }

  /** What the node keeps for a key: the state after its last input; null if there was none. */
  async state(key: Key): Promise<State | null> {
    return (await this.#backend.get(key))?.value.state ?? null;
  }

  /** Keeps all states and the input position, in one step. */
  async checkpoint(position: Value): Promise<void> {
    await this.#backend.checkpoint(this.#checkpointKey, position);
  }

  /**
   * Goes back to the last checkpoint, and returns the input position from which to go on; null if there is none, and the input is read from
   * its beginning. Call it at each start, before the first input.
   */
  async recover(): Promise<Buffer | null> {
    const restored = await this.#backend.restoreCheckpoint(this.#checkpointKey);
    // The start itself is the first checkpoint, without a position: after a crash before the next one, the input is read again on the
    // states of the start, and no output is missing.
    if (restored === null) await this.#backend.checkpoint(this.#checkpointKey);
    return restored?.position ?? null;
  }

  async #process(
    key: Key, version: number | StateVersion, update: NodeUpdate<State, Output>,
  ): Promise<NodeOutput<Output>[] | null> {
    const wanted = typeof version === 'number' ? { epoch: 0, round: version } : version;
    for (;;) {
      const held = await this.#backend.get(key);
      const order = held === null ? 1 : compareVersions(wanted, held.version);
      if (order < 0) return null;
      if (order === 0) return this.#outputs(key, wanted, held?.value.outputs ?? []);
      const { state, outputs } = await update(held?.value.state ?? null);
      const applied = await this.#backend.put(key, { state, outputs }, wanted);
      if (applied === 'applied' || applied === 'duplicate') return this.#outputs(key, wanted, outputs);
      // Another program has written meanwhile: what it wrote counts.
    }
  }

  #outputs(key: Key, version: StateVersion, outputs: readonly Output[]): NodeOutput<Output>[] {
    return outputs.map((value, index) => ({ id: this.#outputId(key, version, index), value }));
  }

  #outputId(key: Key, version: StateVersion, index: number): string {
    const hash = createHash('sha256');
    return hash.update(`${this.name}|`).update(word(key)).update(`|${shownVersion(version)}|${index}`).digest('hex');
  }
}
