// State that takes each update once, over RESP2 and RESP3. tests/packages compares updates in order, snapshots and checkpoints of all packages,
// and tests/wire replays additions through crashes.

import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { ExactlyOnceState, ReplyError, ServerError, codec, type Connection } from '../src/index.js';
import { Server } from './server.js';

const server = await Server.start();
const skip = await server.lacks('reg.put', 'reg.mget', 'reg.snapshot', 'reg.restore');

const round = (round: number) => ({ epoch: 0, round });

for (const RESP of [2, 3] as const) {
  describe(`exactly-once state, RESP${RESP}`, { skip }, () => {
    let connection: Connection;
    let state: ExactlyOnceState<string>;

    beforeEach(async () => {
      connection = await server.connect({ RESP });
      await connection.client.flushAll();
      state = new ExactlyOnceState(connection, 's/', codec.text);
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
  });
}
