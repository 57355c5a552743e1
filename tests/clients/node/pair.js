// A writer and its follower that tests start, hand over and kill. Both answer as Sentinels. Knows processes; refuses to know
// what a client does.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';

import { eventually } from './support.js';

export const NAME = 'holdfast';

// Why the tests cannot run, if so.
export const skip = !process.env.HOLDFAST_BIN || process.env.HOLDFAST_BIN.includes('redis-server')
  ? 'this test starts a holdfast of its own' : false;

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

// A test that takes too long is ended, and its servers with it.
const processes = new Set();
process.once('SIGTERM', () => process.exit(1));
process.on('exit', () => processes.forEach((started) => started.kill('SIGKILL')));

class Member {
  static async start(...args) {
    const member = new Member();
    member.port = await freePort();
    member.sentinelPort = await freePort();
    const ports = ['--port', String(member.port), '--sentinel-port', String(member.sentinelPort)];
    member.process = spawn(process.env.HOLDFAST_BIN, ['--bind', '127.0.0.1', ...ports, ...args], { stdio: 'ignore' });
    processes.add(member.process);
    member.client = new Redis(member.port, '127.0.0.1', { maxRetriesPerRequest: null, retryStrategy: () => 20 });
    member.client.on('error', () => {});
    await member.client.ping();
    return member;
  }

  async role() {
    return this.client.role();
  }

  async kill() {
    this.client.disconnect();
    const ended = once(this.process, 'exit');
    this.process.kill('SIGKILL');
    await ended;
    processes.delete(this.process);
  }
}

export class Pair {
  static async start() {
    const pair = new Pair();
    pair.directory = mkdtempSync(join(tmpdir(), 'holdfast-pair-'));
    pair.writer = await Member.start('--dir', pair.directory);
    pair.follower = await Member.start('--follow', `file:${pair.directory}`);
    await pair.awaitFollower();
    return pair;
  }

  sentinels() {
    return [this.writer, this.follower].map((member) => ({ host: '127.0.0.1', port: member.sentinelPort }));
  }

  async awaitFollower() {
    await eventually(async () => (await this.writer.role())[2].length === 1);
  }

  async handOver() {
    await this.writer.client.call('FAILOVER');
    await eventually(async () =>
      (await this.follower.role())[0] === 'master' && (await this.writer.role())[0] === 'slave');
    [this.writer, this.follower] = [this.follower, this.writer];
    await this.awaitFollower();
  }

  // Kills the writer. The follower takes over, and another process follows it.
  async killWriter() {
    await this.writer.kill();
    assert.equal(await this.follower.client.call('REPLICAOF', 'NO', 'ONE'), 'OK');
    this.writer = this.follower;
    this.follower = await Member.start('--follow', `file:${this.directory}`);
    await this.awaitFollower();
  }

  async end() {
    await Promise.all([this.writer.kill(), this.follower.kill()]);
    rmSync(this.directory, { recursive: true });
  }
}

const WRITES = 200;

// Sets one key after the other with `set`, each until that is acknowledged, while the writer changes twice and is killed.
// Answers the values that were acknowledged, by key.
export async function writeThroughChanges(pair, set) {
  let acknowledged = 0;
  let hasToEnd = false;
  const write = async () => {
    while (!hasToEnd) {
      try {
        assert.equal(await set(`key:${acknowledged}`, String(acknowledged)), 'OK');
        acknowledged += 1;
      } catch (error) {
        assert.ok(!(error instanceof assert.AssertionError), error);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    }
  };
  const writing = write();
  const more = async () => {
    const wanted = acknowledged + WRITES;
    await eventually(async () => acknowledged >= wanted);
  };
  try {
    await more();
    await pair.handOver();
    await more();
    await pair.handOver();
    await more();
    await pair.killWriter();
    await more();
  } finally {
    hasToEnd = true;
    await writing;
  }
  return new Map(Array.from({ length: acknowledged }, (_, number) => [`key:${number}`, String(number)]));
}
