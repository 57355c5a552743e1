// A branch: cells under one prefix, which can be copied and removed together. Knows how their names are made.

import type { Asker } from '../asker.js';
import { text as textCodec, type Codec } from '../codec.js';
import { integer, list, text } from '../replies.js';
import type { Key } from '../words.js';
import { Cell } from './cell.js';
import { branchKey, branchPrefix } from './names.js';

/**
 * The cells `name/…`. The name of a branch has no `/`, no `:` and no NUL. In a branch, the name of a cell has 1 to 1,024 bytes, no NUL,
 * and does not begin with `_strata/`. Any other name is a RangeError.
 */
export class Branch {
  readonly name: string;
  readonly #asker: Asker;
  readonly #prefix: string;

  /** `CellStore` makes branches. */
  constructor(asker: Asker, name: string) {
    this.#prefix = branchPrefix(name);
    this.#asker = asker;
    this.name = name;
  }

  /** A cell of the branch, whose values are text unless a codec says otherwise. Asks the server nothing. */
  cell(name: Key): Cell<string>;
  cell<T>(name: Key, codec: Codec<T>): Cell<T>;
  cell(name: Key, codec: Codec<any> = textCodec): Cell<any> {
    return new Cell(this.#asker, branchKey(this.#prefix, name), codec);
  }

  /** The names of its cells, without the branch's own, page by page, with SCAN's guarantee. */
  async *cells(): AsyncGenerator<string, void, undefined> {
    let cursor = '0';
    do {
      const [next, names] = list(await this.#asker.ask(['CELL.LIST', 'PREFIX', this.#prefix, 'CURSOR', cursor]));
      for (const name of list(names)) yield text(name).slice(this.#prefix.length);
      cursor = text(next);
    } while (cursor !== '0');
  }

  /**
   * Copies all cells, with versions, history and time to live, to another branch, as they all are at one instant. Returns how many. A
   * branch that has keys already is a ServerError, and nothing is changed.
   */
  async fork(to: string): Promise<number> {
    return integer(await this.#asker.ask(['CELL.FORK', this.#prefix, branchPrefix(to)]));
  }

  /** Removes all its cells; how many there were. */
  async dropCells(): Promise<number> {
    return integer(await this.#asker.ask(['CELL.DROP', this.#prefix]));
  }
}
