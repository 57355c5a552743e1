// A proxy between a client and a server that cuts connections: at once, after so many bytes of a request or of a reply, or at random.
// Knows nothing of what is said.

import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

type Way = 'request' | 'reply';

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  /** The direction that is cut, and the bytes that pass before. */
  readonly way: Way | null;
  left: number;
  /** Nothing passes any more. */
  isFrozen: boolean;
}

export class Proxy {
  /** How many connections were cut. */
  cuts = 0;
  readonly #serverPort: number;
  readonly #random: (() => number) | undefined;
  readonly #pairs = new Set<Pair>();
  readonly #listener: Server;
  #next: Partial<Record<Way, number>> = {};
  #refuses = false;

  private constructor(serverPort: number, random: (() => number) | undefined) {
    this.#serverPort = serverPort;
    this.#random = random;
    this.#listener = createServer((client) => this.#accept(client));
  }

  /** With random numbers every connection is cut after a random number of bytes, in one of the two directions. */
  static async start(serverPort: number, random?: () => number): Promise<Proxy> {
    const proxy = new Proxy(serverPort, random);
    proxy.#listener.listen(0, '127.0.0.1');
    await once(proxy.#listener, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#listener.address() as AddressInfo).port;
  }

  /** Cuts all connections. */
  cut(): void {
    for (const pair of [...this.#pairs]) this.#cutPair(pair);
  }

  /** Cuts a connection when so many more bytes of requests, or of replies, have passed in all. */
  cutAfter(next: Partial<Record<Way, number>>): void {
    this.#next = next;
  }

  /** Lets nothing pass any more on the connections that are there, without an end that their clients could see. */
  freeze(): void {
    for (const pair of this.#pairs) pair.isFrozen = true;
  }

  /** Ends every new connection at once. */
  refuse(): void {
    this.#refuses = true;
  }

  accept(): void {
    this.#refuses = false;
  }

  end(): void {
    this.#listener.close();
    this.cut();
  }

  #accept(client: Socket): void {
    client.on('error', () => {});
    if (this.#refuses) {
      client.destroy();
      return;
    }
    const server = connect(this.#serverPort, '127.0.0.1');
    client.setNoDelay();
    server.setNoDelay();
    const random = this.#random;
    const pair: Pair = random === undefined
      ? { client, server, way: null, left: 0, isFrozen: false }
      : { client, server, way: random() < 0.5 ? 'request' : 'reply', left: Math.floor(random() * BYTES_MAX), isFrozen: false };
    this.#pairs.add(pair);
    const copy = (way: Way, source: Socket, target: Socket): void => {
      source.on('error', () => {});
      source.on('close', () => this.#cutPair(pair));
      source.on('data', (data) => {
        if (!this.#pairs.has(pair) || pair.isFrozen) return;
        const passed = this.#allowed(way, pair, data.length);
        // Node.js sends what was written before the end.
        target.write(data.subarray(0, passed));
        if (passed < data.length) this.#cutPair(pair);
      });
    };
    copy('request', client, server);
    copy('reply', server, client);
  }

  /** How many of these bytes pass before the connection is cut. */
  #allowed(way: Way, pair: Pair, count: number): number {
    let passed = count;
    const next = this.#next[way];
    if (next !== undefined) {
      passed = Math.min(passed, next);
      this.#next[way] = next - passed;
      if (passed < count) delete this.#next[way];
    }
    if (way === pair.way) {
      passed = Math.min(passed, pair.left);
      pair.left -= passed;
    }
    return passed;
  }

  #cutPair(pair: Pair): void {
    if (!this.#pairs.delete(pair)) return;
    this.cuts += 1;
    for (const socket of [pair.client, pair.server]) socket.destroySoon();
  }
}

const BYTES_MAX = 4000;

/** Random numbers from 0 to 1 that a seed decides (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
