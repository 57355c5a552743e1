// A writer and the followers of its log, as processes of a test's own that it promotes and kills; also of a plain Redis. Knows nothing of
// what is asked of them.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from 'redis';
import { freePort } from './server.js';

export class Node {
  readonly port: number;
  readonly address: string;
  readonly #process: ChildProcess;

  private constructor(port: number, running: ChildProcess) {
    this.port = port;
    this.address = `127.0.0.1:${port}`;
    this.#process = running;
  }

  static async start(bin: string, options: readonly string[]): Promise<Node> {
    const port = await freePort();
    let output = '';
    const running = spawn(bin, ['--port', `${port}`, '--bind', '127.0.0.1', ...options], { stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [running.stdout, running.stderr]) stream.on('data', (chunk: Buffer) => { output += chunk.toString(); });
    const node = new Node(port, running);
    for (;;) {
      try {
        await node.ask('PING');
        return node;
      } catch {
        if (running.exitCode !== null) throw new Error(`the server did not come up:\n${output}`);
        await sleep(10);
      }
    }
  }

  async ask(...words: string[]): Promise<unknown> {
    const client = createClient({ socket: { host: '127.0.0.1', port: this.port, reconnectStrategy: false } }).on('error', () => {});
    try {
      await client.connect();
      return await client.sendCommand<unknown>(words);
    } finally {
      client.destroy();
    }
  }

  /** Makes it the writer; of a server that does not answer it takes the log over. */
  async promote(): Promise<void> {
    await this.ask('REPLICAOF', 'NO', 'ONE');
  }

  pause(): void {
    this.#process.kill('SIGSTOP');
  }

  async kill(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const ended = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await ended;
  }
}

/** A writer and followers of the log in its directory; or, with another binary, a Redis and its replicas. */
export class Pair {
  readonly #directory = mkdtempSync(join(tmpdir(), 'holdfast-ts-'));
  readonly #redisServer: string | undefined;
  readonly #nodes: Node[] = [];
  writer!: Node;
  follower!: Node;

  private constructor(redisServer: string | undefined) {
    this.#redisServer = redisServer;
  }

  static async start(redisServer?: string): Promise<Pair> {
    const pair = new Pair(redisServer);
    pair.writer = await pair.#start([]);
    pair.follower = await pair.addFollower();
    return pair;
  }

  async addFollower(): Promise<Node> {
    if (this.#redisServer !== undefined) return this.#start(['--replicaof', '127.0.0.1', `${this.writer.port}`]);
    return this.#start(['--follow', `file:${this.#directory}/data`]);
  }

  addresses(): string[] {
    return [this.writer.address, this.follower.address];
  }

  async end(): Promise<void> {
    for (const node of this.#nodes) await node.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async #start(options: readonly string[]): Promise<Node> {
    const directory = join(this.#directory, this.#redisServer === undefined ? 'data' : `${this.#nodes.length}`);
    mkdirSync(directory, { recursive: true });
    const bin = this.#redisServer ?? process.env['HOLDFAST_BIN'];
    if (bin === undefined) throw new Error('HOLDFAST_BIN has to name the server to test');
    const where = this.#redisServer !== undefined ? ['--save', '', '--dir', directory] : options.length > 0 ? [] : ['--dir', directory];
    const node = await Node.start(bin, [...where, ...options]);
    this.#nodes.push(node);
    return node;
  }
}
