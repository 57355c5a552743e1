// node-redis finds the writer by its Sentinels, and follows it: while it hands over, and when it is killed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSentinel } from 'redis';

import { NAME, Pair, skip, writeThroughChanges } from './pair.js';

for (const RESP of [2, 3]) {
  test(`writes go on over RESP${RESP}`, { skip }, async () => {
    const pair = await Pair.start();
    const sentinel = createSentinel({
      name: NAME,
      RESP,
      sentinelRootNodes: pair.sentinels(),
      nodeClientOptions: { RESP },
      sentinelClientOptions: { RESP },
      replicaPoolSize: 1,
      scanInterval: 1000,
    });
    sentinel.on('error', () => {});
    await sentinel.connect();
    try {
      const written = await writeThroughChanges(pair, (key, value) => sentinel.set(key, value));
      assert.deepEqual(await sentinel.use((client) => client.mGet([...written.keys()])), [...written.values()]);
      assert.deepEqual(await pair.writer.client.mget(...written.keys()), [...written.values()]);
    } finally {
      await sentinel.close();
      await pair.end();
    }
  });
}
