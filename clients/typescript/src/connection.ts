// The connections of a program to a server: one that all requests share, and those that a request has to itself while it
// waits. Refuses to know what is asked.

import { setTimeout as sleep } from 'node:timers/promises';
import { ErrorReply } from 'redis';
import type { Asker } from './asker.js';
import { makeClient, type Client, type ClientOptions } from './client.js';
import { ClosedError, HoldfastError, ServerError, UnavailableError, asHoldfastError } from './errors.js';
import { OwnConnections, TIMER_MS_MAX, type HeldConnection } from './own-connections.js';
import { TYPES, list, type Reply } from './replies.js';
import type { Word } from './words.js';

/** Between two tries while the server reads its data. */
const LOADING_PAUSE_MS = 50;

/** Holdfast's own commands for which records have another way on a plain Redis. */
const OWN_COMMANDS = ['hcas', 'hput', 'hfind', 'idx.range', 'idx.create', 'claim', 'sweep'] as const;

/**
 * node-redis's options, without those that do not apply to commands of our own, and three of ours.
 * `RESP` chooses the protocol: 3, or 2.
 */
export interface ConnectionOptions
  extends Omit<ClientOptions, 'modules' | 'functions' | 'scripts' | 'commandOptions' | 'keyPrefix' | 'clientSideCache'> {
  /** How long a request may take before it is an UnavailableError, beside the wait that it asks for; 10 000 if not given. */
  responseTimeoutMs?: number;
  /** Told when the connection is lost or cannot be made again yet. */
  onError?: (error: Error) => void;
  /** Records use only commands that every Redis has, also on Holdfast. */
  plain?: boolean;
}

/**
 * A connection that all requests share, and that reconnects by itself; requests that wait have others beside it.
 *
 * A request that is made while the server is away waits for it, for up to `responseTimeoutMs`. One that was sent and whose
 * answer is lost is an UnavailableError; it is never sent twice.
 */
export class Connection implements Asker {
  /** The shared connection. */
  readonly client: Client;
  /** A request with a wait has a connection to itself, so it waits. */
  readonly canWait = true;
  readonly #own: OwnConnections;
  /** How long a request may take, beside the wait that it asks for. */
  readonly responseTimeoutMs: number;
  /** Which of OWN_COMMANDS the server has. */
  #known: ReadonlySet<string> = new Set(OWN_COMMANDS);

  private constructor(client: Client, own: OwnConnections, responseTimeoutMs: number) {
    this.client = client;
    this.#own = own;
    this.responseTimeoutMs = responseTimeoutMs;
  }

  /**
   * Connects, and asks the server which of Holdfast's commands it has. If the server is not up, tries for as long as a request
   * may take.
   */
  static async open(options: ConnectionOptions = {}): Promise<Connection> {
    const { onError = () => {}, responseTimeoutMs: asked = 10_000, plain = false, ...redisOptions } = options;
    const responseTimeoutMs = Math.min(asked, TIMER_MS_MAX);
    const deadline = performance.now() + responseTimeoutMs;
    let everReady = false;
    const reconnectStrategy = (retries: number, cause: Error): number | Error => {
      // What the server refuses, such as a password, it refuses again.
      const refused = cause instanceof ErrorReply && !cause.message.startsWith('LOADING ');
      if (!everReady && (refused || performance.now() >= deadline)) return cause;
      return Math.min(50 * 2 ** Math.min(retries, 10), 1000) * (0.5 + Math.random() / 2);
    };
    const client = makeClient({ ...redisOptions, socket: { reconnectStrategy, ...redisOptions.socket } }, onError);
    client.once('ready', () => { everReady = true; });
    try {
      await client.connect();
    } catch (error) {
      throw asHoldfastError(causeOf(error));
    }
    const makeOwn = (): Client =>
      makeClient({ ...redisOptions, socket: { ...redisOptions.socket, reconnectStrategy: false } }, onError);
    const connection = new Connection(client, new OwnConnections(makeOwn, responseTimeoutMs), responseTimeoutMs);
    try {
      connection.#known = plain ? new Set() : await connection.#knownCommands(deadline);
    } catch (error) {
      if (client.isOpen) client.destroy();
      throw error instanceof ClosedError ? new UnavailableError('the server closed the connection', { cause: error }) : error;
    }
    return connection;
  }

  /** Whether the server has all of Holdfast's commands for records, and they are used. */
  get isHoldfast(): boolean {
    return this.#known.size === OWN_COMMANDS.length;
  }

  knows(command: string): boolean {
    return this.#known.has(command);
  }

  /** Whether the server answers. */
  async ping(): Promise<boolean> {
    try {
      return (await this.ask(['PING'])) === 'PONG';
    } catch (error) {
      if (error instanceof HoldfastError) return false;
      throw error;
    }
  }

  /** Sends a command on the shared connection; again if the server still reads its data, which refuses everything until then. */
  async ask(words: readonly Word[]): Promise<Reply> {
    const deadline = performance.now() + this.responseTimeoutMs;
    for (;;) {
      try {
        return await this.#send(words, Math.max(1, Math.ceil(deadline - performance.now())));
      } catch (error) {
        const isLoading = error instanceof ServerError && error.isTemporary;
        if (!isLoading || performance.now() + LOADING_PAUSE_MS >= deadline) throw error;
      }
      await sleep(LOADING_PAUSE_MS);
    }
  }

  /**
   * Sends a command that waits at the server for up to `waitMs`, on a connection that it has to itself. The signal ends the
   * wait, and the connection with it.
   */
  async askAndWait(words: readonly Word[], waitMs: number, signal?: AbortSignal): Promise<Reply> {
    if (!this.client.isOpen) throw new ClosedError('the connection is closed');
    return this.#own.ask(words, waitMs, signal);
  }

  /**
   * A connection for the caller alone, for as long as it is held: that of a transaction.
   * @internal
   */
  async hold(): Promise<HeldConnection> {
    if (!this.client.isOpen) throw new ClosedError('the connection is closed');
    return this.#own.hold();
  }

  /** Ends the requests that wait, lets the others be answered, and closes all connections. Later requests are a ClosedError. */
  async close(): Promise<void> {
    this.#own.close();
    if (!this.client.isOpen) return;
    // A client without a server would wait for the answers for ever.
    if (this.client.isReady) await this.client.close();
    else this.client.destroy();
  }

  /** Asks again if the answer is lost: a question changes nothing. */
  async #knownCommands(deadline: number): Promise<ReadonlySet<string>> {
    for (;;) {
      try {
        const rows = list(await this.ask(['COMMAND', 'INFO', ...OWN_COMMANDS]));
        return new Set(OWN_COMMANDS.filter((_, i) => Array.isArray(rows[i]) && rows[i].length > 0));
      } catch (error) {
        const isTemporary = error instanceof HoldfastError && error.isTemporary;
        // A user without the right to ask: what the server does not know it says when it is used.
        if (error instanceof ServerError && !isTemporary) return new Set(OWN_COMMANDS);
        if (!isTemporary || performance.now() >= deadline) throw error;
      }
      await sleep(LOADING_PAUSE_MS);
    }
  }

  async #send(words: readonly Word[], timeout: number): Promise<Reply> {
    let timer: NodeJS.Timeout | undefined;
    try {
      // node-redis's timeout ends when a command is sent: it takes back one that the server was not there for.
      const reply = this.client.sendCommand<Reply>(words, { typeMapping: TYPES, timeout });
      const tooLate = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new UnavailableError(`no answer from the server in ${timeout} ms`)), timeout);
      });
      return await Promise.race([reply, tooLate]);
    } catch (error) {
      throw asHoldfastError(error);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** node-redis wraps the error of a strategy that gives up. */
function causeOf(error: unknown): unknown {
  return error instanceof Error && 'originalError' in error ? error.originalError : error;
}
