// node-redis in front of an empty server: opens clients of one protocol and closes them after each test.

import { after, afterEach, beforeEach } from 'node:test';
import { createClient } from 'redis';
import { address } from './support.js';

// Call it inside a `describe`. `client` is there while a test runs; `connect` opens more; `owns` closes what a test made.
export function nodeRedisClients(RESP, options = {}) {
  let opened = [];
  const clients = {
    client: undefined,
    owns(made) {
      made.on('error', () => {}); // a lost connection is part of some tests
      opened.push(made);
      return made;
    },
    async connect(more = {}) {
      const made = clients.owns(createClient({ socket: { ...address, reconnectStrategy: () => 10 }, RESP, ...options, ...more }));
      await made.connect();
      return made;
    },
  };
  beforeEach(async () => {
    clients.client = await clients.connect();
    await clients.client.flushAll();
  });
  const closeAll = () => {
    for (const each of opened) if (each.isOpen) each.destroy();
    opened = [];
  };
  afterEach(closeAll);
  after(closeAll); // a test that skips itself has no afterEach
  return clients;
}
