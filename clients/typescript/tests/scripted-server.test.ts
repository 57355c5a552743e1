// Answers that a real server gives rarely: LOADING while it reads its data, integers above 2^53-1, a commit without an answer. A script
// plays the server.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server as NetServer } from 'node:net';
import { afterEach, test } from 'node:test';
import { CellStore, ConflictError, Connection, HoldfastError, RecordStore, ReplyError, RunStore, ServerError, UnavailableError, codec } from '../src/index.js';

const LOADING = '-LOADING Redis is loading the dataset in memory\r\n';
/** What a connection asks when it is opened: whether the server has Holdfast's commands. */
const COMMANDS = `*7\r\n${'*1\r\n$1\r\nx\r\n'.repeat(7)}`;
const closed: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closed.splice(0)) await close();
});

/** A connection to a server that gives one answer to each request, in turn; the last one again and again. */
async function scripted(answers: readonly string[], responseTimeoutMs: number, commands = COMMANDS): Promise<Scripted> {
  let requests = 0;
  const names: string[] = [];
  const server: NetServer = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (data) => {
      for (const [, name] of data.toString().matchAll(/^\*\d+\r\n\$\d+\r\n(.*)\r\n/gm)) {
        if (name === 'COMMAND') {
          socket.write(commands);
          continue;
        }
        names.push(name ?? '');
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
  return { connection, requests: () => requests, names };
}

interface Scripted {
  readonly connection: Connection;
  readonly requests: () => number;
  /** The commands that came, without their arguments. */
  readonly names: readonly string[];
}

test('what a fenced server was asked for may have been done', async () => {
  const { connection, requests } = await scripted(['-FENCED a writer of epoch 5 has taken the journal over\r\n'], 30_000);
  await assert.rejects(connection.ask(['DEL', 'x']), UnavailableError);
  await assert.rejects(connection.askAndWait(['CLAIM'], 30_000), UnavailableError);
  assert.equal(requests(), 2);
});

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

test('a user without the right to ask for the commands can do the rest', async () => {
  const { connection, names } = await scripted([':1\r\n'], 30_000, "-NOPERM this user has no permissions to run the 'command' command\r\n");
  assert.equal(connection.isHoldfast, true);
  await new RecordStore(connection).put('r', { a: 1 });
  assert.deepEqual(names, ['HPUT']);
});

test('a server that knows none of the commands is used as a plain Redis', async () => {
  const { connection, names } = await scripted([':1\r\n'], 30_000, `*7\r\n${'*-1\r\n'.repeat(7)}`);
  assert.equal(connection.isHoldfast, false);
  await new RecordStore(connection).put('r', { a: 1 });
  assert.deepEqual(names, ['EVAL']);
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

test('a read transaction begins, reads and ends on one connection', async () => {
  const row = '*3\r\n$1\r\n7\r\n:3\r\n:1760000000000000\r\n';
  const { connection, names } = await scripted(['+OK\r\n', row, `*2\r\n${row}$-1\r\n`, ':12\r\n'], 30_000);
  const read = await new CellStore(connection).readTransaction(async (txn) => {
    const cell = txn.cell('a', codec.integer);
    return [(await cell.get())?.value, ...await txn.getCells([cell, txn.cell('b')])];
  });
  assert.deepEqual(read, [7, { value: 7, version: 3, updatedAtUs: 1760000000000000 }, null]);
  assert.deepEqual(names, ['TXN.BEGIN', 'CELL.GETV', 'CELL.MGET', 'TXN.COMMIT']);
});

test('a read transaction is tried again when the server could not keep its instant', async () => {
  const conflict = '-CONFLICT what was there is not kept\r\n';
  const first = await scripted(['+OK\r\n', conflict, '+OK\r\n', '+OK\r\n', '$-1\r\n', ':12\r\n'], 30_000);
  assert.equal(await new CellStore(first.connection).readTransaction((txn) => txn.cell('a').get()), null);
  assert.deepEqual(first.names, ['TXN.BEGIN', 'CELL.GETV', 'TXN.ROLLBACK', 'TXN.BEGIN', 'CELL.GETV', 'TXN.COMMIT']);
  const never = await scripted(['+OK\r\n', ...Array<string>(60).fill(conflict)], 30_000);
  await assert.rejects(new CellStore(never.connection).readTransaction((txn) => txn.cell('a').get()), ConflictError);
});

test('a transaction whose commit has no answer is unavailable, and is not made again', async () => {
  const { connection, names } = await scripted(['+OK\r\n', ':1\r\n', ''], 300);
  const failed = new CellStore(connection).transaction(5, (txn) => txn.send(['INCR', 'n']));
  await assert.rejects(failed, (error) => error instanceof HoldfastError && error.name === 'UnavailableError');
  assert.deepEqual(names, ['TXN.BEGIN', 'INCR', 'TXN.COMMIT']);
});
