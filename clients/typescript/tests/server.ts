// A server of a test's own: the binary that HOLDFAST_BIN names, or another one, on a free port, in a directory that goes with it.
// Knows nothing of what is asked of it.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection, UnavailableError, type ConnectionOptions } from '../src/index.js';

export class Server {
  readonly port: number;
  readonly #directory: string;
  #process: ChildProcess | undefined;
  #output = '';
  #opened: Connection[] = [];

  readonly #bin: string;
  readonly #options: readonly string[];

  private constructor(port: number, bin: string, options: readonly string[]) {
    this.port = port;
    this.#bin = bin;
    this.#options = options;
    this.#directory = mkdtempSync(join(tmpdir(), 'holdfast-ts-'));
  }

  /** Starts one for the tests of a file, and ends it behind the last of them; their connections end behind each. */
  static async start(bin = process.env['HOLDFAST_BIN'], options: readonly string[] = []): Promise<Server> {
    if (bin === undefined) throw new Error('HOLDFAST_BIN has to name the server to test');
    const server = new Server(await freePort(), bin, options);
    after(() => server.end());
    afterEach(() => server.#closeConnections());
    await server.run();
    return server;
  }

  async run(): Promise<void> {
    const started = spawn(this.#bin, ['--port', `${this.port}`, '--bind', '127.0.0.1', '--dir', this.#directory, ...this.#options], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#process = started;
    for (const stream of [started.stdout, started.stderr]) stream?.on('data', (chunk: Buffer) => { this.#output += chunk.toString(); });
    while (!(await this.#answers())) {
      if (started.exitCode !== null) throw new Error(`the server did not come up:\n${this.#output}`);
      await sleep(10);
    }
  }

  /** Ends it as a crash would. What it has acknowledged is in its directory. */
  async kill(): Promise<void> {
    const running = this.#process;
    this.#process = undefined;
    if (running === undefined) return;
    const ended = once(running, 'exit');
    running.kill('SIGKILL');
    await ended;
  }

  async end(): Promise<void> {
    await this.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  /** Stops its execution without ending it: connections stay, and get no answer. */
  async pause(): Promise<void> {
    const tasks = `/proc/${this.#process?.pid}/task`;
    this.#process?.kill('SIGSTOP');
    // A thread may run on for a moment.
    const isStopped = (thread: string) => / [Tt] [^)]*$/.test(readFileSync(join(tasks, thread, 'stat'), 'utf8'));
    await eventually(() => readdirSync(tasks).every(isStopped));
  }

  resume(): void {
    this.#process?.kill('SIGCONT');
  }

  async connect(options: ConnectionOptions = {}): Promise<Connection> {
    const connection = await Connection.open({ socket: { host: '127.0.0.1', port: this.port }, ...options });
    this.#opened.push(connection);
    return connection;
  }

  /** Whether tests have to be skipped, and why: a plain Redis does not have these commands. */
  async lacks(...commands: string[]): Promise<string | false> {
    const connection = await this.connect();
    const known = await connection.client.sendCommand<unknown[]>(['COMMAND', 'INFO', ...commands]);
    await connection.close();
    const missing = commands.filter((_, i) => known[i] === null);
    return missing.length > 0 && `the server has no ${missing.join()}`;
  }

  async #answers(): Promise<boolean> {
    try {
      const connection = await Connection.open({ socket: { host: '127.0.0.1', port: this.port, reconnectStrategy: false } });
      await connection.ask(['PING']); // which waits until it has read its data
      await connection.close();
      return true;
    } catch (error) {
      if (error instanceof UnavailableError) return false;
      throw error;
    }
  }

  async #closeConnections(): Promise<void> {
    await Promise.all(this.#opened.splice(0).map((connection) => connection.close()));
  }
}

export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}

/** Waits for what another client brings about. A test that waits in vain ends at the runner's limit. */
export async function eventually(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(5);
}

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

export const range = <T>(n: number, make: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => make(i));

export const everyByte = Buffer.from(range(256, (byte) => byte));
