// The addresses of servers of which one writes: how they are written, and what each server says of its role. Knows no connection.

import { isIPv4, isIPv6 } from 'node:net';
import { NoWriterError, ReplyError, ServerError, type HoldfastError } from './errors.js';
import { bytes, integer, list, text, type Reply } from './replies.js';

const PORT = 6379;

/** How many addresses are kept beside those that the program gives. */
const NAMED_MAX = 64;

const SCHEMES: Readonly<Record<string, string>> = { holdfast: 'redis', holdfasts: 'rediss' };

/** A server's address: `host:port`, with brackets around an IPv6 address. */
export type Address = string;

/** `host:port`, `[::1]:port`, or a host alone. */
export function parseAddress(written: string): Address {
  const [, host = '', port = `${PORT}`] = /^(\[[0-9a-fA-F:.]+\]|[^:\[\]]+)(?::(\d+))?$/.exec(written) ?? [];
  if (host === '' || !isPort(Number(port))) {
    throw new RangeError(`${written} is no address: it has to be host:port, and an IPv6 address has brackets, as in [::1]:6379`);
  }
  return `${host}:${Number(port)}`;
}

/** How a URL is made for each address. */
export interface Servers {
  /** Those of which one is to be found that writes. None if the URL has one host and no list is given. */
  readonly addresses: readonly Address[];
  /** The URL for node-redis. */
  readonly urlOf: (address: Address) => string;
}

/** Reads a URL that may have several hosts; a list of addresses is in the place of its host. */
export function readServers(url: string, addresses: readonly string[] | undefined): Servers {
  const [, written = '', rest = ''] = /^([a-z]+):\/\/(.*)$/s.exec(url) ?? [];
  const scheme = SCHEMES[written] ?? written;
  if (scheme !== 'redis' && scheme !== 'rediss') {
    if (addresses !== undefined) throw new TypeError(`${url} has no host in the place of which the addresses could be`);
    return { addresses: [], urlOf: () => url };
  }
  const end = rest.search(/[/?#]|$/);
  const at = rest.lastIndexOf('@', end - 1) + 1;
  const hosts = rest.slice(at, end);
  if (addresses === undefined && !hosts.includes(',')) return { addresses: [], urlOf: () => `${scheme}://${rest}` };
  if (addresses !== undefined && (!Array.isArray(addresses) || addresses.length === 0)) {
    throw new TypeError('addresses is a list of host:port, with one at least');
  }
  return {
    addresses: [...new Set((addresses ?? hosts.split(',')).map(parseAddress))],
    urlOf: (address) => `${scheme}://${rest.slice(0, at)}${address}${rest.slice(end)}`,
  };
}

/** What the server at an address has said when it was asked for its role. */
export interface RoleAnswer {
  readonly address: Address;
  /** In words, for an error. */
  readonly says: string;
  readonly isWriter: boolean;
  /** The other servers that it has named. */
  readonly named: readonly Address[];
  /** It does not let the user ask. */
  readonly refusal?: ServerError;
  /** It has said something. */
  readonly hasSpoken: boolean;
  /** It has told its role: one that a long script holds up has not. */
  readonly hasRole: boolean;
}

/** Reads the reply of ROLE. */
export function readRole(address: Address, reply: Reply): RoleAnswer {
  const [role, ...rest] = list(reply);
  const answer = { address, isWriter: false, named: [], hasSpoken: true, hasRole: true };
  switch (text(role)) {
    case 'master': {
      const rows = list(rest[1]).map(list);
      return { ...answer, says: 'writes', isWriter: true, named: rows.flatMap(([host, port]) => resolve(address, host, port)) };
    }
    case 'slave': {
      const named = resolve(address, rest[0], rest[1]);
      return { ...answer, says: `follows ${named[0] ?? 'no server'}`, named };
    }
    default:
      return { ...answer, says: `is a ${text(role)}` };
  }
}

/** A server that has not told its role. */
export function readFailure(address: Address, error: Error): RoleAnswer {
  const answer = { address, isWriter: false, named: [], hasSpoken: true, hasRole: false };
  if (error instanceof ServerError) {
    const says = `refuses (${error.code} ${error.message})`;
    return ['NOAUTH', 'WRONGPASS', 'NOPERM'].includes(error.code) ? { ...answer, says, refusal: error } : { ...answer, says };
  }
  if (error instanceof ReplyError) return { ...answer, says: `has no role (${error.message})` };
  return { ...answer, says: `does not answer (${error.message})`, hasSpoken: false };
}

/** The error if none of the servers writes. If all that answer refuse the user, so they will a little later. */
export function noWriter(answers: readonly RoleAnswer[]): HoldfastError {
  const spoken = answers.filter(({ hasSpoken }) => hasSpoken);
  const refusal = spoken[0]?.refusal;
  if (refusal !== undefined && spoken.every((answer) => answer.refusal !== undefined)) return refusal;
  return new NoWriterError(new Map(answers.map(({ address, says }) => [address, says])));
}

/** The addresses at which a writer may be: those of the program, and those that its servers have named. */
export class KnownAddresses {
  readonly #given: readonly Address[];
  #named: readonly Address[] = [];

  constructor(given: readonly Address[]) {
    this.#given = given;
  }

  all(): Address[] {
    return [...new Set([...this.#given, ...this.#named])];
  }

  /** A writer names all its followers, so what was named before is not needed any more. */
  learn({ isWriter, address, named }: RoleAnswer): void {
    this.#named = [...new Set([...(isWriter ? [] : this.#named), address, ...named])].slice(0, NAMED_MAX);
  }
}

/** An address that the server at another one has named. The server's own loopback is the machine on which it runs. */
function resolve(by: Address, host: Reply | undefined, port: Reply | undefined): Address[] {
  const [name, number] = [bytes(host).toString(), integer(port)];
  if (name === '' || name === '?' || !isPort(number)) return [];
  if (isLoopback(name)) return [`${by.slice(0, by.lastIndexOf(':'))}:${number}`];
  return [isIPv6(name) ? `[${name}]:${number}` : `${name}:${number}`];
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));
}

function isPort(port: number): boolean {
  return Number.isInteger(port) && port > 0 && port < 65_536;
}
