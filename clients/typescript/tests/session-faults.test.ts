// The proof of sessions: many clients count through connections that are cut at random bytes, while the server is killed and started
// again. At the end every counter is the number of increments that were asked for.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import { ServerError, Sessions, type Connection, type Reply, type Session } from '../src/index.js';
import { Proxy, seeded } from './proxy.js';
import { Server, eventually, range } from './server.js';

const [CLIENTS, INCREMENTS, KILLS] = [16, 60, 3];
const SCRIPT = "return redis.call('INCR', KEYS[1])";
const SHA = createHash('sha1').update(SCRIPT).digest('hex');

const server = await Server.start();
const skip = await server.lacks('session.open', 'session.call');

describe('faults', { skip }, () => {
  test('every increment counts once', async () => {
    const seed = Math.floor(Math.random() * 2 ** 32);
    console.log(`seed ${seed}`);
    const proxy = await Proxy.start(server.port, seeded(seed));
    let done = 0;
    const connections: Connection[] = [];

    const count = async (client: number): Promise<void> => {
      const random = seeded(seed + client + 1);
      const RESP = random() < 0.5 ? 2 : 3;
      const connection = await server.connect({ RESP, socket: { host: '127.0.0.1', port: proxy.port }, responseTimeoutMs: 60_000 });
      connections.push(connection);
      const session = await new Sessions(connection).open();
      for (const n of range(INCREMENTS, (i) => i + 1)) {
        // Half of the clients have several requests under way.
        const others = range(client % 2 === 0 ? 1 : 3, () => increment(session, Math.floor(random() * 4)));
        // Of a counter of its own a client knows every reply.
        assert.equal(await session.call(['INCR', `own:${client}`]), `${n}`);
        await Promise.all(others);
        done += 1;
      }
      await session.close().catch(() => {}); // it expires
    };

    const kill = async (): Promise<void> => {
      for (const kill of range(KILLS, (i) => i + 1)) {
        await eventually(() => done >= (CLIENTS * INCREMENTS * kill) / (KILLS + 1));
        await server.kill();
        await server.run();
      }
    };

    try {
      await Promise.all([kill(), ...range(CLIENTS, count)]);
    } finally {
      // If one has failed the others go on: this ends them.
      done = Infinity;
      for (const { client } of connections) if (client.isOpen) client.destroy();
      proxy.end();
    }
    const { client } = await server.connect();
    const get = async (key: string) => Number(await client.get(key));
    const shared = (await get('plain')) + (await get('script')) + Number(await client.hGet('hash', 'field'));
    assert.equal(shared, (CLIENTS / 2) * INCREMENTS * (1 + 3));
    for (const i of range(CLIENTS, (i) => i)) assert.equal(await get(`own:${i}`), INCREMENTS);
    assert.ok(proxy.cuts > CLIENTS, 'connections were cut');
  });
});

async function increment(session: Session, kind: number): Promise<Reply> {
  switch (kind) {
    case 0: return session.call(['INCR', 'plain']);
    case 1: return session.call(['HINCRBY', 'hash', 'field', 1]);
    case 2: return session.call(['EVAL', SCRIPT, 1, 'script']);
    default:
      try {
        return await session.call(['EVALSHA', SHA, 1, 'script']);
      } catch (error) {
        // Which is a reply: nothing has run.
        if (!(error instanceof ServerError && error.code === 'NOSCRIPT')) throw error;
        return session.call(['EVAL', SCRIPT, 1, 'script']);
      }
  }
}
