// Cells and branches by name, on whatever requests are sent on. Knows no transaction.

import type { Asker } from '../asker.js';
import { text as textCodec, type Codec } from '../codec.js';
import { list, optional, type Reply } from '../replies.js';
import type { Key } from '../words.js';
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

  /** What several cells hold, all of one instant; null for each that does not exist. */
  async getCells<const Several extends readonly CellName<any>[]>(cells: Several): Promise<CellVersions<Several>> {
    return getCells(this.#asker, cells);
  }

  /** The branch of this name. Asks the server nothing. */
  branch(name: string): Branch {
    return new Branch(this.#asker, name);
  }
}

export async function getCells<const Several extends readonly CellName<any>[]>(asker: Asker, cells: Several): Promise<CellVersions<Several>> {
  const replies = cells.length === 0 ? [] : list(await asker.ask(['CELL.MGET', ...cells.map(({ key }) => key)]));
  return cells.map(({ codec }, i) => optional(replies[i], (reply: Reply) => readVersion(reply, codec)) ?? null) as CellVersions<Several>;
}
