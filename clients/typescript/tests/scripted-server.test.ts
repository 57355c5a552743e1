// Answers that a real server gives rarely: LOADING while it reads its data, and integers above 2^53-1. A script plays the server.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server as NetServer } from 'node:net';
import { afterEach, test } from 'node:test';
import { Connection, HoldfastError, ReplyError, RunStore, ServerError } from '../src/index.js';

const LOADING = '-LOADING Redis is loading the dataset in memory\r\n';
const closed: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closed.splice(0)) await close();
});

/** A connection to a server that gives one answer to each request, in turn; the last one again and again. */
async function scripted(answers: readonly string[], responseTimeoutMs: number): Promise<{ connection: Connection; requests: () => number }> {
  let requests = 0;
  const server: NetServer = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (data) => {
      for (const _ of data.toString().matchAll(/^\*/gm)) {
        socket.write(answers[Math.min(requests, answers.length - 1)] ?? '');
        requests += 1;
      }
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  // Nothing is asked when it connects.
  const quiet = { RESP: 2, disableClientInfo: true, maintNotifications: 'disabled' } as const;
  const connection = await Connection.open({ ...quiet, socket: { host: '127.0.0.1', port }, responseTimeoutMs });
  closed.push(() => connection.close(), () => server.close());
  return { connection, requests: () => requests };
}

test('a request waits until the server has read its data', async () => {
  const shared = await scripted([LOADING, LOADING, ':1\r\n'], 30_000);
  assert.equal(await shared.connection.ask(['DEL', 'x']), '1');
  assert.equal(shared.requests(), 3);
  const own = await scripted([LOADING, LOADING, ':1\r\n'], 30_000);
  assert.equal(await own.connection.askAndWait(['CLAIM'], 30_000), '1');
  assert.equal(own.requests(), 3);
});

test('a server that does not end reading is an error at last', async () => {
  const { connection, requests } = await scripted([LOADING], 500);
  // On a busy machine the last try may get no answer in the time that is left.
  const isTemporary = (error: unknown) => error instanceof HoldfastError && error.isTemporary;
  await assert.rejects(connection.ask(['DEL', 'x']), isTemporary);
  await assert.rejects(connection.askAndWait(['CLAIM'], 500), isTemporary);
  assert.ok(requests() >= 2);
});

test('other refusals are not tried again', async () => {
  const { connection, requests } = await scripted(['-OOM command not allowed\r\n'], 30_000);
  const isRefusal = (error: unknown) =>
    error instanceof ServerError && error.code === 'OOM' && error.message === 'command not allowed' && !error.isTemporary;
  await assert.rejects(connection.ask(['HPUT']), isRefusal);
  await assert.rejects(connection.askAndWait(['CLAIM'], 30_000), isRefusal);
  assert.equal(requests(), 2);
});

test('a time that is too long for a timer is a long time', async () => {
  const { connection } = await scripted([':1\r\n'], Infinity);
  assert.equal(await connection.ask(['DEL', 'x']), '1');
  assert.equal(await connection.askAndWait(['CLAIM'], 2 ** 40), '1');
});

test('a runSeq above 2^53-1 is refused, not rounded', async () => {
  const { connection } = await scripted(['*6\r\n$6\r\nrunSeq\r\n:9223372036854775807\r\n$10\r\nidempotent\r\n:0\r\n$9\r\npersisted\r\n:0\r\n'], 30_000);
  const runs = new RunStore(connection);
  await assert.rejects(runs.appendEvent({ runId: 'r', eventType: 'X', eventData: 1 }, { ifLast: 1 }), (error) =>
    error instanceof ReplyError && error.message.startsWith('9223372036854775807 is beyond 2^53-1'));
});
