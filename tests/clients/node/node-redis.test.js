// node-redis over RESP2 and RESP3: typed commands, automatic pipelining, buffers, reconnecting.

import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { createClient, RESP_TYPES } from 'redis';
import { address, everyByte, FAR, lacks, parseInfo, range } from './support.js';

for (const RESP of [2, 3]) {
  describe(`node-redis RESP${RESP}`, () => {
    let client;
    let opened = [];

    async function connect(options = {}) {
      const made = createClient({ socket: { ...address, reconnectStrategy: 10 }, RESP, ...options });
      made.on('error', () => {}); // a lost connection is part of some tests
      opened.push(made);
      return made.connect();
    }

    const ask = (...words) => client.sendCommand(words);

    beforeEach(async () => {
      client = await connect();
      await client.flushAll();
    });

    afterEach(() => {
      for (const each of opened) each.destroy();
      opened = [];
    });

    test('PING, ECHO, HELLO', async () => {
      assert.equal(await client.ping(), 'PONG');
      assert.equal(await client.ping('hi'), 'hi');
      assert.equal(await client.echo('grün'), 'grün');
      const hello = await client.hello();
      assert.equal(hello.proto, RESP);
      assert.equal(hello.mode, 'standalone');
      assert.equal(hello.role, 'master');
      assert.equal(typeof hello.id, 'number');
    });

    test('connects with a name and a database', async () => {
      const other = await connect({ name: 'teller', database: 2 });
      assert.equal(await other.clientGetName(), 'teller');
      assert.equal((await other.clientInfo()).db, 2);
      await other.set('k', 'two');
      assert.equal(await client.get('k'), null);
    });

    test('says its library at connect', async (t) => {
      if (await lacks(t, ask, 'client|setinfo')) return;
      const info = await client.clientInfo();
      assert.equal(info.libName, 'node-redis');
      assert.match(info.libVer, /^\d+\.\d+\.\d+/);
    });

    test('connects by URL', async () => {
      const other = createClient({ url: `redis://${address.host}:${address.port}/1`, RESP });
      opened.push(other);
      await other.connect();
      assert.equal((await other.clientInfo()).db, 1);
    });

    test('a password where none is set', async () => {
      const other = createClient({ socket: { ...address, reconnectStrategy: false }, RESP, password: 'secret' });
      opened.push(other);
      other.on('error', () => {});
      if (RESP === 2) {
        await assert.rejects(other.connect(), /without any password configured/);
      } else {
        // HELLO 3 AUTH default secret: the default user needs no password, so any will do.
        await other.connect();
        assert.equal(await other.ping(), 'PONG');
      }
    });

    test('SET with every option', async () => {
      assert.equal(await client.set('k', '1', { condition: 'XX' }), null);
      assert.equal(await client.set('k', '1', { condition: 'NX' }), 'OK');
      assert.equal(await client.set('k', '2', { condition: 'NX' }), null);
      assert.equal(await client.set('k', '2', { GET: true, expiration: { type: 'EXAT', value: FAR } }), '1');
      assert.equal(await client.set('k', '3', { expiration: 'KEEPTTL' }), 'OK');
      assert.equal(await client.expireTime('k'), FAR);
      for (const [type, value] of [['EX', 100], ['PX', 100_000], ['PXAT', FAR * 1000]]) {
        await client.set('k', '4', { expiration: { type, value } });
        assert.ok((await client.ttl('k')) > 0, type);
      }
      await client.set('k', '5');
      assert.equal(await client.ttl('k'), -1);
    });

    test('counters', async () => {
      assert.equal(await client.incr('n'), 1);
      assert.equal(await client.incrBy('n', 41), 42);
      assert.equal(await client.decrBy('n', 2), 40);
      assert.equal(await client.incrByFloat('n', 0.5), '40.5');
      await assert.rejects(client.incr('n'), { message: 'ERR value is not an integer or out of range' });
    });

    test('hashes', async () => {
      assert.equal(await client.hSet('h', { a: '1', b: '2' }), 2);
      assert.equal(await client.hSet('h', 'c', 3), 1);
      assert.equal(await client.hGet('h', 'a'), '1');
      assert.equal(await client.hGet('h', 'absent'), null);
      assert.deepEqual({ ...(await client.hGetAll('h')) }, { a: '1', b: '2', c: '3' });
      assert.deepEqual({ ...(await client.hGetAll('absent')) }, {});
      assert.deepEqual(await client.hmGet('h', ['a', 'absent']), ['1', null]);
      assert.equal(await client.hIncrBy('h', 'a', 5), 6);
      assert.equal(await client.hIncrByFloat('h', 'a', 0.5), '6.5');
      assert.deepEqual((await client.hKeys('h')).sort(), ['a', 'b', 'c']);
      assert.deepEqual((await client.hVals('h')).sort(), ['2', '3', '6.5']);
      assert.equal(await client.hLen('h'), 3);
      assert.equal(await client.hStrLen('h', 'a'), 3);
      assert.equal(await client.hExists('h', 'b'), 1);
      assert.equal(await client.hSetNX('h', 'b', '9'), 0);
      assert.equal(await client.hDel('h', ['a', 'b', 'c']), 3);
      assert.equal(await client.exists('h'), 0);
    });

    test('random fields', async () => {
      await client.hSet('h', { a: '1', b: '2' });
      assert.ok(['a', 'b'].includes(await client.hRandField('h')));
      assert.deepEqual((await client.hRandFieldCount('h', 5)).sort(), ['a', 'b']);
      const pairs = await client.hRandFieldCountWithValues('h', 5);
      assert.deepEqual(pairs.sort((x, y) => (x.field < y.field ? -1 : 1)), [
        { field: 'a', value: '1' },
        { field: 'b', value: '2' },
      ]);
    });

    test('field expiry', async (t) => {
      if (await lacks(t, ask, 'hexpire')) return;
      await client.hSet('h', { a: '1', b: '2' });
      assert.deepEqual(await client.hExpireAt('h', ['a', 'absent'], FAR), [1, -2]);
      assert.deepEqual(await client.hExpireTime('h', ['a', 'b']), [FAR, -1]);
      assert.deepEqual(await client.hExpire('h', 'a', 100, 'GT'), [0]);
      assert.deepEqual(await client.hPersist('h', ['a', 'b']), [1, -1]);
      assert.deepEqual(await client.hExpire('h', 'a', 0), [2]);
      assert.deepEqual(await client.hpExpire('h', 'b', 100_000), [1]);
      const [ttl] = await client.hTTL('h', 'b');
      assert.ok(ttl > 0 && ttl <= 100);
    });

    test('HGETEX, HSETEX, HGETDEL', async (t) => {
      if (await lacks(t, ask, 'hgetex', 'hsetex', 'hgetdel')) return;
      assert.equal(await client.hSetEx('h', { a: '1', b: '2' }, { expiration: { type: 'EXAT', value: FAR } }), 1);
      assert.equal(await client.hSetEx('h', { a: '9' }, { mode: 'FNX' }), 0);
      assert.deepEqual(await client.hExpireTime('h', ['a', 'b']), [FAR, FAR]);
      assert.deepEqual(await client.hGetEx('h', ['a', 'absent'], { expiration: 'PERSIST' }), ['1', null]);
      assert.deepEqual(await client.hTTL('h', 'a'), [-1]);
      assert.deepEqual(await client.hGetDel('h', ['a', 'b']), ['1', '2']);
      assert.equal(await client.exists('h'), 0);
    });

    test('scanIterator and hScanIterator', async () => {
      const keys = range(1000, (i) => `key:${i}`);
      await client.mSet(keys.map((key) => [key, 'v']));
      await client.hSet('h', Object.fromEntries(keys.map((key) => [key, 'v'])));
      const seen = new Set();
      for await (const batch of client.scanIterator({ MATCH: 'key:*', COUNT: 100 })) {
        for (const key of batch) seen.add(key);
      }
      assert.equal(seen.size, 1000);
      const hashes = [];
      for await (const batch of client.scanIterator({ TYPE: 'hash' })) hashes.push(...batch);
      assert.deepEqual(hashes, ['h']);
      const fields = new Map();
      for await (const batch of client.hScanIterator('h')) {
        for (const { field, value } of batch) fields.set(field, value);
      }
      assert.equal(fields.size, 1000);
    });

    test('COPY, RENAME, MOVE, DUMP, RESTORE', async () => {
      await client.hSet('h', { a: '1' });
      assert.equal(await client.copy('h', 'twin'), 1);
      assert.equal(await client.rename('twin', 'moved'), 'OK');
      const payload = await client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer }).dump('moved');
      assert.equal(await client.restore('back', 0, payload), 'OK');
      assert.deepEqual({ ...(await client.hGetAll('back')) }, { a: '1' });
      assert.equal(await client.move('moved', 1), 1);
      assert.deepEqual((await client.keys('*')).sort(), ['back', 'h']);
      assert.equal(await client.dbSize(), 2);
      assert.equal(await client.type('h'), 'hash');
      assert.equal(await client.objectEncoding('h'), 'listpack');
      await assert.rejects(client.rename('absent', 'x'), { message: 'ERR no such key' });
    });

    test('bytes of any kind', async () => {
      const bytes = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
      await bytes.set(everyByte, everyByte);
      assert.deepEqual(await bytes.get(everyByte), everyByte);
      await bytes.hSet('h', everyByte, everyByte);
      assert.deepEqual(await bytes.hGet('h', everyByte), everyByte);
    });

    test('many commands in flight', async () => {
      const replies = await Promise.all(range(2000, () => client.incr('n')));
      assert.deepEqual(replies, range(2000, (i) => i + 1));
    });

    test('execAsPipeline', async () => {
      const replies = await client.multi().set('k', '1').incr('k').hSet('h', 'f', 'v').get('k').execAsPipeline();
      assert.deepEqual(replies, ['OK', 2, 1, '2']);
    });

    test('errors leave the connection usable', async () => {
      const mine = await client.clientId();
      await client.set('text', 'abc');
      await assert.rejects(client.hGet('text', 'f'), { message: /^WRONGTYPE Operation against a key/ });
      await assert.rejects(ask('NOSUCH'), { message: /^ERR unknown command 'NOSUCH'/ });
      await assert.rejects(ask('GET'), { message: "ERR wrong number of arguments for 'get' command" });
      assert.equal(await client.get('text'), 'abc');
      assert.equal(await client.clientId(), mine);
    });

    test('reconnects after CLIENT KILL', async () => {
      const other = await connect({ name: 'phoenix', database: 3 });
      const doomed = await other.clientId();
      const ready = new Promise((resolve) => other.once('ready', resolve));
      assert.equal(await client.clientKill({ filter: 'ID', id: doomed }), 1);
      await ready;
      assert.notEqual(await other.clientId(), doomed);
      assert.equal(await other.clientGetName(), 'phoenix');
      assert.equal((await other.clientInfo()).db, 3);
    });

    test('CLIENT LIST and CLIENT INFO', async () => {
      const other = await connect({ name: 'other' });
      const info = await other.clientInfo();
      assert.equal(info.name, 'other');
      assert.equal(info.user, 'default');
      const listed = await client.clientList();
      assert.ok(listed.some(({ id, name }) => id === info.id && name === 'other'));
      assert.equal(await client.clientSetName('me'), 'OK');
      assert.equal(await client.clientGetName(), 'me');
    });

    test('CONFIG GET and SET', async () => {
      assert.deepEqual({ ...(await client.configGet('maxmemory-policy')) }, { 'maxmemory-policy': 'noeviction' });
      const before = await client.configGet('slowlog-max-len');
      assert.equal(await client.configSet('slowlog-max-len', '77'), 'OK');
      assert.equal((await client.configGet('slowlog-max-len'))['slowlog-max-len'], '77');
      await client.configSet({ ...before });
      await assert.rejects(client.configSet('nosuch', '1'), /Unknown option or number of arguments for CONFIG SET/);
    });

    test('INFO', async () => {
      await client.set('k', 'v');
      const info = parseInfo(await client.info());
      assert.equal(info.Server.redis_mode, 'standalone');
      assert.equal(info.Replication.role, 'master');
      assert.match(info.Keyspace.db0, /^keys=1,expires=0,avg_ttl=0/);
      assert.deepEqual(Object.keys(parseInfo(await client.info('memory'))), ['Memory']);
    });

    test('COMMAND', async () => {
      const table = await client.command();
      assert.equal(table.length, await client.commandCount());
      const [get, nothing] = await client.commandInfo(['get', 'nosuch']);
      assert.equal(get.name, 'get');
      assert.equal(get.arity, 2);
      assert.ok(get.flags.has('readonly'));
      assert.ok(get.categories.has('@string'));
      assert.equal(nothing, null);
      assert.deepEqual(await client.commandGetKeys(['MSET', 'a', '1', 'b', '2']), ['a', 'b']);
      assert.ok((await client.commandList()).includes('hset'));
    });

    test('MONITOR', async () => {
      const watcher = await connect();
      let see;
      const seen = new Promise((resolve) => { see = resolve; });
      await watcher.monitor((line) => line.includes('watched') && see(line));
      await client.set('watched', 'v"');
      assert.match(await seen, /^\d+\.\d+ \[0 .+:\d+\] "SET" "watched" "v\\""$/);
    });
  });
}
