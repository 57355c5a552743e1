// A queue with groups over RESP2 and RESP3: caps, rates, turns and pauses, with several workers; the limits that are set, and the groups as
// they fare.

import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  NoGroupsError, Queue, RecordStore, ServerError, type Connection, type GroupState, type IndexDefinition, type Job, type Limits, type QueueConfig,
  type Scope,
} from '../src/index.js';
import { Server, range } from './server.js';

const server = await Server.start();
const skip = await server.lacks('hcas', 'claim', 'idx.limit');
const CONFIG: QueueConfig = { indexes: ['due'], groupBy: 'tenant' };
const HOUR_MS = 3_600_000;

for (const RESP of [2, 3] as const) {
  describe(`a queue with groups, RESP${RESP}`, { skip }, () => {
    let connection: Connection;
    let records: RecordStore;
    let queue: Queue;

    beforeEach(async () => {
      connection = await server.connect({ RESP });
      records = new RecordStore(connection);
      for (const index of await records.indexes()) await records.dropIndex(index);
      await connection.client.flushAll();
      queue = new Queue(records, CONFIG);
      await queue.createIndex('due', 'job:');
    });

    async function add(group: string, ...numbers: number[]): Promise<void> {
      for (const number of numbers) assert.equal(await queue.add(`job:${group}:${number}`, {}, { group }), true);
    }

    /** All jobs that may be claimed now. */
    const claimAll = () => queue.claim({ ...queue.request('w'), count: 100 });
    const groupOf = (job: Job | null) => job?.fields.text('tenant');

    /** How many jobs of each group are among these. */
    function countOf(jobs: readonly (Job | null)[]): Record<string, number> {
      const counts: Record<string, number> = {};
      for (const job of jobs) counts[`${groupOf(job)}`] = (counts[`${groupOf(job)}`] ?? 0) + 1;
      return counts;
    }

    async function groups(): Promise<Map<string, GroupState>> {
      const found = new Map<string, GroupState>();
      for await (const group of queue.groups()) found.set(group.name, group);
      return found;
    }

    /** Waits until so many clients wait at the server. */
    async function untilBlocked(count: number): Promise<void> {
      const deadline = Date.now() + 60_000;
      while (!(await connection.client.info('clients')).includes(`blocked_clients:${count}\r\n`)) {
        assert.ok(Date.now() < deadline, 'waited in vain');
        await sleep(2);
      }
    }

    test('a paused group gives nothing, and then to the worker that waits', async () => {
      await queue.limit({ group: 'acme' }, { pause: true });
      await add('acme', 1);
      await add('bolt', 1);
      assert.deepEqual(countOf(await claimAll()), { bolt: 1 });
      let served = false;
      const waiting = queue.next('w', 60_000).finally(() => { served = true; });
      await untilBlocked(1);
      const state = (await groups()).get('acme');
      assert.equal(state?.limits.pause, true);
      assert.equal(state?.allowedAt, null);
      assert.equal(served, false);
      await queue.limit({ group: 'acme' }, { pause: false });
      assert.equal((await waiting)?.key, 'job:acme:1');
    });

    test('limits are read as they were set, and taken back', async () => {
      const limits = async () => (await queue.limits()).sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
      assert.deepEqual(await limits(), []);
      await queue.limit('all', { held: 100, rate: { takes: 10, perMs: 1000 } });
      await queue.limit('each', { held: 2, pause: false });
      await queue.limit({ group: 'acme' }, { held: 'none', rate: { takes: 5, perMs: 1000, burst: 9 }, weight: 2.5 });
      await queue.limit({ group: 'acme' }, { pause: true }); // the others stay
      const all = { scope: 'all', held: 100, rate: { takes: 10, perMs: 1000, burst: 10 } };
      const each = { scope: 'each', held: 2, pause: false };
      const acme = { scope: { group: 'acme' }, held: 'none', rate: { takes: 5, perMs: 1000, burst: 9 }, weight: 2.5, pause: true };
      const set = await limits();
      assert.deepEqual(set, [all, each, acme]);
      await queue.resetLimits('each');
      await queue.limit({ group: 'acme' }, { held: 'default', rate: 'default' });
      assert.deepEqual(await limits(), [all, { scope: { group: 'acme' }, weight: 2.5, pause: true }]);
      await queue.resetLimits();
      assert.deepEqual(await limits(), []);
      for (const { scope, ...read } of set) await queue.limit(scope, read); // what was read can be set again
      assert.deepEqual(await limits(), set);
    });

    test('groups come page by page', async () => {
      const names = [...range(620, (i) => `tenant-${i}`), '', 'ü', Buffer.from([0xff])];
      await Promise.all(names.map((tenant, i) => records.put(`job:${i}`, { state: 'pending', run_at: 5, tenant })));
      const listed: GroupState[] = [];
      for await (const group of queue.groups()) listed.push(group);
      const raw = (all: readonly (string | Buffer)[]) => all.map((name) => Buffer.from(name).toString('hex')).sort();
      assert.deepEqual(raw(listed.map(({ rawName }) => rawName)), raw(names.map((name) => Buffer.from(name))));
      for (const { records: open, held, firstScore, allowedAt } of listed) assert.deepEqual([open, held, firstScore, allowedAt], [1, 0, 5, 0]);
      await queue.limit({ group: Buffer.from([0xff]) }, { held: 0 });
      assert.deepEqual((await groups()).get('\\xff')?.limits, { held: 0, rate: null, weight: 1, pause: false });
      assert.deepEqual((await queue.limits()).map(({ scope }) => scope), [{ group: Buffer.from([0xff]) }]);
    });

    test('the group of a job', async () => {
      await queue.add('job:1', { tenant: 'of the fields' }, { group: 'acme' });
      await queue.add('job:2', { tenant: 'bolt' });
      await queue.add('job:3', {}, 0);
      await queue.add('job:4', {}, { group: 7 });
      await queue.add('job:5', {}, { delayMs: HOUR_MS, group: Buffer.from([0xff]) });
      assert.deepEqual([...await groups()].map(([name, { records: open }]) => [name, open]).sort(), [['', 1], ['7', 1], ['\\xff', 1], ['acme', 1], ['bolt', 1]]);
      assert.equal((await claimAll()).length, 4);
      await assert.rejects(queue.add('job:6', {}, { group: 'x'.repeat(1025) }), /at most 1024 bytes, and this one has 1025/);
      assert.equal(await queue.add('job:6', {}, { group: 'x'.repeat(1024) }), true);
      const plain = new Queue(records, { indexes: ['due'] });
      await assert.rejects(plain.add('job:7', {}, { group: 'acme' }), /groupBy/);
      assert.equal(await records.get('job:7'), null);
    });

    test('an index that is there has to keep the groups', async () => {
      assert.equal(await queue.createIndex('due', 'job:'), false);
      const only = { field: 'state', values: ['pending', 'running'] };
      const held = { field: 'state', values: ['running'] };
      const wrong: Partial<IndexDefinition>[] = [
        {}, { group: 'tenant' }, { held }, { group: 'customer', held }, { group: 'tenant', held: { field: 'state', values: ['pending'] } },
        { group: 'tenant', held: { field: 's', values: ['running'] } }, { group: 'tenant', held: { field: 'state', values: ['resting', 'running'] } },
      ];
      for (const [i, groupsOf] of wrong.entries()) {
        assert.equal(await records.createIndex(`wrong-${i}`, { prefixes: ['x:'], field: 'run_at', only, ...groupsOf }), true);
        await assert.rejects(queue.createIndex(`wrong-${i}`, 'x:'), (error) => {
          assert.ok(error instanceof NoGroupsError);
          assert.match(error.message, new RegExp(`an index wrong-${i} already, .*(GROUP|HELD) is `));
          return true;
        });
      }
    });

    test('what the server refuses reaches the caller', async () => {
      const plain = new Queue(records, { indexes: ['plain'] });
      await plain.createIndex('plain', 'plain:');
      const all = async (store: RecordStore | Queue, ...index: [] | [string]) => {
        const found: GroupState[] = [];
        for await (const group of store instanceof Queue ? store.groups() : store.groups(index[0] ?? '')) found.push(group);
        return found;
      };
      const refused: [() => Promise<unknown>, RegExp][] = [
        [() => plain.limit({ group: 'acme' }, { pause: true }), /the index 'plain' has no groups: it was created without GROUP/],
        [() => plain.limit('all', { held: 1 }), /the index 'plain' does not know what is held: it was created without HELD/],
        [() => queue.limit('all', { weight: 2 }), /WEIGHT is for groups, not for ALL/],
        [() => queue.limit('each', { weight: 0 }), /WEIGHT must be a number from 0.01 to 1000, not '0'/],
        [() => queue.limit('each', { rate: { takes: 0, perMs: 1 } }), /the number behind RATE/],
        [() => queue.limit('each', { held: -1 }), /the maximum behind HELD/],
        [() => queue.limit('each', {}), /nothing is set/],
        [() => records.limit('none', 'each', { held: 1 }), /there is no index 'none'/],
        [() => records.limits('none'), /there is no index 'none'/],
        [() => records.resetLimits('none'), /there is no index 'none'/],
        [() => all(records, 'none'), /there is no index 'none'/],
        [() => records.claim({ indexes: ['due'], set: { tenant: 'other' } }), /tenant/],
      ];
      for (const [ask, message] of refused) {
        await assert.rejects(ask, (error) => {
          assert.ok(error instanceof ServerError);
          assert.match(error.message, message);
          return true;
        });
      }
      assert.deepEqual(await all(plain), []);
      assert.deepEqual(await queue.limits(), []);
    });

    test('wrong arguments', async () => {
      const several = new Queue(records, { indexes: ['due', 'due:low'], groupBy: 'tenant' });
      const wrong: (() => Promise<unknown>)[] = [
        () => queue.limit('acme' as Scope, { held: 1 }),
        () => queue.limit('each', { held: 'some' } as unknown as Limits),
        () => queue.limit('each', { held: 1.5 }),
        () => queue.resetLimits('acme' as Scope),
        () => several.limit('each', { held: 1 }),
        () => several.limits(),
        () => several.resetLimits(),
        () => several.groups().next(),
      ];
      for (const ask of wrong) await assert.rejects(ask, RangeError);
      await assert.rejects(queue.limit('each', { pause: 'no' } as unknown as Limits), TypeError);
      assert.deepEqual(await queue.limits(), []);
      await records.limit('due', 'each', { held: 1 }); // the way with several
      assert.deepEqual(await records.limits('due'), await queue.limits());
      assert.deepEqual(await queue.limits(), [{ scope: 'each', held: 1 }]);
    });
  });
}
