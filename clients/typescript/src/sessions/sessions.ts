// The sessions of a server: opens them, and pushes requests to them. Knows the commands; refuses to know what a request does.

import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Connection } from '../connection.js';
import { SessionLostError } from '../errors.js';
import { flag, integer, list, text } from '../replies.js';
import { whole, word, type Value } from '../words.js';
import { Insistence } from './request-numbers.js';
import {
  openWords, pendingWords, readHooks, readInfo, readPending, readRetried,
  type Hook, type PendingRequest, type RetriedRequest, type SessionInfo,
} from './requests.js';
import { Session } from './session.js';

export interface OpenOptions {
  /**
   * How long the server keeps a session of which it hears nothing, without the time that it is away itself; 90 000 if not given. An open
   * session asks three times in it.
   */
  readonly ttlMs?: number;
  /** What hooks are told of the client. */
  readonly capabilities?: Readonly<Record<string, string>>;
  /** How long a request is sent again whose answer was lost; 60 000 if not given. The last try may take as long as a request may. */
  readonly retryForMs?: number;
}

const TTL_MS = 90_000;
const RETRY_FOR_MS = 60_000;

export class Sessions {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Opens a session. The client makes its name, so that opening can be repeated. */
  async open(options: OpenOptions = {}): Promise<Session> {
    const { ttlMs = TTL_MS, capabilities = {}, retryForMs = RETRY_FOR_MS } = options;
    const id = `session:${randomBytes(16).toString('hex')}`;
    const insistence = new Insistence(retryForMs);
    for (;;) {
      try {
        await this.#connection.ask(openWords(id, ttlMs, capabilities));
        return new Session(this.#connection, id, 1, ttlMs, retryForMs);
      } catch (error) {
        const pauseMs = insistence.pauseMs(error);
        if (pauseMs === undefined) throw error;
        await sleep(pauseMs);
      }
    }
  }

  /**
   * Goes on with a session that this program, or one before it, has opened. Its new requests are numbered from `nextRequestId` on: one
   * more than the highest number that was used. A request of the earlier program is made again by `session.prepare` with its number,
   * before the session sends others. A session that is gone is a SessionLostError.
   */
  async resume(sessionId: string, nextRequestId: number, options: Pick<OpenOptions, 'retryForMs'> = {}): Promise<Session> {
    const isAlive = flag(await this.#connection.ask(['SESSION.ALIVE', sessionId]));
    const info = isAlive ? await this.info(sessionId) : null;
    if (info === null) throw new SessionLostError(sessionId, null, true);
    return new Session(this.#connection, sessionId, nextRequestId, info.ttlMs, options.retryForMs ?? RETRY_FOR_MS);
  }

  /** Pushes a request to a session. Returns its number there. After an UnavailableError it may be there: `session.push` pushes once. */
  async push(sessionId: string, payload: Value): Promise<number> {
    return integer(await this.#connection.ask(['SESSION.PUSH', sessionId, word(payload)]));
  }

  /** The requests that were pushed to a session and are not acknowledged. `block` waits so many milliseconds for the next one. */
  async pending(
    sessionId: string, options: { after?: number; limit?: number; block?: number; signal?: AbortSignal } = {},
  ): Promise<PendingRequest[]> {
    const { after = 0, limit = 1000, block = 0, signal } = options;
    const words = pendingWords(sessionId, after, limit, block);
    return readPending(block > 0 ? await this.#connection.askAndWait(words, block, signal) : await this.#connection.ask(words));
  }

  /** Facts about a session; null if there is none. */
  async info(sessionId: string): Promise<SessionInfo | null> {
    return readInfo(await this.#connection.ask(['SESSION.INFO', sessionId]));
  }

  /** Ends a session; whether there was one. */
  async close(sessionId: string): Promise<boolean> {
    return flag(await this.#connection.ask(['SESSION.CLOSE', sessionId]));
  }

  /** The names of the sessions, page by page, with SCAN's guarantee. */
  async *ids(): AsyncGenerator<string, void, undefined> {
    let cursor = '0';
    do {
      const [next, names] = list(await this.#connection.ask(['SESSION.LIST', 'CURSOR', cursor]));
      for (const name of list(names)) yield text(name);
      cursor = text(next);
    } while (cursor !== '0');
  }

  /**
   * Every pushed request that was last sent before this time, in unix milliseconds, the oldest first, at most `limit` (1,000 if it is
   * not given), and marks them as sent now. Of two callers one gets a request. It sends nothing itself. A time in the future means now.
   */
  async retry(beforeMs: number, limit?: number): Promise<RetriedRequest[]> {
    const words = ['SESSION.RETRY', whole(beforeMs, 'beforeMs'), ...(limit === undefined ? [] : ['LIMIT', whole(limit, 'limit')])];
    return readRetried(await this.#connection.ask(words));
  }

  /** Whether `retry` with this time would find any. */
  async hasRetry(beforeMs: number): Promise<boolean> {
    return flag(await this.#connection.ask(['SESSION.HASRETRY', whole(beforeMs, 'beforeMs')]));
  }

  /** The function that is called when a session is created, or when one expires or is closed; null if none is. */
  async hook(hook: Hook): Promise<string | null> {
    return readHooks(await this.#connection.ask(['SESSION.HOOK']))[hook];
  }

  /** Names the function, or none. */
  async setHook(hook: Hook, functionName: string | null): Promise<void> {
    await this.#connection.ask(['SESSION.HOOK', hook.toUpperCase(), functionName ?? 'NONE']);
  }
}
