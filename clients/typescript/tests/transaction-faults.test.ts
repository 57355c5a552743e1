// The proof of transactions: clients move amounts between accounts through connections that are cut at random bytes, while the server is
// killed and started again. The sum stays, and each transfer that was acknowledged is there once.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CellStore, UnavailableError, codec, type Connection } from '../src/index.js';
import { Proxy, seeded } from './proxy.js';
import { Server, eventually, range } from './server.js';

const [CLIENTS, TRANSFERS, ACCOUNTS, KILLS] = [6, 40, 5, 2];

const server = await Server.start();
const skip = await server.lacks('txn.begin', 'cell.set', 'cell.mget');

describe('faults', { skip }, () => {
  test('the sum stays', async () => {
    const seed = Math.floor(Math.random() * 2 ** 32);
    console.log(`seed ${seed}`);
    const observer = new CellStore(await server.connect());
    for (const i of range(ACCOUNTS, (i) => i)) await observer.cell(`account:${i}`, codec.integer).set(100);
    const proxy = await Proxy.start(server.port, seeded(seed));
    const connections: Connection[] = [];
    let done = 0;

    const work = async (client: number): Promise<number> => {
      const random = seeded(seed + client + 1);
      const connection = await server.connect({ RESP: random() < 0.5 ? 2 : 3, socket: { host: '127.0.0.1', port: proxy.port }, responseTimeoutMs: 60_000 });
      connections.push(connection);
      const cells = new CellStore(connection);
      let unknown = 0;
      for (const _ of range(TRANSFERS, (i) => i)) {
        const [source, target] = [Math.floor(random() * ACCOUNTS), Math.floor(random() * ACCOUNTS)];
        const amount = Math.floor(random() * 10);
        try {
          await cells.transaction(1000, async (txn) => {
            // One read for both, so that a transfer to the same account reads once.
            const names = [`account:${source}`, `account:${target}`, `done:${client}`];
            const [from, to, made] = (await txn.getCells(names, codec.integer)).map((each) => each?.value ?? 0);
            if (source !== target) {
              await txn.cell(`account:${source}`, codec.integer).set((from ?? 0) - amount);
              await txn.cell(`account:${target}`, codec.integer).set((to ?? 0) + amount);
            }
            await txn.cell(`done:${client}`, codec.integer).set((made ?? 0) + 1);
          });
        } catch (error) {
          if (!(error instanceof UnavailableError)) throw error;
          unknown += 1; // it may have been made, or not
        }
        done += 1;
      }
      return unknown;
    };

    const kill = async (): Promise<void> => {
      for (const kill of range(KILLS, (i) => i + 1)) {
        await eventually(() => done >= (CLIENTS * TRANSFERS * kill) / (KILLS + 1));
        await server.kill();
        await server.run();
      }
    };

    let unknown: number[];
    try {
      [, ...unknown] = await Promise.all([kill().then(() => 0), ...range(CLIENTS, work)]);
    } finally {
      // If one has failed the others go on: this ends them.
      done = Infinity;
      for (const { client } of connections) if (client.isOpen) client.destroy();
      proxy.end();
    }
    const held = await observer.getCells(range(ACCOUNTS, (i) => `account:${i}`), codec.integer);
    assert.equal(held.reduce((sum, each) => sum + (each?.value ?? 0), 0), ACCOUNTS * 100);
    for (const [client, lost] of unknown.entries()) {
      const made = (await observer.cell(`done:${client}`, codec.integer).get())?.value ?? 0;
      assert.ok(made >= TRANSFERS - lost && made <= TRANSFERS, `${made} of ${TRANSFERS} transfers, of which ${lost} had no answer`);
    }
    assert.ok(proxy.cuts > CLIENTS, 'connections were cut');
  });
});
