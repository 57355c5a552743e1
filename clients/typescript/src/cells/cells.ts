// Cells and branches by name, on whatever requests are sent on. Knows no transaction.

import type { Asker } from '../asker.js';
import { text as textCodec, type Codec } from '../codec.js';
import { list, optional, type Reply } from '../replies.js';
import { word, type Key } from '../words.js';
import { Branch } from './branch.js';
import { Cell, readVersion, type CellVersion } from './cell.js';

/** Which cell: its key, and how its values are read. */
export type CellName<T> = Pick<Cell<T>, 'key' | 'codec'>;

/** What several cells hold, in their order: each has its own type. */
export type CellVersions<Several extends readonly CellName<any>[]> = {
  -readonly [I in keyof Several]: Several[I] extends CellName<infer T> ? CellVersion<T> | null : never;
};

/** The cells of a server, or those that a session writes. */
export class Cells {
  readonly #asker: Asker;

  constructor(asker: Asker) {
    this.#asker = asker;
  }

  /** The cell of this name, whose values are text unless a codec says otherwise. Asks the server nothing. */
  cell(name: Key): Cell<string>;
  cell<T>(name: Key, codec: Codec<T>): Cell<T>;
  cell(name: Key, codec: Codec<any> = textCodec): Cell<any> {
    return new Cell(this.#asker, name, codec);
  }

  /**
   * What several cells hold, all of one instant; null for each that does not exist. They are given as cells, each with its own type, or by
   * name, with one codec for all: text if none is given.
   */
  async getCells<const Several extends readonly CellName<any>[]>(cells: Several): Promise<CellVersions<Several>>;
  async getCells(names: readonly Key[]): Promise<(CellVersion<string> | null)[]>;
  async getCells<T>(names: readonly Key[], codec: Codec<T>): Promise<(CellVersion<T> | null)[]>;
  async getCells(cells: readonly (CellName<any> | Key)[], codec: Codec<any> = textCodec): Promise<unknown> {
    return getCells(this.#asker, cells, codec);
  }

  /** The branch of this name. Asks the server nothing. */
  branch(name: string): Branch {
    return new Branch(this.#asker, name);
  }
}

export async function getCells(
  asker: Asker, cells: readonly (CellName<any> | Key)[], codec: Codec<any>,
): Promise<(CellVersion<any> | null)[]> {
  const named = cells.map((cell): CellName<any> =>
    (typeof cell === 'string' || cell instanceof Uint8Array ? { key: word(cell), codec } : cell));
  const replies = named.length === 0 ? [] : list(await asker.ask(['CELL.MGET', ...named.map(({ key }) => key)]));
  return named.map((cell, i) => optional(replies[i], (reply: Reply) => readVersion(reply, cell.codec)) ?? null);
}
