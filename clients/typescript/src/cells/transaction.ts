// Interactive transactions: commands that answer at once, read their own writes, and take effect together or not at all. Knows how a
// transaction begins, ends and is tried again; refuses to know what its commands do.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Asker } from '../asker.js';
import { text as textCodec, type Codec } from '../codec.js';
import type { Connection } from '../connection.js';
import { ClosedError, ConflictError, HoldfastError, NotWriterError, UnavailableError } from '../errors.js';
import type { HeldConnection } from '../own-connections.js';
import { RecordStore } from '../records/record-store.js';
import type { Reply } from '../replies.js';
import { RunStore } from '../runs/run-store.js';
import { word, type CommandWords, type Key, type Word } from '../words.js';
import { Cell, type CellVersion } from './cell.js';
import { getCells, type CellName, type CellVersions } from './cells.js';

/** The part of a cell that only reads. */
export type ReadableCell<T> = Pick<Cell<T>, 'name' | 'key' | 'codec' | 'get' | 'getVersion' | 'getAsOf' | 'history'>;

const FIRST_PAUSE_MS = 1;
const DOUBLINGS_MAX = 7;
/** Between two tries to begin, while the server is away or reads its data. */
const BEGIN_PAUSE_MS = 50;

/** These end a transaction, or change what its connection is: with them, what follows would run outside of it. */
const NOT_INSIDE: ReadonlySet<string> = new Set(['TXN.BEGIN', 'TXN.COMMIT', 'TXN.ROLLBACK', 'RESET', 'QUIT', 'HELLO', 'AUTH', 'CLIENT']);

/** What both kinds of transactions have. It is sent on the connection of the transaction, and on no other. */
class OnTransaction implements Asker {
  /** Nothing waits in a transaction. */
  readonly canWait = false;
  readonly #connection: Connection;
  readonly #link: Link;

  /** @internal */
  constructor(connection: Connection, link: Link) {
    this.#connection = connection;
    this.#link = link;
  }

  knows(command: string): boolean {
    return this.#connection.knows(command);
  }

  async ask(words: readonly Word[]): Promise<Reply> {
    const name = String(words[0]).toUpperCase();
    if (NOT_INSIDE.has(name)) throw new TypeError(`${name} cannot be part of a transaction: it begins and ends by itself`);
    return this.#link.ask(words);
  }

  async askAndWait(words: readonly Word[]): Promise<Reply> {
    return this.ask(words);
  }

  /** Any command, as part of the transaction: text for numbers and status lines, bytes for strings. */
  async send(words: CommandWords): Promise<Reply> {
    return this.ask(words.map(word));
  }

  /** What several cells hold, all of one instant: given as cells, each with its own type, or by name with one codec for all. */
  async getCells<const Several extends readonly CellName<any>[]>(cells: Several): Promise<CellVersions<Several>>;
  async getCells(names: readonly Key[]): Promise<(CellVersion<string> | null)[]>;
  async getCells<T>(names: readonly Key[], codec: Codec<T>): Promise<(CellVersion<T> | null)[]>;
  async getCells(cells: readonly (CellName<any> | Key)[], codec: Codec<any> = textCodec): Promise<unknown> {
    return getCells(this, cells, codec);
  }
}

/**
 * A transaction that is under way. Only commands whose keys are all arguments can be part of it; others are refused, and the transaction
 * goes on. Nothing waits in it. Once it has ended, its commands are a ClosedError, and nothing is sent. It stands in for a connection:
 * `new ExactlyOnceState(transaction, …)`.
 */
export class Transaction extends OnTransaction {
  readonly #records = new RecordStore(this);
  readonly #runs = new RunStore(this);

  /** Records, inside. `scan` and indexes cannot be part of a transaction. */
  get records(): RecordStore {
    return this.#records;
  }

  /** Runs, inside, whose data is JSON; `new RunStore(transaction, { codec })` is for others. */
  get runs(): RunStore {
    return this.#runs;
  }

  /** A cell, inside, whose values are text unless a codec says otherwise. */
  cell(name: Key): Cell<string>;
  cell<T>(name: Key, codec: Codec<T>): Cell<T>;
  cell(name: Key, codec: Codec<any> = textCodec): Cell<any> {
    return new Cell(this, name, codec);
  }
}

/** A transaction that reads cells as they all were when it began, whatever others write meanwhile. */
export class ReadTransaction extends OnTransaction {
  /** A cell as it was, whose values are text unless a codec says otherwise. */
  cell(name: Key): ReadableCell<string>;
  cell<T>(name: Key, codec: Codec<T>): ReadableCell<T>;
  cell(name: Key, codec: Codec<any> = textCodec): ReadableCell<any> {
    return new Cell(this, name, codec);
  }
}

/** Runs a body in a transaction, up to so many times while other clients are faster. */
export async function transact<T>(connection: Connection, tries: number, body: (txn: Transaction) => Promise<T>): Promise<T> {
  return attempt(connection, tries, ['TXN.BEGIN'], (link) => body(new Transaction(connection, link)));
}

export async function readTransact<T>(connection: Connection, tries: number, body: (txn: ReadTransaction) => Promise<T>): Promise<T> {
  return attempt(connection, tries, ['TXN.BEGIN', 'READONLY'], (link) => body(new ReadTransaction(connection, link)));
}

async function attempt<T>(connection: Connection, tries: number, begin: readonly Word[], body: (link: Link) => Promise<T>): Promise<T> {
  if (!(Number.isSafeInteger(tries) && tries >= 1)) throw new RangeError(`tries is ${tries}, and has to be at least 1`);
  const deadline = performance.now() + connection.patienceMs;
  let tried = 0;
  while (tried < tries) {
    if (tried > 0) await sleep(pauseMs(tried));
    const link = await Link.begin(connection, begin);
    try {
      const result = await body(link);
      if (await link.commit()) return result;
    } catch (error) {
      await link.rollBack();
      if (!link.isConflict && link.moved === undefined) throw link.isLost ? lossOf(error) : error;
    } finally {
      link.release();
    }
    // What another server has to run, because this one has ceased to be the writer, is not counted.
    if (link.moved === undefined) tried += 1;
    else if (performance.now() >= deadline) throw link.moved;
  }
  throw new ConflictError('CONFLICT', `other clients changed what the transaction read, each of the ${tries} times it was tried`);
}

/** The error of a body whose connection was lost. One of its own, which it has thrown because of that, is kept as the cause. */
function lossOf(error: unknown): unknown {
  if (!(error instanceof HoldfastError) || error instanceof UnavailableError) return error;
  return new UnavailableError(`the transaction's connection was lost: ${error.message}`, { cause: error });
}

/** Grows with the tries, and differs between clients that met the same conflict. */
function pauseMs(tried: number): number {
  return FIRST_PAUSE_MS * 2 ** Math.min(tried - 1, DOUBLINGS_MAX) * (0.5 + Math.random() / 2);
}

/** The connection of one transaction, and what is known of it. */
class Link {
  /** The server has said that it cannot be committed any more. */
  isConflict = false;
  /** The server follows another one by now, and nothing of the transaction can take effect. */
  moved: NotWriterError | undefined;
  readonly #connection: HeldConnection;
  /** It is committed or rolled back, or about to be. */
  #hasEnded = false;
  /** The connection has no transaction. */
  #isClean = false;

  private constructor(connection: HeldConnection) {
    this.#connection = connection;
  }

  static async begin(connection: Connection, begin: readonly Word[]): Promise<Link> {
    const deadline = performance.now() + connection.patienceMs;
    for (;;) {
      const held = await connection.hold();
      try {
        await held.ask(begin);
        return new Link(held);
      } catch (error) {
        // A transaction that has perhaps begun ends with its connection.
        held.release(false);
        if (!(error instanceof HoldfastError && error.isTemporary) || performance.now() >= deadline) throw error;
      }
      await sleep(BEGIN_PAUSE_MS);
    }
  }

  get isLost(): boolean {
    return this.#connection.isLost;
  }

  async ask(words: readonly Word[]): Promise<Reply> {
    if (this.#hasEnded) throw new ClosedError('the transaction has ended');
    return this.#ask(words);
  }

  /** Whether it is committed; if not, there was a conflict, or another server writes. */
  async commit(): Promise<boolean> {
    this.#hasEnded = true;
    if (this.isConflict || this.moved !== undefined) {
      await this.rollBack();
      return false;
    }
    try {
      await this.#ask(['TXN.COMMIT']);
    } catch (error) {
      if (error instanceof NotWriterError) return false;
      if (!(error instanceof ConflictError)) throw error;
    }
    this.#isClean = true;
    return !this.isConflict;
  }

  async rollBack(): Promise<void> {
    this.#hasEnded = true;
    if (this.isLost || this.#isClean) return;
    try {
      await this.#connection.ask(['TXN.ROLLBACK']);
      this.#isClean = true;
    } catch {
      // Its connection ends, and the transaction with it.
    }
  }

  release(): void {
    this.#hasEnded = true;
    this.#connection.release(this.#isClean);
  }

  async #ask(words: readonly Word[]): Promise<Reply> {
    try {
      return await this.#connection.ask(words);
    } catch (error) {
      if (error instanceof ConflictError) this.isConflict = true;
      if (error instanceof NotWriterError) this.moved = error;
      throw error;
    }
  }
}
