// State in the process does what state at the server does: the same random histories give the same answers, the same values and the same
// state after each restore.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ExactlyOnceState, MemoryState, ServerError, codec, type Codec, type Key, type StateBackend, type StateVersion } from '../src/index.js';
import { seeded } from './proxy.js';
import { Server, range } from './server.js';

const server = await Server.start();
const skip = await server.lacks('reg.put', 'reg.mget', 'reg.snapshot', 'reg.restore');

/** Whether the server takes pairs of epoch and round in order. */
const skipPairs = skip || await (async () => {
  const connection = await server.connect();
  try {
    await new ExactlyOnceState(connection, 'probe/', codec.text).seal('k', { epoch: 1, round: 1 });
    return false;
  } catch (error) {
    if (!(error instanceof ServerError)) throw error;
    return `the server takes no pairs in order: ${error.message}`;
  } finally {
    await connection.client.flushAll();
    await connection.close();
  }
})();

/** Text, or numbers, in one state: some additions meet a value that is no number. */
const value: Codec<string> = codec.text;

type Step = (state: StateBackend<string>, snapshots: Buffer[]) => Promise<unknown>;

/** One random step of a history, and how it reads when it fails. */
function step(random: () => number, pairs: boolean): { name: string; run: Step } {
  const below = (n: number): number => Math.floor(random() * n);
  const pick = <T>(items: readonly T[]): T => items[below(items.length)] as T;
  const key: Key = pick(['a', 'b', Buffer.from([0xff, 0]), 'ordered', 'pairs']);
  // Sometimes the other kind, which is refused.
  const isPairs = (key === 'pairs') !== (random() < 0.05);
  const version: number | StateVersion = random() < 0.3 ? { epoch: below(3), round: below(6) } : below(9);
  const inOrder: number | StateVersion = isPairs && pairs ? { epoch: below(3), round: below(6) } : below(9);
  const held = pick(['1', '2', 'x', '9223372036854775807']);
  const number = pick([1, 2, -3]);
  const shown = JSON.stringify({ key: key.toString(), version, inOrder, held, number });
  const steps: readonly [number, string, Step][] = [
    [20, 'put', (state) => state.put(key, held, version)],
    [20, 'add', (state) => state.add(key, version, number)],
    [25, 'putOrdered', (state) => state.putOrdered(key, held, inOrder)],
    [25, 'addOrdered', (state) => state.addOrdered(key, inOrder, number)],
    [8, 'seal', (state) => state.seal(key, inOrder)],
    [3, 'snapshot', async (state, snapshots) => { snapshots.push(await state.snapshot(held)); }],
    [2, 'restore', async (state, snapshots) => snapshots.length > 0 && state.restore(snapshots.at(-1) ?? Buffer.of())],
    [2, 'merge', async (state, snapshots) => snapshots.length > 0 && state.merge(snapshots[0] ?? Buffer.of())],
    [2, 'checkpoint', (state) => random() < 0.5 ? state.checkpoint('check') : state.checkpoint('check', held)],
    [2, 'restoreCheckpoint', (state) => state.restoreCheckpoint('check')],
    [2, 'mergeCheckpoint', (state) => state.mergeCheckpoint('check')],
  ];
  let left = random() * steps.reduce((sum, [weight]) => sum + weight, 0);
  const [, name, run] = steps.find(([weight]) => (left -= weight) < 0) ?? steps[0] as readonly [number, string, Step];
  // Random numbers that a step takes while it runs would differ between the two states.
  const position = random() < 0.5;
  const fixed: Step = name === 'checkpoint' ? (state) => position ? state.checkpoint('check', held) : state.checkpoint('check') : run;
  return { name: `${name} ${shown}`, run: fixed };
}

async function outcome(run: Step, state: StateBackend<string>, snapshots: Buffer[]): Promise<unknown> {
  try {
    const result = await run(state, snapshots);
    return result instanceof Buffer ? result.toString() : result;
  } catch (error) {
    if (error instanceof ServerError) return `refused: ${error.code}`;
    throw error;
  }
}

async function compare(pairs: boolean): Promise<void> {
  const seed = Math.floor(Math.random() * 2 ** 32);
  const random = seeded(seed);
  const connection = await server.connect();
  for (const round of range(30, (i) => i)) {
    await connection.client.flushAll();
    const [there, here] = [new ExactlyOnceState(connection, 's/', value), new MemoryState(value)];
    const [snapshotsThere, snapshotsHere]: [Buffer[], Buffer[]] = [[], []];
    const history: string[] = [];
    for (const _ of range(60, () => 0)) {
      const { name, run } = step(random, pairs);
      history.push(name);
      const why = `seed ${seed}, round ${round}:\n${history.join('\n')}`;
      assert.deepEqual(await outcome(run, here, snapshotsHere), await outcome(run, there, snapshotsThere), why);
      const keys: Key[] = ['a', 'b', Buffer.from([0xff, 0]), 'ordered', 'pairs'];
      assert.deepEqual(await here.mget(keys), await there.mget(keys), why);
    }
  }
}

describe('state in the process', { skip }, () => {
  test('gives the answers of the server', () => compare(false));

  test('gives the answers of the server, with pairs in order', { skip: skipPairs }, () => compare(true));
});

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
