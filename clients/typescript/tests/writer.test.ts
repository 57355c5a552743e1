// A connection with several addresses: it finds the server that writes, and finds it again while writers are replaced, killed and paused.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { afterEach, beforeEach, test } from 'node:test';
import {
  CellStore, Connection, NoWriterError, NotWriterError, RecordStore, RunStore, ServerError, Sessions, UnavailableError, codec,
  type ConnectionOptions,
} from '../src/index.js';
import { KnownAddresses, noWriter, readFailure, readRole, readServers } from '../src/addresses.js';
import { Pair } from './pair.js';
import { eventually } from './server.js';

let pair: Pair;
const opened: Connection[] = [];

beforeEach(async () => { pair = await Pair.start(); });

afterEach(async () => {
  await Promise.all(opened.splice(0).map((connection) => connection.close()));
  await pair.end();
});

async function open(addresses: readonly string[], options: ConnectionOptions = {}): Promise<Connection> {
  const connection = await Connection.open({ url: `redis://${addresses.join()}`, ...options });
  opened.push(connection);
  return connection;
}

/** An address at which there is no server: a free port might be taken by another test. */
const DEAD = '127.0.0.1:1';

async function portOf(connection: Connection): Promise<number> {
  const reply = await connection.ask(['CONFIG', 'GET', 'port']) as readonly Buffer[];
  return Number(reply[1]?.toString());
}

test('the writer is found behind a dead address and behind a follower', async () => {
  const { writer, follower } = pair;
  for (const addresses of [[DEAD, ...pair.addresses()], [follower.address, writer.address], [follower.address, DEAD]]) {
    const connection = await open(addresses);
    await new RecordStore(connection).put('r', { a: 1 });
    assert.equal(await portOf(connection), writer.port);
    assert.equal(await connection.client.sendCommand(['PING']), 'PONG');
  }
  // A list in the place of the URL's host, or without a URL.
  for (const url of [{ url: 'holdfast://nowhere.example:1/0' }, {}]) {
    const connection = await Connection.open({ ...url, addresses: [follower.address, writer.address] });
    opened.push(connection);
    assert.equal((await new RecordStore(connection).get('r'))?.text('a'), '1');
  }
});

test('without a writer the error names what each address said', async () => {
  await eventually(async () => JSON.stringify(await pair.follower.ask('ROLE')).includes(`${pair.writer.port}`));
  await pair.writer.kill();
  await assert.rejects(open([DEAD, pair.follower.address], { writerTimeoutMs: 300, responseTimeoutMs: 100 }), (error) => {
    assert(error instanceof NoWriterError && error instanceof UnavailableError && error.isTemporary);
    assert.match(error.answers.get(DEAD) ?? '', /does not answer/);
    assert.equal(error.answers.get(pair.follower.address), `follows ${pair.writer.address}`);
    assert(error.message.includes(DEAD) && error.message.includes(`${pair.follower.address} follows ${pair.writer.address}`));
    return true;
  });
});

test('a wrong password is said at once', async () => {
  for (const node of [pair.writer, pair.follower]) await node.ask('CONFIG', 'SET', 'requirepass', 'secret');
  await assert.rejects(open([DEAD, ...pair.addresses()], { password: 'wrong', writerTimeoutMs: 3_600_000 }), (error) => {
    assert(error instanceof ServerError && error.code === 'WRONGPASS');
    return true;
  });
  const connection = await open([], { url: `redis://:secret@${pair.addresses().join()}/0` });
  await new RecordStore(connection).put('r', { a: 1 });
});

for (const ending of ['handed over', 'killed', 'paused'] as const) {
  test(`every acknowledged write is there after a take-over from a writer that is ${ending}`, async () => {
    const connection = await open(pair.addresses(), { responseTimeoutMs: 3000 });
    const [records, cells] = [new RecordStore(connection), new CellStore(connection)];
    const session = await new Sessions(connection).open();
    const acknowledged: number[] = [];
    let unknown = 0;
    let stopped = false;

    /** Sees no error: each request runs once. */
    const countInSession = async (): Promise<number> => {
      let n = 0;
      while (!stopped) {
        n += 1;
        assert.equal(await session.call(['INCR', 'in-session']), `${n}`);
      }
      return n;
    };
    /** A request whose answer is lost with its connection is an error. What a follower refuses is not. */
    const put = async (): Promise<void> => {
      for (let n = 1; !stopped; n += 1) {
        try {
          await records.put(`r:${n}`, { n });
          acknowledged.push(n);
        } catch (error) {
          assert(error instanceof UnavailableError, String(error));
          unknown += 1;
        }
      }
    };
    const transfer = async (): Promise<number> => {
      let done = 0;
      while (!stopped) {
        try {
          await cells.transaction(1, async (transaction) => {
            const counter = transaction.cell('counter', codec.integer);
            await counter.set(((await counter.get())?.value ?? 0) + 1);
          });
          done += 1;
        } catch (error) {
          assert(error instanceof UnavailableError, String(error));
        }
      }
      return done;
    };

    const [counting, transferring, putting] = [countInSession(), transfer(), put()];
    await eventually(() => acknowledged.length >= 20);
    if (ending === 'killed') await pair.writer.kill();
    if (ending === 'paused') pair.writer.pause();
    await pair.follower.promote();
    let before = acknowledged.length;
    await eventually(() => acknowledged.length >= before + 20);
    if (ending === 'handed over') {
      await pair.writer.kill();
      before = acknowledged.length;
      await eventually(() => acknowledged.length >= before + 20);
      assert.equal(unknown, 0, 'what a follower refuses is sent to the writer');
    }
    stopped = true;
    await putting;
    const [counted, transferred] = [await counting, await transferring];

    assert.equal(await portOf(connection), pair.follower.port);
    assert.equal(await pair.follower.ask('GET', 'in-session'), `${counted}`);
    for (const n of acknowledged) assert.equal((await records.get(`r:${n}`))?.integer('n'), n);
    assert(((await cells.cell('counter', codec.integer).get())?.value ?? 0) >= transferred && transferred > 0);
    await session.close();
  });
}

test('waits and readers move to the new writer', async () => {
  const connection = await open(pair.addresses());
  const [records, cells, runs, sessions] = [new RecordStore(connection), new CellStore(connection), new RunStore(connection), new Sessions(connection)];
  await records.createIndex('due', { prefixes: ['job:'], field: 'run_at', only: { field: 'state', values: ['pending'] } });
  const session = await sessions.open();
  const stop = new AbortController();
  const pushed: string[] = [];
  const first = async <T>(items: AsyncIterable<T>): Promise<T> => {
    for await (const item of items) return item;
    throw new Error('there is none');
  };
  const claimed = records.claim({ indexes: ['due'], set: { state: 'running' }, block: 30_000 });
  const followed = first(runs.follow('r', { after: 0 }));
  const watched = first(cells.cell('c').watch());
  const serving = session.serve(({ payload }) => { pushed.push(payload.toString()); }, { signal: stop.signal });
  await eventually(async () => `${await pair.writer.ask('INFO', 'clients')}`.includes('blocked_clients:4'));
  await pair.follower.promote();
  await pair.writer.kill();
  await records.put('job:1', { state: 'pending', run_at: 1 });
  await runs.appendEvent({ runId: 'r', eventType: 'Began', eventData: null });
  await cells.cell('c').set('new');
  await sessions.push(session.id, 'hello');
  assert.deepEqual((await claimed).map(({ key }) => key), ['job:1']);
  assert.equal((await followed).eventType, 'Began');
  assert.equal((await watched)?.value, 'new');
  await eventually(() => pushed.length > 0);
  stop.abort();
  await serving;
  assert.deepEqual(pushed, ['hello']);
  await session.close();
});

test('a program that only reads moves too', async () => {
  const connection = await open(pair.addresses());
  assert.equal(await portOf(connection), pair.writer.port);
  await pair.follower.promote(); // the old writer answers reads, and follows
  await eventually(async () => await portOf(connection) === pair.follower.port);
});

test('a follower that joins later is found', async () => {
  const connection = await open([DEAD, pair.writer.address]);
  const third = await pair.addFollower();
  await eventually(async () => JSON.stringify(await pair.writer.ask('ROLE')).includes(`${third.port}`));
  const rolesAsked = async (): Promise<number> =>
    Number(/cmdstat_role:calls=(\d+)/.exec(`${await pair.writer.ask('INFO', 'commandstats')}`)?.[1]);
  const before = await rolesAsked();
  await eventually(async () => {
    await connection.ask(['PING']);
    return await rolesAsked() > before;
  });
  await pair.writer.kill();
  await third.promote();
  await new RecordStore(connection).put('r', { a: 1 });
  assert.equal(await portOf(connection), third.port);
});

test('the same over a plain Redis', { skip: spawnSync('redis-server', ['--version']).error !== undefined && 'there is no redis-server' }, async () => {
  const plain = await Pair.start('redis-server');
  try {
    let connection: Connection | undefined;
    for (const addresses of [[plain.follower.address, DEAD], [plain.follower.address, plain.writer.address]]) {
      connection = await open(addresses);
      assert.equal(connection.isHoldfast, false);
      await new RecordStore(connection).put('r', { a: 1 });
      assert.equal(await portOf(connection), plain.writer.port);
    }
    assert(connection !== undefined);
    await plain.follower.promote();
    await plain.writer.ask('REPLICAOF', '127.0.0.1', `${plain.follower.port}`);
    await new RecordStore(connection).put('s', { a: 1 }); // which the old one refuses
    assert.equal(await portOf(connection), plain.follower.port);
  } finally {
    await plain.end();
  }
});

test('with one address, what a follower refuses is the answer', async () => {
  const connection = await open([pair.follower.address]);
  await assert.rejects(new RecordStore(connection).put('r', { a: 1 }), (error) => {
    assert(error instanceof ServerError && !(error instanceof NotWriterError) && error.code === 'READONLY' && !error.isTemporary);
    return true;
  });
});

test('addresses', () => {
  assert.deepEqual(readServers('redis://a:1', undefined).addresses, []);
  assert.equal(readServers('holdfasts://u@a/1', undefined).urlOf(''), 'rediss://u@a/1');
  const several = readServers('holdfast://u:p%2C@a:1,[::1],a:1/3', undefined);
  assert.deepEqual(several.addresses, ['a:1', '[::1]:6379']);
  assert.equal(several.urlOf('[::1]:6379'), 'redis://u:p%2C@[::1]:6379/3');
  assert.equal(readServers('rediss://u@c:7/3', ['a:1']).urlOf('a:1'), 'rediss://u@a:1/3');
  for (const wrong of ['a:1,', '::1,a', 'a:0,b', 'a:x,b', 'a:70000,b']) assert.throws(() => readServers(`redis://${wrong}`, undefined), RangeError);
  assert.throws(() => readServers('redis://a', []), TypeError);
  assert.throws(() => readServers('unix:///tmp/socket', ['a:1']), TypeError);
});

test('what servers name', () => {
  const writer = readRole('db.example:1', ['master', '7', [['10.0.0.2', '2', '7'], ['127.0.0.1', '3', '7'], ['?', '0', '0'], ['fd00::1', '4', '7']]]);
  // The loopback of a server is its machine, and not that of the client.
  assert.deepEqual([writer.isWriter, writer.named], [true, ['10.0.0.2:2', 'db.example:3', '[fd00::1]:4']]);
  const follower = readRole('db.example:1', ['slave', '10.0.0.9', '9', 'connected', '7']);
  assert.deepEqual([follower.isWriter, follower.named], [false, ['10.0.0.9:9']]);
  assert.equal(readRole('db.example:1', ['sentinel', ['main']]).isWriter, false);
  const known = new KnownAddresses(['db.example:1']);
  known.learn(follower);
  assert.deepEqual(known.all(), ['db.example:1', '10.0.0.9:9']);
  known.learn(writer);
  assert.deepEqual(known.all(), ['db.example:1', '10.0.0.2:2', 'db.example:3', '[fd00::1]:4']);
});

test('only if all refuse is it the refusal', () => {
  const refused = readFailure('a:1', new ServerError('NOPERM', 'no'));
  const away = readFailure('b:2', new UnavailableError('no answer'));
  const follows = readRole('b:2', ['slave', '10.0.0.9', '9', 'connected', '7']);
  assert(noWriter([refused, away]) instanceof ServerError);
  assert(noWriter([refused, follows]) instanceof NoWriterError);
  assert(noWriter([away]) instanceof NoWriterError);
});
