// ioredis finds the writer by its Sentinels, and follows it: while it hands over, and when it is killed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Redis } from 'ioredis';

import { NAME, Pair, skip, writeThroughChanges } from './pair.js';
import { eventually } from './support.js';

for (const failoverDetector of [true, false]) {
  test(`writes go on, ${failoverDetector ? 'with' : 'without'} messages`, { skip }, async () => {
    const pair = await Pair.start();
    const options = { sentinels: pair.sentinels(), name: NAME, failoverDetector, sentinelRetryStrategy: () => 20 };
    // An answer of the old writer must not be waited for: it may be dead.
    const redis = new Redis({ ...options, commandTimeout: 2000, reconnectOnError: (error) => error.message.startsWith('READONLY') });
    redis.on('error', () => {});
    // A message that comes while it connects ends the client for good (ioredis 6.0): its user connects it again.
    let isDone = false;
    redis.on('end', () => { if (!isDone) redis.connect().catch(() => {}); });
    const follower = new Redis({ ...options, role: 'slave' });
    follower.on('error', () => {});
    try {
      await redis.set('a', '1');
      await eventually(async () => (await follower.get('a')) === '1');
      const written = await writeThroughChanges(pair, (key, value) => redis.set(key, value));
      assert.deepEqual(await redis.mget(...written.keys()), [...written.values()]);
      assert.deepEqual(await pair.writer.client.mget(...written.keys()), [...written.values()]);
    } finally {
      isDone = true;
      redis.disconnect();
      follower.disconnect();
      await pair.end();
    }
  });
}
