// A stateful node, on state at the server and in the process: each input counts once, and outputs come again under the same ids. What is left
// after crashes is in the rounds of tests/packages.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { beforeEach, describe, test } from 'node:test';
import { ExactlyOnceState, MemoryState, StatefulNode, type NodeEntry, type StateBackend } from '../src/index.js';
import { Server, range } from './server.js';

const server = await Server.start();
const skip = await server.lacks('reg.put', 'reg.restore');

type Backend = StateBackend<NodeEntry<number, string>>;

const count = (by: number) => (state: number | null): NodeEntry<number, string> => {
  const sum = (state ?? 0) + by;
  return { state: sum, outputs: [`sum is ${sum}`, `added ${by}`] };
};

for (const where of ['the server', 'the process'] as const) {
  describe(`a stateful node on state at ${where}`, { skip: where === 'the server' && skip }, () => {
    let backend: () => Promise<Backend>;

    beforeEach(async () => {
      const codec = StatefulNode.codec<number, string>();
      const checkpoints = new Map<string, Buffer>();
      if (where === 'the process') {
        backend = async () => new MemoryState(codec, { checkpoints });
        return;
      }
      const connection = await server.connect();
      await connection.client.flushAll();
      backend = async () => new ExactlyOnceState(connection, 'sums/', codec);
    });

    test('an input is applied once, and its outputs come again', async () => {
      const node = new StatefulNode('sums', await backend());
      const first = await node.process('k', 1, count(5));
      assert.deepEqual(first?.map(({ value }) => value), ['sum is 5', 'added 5']);
      const id = (index: number) => createHash('sha256').update(`sums|k|1|${index}`).digest('hex');
      assert.deepEqual(first?.map((output) => output.id), [id(0), id(1)]);
      assert.deepEqual(await node.process('k', 1, () => assert.fail('it was applied')), first);
      const second = await node.process('k', 7, count(1));
      assert.equal(second?.[0]?.value, 'sum is 6');
      assert.equal(await node.process('k', 1, () => assert.fail('it is old')), null);
      assert.equal(await node.state('k'), 6);
      assert.equal(await node.state('none'), null);
      const epoch = await node.process('k', { epoch: 2, round: 3 }, async (state) => count(1)(state));
      assert.equal(epoch?.[0]?.id, createHash('sha256').update('sums|k|2.3|0').digest('hex'));
      const key = Buffer.from([0xff]);
      const binary = await node.process(key, 1, count(1));
      assert.equal(binary?.[0]?.id, createHash('sha256').update('sums|').update(key).update('|1|0').digest('hex'));
    });

    test('an update that fails changes nothing', async () => {
      const node = new StatefulNode('sums', await backend());
      await assert.rejects(node.process('k', 1, () => { throw new Error('own'); }), /own/);
      assert.equal(await node.state('k'), null);
      assert.equal((await node.process('k', 1, count(1)))?.[0]?.value, 'sum is 1');
    });

    test('calls for one key take turns', async () => {
      const node = new StatefulNode('sums', await backend());
      await Promise.all(range(20, (i) => node.process('k', i + 1, count(1))));
      assert.equal(await node.state('k'), 20);
    });

    test('after a crash before the first checkpoint no output is missing', async () => {
      const state = await backend();
      const first = new StatefulNode('sums', state);
      assert.equal(await first.recover(), null);
      const outputs = [await first.process('k', 1, count(1)), await first.process('k', 2, count(2))];
      const second = new StatefulNode('sums', state);
      assert.equal(await second.recover(), null);
      assert.deepEqual([await second.process('k', 1, count(1)), await second.process('k', 2, count(2))], outputs);
    });
  });
}
