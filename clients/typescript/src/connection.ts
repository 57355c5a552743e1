// The connections of a program to a server, or to the one of several that writes: one that all requests share, and those that a request has to itself while it
// waits. Refuses to know what is asked.

import { setTimeout as sleep } from 'node:timers/promises';
import { ErrorReply, SocketClosedUnexpectedlyError } from 'redis';
import { readServers } from './addresses.js';
import type { Asker } from './asker.js';
import { makeClient, type Client, type ClientOptions } from './client.js';
import { ClosedError, HoldfastError, NotWriterError, ServerError, UnavailableError, asHoldfastError } from './errors.js';
import { OwnConnections, TIMER_MS_MAX, type HeldConnection } from './own-connections.js';
import { TYPES, flag, list, type Reply } from './replies.js';
import { OneServer, Writer, type Target } from './target.js';
import type { Word } from './words.js';

/** Holdfast's own commands for which records have another way on a plain Redis. */
const OWN_COMMANDS = ['hcas', 'hput', 'hfind', 'idx.range', 'idx.create', 'claim', 'sweep'] as const;

/**
 * node-redis's options, without those that do not apply to commands of our own, and some of ours.
 * `RESP` chooses the protocol: 3, or 2.
 *
 * With several hosts in `url` (`redis://a:6379,b:6379/0`), or with `addresses`, the connection finds the server that writes, and finds it
 * again when another one has taken over.
 */
export interface ConnectionOptions
  extends Omit<ClientOptions, 'modules' | 'functions' | 'scripts' | 'commandOptions' | 'keyPrefix' | 'clientSideCache'> {
  /** How long a request may take before it is an UnavailableError, beside the wait that it asks for; 10 000 if not given. */
  responseTimeoutMs?: number;
  /** Servers of which one writes, as `host:port`, in the place of the host of `url`; everything else in `url` and the options is for all. */
  addresses?: readonly string[];
  /** With several servers, how long a request waits for one that writes before it is a NoWriterError; 30 000 if not given. */
  writerTimeoutMs?: number;
  /** Told when the connection is lost or cannot be made again yet. */
  onError?: (error: Error) => void;
  /** Records use only commands that every Redis has, also on Holdfast. */
  plain?: boolean;
}

/**
 * A connection that all requests share, and that reconnects by itself; requests that wait have others beside it. With several servers it leads
 * to the one that writes.
 *
 * A request that is made while the server is away waits for it, for up to `responseTimeoutMs`. One that was sent and whose
 * answer is lost is an UnavailableError; it is never sent twice.
 */
export class Connection implements Asker {
  /** A request with a wait has a connection to itself, so it waits. */
  readonly canWait = true;
  /** The shared connection. With several servers it is made anew when another one writes. */
  #client: Client | undefined;
  readonly #target: Target;
  readonly #own: OwnConnections;
  /** How long a request may take, beside the wait that it asks for. */
  readonly responseTimeoutMs: number;
  /**
   * How long a request waits for a server that is away.
   * @internal
   */
  readonly patienceMs: number;
  /** Which of OWN_COMMANDS the server has. */
  #known: ReadonlySet<string> = new Set(OWN_COMMANDS);
  #wasClosed = false;
  /** A connection to the writer that is being made. */
  #connecting: Promise<Client> | undefined;

  private constructor(target: Target, client: Client | undefined, responseTimeoutMs: number, patienceMs: number) {
    this.#target = target;
    this.#client = client;
    this.#own = new OwnConnections(target, responseTimeoutMs, patienceMs, (waiting, id) => this.#unblock(waiting, id));
    this.responseTimeoutMs = responseTimeoutMs;
    this.patienceMs = patienceMs;
  }

  /**
   * Connects, and asks the server which of Holdfast's commands it has. If there is no server, or it is not trusted, that is an UnavailableError
   * at once, with the address. With several servers, tries until one writes, for up to `writerTimeoutMs`.
   */
  static async open(options: ConnectionOptions = {}): Promise<Connection> {
    const {
      onError = () => {}, responseTimeoutMs: asked = 10_000, writerTimeoutMs = 30_000, addresses, plain = false, ...others
    } = options;
    const responseTimeoutMs = Math.min(asked, TIMER_MS_MAX);
    const servers = readServers(others.url ?? (others.socket?.tls ? 'rediss://localhost' : 'redis://localhost'), addresses);
    if (servers.addresses.length > 0) {
      const makeTo = (address: string, isQuestion: boolean): Client =>
        makeClient({ ...others, url: servers.urlOf(address), socket: { ...others.socket, reconnectStrategy: false } }, isQuestion ? () => {} : onError);
      const patienceMs = Math.min(Math.max(responseTimeoutMs, writerTimeoutMs), TIMER_MS_MAX);
      const connection = new Connection(new Writer(servers.addresses, makeTo), undefined, responseTimeoutMs, patienceMs);
      return connection.#begin(plain, performance.now() + patienceMs);
    }

    const redisOptions = others.url === undefined ? others : { ...others, url: servers.urlOf('') };
    const deadline = performance.now() + responseTimeoutMs;
    let everReady = false;
    const reconnectStrategy = (retries: number, cause: Error): number | Error => {
      // The first time, a wrong address is an error at once, and so is what the server refuses, such as a password.
      // A server that loads its data, or a connection that is cut, is another matter.
      const mayChange = cause instanceof SocketClosedUnexpectedlyError || (cause instanceof ErrorReply && cause.message.startsWith('LOADING '));
      if (!everReady && (!mayChange || performance.now() >= deadline)) return cause;
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
    return new Connection(new OneServer(makeOwn), client, responseTimeoutMs, responseTimeoutMs).#begin(plain, deadline);
  }

  /** Asks what there is to know of the server. */
  async #begin(plain: boolean, deadline: number): Promise<Connection> {
    try {
      // Finds the writer. What it refuses, such as a password, is no answer to the next question.
      if (this.#target.hasSeveral) await this.#lead(deadline);
      this.#known = plain ? new Set() : await this.#knownCommands(deadline);
    } catch (error) {
      this.#wasClosed = true;
      void this.#own.close();
      this.#client?.destroy();
      throw error instanceof ClosedError ? new UnavailableError('the server closed the connection', { cause: error }) : error;
    }
    return this;
  }

  /**
   * node-redis's client of the shared connection. With several servers it is that of the server that writes now, so ask for it each time:
   * the one of an earlier writer is closed.
   */
  get client(): Client {
    if (this.#client === undefined) throw new ClosedError('the connection is closed');
    return this.#client;
  }

  /**
   * Whether requests are a ClosedError.
   * @internal
   */
  get isClosed(): boolean {
    return this.#wasClosed || (!this.#target.hasSeveral && !this.client.isOpen);
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

  /**
   * Sends a command on the shared connection; again if the server still reads its data, or is not the writer, and so has refused it.
   */
  async ask(words: readonly Word[]): Promise<Reply> {
    const deadline = performance.now() + this.patienceMs;
    for (let tried = 0; ; tried += 1) {
      const pauseMs = this.#target.pauseMs(tried);
      try {
        const client = this.#target.hasSeveral ? await this.#lead(deadline) : this.client;
        return await this.#send(client, words, deadline);
      } catch (error) {
        const wasRefused = error instanceof ServerError && error.isTemporary;
        if (!wasRefused || performance.now() + pauseMs >= deadline) throw error;
      }
      await sleep(pauseMs);
    }
  }

  /**
   * Sends a command that waits at the server for up to `waitMs`, on a connection that it has to itself. The signal ends the
   * wait, and the connection with it. With `giveBack` the connection stays: the server is asked to end the wait, and `giveBack` gets what had come.
   */
  async askAndWait(words: readonly Word[], waitMs: number, signal?: AbortSignal, giveBack?: (reply: Reply) => Promise<void>): Promise<Reply> {
    if (this.isClosed) throw new ClosedError('the connection is closed');
    return this.#own.ask(words, waitMs, signal, giveBack);
  }

  /**
   * A connection for the caller alone, for as long as it is held: that of a transaction.
   * @internal
   */
  async hold(): Promise<HeldConnection> {
    if (this.isClosed) throw new ClosedError('the connection is closed');
    return this.#own.hold();
  }

  /** Ends the requests that wait, lets the others be answered, and closes all connections. Later requests are a ClosedError. */
  async close(): Promise<void> {
    await this.#own.close();
    this.#wasClosed = true;
    if (this.#client === undefined) return;
    // A client without a server would wait for the answers for ever.
    if (this.#client.isReady) await this.#client.close();
    else this.#client.destroy();
  }

  /** The shared connection to the server that writes. It is found, and the connection made, if that is necessary. */
  async #lead(deadline: number): Promise<Client> {
    for (let tried = 0; ; tried += 1) {
      if (this.#wasClosed) throw new ClosedError('the connection is closed');
      try {
        if (this.#client?.isReady && await this.#target.isCurrent(this.#client)) return this.#client;
        return await (this.#connecting ??= this.#connect().finally(() => { this.#connecting = undefined; }));
      } catch (error) {
        const isTemporary = error instanceof HoldfastError && error.isTemporary;
        if (!isTemporary || performance.now() >= deadline) throw error;
      }
      await sleep(this.#target.pauseMs(tried));
    }
  }

  async #connect(): Promise<Client> {
    const made = await this.#target.make();
    const connected = made.connect();
    try {
      await this.#within(connected, this.responseTimeoutMs);
      if (!made.isReady) throw new UnavailableError('the server closed the connection');
    } catch (error) {
      this.#target.forget(made);
      made.destroy();
      // A client that is destroyed while it connects goes on to connect.
      connected.then(() => made.destroy(), () => {});
      const failure = asHoldfastError(error);
      throw failure instanceof ClosedError ? new UnavailableError('the server closed the connection', { cause: error }) : failure;
    }
    if (this.#wasClosed) {
      made.destroy();
      throw new ClosedError('the connection is closed');
    }
    const left = this.#client;
    this.#client = made;
    if (left !== undefined) this.#retire(left);
    return made;
  }

  /** Lets requests on a connection that is not used any more be answered, and closes it. */
  #retire(client: Client): void {
    if (!client.isReady) {
      client.destroy();
      return;
    }
    const timer = setTimeout(() => client.destroy(), this.responseTimeoutMs).unref();
    client.close().catch(() => {}).finally(() => clearTimeout(timer));
  }

  /** Ends the wait of a connection that has this number at the server. Whether it has waited. */
  async #unblock(waiting: Client, id: string): Promise<boolean> {
    const client = this.#client;
    // The number would be that of another client.
    if (!client?.isReady || !this.#target.leadToTheSame(client, waiting)) return false;
    return flag(await this.#send(client, ['CLIENT', 'UNBLOCK', id], performance.now() + this.responseTimeoutMs));
  }

  /** Asks again if the answer is lost: a question changes nothing. */
  async #knownCommands(deadline: number): Promise<ReadonlySet<string>> {
    for (let tried = 0; ; tried += 1) {
      try {
        const rows = list(await this.ask(['COMMAND', 'INFO', ...OWN_COMMANDS]));
        return new Set(OWN_COMMANDS.filter((_, i) => Array.isArray(rows[i]) && rows[i].length > 0));
      } catch (error) {
        const isTemporary = error instanceof HoldfastError && error.isTemporary;
        // A user without the right to ask: what the server does not know it says when it is used.
        if (error instanceof ServerError && !isTemporary) return new Set(OWN_COMMANDS);
        if (!isTemporary || performance.now() >= deadline) throw error;
      }
      await sleep(this.#target.pauseMs(tried));
    }
  }

  async #send(client: Client, words: readonly Word[], deadline: number): Promise<Reply> {
    const timeout = this.#target.hasSeveral ? this.responseTimeoutMs : Math.max(1, Math.ceil(deadline - performance.now()));
    try {
      // Another server has taken over meanwhile, and the client is closed. What the client does not take was not sent.
      if (this.#target.hasSeveral && !(client.isReady && client.isOpen)) throw new NotWriterError('READONLY', 'the connection to the writer was lost');
      // node-redis's timeout ends when a command is sent: it takes back one that the server was not there for.
      return await this.#within(client.sendCommand<Reply>(words, { typeMapping: TYPES, timeout }), timeout);
    } catch (failure) {
      const error = this.#target.refusal(asHoldfastError(failure));
      if (error instanceof HoldfastError && error.isTemporary) this.#target.forget(client);
      throw error;
    }
  }

  async #within<T>(answer: Promise<T>, ms: number): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new UnavailableError(`no answer from the server in ${ms} ms`)), ms);
    });
    try {
      return await Promise.race([answer, tooLate]);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** node-redis wraps the error of a strategy that gives up. */
function causeOf(error: unknown): unknown {
  return error instanceof Error && 'originalError' in error ? error.originalError : error;
}
