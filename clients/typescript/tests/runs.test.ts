// Runs over RESP2 and RESP3: appends, idempotency, fencing, every field of an event, waits, snapshots and projections.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { beforeEach, describe, test } from 'node:test';
import {
  RunStore, ServerError, WrongTypeError, raw, snapshotReducer,
  type CanonicalEngineEvent, type Connection, type IRunStateStore, type Reducer, type RunStatus,
} from '../src/index.js';
import { list, map, text } from '../src/replies.js';
import { Server, collect, everyByte, eventually, range } from './server.js';

const server = await Server.start();
const skip = await server.lacks('run.append', 'run.events', 'run.snapshot', 'run.project', 'run.info', 'run.list');

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

for (const RESP of [2, 3] as const) {
  describe(`runs, RESP${RESP}`, { skip }, () => {
    let connection: Connection;
    let runs: RunStore;

    beforeEach(async () => {
      connection = await server.connect({ RESP });
      runs = new RunStore(connection);
      await connection.client.flushAll();
    });

    const append = (n: number, more: Partial<CanonicalEngineEvent> = {}) =>
      runs.appendEvent({ runId: 'r', idempotencyKey: `k${n}`, eventType: 'StepCompleted', eventData: n, ...more });
    const blocked = async (n: number) => (await connection.client.info('clients')).includes(`blocked_clients:${n}`);

    test('events get 1, 2, 3 …, and a known key its first number', async () => {
      const first = await append(1);
      assert.equal(first.outcome, 'appended');
      assert.deepEqual([first.runSeq, first.idempotent, first.persisted, first.mismatch], [1, false, true, false]);
      assert.match(first.eventId, UUID);
      assert.match(first.persistedAt, ISO);
      assert.equal((await append(2)).runSeq, 2);

      const again = await append(1);
      assert.deepEqual(again, { ...first, outcome: 'duplicate', idempotent: true, persisted: false });
      const mismatch = await append(1, { eventData: 'other' });
      assert.equal(mismatch.mismatch, true);
      assert.equal(mismatch.eventId, first.eventId);
      assert.equal((await runs.fetchEvents('r')).length, 2);
    });

    test('without a key the server computes it', async () => {
      const event = { runId: 'r', eventType: 'StepStarted', stepId: 's', logicalAttemptId: '2', planVersion: 'p1', eventData: null };
      assert.equal((await runs.appendEvent(event)).idempotent, false);
      assert.equal((await runs.appendEvent(event)).idempotent, true);
      assert.equal((await runs.appendEvent({ ...event, logicalAttemptId: '3' })).idempotent, false);
      const [stored] = await runs.fetchEvents('r');
      assert.equal(stored?.idempotencyKey, createHash('sha256').update('r|s|2|StepStarted|p1').digest('hex'));
      await assert.rejects(runs.appendEvent({ ...event, stepId: 'a|b' }), ServerError);
    });

    test('every field of an event comes back', async () => {
      const event: CanonicalEngineEvent = {
        runId: 'r', runSeq: 99, eventId: 'e1f5a5b2-0000-4000-8000-000000000001', stepId: 'step – ü', engineAttemptId: '3', logicalAttemptId: '2',
        eventType: 'StepCompleted', eventData: { nested: [1, 'zwei', null, { x: 1.5 }] }, idempotencyKey: 'key', emittedAt: '2026-02-11T09:00:00+01:00',
        persistedAt: 'not mine to say', adapterVersion: '1.2.3', engineRunRef: { workflowId: 'wf', runId: 7 }, causedBySignalId: 'signal',
        parentEventId: 'parent', planVersion: 'v7',
      };
      const store: IRunStateStore = runs;
      const { runSeq } = await store.appendEvent(event);
      assert.equal(runSeq, 1);
      const [stored] = await store.fetchEvents('r', {});
      assert.ok(stored !== undefined);
      assert.match(stored.persistedAt ?? '', ISO);
      assert.deepEqual(stored, { ...event, runSeq: 1, persistedAt: stored.persistedAt });

      await append(2);
      const [bare] = await runs.fetchEvents('r', { afterSeq: 1 });
      assert.deepEqual(Object.keys(bare ?? {}).sort(), [
        'emittedAt', 'eventData', 'eventId', 'eventType', 'idempotencyKey', 'persistedAt', 'runId', 'runSeq',
      ]);
      assert.match(bare?.emittedAt ?? '', ISO);

      // Another client that gives no time: the server's, as it sends it.
      await connection.ask(['RUN.APPEND', 'r', 'other', 'X', '1']);
      const [other] = await runs.fetchEvents('r', { afterSeq: 2 });
      assert.equal(new Date(Number(other?.emittedAt)).toISOString(), other?.persistedAt);
    });

    test('references are any JSON value', async () => {
      const references = [
        'wf-1', '', '123', '007', '1e5', 'null', 'true', '{"a":1}', '[broken', '"quoted"', '12345678901234567890', 5, -1.5, 0, true, false, null,
        { a: { b: [1] } }, ['x'],
      ];
      for (const [i, engineRunRef] of references.entries()) await append(i, { engineRunRef });
      assert.deepEqual((await runs.fetchEvents('r')).map((event) => event.engineRunRef), references);
      const [first] = list(await connection.ask(['RUN.EVENTS', 'r', 'LIMIT', '1']));
      assert.equal(text(map(first).get('engineRunRef')), 'wf-1', 'an identifier is sent as it is');
      await assert.rejects(append(99, { engineRunRef: () => 1 }), TypeError);
    });

    test('attributes are kept, and so are fields that this package does not know', async () => {
      const attributes = { tenant: 'a', priority: 7, tags: ['x', null], digits: '42', empty: '', bytes: Buffer.from([0xff, 0]) };
      await append(1, { attributes });
      const extended = { region: 'eu', cost: { cents: 3 }, absent: undefined, attributes: { tenant: 'b' } };
      await append(2, extended);
      await append(3);
      const events = await runs.fetchEvents('r');
      assert.deepEqual(events[0]?.attributes, attributes);
      assert.deepEqual(events[1]?.attributes, { region: 'eu', cost: { cents: 3 }, tenant: 'b' });
      assert.equal(events[2]?.attributes, undefined);
      assert.equal((await append(1, { attributes })).idempotent, true);
    });

    test('data is JSON, or bytes', async () => {
      const values = [null, true, 0, -1.5, 'text', '', [], {}, { deep: [{}] }, Buffer.from([0xff, 0]), Buffer.from('{broken')];
      for (const [i, eventData] of values.entries()) await append(i, { eventData });
      await append(100, { eventData: undefined });
      assert.deepEqual((await runs.fetchEvents('r')).map((event) => event.eventData), [...values, null]);
      await assert.rejects(append(101, { eventData: () => 1 }), TypeError);

      const bytes = new RunStore(connection, { codec: raw });
      const event = { runId: 'bytes', eventType: 'RunStarted' };
      await bytes.appendEvent({ ...event, idempotencyKey: 'a', eventData: everyByte });
      await bytes.appendEvent({ ...event, idempotencyKey: 'b', eventData: '{ "n": 12345678901234567890 }' });
      assert.deepEqual((await bytes.fetchEvents('bytes')).map(({ eventData }) => eventData), [everyByte, Buffer.from('{ "n": 12345678901234567890 }')]);
      assert.deepEqual((await bytes.getSnapshot('bytes'))?.data, Buffer.from('{ "n": 12345678901234567890 }'));
      await assert.rejects(bytes.appendEvent({ ...event, eventData: {} }), TypeError);
    });

    test('a fetch waits for the next event', async () => {
      const waiting = runs.fetchEvents('r', { block: 30_000 });
      await eventually(() => blocked(1));
      await append(1);
      assert.deepEqual((await waiting).map(({ runSeq }) => runSeq), [1]);
      assert.deepEqual(await runs.fetchEvents('r', { afterSeq: 1, block: 1 }), []);

      const abort = new AbortController();
      const aborted = assert.rejects(runs.fetchEvents('r', { afterSeq: 1, block: 30_000, signal: abort.signal }), /enough/);
      await eventually(() => blocked(1));
      abort.abort(new Error('enough'));
      await aborted;
      await eventually(() => blocked(0));
    });

    test('the reducer here and that of the server agree', async () => {
      const seed = Math.floor(Math.random() * 2 ** 32);
      const random = generator(seed);
      const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
      const types = [
        'RunStarted', 'RunResumed', 'RunPaused', 'StepStarted', 'StepRetried', 'StepCompleted', 'StepFailed', 'StepSkipped', 'StepCorrected', 'Other',
      ];
      for (const round of range(20, (i) => i)) {
        const runId = `r${round}`;
        for (const n of range(30, (i) => i)) {
          // A run that is ended goes on with events that do not count.
          const eventType = random() < 0.05 ? pick(['RunCompleted', 'RunFailed', 'RunCancelled']) : pick(types);
          const stepId = random() < 0.2 ? {} : { stepId: pick(['a', 'b', '7', '__proto__', 'constructor', '']) };
          await runs.appendEvent({ runId, idempotencyKey: `${n}`, eventType, eventData: { n }, ...stepId });
        }
        const kept = await runs.getSnapshot(runId);
        const why = `seed ${seed}, ${runId}`;
        assert.deepEqual(await runs.projectSnapshot(runId), kept, why);
        assert.deepEqual(await runs.projectSnapshot(runId, snapshotReducer), kept, why);
        const upTo = Math.floor(random() * 31);
        assert.deepEqual(
          await runs.projectSnapshot(runId, snapshotReducer, { upTo }), await runs.projectSnapshot(runId, undefined, { upTo }), `${why}, up to ${upTo}`,
        );
      }
    });

    test('other projections are made of pages of events', async () => {
      await Promise.all(range(2500, (i) => append(i + 1, { eventData: 1 })));
      const sum: Reducer<{ sum: number; last: number }> = {
        initial: () => ({ sum: 0, last: 0 }),
        apply(state, event) {
          assert.equal(event.runSeq, state.last + 1);
          return { sum: state.sum + Number(event.eventData), last: event.runSeq };
        },
      };
      assert.deepEqual(await runs.projectSnapshot('r', sum), { sum: 2500, last: 2500 });
      assert.deepEqual(await runs.projectSnapshot('r', sum, { upTo: 2000 }), { sum: 2000, last: 2000 });
      assert.deepEqual(await runs.projectSnapshot('r', sum, { upTo: 1 }), { sum: 1, last: 1 });
      assert.deepEqual(await runs.projectSnapshot('r', sum, { upTo: 0 }), { sum: 0, last: 0 });
      assert.deepEqual(await runs.projectSnapshot('none', sum), { sum: 0, last: 0 });
    });

    test('facts about runs, and lists of them', async () => {
      assert.equal(await runs.info('r'), null);
      const first = await append(1, { eventType: 'RunStarted' });
      const last = await append(2);
      const info = await runs.info('r');
      assert.ok(info !== null && info.bytes > 0);
      assert.deepEqual(info, {
        runId: 'r', status: 'running', events: 2, lastEventSeq: 2, firstAt: first.persistedAt, lastAt: last.persistedAt, bytes: info.bytes,
      });

      const end: Record<number, string> = { 0: 'RunCompleted', 1: 'RunFailed', 2: 'RunPaused', 3: 'RunStarted' };
      await Promise.all(range(2400, (i) => runs.appendEvent({ runId: `run:${i}`, eventType: end[i % 4] ?? '', eventData: null })));
      await connection.client.set('run:string', 'no run');
      const count = async (status?: readonly RunStatus[]) =>
        new Set(await collect(runs.list({ prefix: 'run:', ...(status === undefined ? {} : { status }) }))).size;
      assert.equal(await count(), 2400);
      assert.equal(await count(['paused', 'running']), 1200);
      assert.equal(await count(['completed']), 600);
      assert.equal(new Set(await collect(runs.list())).size, 2401);
    });

    test('errors are those of the server', async () => {
      await connection.client.set('r', 'a string');
      await assert.rejects(append(1), WrongTypeError);
      await assert.rejects(runs.fetchEvents('r'), WrongTypeError);
      await assert.rejects(runs.getSnapshot('r'), (error) => error instanceof ServerError && error.code === 'WRONGTYPE');
    });
  });
}

/** Numbers from 0 to 1, the same for the same seed. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
