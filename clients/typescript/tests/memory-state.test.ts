// State in the process: what is seldom in the random histories of tests/packages, which compare it with that of the other packages.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryState, ServerError, codec } from '../src/index.js';

test('pairs wait for a seal', async () => {
  const state = new MemoryState(codec.text);
  const at = (epoch: number, round: number) => ({ epoch, round });
  assert.equal(await state.putOrdered('k', 'b', at(1, 2)), 'buffered');
  assert.equal(await state.putOrdered('k', 'a', at(0, 9)), 'buffered');
  assert.equal(await state.putOrdered('k', 'a', at(0, 9)), 'buffered');
  assert.equal(await state.putOrdered('k', 'other', at(0, 9)), 'mismatch');
  await assert.rejects(state.putOrdered('k', 'c', 3), ServerError);
  assert.equal(await state.get('k'), null);
  assert.equal(await state.seal('k', at(1, 0)), 1);
  assert.deepEqual(await state.get('k'), { value: 'a', version: at(0, 9) });
  assert.equal(await state.putOrdered('k', 'late', at(0, 10)), 'stale');
  assert.equal(await state.seal('k', at(2, 0)), 1);
  assert.deepEqual(await state.get('k'), { value: 'b', version: at(1, 2) });
});

test('states that share checkpoints are as states at one server', async () => {
  const checkpoints = new Map<string, Buffer>();
  const [first, second] = [new MemoryState(codec.integer, { checkpoints }), new MemoryState(codec.integer, { checkpoints })];
  assert.equal(await second.restoreCheckpoint('check'), null);
  await first.addOrdered('n', 2, 5);
  await first.put('m', 7, 1);
  assert.equal(await first.checkpoint('check', 42), 2);
  assert.deepEqual(await second.restoreCheckpoint('check'), { position: Buffer.from('42') });
  assert.equal(await second.addOrdered('n', 1, 1), 'applied');
  assert.deepEqual(await second.get('n'), { value: 6, version: { epoch: 0, round: 2 } });
  assert.equal(await first.get('n'), null);
  const snapshot = await second.snapshot();
  snapshot[40] = (snapshot[40] ?? 0) ^ 1;
  await assert.rejects(first.restore(snapshot), ServerError);
  assert.equal((await first.get('m'))?.value, 7);
});
