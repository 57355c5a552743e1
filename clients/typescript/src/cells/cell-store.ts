// The cells of a server, and transactions over all its data. Knows which of them need a connection.

import type { Connection } from '../connection.js';
import { Cells } from './cells.js';
import { readTransact, transact, type ReadTransaction, type Transaction } from './transaction.js';

/** How often a read transaction is tried: it conflicts only when the server cannot keep what was there. */
const READ_TRIES = 10;

export class CellStore extends Cells {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    super(connection);
    this.#connection = connection;
  }

  /**
   * Reads, decides and writes: what the body does takes effect whole, when it has returned, or not at all. When another client has changed
   * what it has read or written, it is rolled back and run again, up to `tries` times in all; then it is a ConflictError. An error of the
   * body rolls back. The transaction has a connection to itself, which is never made anew: a lost one is an UnavailableError, and if it
   * was lost at the very end, the transaction may have been made.
   */
  async transaction<T>(tries: number, body: (transaction: Transaction) => Promise<T>): Promise<T> {
    return transact(this.#connection, tries, body);
  }

  /**
   * Reads cells as they all were at one instant, that of its begin. Neither readers nor writers are in its way; only when the server cannot
   * keep what was there, it is run again.
   */
  async readTransaction<T>(body: (transaction: ReadTransaction) => Promise<T>): Promise<T> {
    return readTransact(this.#connection, READ_TRIES, body);
  }
}
