// State that takes each update once, over RESP2 and RESP3: versions, updates in order, snapshots and checkpoints.

import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { ExactlyOnceState, ReplyError, ServerError, UnavailableError, codec, type Connection } from '../src/index.js';
import { Server, range } from './server.js';

const server = await Server.start();
const skip = await server.lacks('reg.put', 'reg.mget', 'reg.snapshot', 'reg.restore');

const round = (round: number) => ({ epoch: 0, round });

for (const RESP of [2, 3] as const) {
  describe(`exactly-once state, RESP${RESP}`, { skip }, () => {
    let connection: Connection;
    let state: ExactlyOnceState<string>;
    let counts: ExactlyOnceState<number>;

    beforeEach(async () => {
      connection = await server.connect({ RESP });
      await connection.client.flushAll();
      state = new ExactlyOnceState(connection, 's/', codec.text);
      counts = new ExactlyOnceState(connection, 'c/', codec.integer);
    });

    test('an update is applied once, and never goes back', async () => {
      assert.equal(await state.get('k'), null);
      assert.equal(await state.put('k', 'three', 3), 'applied');
      assert.equal(await state.put('k', 'three', 3), 'duplicate');
      assert.equal(await state.put('k', 'other', 3), 'mismatch');
      assert.equal(await state.put('k', 'two', 2), 'stale');
      assert.deepEqual(await state.get('k'), { value: 'three', version: round(3) });
      assert.equal(await state.put('k', 'epoch', { epoch: 1, round: 0 }), 'applied');
      assert.deepEqual(await state.mget(['none', 'k']), [null, { value: 'epoch', version: { epoch: 1, round: 0 } }]);
      assert.deepEqual(await state.mget([]), []);
      await assert.rejects(state.put('k', 'x', 1.5), RangeError);
      await assert.rejects(state.put('k', 'x', -1), ServerError);
      await connection.ask(['REG.PUT', 's/k', `${2n ** 64n - 1n}.0`, 'x']);
      await assert.rejects(state.get('k'), ReplyError);
    });

    test('ordered updates wait for those before them', async () => {
      assert.equal(await counts.addOrdered('n', 3, 100), 'buffered');
      assert.equal(await counts.get('n'), null);
      assert.equal(await counts.addOrdered('n', 1, 1), 'applied');
      assert.equal(await counts.putOrdered('n', 10, 2), 'applied');
      assert.deepEqual(await counts.get('n'), { value: 110, version: round(3) });
      assert.equal(await counts.addOrdered('n', 6, 1), 'buffered');
      assert.equal(await counts.seal('n', 6), 1);
      assert.equal(await counts.add('n', 7, -11), 'applied');
      assert.deepEqual(await counts.get('n'), { value: 100, version: round(7) });
    });

    test('a snapshot brings the state back with its position', async () => {
      await counts.put('a', 1, 1);
      await counts.put('b', 2, 1);
      await state.put('a', 'nine', 1);
      const snapshot = await counts.snapshot('offset 2');
      await counts.put('a', 5, 5);
      await counts.put('c', 5, 5);
      await state.put('a', 'ten', 2);
      assert.equal((await counts.merge(snapshot))?.toString(), 'offset 2');
      assert.equal((await counts.get('a'))?.value, 5);
      assert.equal((await counts.restore(snapshot))?.toString(), 'offset 2');
      assert.deepEqual((await counts.mget(['a', 'b', 'c'])).map((held) => held?.value), [1, 2, undefined]);
      assert.equal((await state.get('a'))?.value, 'ten');
      await assert.rejects(counts.restore(snapshot.subarray(0, -1)), ServerError);
      assert.equal(await counts.restore(await counts.snapshot()), null);
    });

    test('a restore fills the state that it is called on', async () => {
      const other = new ExactlyOnceState(connection, 'other/', codec.integer);
      await counts.put('a', 1, 1);
      const snapshot = await counts.snapshot('here');
      await counts.put('a', 2, 2);
      await other.put('b', 9, 9);
      assert.equal((await other.restore(snapshot))?.toString(), 'here');
      assert.deepEqual((await other.mget(['a', 'b'])).map((held) => held?.value), [1, undefined]);
      assert.equal((await counts.get('a'))?.value, 2);
      assert.equal((await other.merge(await counts.snapshot())), null);
      assert.equal((await other.get('a'))?.value, 2);
    });

    test('keys are text or bytes', async () => {
      const key = Buffer.from([0, 0xff, 0x0a]);
      const binary = new ExactlyOnceState(connection, Buffer.from([0xfe, 0x2f]), codec.text);
      assert.equal(await binary.put(key, 'v', 1), 'applied');
      assert.equal(await binary.put('text', 'w', 1), 'applied');
      assert.deepEqual((await binary.mget([key, 'text', Buffer.from('text')])).map((held) => held?.value), ['v', 'w', 'w']);
      assert.equal(await connection.client.exists(Buffer.concat([Buffer.from([0xfe, 0x2f]), key])), 1);
      assert.equal(await state.put(key, 'x', 1), 'applied');
      assert.equal((await state.get(key))?.value, 'x');
      assert.equal(await binary.checkpoint(Buffer.from([0xfd])), 2);
      assert.deepEqual(await binary.restoreCheckpoint(Buffer.from([0xfd])), { position: null });
    });

    test('a checkpoint is kept at the server', async () => {
      assert.equal(await counts.restoreCheckpoint('check'), null);
      assert.equal(await counts.mergeCheckpoint('check'), null);
      await counts.put('a', 1, 1);
      assert.equal(await counts.checkpoint('without'), 1);
      assert.deepEqual(await counts.restoreCheckpoint('without'), { position: null });
      await connection.ask(['SET', 'damaged', 'x']);
      await assert.rejects(counts.restoreCheckpoint('damaged'), ServerError);
      assert.equal(await counts.checkpoint('check', new Uint8Array([0, 255])), 1);
      await counts.put('a', 2, 2);
      await server.kill();
      await server.run();
      assert.deepEqual(await counts.mergeCheckpoint('check'), { position: Buffer.from([0, 255]) });
      assert.equal((await counts.get('a'))?.value, 2);
      assert.deepEqual(await counts.restoreCheckpoint('check'), { position: Buffer.from([0, 255]) });
      assert.equal((await counts.get('a'))?.value, 1);
    });

    test('input that is replayed after a crash counts once', async () => {
      const insist = async (version: number): Promise<void> => {
        for (;;) {
          try {
            await counts.addOrdered('n', version, version);
            return;
          } catch (error) {
            if (!(error instanceof UnavailableError)) throw error;
          }
        }
      };
      const replay = async () => { for (const i of range(60, (i) => i)) await insist(((i * 7) % 60) + 1); };
      const first = replay();
      await server.kill();
      await server.run();
      await first;
      await replay();
      assert.deepEqual(await counts.get('n'), { value: (60 * 61) / 2, version: round(60) });
    });
  });
}
