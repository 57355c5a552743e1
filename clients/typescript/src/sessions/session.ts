// A session that is open: requests that each run once however often they are sent, and requests from the server to a client. Knows when
// a request is sent again and how a session is kept; refuses to know what a request does.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Asker } from '../asker.js';
import { Cells } from '../cells/cells.js';
import type { Connection } from '../connection.js';
import { ClosedError, HoldfastError, NoSessionError, SessionLostError, UnavailableError } from '../errors.js';
import { TIMER_MS_MAX } from '../own-connections.js';
import { RecordStore } from '../records/record-store.js';
import { flag, integer, type Reply } from '../replies.js';
import { RunStore } from '../runs/run-store.js';
import { whole, word, type CommandWords, type Value, type Word } from '../words.js';
import { PreparedRequest } from './prepared-request.js';
import { Insistence, RequestNumbers } from './request-numbers.js';
import { pendingWords, readInfo, readPending, type PendingRequest, type PushedRequest, type SessionInfo } from './requests.js';
import { UnansweredError } from './unanswered-error.js';

export interface ServeOptions {
  /** Ends it, without an error, when the handler has returned. */
  readonly signal?: AbortSignal | undefined;
  /** Told each time when the server is away. */
  readonly onRetry?: (error: HoldfastError) => void;
}

/** How long one wait for pushed requests lasts: a connection that has silently died is found after it. */
const SERVE_WAIT_MS = 10_000;
/** Requests that are read at a time. */
const SERVE_PAGE = 100;
const RETRY_PAUSE_MS = 50;

/**
 * What is asked through a session runs once, however often connections are lost meanwhile and whether or not the server is killed: each
 * request has a number, and is sent again under that number until its reply has come. `records`, `cells` and `runs` are the typed stores
 * whose requests go through it, and it stands in for a connection: `new ExactlyOnceState(session, …)`; `call` is for all other commands.
 * Nothing waits in it. Several requests may be under way. While it asks nothing, it is kept alive in the background.
 */
export class Session implements Asker {
  /** Its name, which is also its key. */
  readonly id: string;
  /** Nothing waits in a session. */
  readonly canWait = false;
  readonly #connection: Connection;
  readonly #numbers: RequestNumbers;
  readonly #retryForMs: number;
  readonly #keeper: NodeJS.Timeout;
  readonly #records = new RecordStore(this);
  readonly #cells = new Cells(this);
  readonly #runs = new RunStore(this);
  #renewedAt = performance.now();
  #closed = false;
  #lost = false;

  /** `Sessions` opens and resumes sessions. */
  constructor(connection: Connection, id: string, nextRequestId: number, ttlMs: number, retryForMs: number) {
    this.id = id;
    this.#connection = connection;
    this.#numbers = new RequestNumbers(nextRequestId);
    this.#retryForMs = retryForMs;
    this.#keeper = Session.#keepAlive(new WeakRef(this), ttlMs / 3);
  }

  /**
   * The number that the next request gets. A program that stores it with the session's id before it calls can go on after a crash of
   * its own: `sessions.resume`, and the same call again.
   */
  get nextRequestId(): number {
    return this.#numbers.following;
  }

  /** Records, whose requests each run once. */
  get records(): RecordStore {
    return this.#records;
  }

  /** Cells, whose requests each run once. A transaction cannot be part of a session. */
  get cells(): Cells {
    return this.#cells;
  }

  /** Runs, whose requests each run once, with data that is JSON; `new RunStore(session, { codec })` is for others. */
  get runs(): RunStore {
    return this.#runs;
  }

  /**
   * Runs a command once, and returns its reply: text for numbers and status lines, bytes for strings. If connections are lost it is sent
   * again under its number, for as long as the session retries; then it is an UnansweredError, which has the request.
   */
  async call(words: CommandWords): Promise<Reply> {
    return this.prepare(words).send();
  }

  /**
   * A request with its number, to send and to send again. Nothing is sent yet. From now on until it is answered, or until `forget`, the
   * server keeps the replies of all later requests.
   *
   * `requestId` is for a program that goes on after a crash of its own: the number that the same request had. The server refuses another
   * request under a number that was used (MismatchError), and this session a number that it has given itself (RangeError).
   */
  prepare(words: CommandWords, options: { requestId?: number } = {}): PreparedRequest {
    return this.#prepare(words.map(word), options.requestId);
  }

  /** Gives up a request that has no answer: the server need not keep its reply any more. */
  forget(request: PreparedRequest | number): void {
    this.#numbers.end(typeof request === 'number' ? request : request.id);
  }

  knows(command: string): boolean {
    return this.#connection.knows(command);
  }

  async ask(words: readonly Word[]): Promise<Reply> {
    return this.#prepare(words).send();
  }

  /** Nothing waits in a session. */
  async askAndWait(words: readonly Word[]): Promise<Reply> {
    return this.ask(words);
  }

  /** Pushes a request to another session, once. Returns its number there. */
  async push(sessionId: string, payload: Value): Promise<number> {
    return integer(await this.ask(['SESSION.PUSH', sessionId, word(payload)]));
  }

  /** The requests that were pushed to this session and are not acknowledged. */
  async pending(options: { after?: number; limit?: number } = {}): Promise<PendingRequest[]> {
    const words = pendingWords(this.id, options.after ?? 0, options.limit ?? 1000, 0);
    return readPending(await this.#insist(null, () => words));
  }

  /** Acknowledges all pushed requests up to this one. Returns how many were removed; after a lost connection it may say fewer. */
  async ack(requestId: number): Promise<number> {
    const words = ['SESSION.ACK', this.id, whole(requestId, 'requestId')];
    return integer(await this.#insist(null, () => words));
  }

  /** Facts about the session; null if it is gone. */
  async info(): Promise<SessionInfo | null> {
    return readInfo(await this.#connection.ask(['SESSION.INFO', this.id]));
  }

  /**
   * Calls the handler for each request that was pushed to this session, one after the other and in order: those that are pending, then
   * each new one. A request is acknowledged when the handler has returned. Goes on when the server is back after it was away, and what it
   * has handled is not handled again.
   *
   * It ends with its signal, with an error of the handler, or with a SessionLostError. A request whose handler did not return is pending, and comes
   * again with the next `serve`: a program that ends between the handler and the acknowledgement sees one again.
   *
   * node-redis has no way to take what a server sends by itself (SESSION.ATTACH), so this waits with SESSION.PENDING BLOCK.
   */
  async serve(handler: (request: PushedRequest) => void | Promise<void>, options: ServeOptions = {}): Promise<void> {
    const { signal, onRetry } = options;
    let handled = 0;
    while (signal?.aborted !== true) {
      try {
        this.#check(null, false);
        const words = pendingWords(this.id, handled, SERVE_PAGE, SERVE_WAIT_MS);
        const requests = readPending(await this.#connection.askAndWait(words, SERVE_WAIT_MS, signal));
        for (const { id, payload } of requests) {
          if (signal?.aborted) return;
          await called(handler, { id, payload });
          handled = id;
          await this.ack(id);
        }
      } catch (error) {
        if (error instanceof HandlerError) throw error.cause;
        if (signal?.aborted && error === signal.reason) return;
        await this.#checkAlive(error, null, false);
        if (!(error instanceof HoldfastError && error.isTemporary)) throw error;
        onRetry?.(error);
        await sleep(RETRY_PAUSE_MS);
        // What was handled, and perhaps not acknowledged.
        if (handled > 0) await this.ack(handled).catch(() => {});
      }
    }
  }

  /**
   * Ends the session, and removes what the server keeps of it; whether it was there. Later requests are a ClosedError. Without it the
   * session expires.
   */
  async close(): Promise<boolean> {
    if (this.#closed) return false;
    this.#closed = true;
    clearInterval(this.#keeper);
    return flag(await this.#connection.ask(['SESSION.CLOSE', this.id]));
  }

  /** Renews a session that asks nothing, for as long as the program holds it. It does not keep the program running. */
  static #keepAlive(reference: WeakRef<Session>, intervalMs: number): NodeJS.Timeout {
    const keeper = setInterval(() => {
      const session = reference.deref();
      if (session === undefined) clearInterval(keeper);
      else void session.#renew(intervalMs / 2).then((goesOn) => { if (!goesOn) clearInterval(keeper); });
    }, Math.min(intervalMs / 2, TIMER_MS_MAX));
    return keeper.unref();
  }

  /** Renews the session if it has asked nothing for so long; false when there is no more to keep. */
  async #renew(idleMs: number): Promise<boolean> {
    if (this.#closed || this.#lost || this.#connection.isClosed) return false;
    if (performance.now() - this.#renewedAt < idleMs) return true;
    try {
      this.#lost = !(await this.#isAlive());
      this.#renewedAt = performance.now();
    } catch {
      // The next request says it.
    }
    return !this.#lost;
  }

  #prepare(words: readonly Word[], requestId?: number): PreparedRequest {
    if (requestId !== undefined) {
      whole(requestId, 'requestId');
      this.#numbers.beginAs(requestId);
    }
    const id = requestId ?? this.#numbers.begin();
    return new PreparedRequest(id, words, (request) => this.#settle(request), (error) => error instanceof UnansweredError);
  }

  async #settle(request: PreparedRequest): Promise<Reply> {
    try {
      const reply = await this.#insist(request, () =>
        ['SESSION.CALL', this.id, `${request.id}`, 'LOW', `${Math.min(request.id, this.#numbers.low())}`, ...request.words]);
      this.#numbers.end(request.id);
      return reply;
    } catch (error) {
      // The number of one without an answer stays open: it may be sent again.
      if (!(error instanceof UnansweredError)) this.#numbers.end(request.id);
      throw error;
    }
  }

  /** Sends a request until there is an answer; null is none of those that a session numbers. */
  async #insist(request: PreparedRequest | null, make: () => readonly Word[]): Promise<Reply> {
    const insistence = new Insistence(this.#retryForMs);
    const requestId = request?.id ?? null;
    for (;;) {
      this.#check(requestId, insistence.maybeApplied);
      try {
        // Again on another connection: the one that all requests share may have silently died.
        const words = make();
        const reply = insistence.maybeApplied ? await this.#connection.askAndWait(words, 1) : await this.#connection.ask(words);
        if (request !== null) this.#renewedAt = performance.now();
        return reply;
      } catch (error) {
        const pauseMs = insistence.pauseMs(error);
        if (pauseMs === undefined) {
          await this.#checkAlive(error, requestId, insistence.maybeApplied);
          throw request === null ? error : insistence.failure(request, error);
        }
        await sleep(pauseMs);
      }
    }
  }

  #check(requestId: number | null, maybeApplied: boolean): void {
    if (this.#closed) throw new ClosedError('the session is closed');
    if (this.#lost) throw new SessionLostError(this.id, requestId, maybeApplied);
  }

  /** A command may have said of another session that there is none. */
  async #checkAlive(error: unknown, requestId: number | null, maybeApplied: boolean): Promise<void> {
    if (!(error instanceof NoSessionError)) return;
    try {
      this.#lost = !(await this.#isAlive());
    } catch (failure) {
      if (!(failure instanceof UnavailableError)) throw failure;
      this.#lost = true; // that it is there cannot be said, and nothing may be sent again
    }
    this.#check(requestId, maybeApplied);
  }

  async #isAlive(): Promise<boolean> {
    return flag(await this.#connection.ask(['SESSION.ALIVE', this.id]));
  }
}

/** An error of a handler, which is not taken for one of the server's. */
class HandlerError extends Error {}

async function called(handler: (request: PushedRequest) => void | Promise<void>, request: PushedRequest): Promise<void> {
  try {
    await handler(request);
  } catch (cause) {
    throw new HandlerError('the handler failed', { cause });
  }
}
