// Where connections lead: to one server, or to the one of several that writes. Knows ROLE, and refuses to know what else is asked.

import { KnownAddresses, noWriter, readFailure, readRole, type Address, type RoleAnswer } from './addresses.js';
import type { Client } from './client.js';
import { UnavailableError, asHoldfastError, notWriter } from './errors.js';
import { TYPES, type Reply } from './replies.js';

/** How long one server of several may take to tell its role. */
const ROLE_MS = 2000;

/** How often a server that writes is asked whether it still does, by a program that asks it for something. A write finds out at once. */
const ROLE_CHECK_MS = 2000;

/** Between two tries to reach a server that is away or reads its data. */
const PAUSE_MS = 50;

/** Between two searches for the one that writes, at most. */
const SEARCH_PAUSE_MS_MAX = 500;

export interface Target {
  /** There are several servers, of which one writes. */
  readonly hasSeveral: boolean;
  /** Makes a client that is not connected, and that does not reconnect by itself. An error if there is no server to connect to. */
  make(): Promise<Client>;
  /** Whether a client that is connected still leads where it should. */
  isCurrent(client: Client): Promise<boolean>;
  /** The client was lost, or its server has said that it follows another one. */
  forget(client: Client): void;
  /** Whether two clients are those of one server. */
  leadToTheSame(one: Client, other: Client): boolean;
  /** An error of a server. What a follower refuses can be asked of the writer. */
  refusal(error: unknown): unknown;
  /** How long to wait before the next try, after so many. */
  pauseMs(tried: number): number;
}

/** One server. */
export class OneServer implements Target {
  readonly hasSeveral = false;
  readonly #make: () => Client;

  constructor(make: () => Client) {
    this.#make = make;
  }

  async make(): Promise<Client> {
    return this.#make();
  }

  async isCurrent(): Promise<boolean> {
    return true;
  }

  forget(): void {}

  leadToTheSame(): boolean {
    return true;
  }

  refusal(error: unknown): unknown {
    return error;
  }

  pauseMs(): number {
    return PAUSE_MS;
  }
}

/** The one of several servers that writes. */
export class Writer implements Target {
  readonly hasSeveral = true;
  readonly #known: KnownAddresses;
  readonly #makeTo: (address: Address, isQuestion: boolean) => Client;
  #address: Address | undefined;
  /** Grows when the writer is to be found again. Clients of another epoch are not used any more. */
  #epoch = 0;
  readonly #clients = new WeakMap<Client, { readonly epoch: number; readonly address: Address }>();
  #checkedAt = 0;
  /** One search at a time; those that come meanwhile share its result. */
  #search: Promise<Address> | undefined;

  /**
   * `makeTo` makes a client of one address that is not connected, and that does not reconnect by itself; for a question for its role, or
   * for use.
   */
  constructor(addresses: readonly Address[], makeTo: (address: Address, isQuestion: boolean) => Client) {
    this.#known = new KnownAddresses(addresses);
    this.#makeTo = makeTo;
  }

  async make(): Promise<Client> {
    const epoch = this.#epoch;
    const address = this.#address ?? await (this.#search ??= this.#find().finally(() => { this.#search = undefined; }));
    const client = this.#makeTo(address, false);
    this.#clients.set(client, { epoch, address });
    return client;
  }

  async isCurrent(client: Client): Promise<boolean> {
    const made = this.#clients.get(client);
    if (made === undefined || made.epoch !== this.#epoch) return false;
    if (performance.now() - this.#checkedAt < ROLE_CHECK_MS) return true;
    this.#checkedAt = performance.now();
    const answer = await askRole(client, made.address);
    const isCurrent = answer.isWriter || (answer.hasSpoken && !answer.hasRole);
    if (answer.hasRole) this.#known.learn(answer);
    if (!isCurrent) this.forget(client);
    return isCurrent;
  }

  forget(client: Client): void {
    if (this.#clients.get(client)?.epoch !== this.#epoch) return;
    this.#epoch += 1;
    this.#address = undefined;
  }

  leadToTheSame(one: Client, other: Client): boolean {
    return this.#clients.get(one)?.epoch === this.#clients.get(other)?.epoch;
  }

  refusal(error: unknown): unknown {
    return notWriter(error) ?? error;
  }

  /** Grows with the tries, and differs between clients. */
  pauseMs(tried: number): number {
    return Math.min(PAUSE_MS * 2 ** Math.min(tried, 10), SEARCH_PAUSE_MS_MAX) * (0.5 + Math.random() / 2);
  }

  /** Asks all servers once, at the same time. The first that writes is it. */
  async #find(): Promise<Address> {
    const epoch = this.#epoch;
    const known = this.#known.all();
    const answers: RoleAnswer[] = [];
    const asked: Client[] = [];
    const ask = async (address: Address): Promise<Address> => {
      const client = this.#makeTo(address, true);
      asked.push(client);
      const answer = await connectAndAskRole(client, address);
      answers.push(answer);
      if (!answer.isWriter) throw new UnavailableError(answer.says);
      return address;
    };
    try {
      const address = await Promise.any(known.map(ask));
      if (epoch === this.#epoch) this.#address = address;
      this.#checkedAt = performance.now();
      return address;
    } catch (error) {
      if (!(error instanceof AggregateError)) throw error;
      throw noWriter(answers.sort((a, b) => known.indexOf(a.address) - known.indexOf(b.address)));
    } finally {
      for (const client of asked) end(client);
      // What the writer has said comes last: it names all followers.
      for (const answer of answers.sort((a, b) => Number(a.isWriter) - Number(b.isWriter))) this.#known.learn(answer);
    }
  }
}

const ENDED = new WeakSet<Client>();

/** Ends a client whatever it does. */
function end(client: Client): void {
  ENDED.add(client);
  client.destroy();
}

async function connectAndAskRole(client: Client, address: Address): Promise<RoleAnswer> {
  try {
    const connected = client.connect();
    // A client that is destroyed while it connects goes on to connect.
    connected.then(() => { if (ENDED.has(client)) client.destroy(); }).catch(() => {});
    await within(connected, ROLE_MS);
    return await askRole(client, address);
  } catch (error) {
    return readFailure(address, asHoldfastError(error));
  } finally {
    end(client);
  }
}

async function askRole(client: Client, address: Address): Promise<RoleAnswer> {
  try {
    return readRole(address, await within(client.sendCommand<Reply>(['ROLE'], { typeMapping: TYPES }), ROLE_MS));
  } catch (error) {
    return readFailure(address, asHoldfastError(error));
  }
}

async function within<T>(answer: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new UnavailableError(`no answer in ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([answer, tooLate]);
  } finally {
    clearTimeout(timer);
  }
}

