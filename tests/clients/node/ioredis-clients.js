// ioredis in front of an empty server: opens clients of one protocol and closes them after each test.

import { after, afterEach, beforeEach } from 'node:test';
import { Redis } from 'ioredis';
import { address } from './support.js';

// Call it inside a `describe`. `redis` is there while a test runs; `connect` opens more.
export function ioredisClients(protocol) {
  let opened = [];
  const clients = {
    redis: undefined,
    connect(options = {}) {
      const made = new Redis({ ...address, protocol, retryStrategy: () => 10, ...options });
      made.on('error', () => {}); // a lost connection is part of some tests
      opened.push(made);
      return made;
    },
  };
  beforeEach(async () => {
    clients.redis = clients.connect();
    await clients.redis.flushall();
  });
  const closeAll = () => {
    for (const each of opened) each.disconnect();
    opened = [];
  };
  afterEach(closeAll);
  after(closeAll); // a test that skips itself has no afterEach
  return clients;
}
