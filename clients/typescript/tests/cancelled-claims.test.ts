// A claim whose signal comes leaves no job to a worker that does not exist: what had come is given back, and its attempt does not count.

import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { ClosedError, Queue, RecordStore, type Connection } from '../src/index.js';
import { Server, eventually } from './server.js';

const server = await Server.start();
const skip = await server.lacks('hcas', 'claim', 'idx.create');
const CONFIG = { indexes: ['due'], attemptsMax: 1 };

for (const RESP of [2, 3] as const) {
  describe(`claims that are cancelled, RESP${RESP}`, { skip }, () => {
    let connection: Connection;
    let records: RecordStore;
    let queue: Queue;

    beforeEach(async () => {
      connection = await server.connect({ RESP });
      records = new RecordStore(connection);
      for (const index of await records.indexes()) await records.dropIndex(index);
      await connection.client.flushAll();
      queue = new Queue(records, CONFIG);
      await queue.createIndex('due', 'job:');
    });

    const blocked = async (): Promise<number> => Number(/blocked_clients:(\d+)/.exec(await connection.client.info('clients'))?.[1]);
    const waits = async (): Promise<void> => eventually(async () => await blocked() === 1);

    /** The job is pending, as if it had never been claimed, and its first attempt is the first that a handler sees. */
    async function canBeDone(key: string): Promise<void> {
      const { run_at: due, ...others } = (await records.get(key))?.toObject() ?? {};
      assert.ok(due !== undefined);
      assert.deepEqual(others, { state: 'pending' });
      const job = await queue.next('w-2', 0);
      assert.deepEqual([job?.key, job?.token], [key, 1]);
      await job?.complete();
    }

    test('around the moment of an add', async () => {
      let cancelled = 0;
      for (let i = 0; i < (RESP === 3 ? 200 : 50); i += 1) {
        const abort = new AbortController();
        const waiting = queue.next('w-1', 30_000, abort.signal).catch((error: unknown) => error);
        if (i % 4 > 0) await waits();
        const adding = queue.add(`job:${i}`, {});
        for (let turns = Math.floor(Math.random() * 12); turns > 0; turns -= 1) await turn();
        abort.abort(new Error('enough'));
        await adding;
        const ended = await waiting;
        if (ended instanceof Error) {
          assert.equal(ended.message, 'enough');
          await canBeDone(`job:${i}`);
          cancelled += 1;
        } else {
          assert.equal((ended as { token: number }).token, 1);
          await (ended as { complete(): Promise<void> }).complete();
        }
        assert.equal(await blocked(), 0);
      }
      assert.ok(cancelled > 0);
    });

    test('the connection of a wait that was ended is used again', async () => {
      const cancelOne = async (): Promise<void> => {
        const abort = new AbortController();
        const waiting = assert.rejects(queue.next('w-1', 30_000, abort.signal), /enough/);
        await waits();
        abort.abort(new Error('enough'));
        await waiting;
      };
      const made = async (): Promise<string | undefined> => /total_connections_received:\d+/.exec(await connection.client.info('stats'))?.[0];
      await cancelOne();
      const before = await made();
      for (let i = 0; i < 5; i += 1) await cancelOne();
      assert.equal(await made(), before);
    });

    test('a user without CLIENT UNBLOCK ends the connection', async () => {
      await connection.client.sendCommand(['ACL', 'SETUSER', 'narrow', 'on', '>secret', '~*', '&*', '+@all', '-client|unblock']);
      const narrow = await server.connect({ RESP, username: 'narrow', password: 'secret' });
      const abort = new AbortController();
      const waiting = assert.rejects(new Queue(new RecordStore(narrow), CONFIG).next('w-1', 30_000, abort.signal), /enough/);
      await waits();
      abort.abort(new Error('enough'));
      await waiting;
      await eventually(async () => await blocked() === 0);
      await connection.client.sendCommand(['ACL', 'DELUSER', 'narrow']);
    });

    test('a connection that is closed gives back first', async () => {
      for (let i = 0; i < 20; i += 1) {
        const closing = await server.connect({ RESP });
        const waiting = new Queue(new RecordStore(closing), CONFIG).next('w-1', 30_000).catch((error: unknown) => error);
        await waits();
        const adding = queue.add(`job:${i}`, {});
        for (let turns = i % 8; turns > 0; turns -= 1) await turn();
        await closing.close();
        await adding;
        if (await waiting instanceof ClosedError) await canBeDone(`job:${i}`);
        else await records.setField(`job:${i}`, 'state', 'completed');
      }
    });
  });
}
