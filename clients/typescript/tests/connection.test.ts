// What a connection does when the server is away, silent, refuses, or is not needed any more; and how replies are read.

import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ClosedError, Connection, RecordStore, ReplyError, ServerError, UnavailableError } from '../src/index.js';
import { double, flag, integer, list, map, text, time } from '../src/replies.js';
import { whole, word } from '../src/words.js';
import { Proxy } from './proxy.js';
import { Server, eventually, freePort, range } from './server.js';

const server = await Server.start();
const skip = await server.lacks('claim', 'idx.create');

for (const RESP of [2, 3] as const) {
  describe(`a connection, RESP${RESP}`, { skip }, () => {
    let connection: Connection;
    let records: RecordStore;

    const clients = async () => (await connection.client.sendCommand<string>(['CLIENT', 'LIST'])).trim().split('\n').length;
    const claim = { indexes: ['due'], set: { state: 'running' }, block: 30_000 };

    beforeEach(async () => {
      connection = await server.connect({ RESP });
      records = new RecordStore(connection);
      await connection.client.flushAll();
      await records.createIndex('due', { prefixes: ['job:'], field: 'run_at', only: { field: 'state', values: ['pending'] } });
    });

    test('says that no server is there', async () => {
      const port = await freePort();
      for (const host of ['127.0.0.1', 'localhost']) {
        const nowhere = { RESP, socket: { host, port }, responseTimeoutMs: 3_600_000 };
        await assert.rejects(Connection.open(nowhere), (error) => error instanceof UnavailableError && error.message.includes(`:${port}`));
      }
    });

    test('opens over connections that are cut', async () => {
      const proxy = await Proxy.start(server.port);
      try {
        // What a client says of itself when it connects has answers too, so that some cuts come before the question and some in it.
        for (const reply of range(40, (i) => i * 40)) {
          proxy.cutAfter({ reply });
          const opened = await server.connect({ RESP, socket: { host: '127.0.0.1', port: proxy.port } });
          assert.equal(opened.isHoldfast, true);
        }
      } finally {
        proxy.end();
      }
    });

    test('says at once that a password is wrong', async () => {
      await connection.client.configSet('requirepass', 'secret');
      try {
        const wrong = { RESP, socket: { host: '127.0.0.1', port: server.port }, password: 'wrong', responseTimeoutMs: 3_600_000 };
        await assert.rejects(Connection.open(wrong), (error) => error instanceof ServerError && error.code === 'WRONGPASS');
        const right = new RecordStore(await server.connect({ RESP, password: 'secret' }));
        assert.deepEqual(await right.claim({ ...claim, block: 1 }), []);
      } finally {
        await connection.client.configSet('requirepass', '');
      }
    });

    test('a request that is made while the server is away is answered when it is back', async () => {
      await records.put('r', { a: 1 });
      await server.kill();
      await eventually(() => !connection.client.isReady);
      const [put, claimed] = [records.put('r', { b: 2 }), records.claim(claim)];
      await server.run();
      await put;
      await records.put('job:1', { state: 'pending', run_at: 1 });
      assert.equal((await claimed)[0]?.key, 'job:1');
      assert.deepEqual((await records.get('r'))?.toObject(), { a: '1', b: '2' });
    });

    test('a request that was sent and got no answer is not sent again', async () => {
      const blocked = async (n: number) => (await connection.client.info('clients')).includes(`blocked_clients:${n}`);
      const waiting = assert.rejects(records.claim(claim), UnavailableError);
      await eventually(() => blocked(1));
      await server.kill();
      await waiting;
      await server.run();
      await records.put('job:1', { state: 'pending', run_at: 1 });
      assert.ok(await blocked(0));
      assert.equal((await records.get('job:1'))?.text('state'), 'pending');
    });

    test('a server that is silent is unavailable', async () => {
      const hasty = new RecordStore(await server.connect({ RESP, responseTimeoutMs: 1000 }));
      assert.deepEqual(await hasty.claim({ ...claim, block: 1 }), []);
      await server.pause();
      try {
        await assert.rejects(hasty.put('r', { a: 1 }), UnavailableError);
        await assert.rejects(hasty.claim({ ...claim, block: 1 }), UnavailableError); // on a connection that was there
        await assert.rejects(hasty.claim({ ...claim, block: 1 }), UnavailableError); // on a new one
      } finally {
        server.resume();
      }
      await hasty.put('r', { a: 2 });
      assert.deepEqual(await hasty.claim({ ...claim, block: 1 }), []);
    });

    test('says whether the server answers', async () => {
      assert.equal(await connection.ping(), true);
      assert.equal(connection.isHoldfast, true);
      const hasty = await server.connect({ RESP, responseTimeoutMs: 200 });
      await server.pause();
      try {
        assert.equal(await hasty.ping(), false);
      } finally {
        server.resume();
      }
      await eventually(() => hasty.ping());
      await hasty.close();
      assert.equal(await hasty.ping(), false);
    });

    test('requests that wait one after the other share a connection', async () => {
      for (const _ of range(5, () => 0)) await records.claim({ ...claim, block: 1 });
      assert.equal(await clients(), 2);
      await Promise.all(range(5, () => records.claim({ ...claim, block: 1 })));
      await Promise.all(range(5, () => records.claim({ ...claim, block: 1 })));
      assert.equal(await clients(), 6);
    });

    test('close ends what waits, and everything else when it is answered', async () => {
      const observer = await server.connect({ RESP });
      const others = async () => (await observer.client.sendCommand<string>(['CLIENT', 'LIST'])).trim().split('\n').length - 1;
      const waiting = assert.rejects(records.claim(claim), ClosedError);
      await eventually(async () => (await observer.client.info('clients')).includes('blocked_clients:1'));
      await records.claim({ ...claim, block: 1 });
      const put = records.put('r', { a: 1 });
      await connection.close();
      await put;
      await waiting;
      await assert.rejects(records.put('r', { a: 1 }), ClosedError);
      await assert.rejects(records.claim(claim), ClosedError);
      await connection.close();
      await eventually(async () => (await others()) === 0);
    });

    test('close does not wait for a server that is away', async () => {
      await server.kill();
      await eventually(() => !connection.client.isReady);
      const put = assert.rejects(records.put('r', { a: 1 }), UnavailableError);
      await connection.close();
      await put;
      await sleep(0);
      await server.run();
    });

    test('large integers are not rounded', async () => {
      const reply = await connection.ask(['INCRBY', 'n', '9007199254740993']);
      assert.equal(reply, '9007199254740993');
      assert.throws(() => integer(reply), /9007199254740993 is beyond/);
    });
  });
}

test('parts of replies', () => {
  assert.equal(integer('9007199254740991'), 9007199254740991);
  assert.equal(integer(Buffer.from('-5')), -5);
  assert.equal(double('inf'), Infinity);
  assert.equal(double(Buffer.from('-inf')), -Infinity);
  assert.equal(double('1.5'), 1.5);
  assert.equal(flag('1'), true);
  assert.equal(flag(false), false);
  assert.equal(time('1760000000000'), '2025-10-09T08:53:20.000Z');
  assert.equal(text(Buffer.from('\ufeffgrün')), '\ufeffgrün');
  assert.deepEqual([...map(['a', '1', 'b', null])], [['a', '1'], ['b', null]]);
  for (const wrong of [
    () => integer('1.5'), () => integer(null), () => integer(''), () => double(''), () => double('x'), () => list('x'), () => map(['a']),
    () => text(Buffer.from([0xff])), () => text(undefined), () => time('9007199254740991'),
  ]) assert.throws(wrong, ReplyError);
});

test('arguments', () => {
  assert.equal(word(1e21), '1e+21');
  assert.equal(word(2n ** 64n), '18446744073709551616');
  assert.deepEqual(word(new Uint8Array([1, 2, 3, 4]).subarray(1, 3)), Buffer.from([2, 3]));
  assert.throws(() => whole(2 ** 53, 'limit'), /limit is 9007199254740992, and has to be a whole number/);
});
