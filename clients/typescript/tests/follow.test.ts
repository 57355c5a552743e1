// Following a run over RESP2 and RESP3: every event once and in order, also while the server is killed and started again.

import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { ClosedError, RunStore, ServerError, UnavailableError, type Connection, type NewEvent } from '../src/index.js';
import { Server, eventually, range } from './server.js';

const server = await Server.start();
const skip = await server.lacks('run.append', 'run.events');

for (const RESP of [2, 3] as const) {
  describe(`following a run, RESP${RESP}`, { skip }, () => {
    let connection: Connection;
    let runs: RunStore;

    beforeEach(async () => {
      connection = await server.connect({ RESP });
      runs = new RunStore(connection);
      await connection.client.flushAll();
    });

    const append = (n: number) => runs.appendEvent({ runId: 'r', idempotencyKey: `${n}`, eventType: 'Counted', eventData: n });
    const blocked = async (n: number) => (await connection.client.info('clients')).includes(`blocked_clients:${n}`);

    /** Follows until so many events were seen. */
    async function seen(count: number, after = 0, pageSize = 1000): Promise<unknown[]> {
      const data = [];
      for await (const event of runs.follow('r', { after, pageSize })) {
        data.push(event.eventData);
        if (data.length === count) break;
      }
      return data;
    }

    test('what is there, then what comes', async () => {
      for (const n of [1, 2, 3]) await append(n);
      const all = seen(5);
      const some = seen(3, 2);
      const small = seen(5, 0, 2);
      await eventually(() => blocked(3));
      await append(4);
      await append(5);
      assert.deepEqual(await all, [1, 2, 3, 4, 5]);
      assert.deepEqual(await some, [3, 4, 5]);
      assert.deepEqual(await small, [1, 2, 3, 4, 5]);
      await eventually(() => blocked(0));
      await assert.rejects(seen(1, 0, 0), RangeError);
    });

    test('it tells how far it is behind, after each page', async () => {
      for (const n of [1, 2, 3, 4, 5]) await append(n);
      const lags: number[] = [];
      const abort = new AbortController();
      for await (const event of runs.follow('r', { pageSize: 2, signal: abort.signal, onLag: ({ events }) => {
        lags.push(events);
        if (events === 0) abort.abort();
      } })) assert.ok(event.runSeq <= 5);
      assert.deepEqual(lags, [3, 1, 0]);
    });

    test('a run that does not exist yet', async () => {
      const first = seen(1);
      await eventually(() => blocked(1));
      await append(1);
      assert.deepEqual(await first, [1]);
    });

    test('it ends with its signal, while it waits, between two events and before the first', async () => {
      for (const n of [1, 2, 3]) await append(n);
      const abort = new AbortController();
      const follow = async (signal: AbortSignal, stopAt?: number, stop?: () => void) => {
        const data = [];
        for await (const event of runs.follow('r', { signal })) {
          data.push(event.eventData);
          if (event.runSeq === stopAt) stop?.();
        }
        return data;
      };
      const waiting = follow(abort.signal);
      await eventually(() => blocked(1));
      abort.abort();
      assert.deepEqual(await waiting, [1, 2, 3]);
      await eventually(() => blocked(0));
      assert.deepEqual(await follow(abort.signal), []);
      const between = new AbortController();
      assert.deepEqual(await follow(between.signal, 2, () => between.abort()), [1, 2]);
    });

    test('a run that was made anew is an error', async () => {
      for (const n of [1, 2, 3]) await append(n);
      const anew = assert.rejects(seen(4), ServerError);
      await eventually(() => blocked(1));
      await connection.client.del('r');
      await append(1);
      await anew;
    });

    test('it ends when the connection is closed', async () => {
      const other = new RunStore(await server.connect({ RESP }));
      const observer = await server.connect({ RESP });
      const following = assert.rejects(seen(1), ClosedError);
      await eventually(async () => (await observer.client.info('clients')).includes('blocked_clients:1'));
      await connection.close();
      await following;
      assert.equal((await other.appendEvent({ runId: 'r', eventType: 'X', eventData: 0 })).runSeq, 1);
    });

    test('it says that the server is away, and goes on when it is back', async () => {
      await append(1);
      const away: unknown[] = [];
      const data: unknown[] = [];
      const following = (async () => {
        for await (const event of runs.follow('r', { onRetry: (error) => away.push(error) })) {
          data.push(event.eventData);
          if (data.length === 2) break;
        }
      })();
      await eventually(() => blocked(1));
      await server.kill();
      await eventually(() => away.length > 0);
      await server.run();
      await append(2);
      await following;
      assert.deepEqual(data, [1, 2]);
      assert.ok(away.every((error) => error instanceof UnavailableError));
    });

    test('every event is seen once and in order, across kill -9', async () => {
      const [writers, each] = [8, 150];
      const abort = new AbortController();
      const seqs: number[] = [];
      const keys: string[] = [];
      const following = (async () => {
        for await (const event of runs.follow('r', { signal: abort.signal, pageSize: 7 })) {
          seqs.push(event.runSeq);
          keys.push(event.idempotencyKey);
        }
      })();

      /** Appends until there is an answer: the key makes it safe. */
      const insist = async (event: NewEvent): Promise<number> => {
        for (;;) {
          try {
            return (await runs.appendEvent(event)).runSeq;
          } catch (error) {
            if (!(error instanceof UnavailableError)) throw error;
          }
        }
      };
      const acknowledged = new Map<string, number>();
      const writing = Promise.all(range(writers, async (writer) => {
        for (const n of range(each, (i) => i)) {
          const event = { runId: 'r', idempotencyKey: `${writer}:${n}`, eventType: 'Counted', eventData: n };
          const runSeq = await insist(event);
          acknowledged.set(event.idempotencyKey, runSeq);
          if (n % 3 === 0) assert.equal(await insist(event), runSeq, 'a duplicate has the number of the first');
        }
      }));
      const killing = (async () => {
        for (const at of [200, 500, 800]) {
          await eventually(() => acknowledged.size >= at && seqs.length > at / 2);
          await server.kill();
          await server.run();
        }
      })();
      await Promise.all([writing, killing]);
      await eventually(() => seqs.length >= writers * each);
      await eventually(() => blocked(1));
      abort.abort();
      await following;

      assert.deepEqual(seqs, range(writers * each, (i) => i + 1));
      assert.deepEqual(keys.map((key) => acknowledged.get(key)), seqs, 'each acknowledged number is that of its event');
      assert.equal(new Set(keys).size, writers * each);
    });
  });
}
