// Connections that one request, or one transaction, has to itself. Knows nothing of what is asked.
//
// A request that waits at the server holds up every other one on its connection, so it has one for as long as it lasts. One
// that is given up takes its connection with it: the server sees the end of it, and gives the client nothing more. But what one that takes
// something was given before that would be lost: so its wait is ended, its reply is read, and what it took is given back.

import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from './client.js';
import { ClosedError, HoldfastError, ServerError, UnavailableError, asHoldfastError } from './errors.js';
import { TYPES, text, type Reply } from './replies.js';
import type { Target } from './target.js';
import type { Word } from './words.js';

/** Between two tries to end the wait of a command that the server has perhaps not seen yet. */
const UNBLOCK_PAUSE_MS = 5;

/** The longest that a timer of Node.js can wait; with more it ends at once. */
export const TIMER_MS_MAX = 2 ** 31 - 1;

export class OwnConnections {
  readonly #target: Target;
  /** How long an answer may take, beside the wait that was asked for. */
  readonly #responseTimeoutMs: number;
  /** How long a server that is away is waited for, at least. */
  readonly #patienceMs: number;
  /** Connections that are not used: at most as many as were used at a time. */
  readonly #idle: Client[] = [];
  readonly #closed = new AbortController();
  /** Ends the wait of a client that has this number at the server. Whether it has waited. */
  readonly #unblock: (waiting: Client, id: string) => Promise<boolean>;
  /** Requests that have to be ended before the connections are. */
  readonly #takings = new Set<Promise<unknown>>();

  constructor(target: Target, responseTimeoutMs: number, patienceMs: number, unblock: (waiting: Client, id: string) => Promise<boolean>) {
    this.#target = target;
    this.#unblock = unblock;
    this.#responseTimeoutMs = responseTimeoutMs;
    this.#patienceMs = patienceMs;
    // Each request that is under way listens.
    setMaxListeners(0, this.#closed.signal);
  }

  /**
   * Sends a command that waits for so long. If the server is not there, or still reads its data, tries for as long to get the
   * command to it. A command that was sent is not sent again, unless the server says that it is not the writer. `giveBack` gets the reply of
   * one that takes something, if the signal comes or the connection is closed before the caller has it.
   */
  async ask(words: readonly Word[], waitMs: number, signal: AbortSignal | undefined, giveBack?: GiveBack): Promise<Reply> {
    const asked = this.#ask(words, waitMs, signal, giveBack);
    if (giveBack === undefined) return asked;
    this.#takings.add(asked);
    try {
      return await asked;
    } finally {
      this.#takings.delete(asked);
    }
  }

  async #ask(words: readonly Word[], waitMs: number, signal: AbortSignal | undefined, giveBack: GiveBack | undefined): Promise<Reply> {
    const signals = [this.#closed.signal, ...(signal === undefined ? [] : [signal])];
    const began = performance.now();
    const patienceMs = this.#target.hasSeveral ? Math.max(waitMs, this.#patienceMs) : waitMs;
    for (let tried = 0; ; tried += 1) {
      const made = await this.#try(words, waitMs, signals, giveBack);
      if (made.reply !== undefined) return made.reply;
      if (performance.now() - began >= patienceMs) throw made.error;
      await sleep(this.#target.pauseMs(tried));
    }
  }

  /**
   * A connection for the caller alone. If the server is not there, or still reads its data, tries for as long as a request may
   * take.
   */
  async hold(): Promise<HeldConnection> {
    const began = performance.now();
    for (let tried = 0; ; tried += 1) {
      try {
        const client = await this.#take([this.#closed.signal]);
        return new HeldConnection(client, this.#target, this.#responseTimeoutMs, this.#closed.signal, () => this.#giveBack(client));
      } catch (error) {
        const goesOn = error instanceof HoldfastError && error.isTemporary && performance.now() - began < this.#patienceMs;
        if (!goesOn) throw error;
      }
      await sleep(this.#target.pauseMs(tried));
    }
  }

  /** Ends all connections, and the requests on them. */
  async close(): Promise<void> {
    this.#closed.abort(new ClosedError('the connection is closed'));
    if (this.#takings.size > 0) await Promise.allSettled(this.#takings);
    for (const client of this.#idle.splice(0)) client.destroy();
  }

  /** The reply, or why the command was not executed if that may change. */
  async #try(words: readonly Word[], waitMs: number, signals: readonly AbortSignal[], giveBack: GiveBack | undefined): Promise<Try> {
    let client: Client;
    try {
      client = await this.#take(signals);
    } catch (error) {
      return notExecuted(error);
    }
    try {
      const send = giveBack === undefined ? this.#send(client, words, waitMs, signals) : this.#takeSomething(client, words, waitMs, signals, giveBack);
      return { reply: await send };
    } catch (error) {
      // One that was sent and got no answer may have been executed: only what the server refused was not.
      if (error instanceof ServerError) return notExecuted(error);
      throw error;
    }
  }

  async #take(signals: readonly AbortSignal[]): Promise<Client> {
    for (const signal of signals) signal.throwIfAborted();
    for (let client = this.#idle.pop(); client !== undefined; client = this.#idle.pop()) {
      if (client.isReady && await this.#target.isCurrent(client)) return client;
      client.destroy(); // the server has closed it, or another one writes now
    }
    for (const signal of signals) signal.throwIfAborted();

    const made = await this.#target.make();
    for (const signal of signals) signal.throwIfAborted();
    const connected = made.connect();
    const giveUp = (): void => {
      made.destroy();
      // A client that is destroyed while it connects goes on to connect.
      connected.then(() => made.destroy(), () => {});
    };
    try {
      await until(connected, this.#responseTimeoutMs, signals, giveUp);
      if (!made.isReady) throw new UnavailableError('the server closed the connection');
    } catch (error) {
      if (error instanceof HoldfastError) this.#target.forget(made);
      throw error;
    }
    return made;
  }

  async #send(client: Client, words: readonly Word[], waitMs: number, signals: readonly AbortSignal[]): Promise<Reply> {
    const reply = client.sendCommand<Reply>(words, { typeMapping: TYPES });
    try {
      const read = await until(reply, waitMs + this.#responseTimeoutMs, signals, () => client.destroy());
      this.#giveBack(client);
      return read;
    } catch (failure) {
      const error = this.#target.refusal(failure);
      if (error instanceof HoldfastError && error.isTemporary) this.#target.forget(client);
      if (error instanceof ServerError) this.#giveBack(client);
      else client.destroy();
      throw error;
    }
  }

  /** Like `#send`, for a command that takes something. */
  async #takeSomething(client: Client, words: readonly Word[], waitMs: number, signals: readonly AbortSignal[], giveBack: GiveBack): Promise<Reply> {
    // Both are sent before one of them is answered.
    const id = client.sendCommand<Reply>(['CLIENT', 'ID'], { typeMapping: TYPES }).then(text);
    const reply = client.sendCommand<Reply>(words, { typeMapping: TYPES });
    id.catch(() => {});
    try {
      const read = await until(reply, waitMs + this.#responseTimeoutMs, signals, () => {});
      this.#giveBack(client);
      return read;
    } catch (failure) {
      if (signals.some(({ aborted, reason }) => aborted && reason === failure)) {
        await this.#end(client, id, reply, giveBack);
        throw failure;
      }
      const error = this.#target.refusal(failure);
      if (error instanceof HoldfastError && error.isTemporary) this.#target.forget(client);
      if (error instanceof ServerError) this.#giveBack(client);
      else client.destroy();
      throw error;
    }
  }

  /** Ends a wait whose caller does not want the reply any more, and gives back what had come. If that fails, the connection ends. */
  async #end(client: Client, id: Promise<string>, reply: Promise<Reply>, giveBack: GiveBack): Promise<void> {
    try {
      const read = until(reply, this.#responseTimeoutMs, [], () => {});
      let isAnswered = false;
      read.then(() => { isAnswered = true; }, () => { isAnswered = true; });
      const number = await Promise.race([id, read.then(() => '')]);
      // The server may not have seen the command yet.
      while (!isAnswered && !(await this.#unblock(client, number))) await sleep(UNBLOCK_PAUSE_MS);
      await giveBack(await read);
      this.#giveBack(client);
    } catch {
      client.destroy(); // what it may have taken comes again when its lease ends
    }
  }

  #giveBack(client: Client): void {
    if (this.#closed.signal.aborted) client.destroy();
    else this.#idle.push(client);
  }
}

/**
 * One connection that a caller has to itself. It is never made anew: when it is lost, everything on it is an error, and so is
 * everything after it. So nothing that belongs to its state at the server is sent outside of that state.
 */
export class HeldConnection {
  readonly #client: Client;
  readonly #target: Target;
  readonly #responseTimeoutMs: number;
  readonly #closed: AbortSignal;
  readonly #giveBack: () => void;
  #isLost = false;
  #isReleased = false;

  constructor(client: Client, target: Target, responseTimeoutMs: number, closed: AbortSignal, giveBack: () => void) {
    this.#client = client;
    this.#target = target;
    this.#responseTimeoutMs = responseTimeoutMs;
    this.#closed = closed;
    this.#giveBack = giveBack;
  }

  /** There was no answer to a request: it may have been executed or not, and the connection is gone. */
  get isLost(): boolean {
    return this.#isLost;
  }

  async ask(words: readonly Word[]): Promise<Reply> {
    if (this.#isReleased) throw new ClosedError('the connection was given back');
    if (this.#isLost) throw new UnavailableError('the connection was lost');
    try {
      const reply = this.#client.sendCommand<Reply>(words, { typeMapping: TYPES });
      return await until(reply, this.#responseTimeoutMs, [this.#closed], () => this.#client.destroy());
    } catch (failure) {
      const error = this.#target.refusal(failure);
      if (error instanceof HoldfastError && error.isTemporary) this.#target.forget(this.#client);
      if (!(error instanceof ServerError || error instanceof TypeError)) this.#lose();
      throw error;
    }
  }

  /** Gives the connection back for others; one that is not as it was when it was taken is closed. */
  release(isClean: boolean): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    if (isClean && !this.#isLost) this.#giveBack();
    else this.#lose();
  }

  #lose(): void {
    if (this.#isLost) return;
    this.#isLost = true;
    this.#client.destroy();
  }
}

/** Gets the reply of a command that takes something, in the place of a caller that does not want it any more. */
type GiveBack = (reply: Reply) => Promise<void>;

type Try = { reply: Reply } | { reply?: undefined; error: HoldfastError };

function notExecuted(error: unknown): Try {
  if (error instanceof HoldfastError && error.isTemporary) return { error };
  throw error;
}

/** Waits for an answer. After so long, or when one of the signals comes, it gives up. */
async function until<T>(
  answer: Promise<T>, ms: number, signals: readonly AbortSignal[], giveUp: () => void,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const settle = (end: () => void): void => {
      clearTimeout(timer);
      for (const signal of signals) signal.removeEventListener('abort', abort);
      end();
    };
    const abandon = (reason: unknown): void => settle(() => {
      giveUp();
      reject(reason);
    });
    const abort = (event: Event): void => abandon((event.target as AbortSignal).reason);
    const tooLate = (): void => abandon(new UnavailableError(`no answer from the server in ${ms} ms`));
    const timer = setTimeout(tooLate, Math.min(ms, TIMER_MS_MAX));
    for (const signal of signals) {
      signal.addEventListener('abort', abort, { once: true });
      if (signal.aborted) abandon(signal.reason);
    }
    answer.then(
      (value) => settle(() => resolve(value)),
      (error: unknown) => settle(() => reject(asHoldfastError(error))),
    );
  });
}
