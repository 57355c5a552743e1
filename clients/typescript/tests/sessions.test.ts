// Sessions over RESP2 and RESP3: requests that run once, what becomes of them when connections or the session are lost, and requests to a
// client.

import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  ClosedError, EvictedError, ExactlyOnceState, MismatchError, NoSessionError, PreparedRequest, RecordStore, ServerError, SessionLostError, Sessions,
  UnansweredError, UnavailableError, WrongTypeError, codec, type Connection, type PushedRequest, type Session,
} from '../src/index.js';
import { Insistence, RequestNumbers } from '../src/sessions/request-numbers.js';
import { Proxy } from './proxy.js';
import { Server, collect, eventually, range } from './server.js';

const server = await Server.start();
const skip = await server.lacks('session.open', 'session.call', 'session.push');

test('LOW is the lowest request without a reply', () => {
  const numbers = new RequestNumbers(1);
  assert.equal(numbers.low(), 1);
  assert.deepEqual(range(4, () => numbers.begin()), [1, 2, 3, 4]);
  assert.equal(numbers.low(), 1);
  numbers.end(2);
  assert.equal(numbers.low(), 1);
  numbers.end(1);
  assert.equal(numbers.low(), 3);
  numbers.end(4);
  numbers.end(3);
  assert.equal(numbers.low(), 5);
  assert.equal(numbers.begin(), 5);
  numbers.beginAgain(9);
  assert.deepEqual([numbers.low(), numbers.following], [5, 10]);
});

test('when a request is sent again', () => {
  const insistence = new Insistence(60_000);
  assert.notEqual(insistence.pauseMs(new ServerError('LOADING', 'reads its data')), undefined);
  assert.equal(insistence.maybeApplied, false);
  const pauses = range(12, () => insistence.pauseMs(new UnavailableError('gone')));
  assert.ok(pauses.every((pause) => pause !== undefined && pause >= 5 && pause <= 1300), `${pauses}`);
  assert.equal(insistence.maybeApplied, true);
  assert.equal(insistence.pauseMs(new ServerError('OOM', 'no memory')), undefined);
  const late = new Insistence(0);
  const gone = new UnavailableError('gone');
  assert.equal(late.pauseMs(gone), undefined);
  const request = new PreparedRequest(7, ['INCR', 'n'], () => Promise.reject(gone), () => true);
  const failure = late.failure(request, gone);
  assert.ok(failure instanceof UnansweredError && failure.requestId === 7 && failure.request === request && failure.isTemporary);
  // A server that does not let the client in says nothing of what was sent before.
  assert.ok(late.failure(request, new ServerError('NOAUTH', 'who?')) instanceof UnansweredError);
  const refused = new ServerError('OOM', 'no memory');
  assert.equal(late.failure(request, refused), refused);
  assert.ok(!(new Insistence(0).failure(request, new ServerError('NOPERM', 'no')) instanceof UnansweredError));
});

for (const RESP of [2, 3] as const) {
  describe(`sessions, RESP${RESP}`, { skip }, () => {
    let connection: Connection;
    let sessions: Sessions;
    let proxy: Proxy;

    beforeEach(async () => {
      connection = await server.connect({ RESP });
      await connection.client.flushAll();
      sessions = new Sessions(connection);
      proxy = await Proxy.start(server.port);
    });

    afterEach(() => proxy.end());

    const throughProxy = async (options = {}) => new Sessions(await server.connect({ RESP, socket: { host: '127.0.0.1', port: proxy.port }, ...options }));
    const answers = (through: Connection) => through.ask(['PING']).then(() => true, () => false);
    const hasPending = async (session: Session, count: number) => (await sessions.info(session.id))?.pending === count;

    test('requests are numbered, and their replies dropped', async () => {
      const session = await sessions.open({ capabilities: { kind: 'worker' } });
      assert.match(session.id, /^session:[0-9a-f]{32}$/);
      for (const n of [1, 2, 3]) assert.equal(await session.call(['INCR', 'n']), `${n}`);
      assert.equal(session.nextRequestId, 4);
      const info = await session.info();
      assert.deepEqual([info?.id, info?.low, info?.replies, info?.ttlMs, info?.attached], [session.id, 3, 1, 90_000, false]);
      assert.deepEqual(info?.capabilities, { kind: 'worker' });
      assert.deepEqual(await collect(sessions.ids()), [session.id]);
      await Promise.all(range(20, () => session.call(['INCR', 'n'])));
      assert.equal(String(await session.call(['GET', 'n'])), '23');
      assert.equal(await session.close(), true);
      assert.equal(await session.close(), false);
      assert.equal(await sessions.info(session.id), null);
      await assert.rejects(session.call(['INCR', 'n']), ClosedError);
    });

    test('errors are replies too', async () => {
      const session = await sessions.open();
      await session.call(['HSET', 'h', 'f', 1]);
      await assert.rejects(session.call(['INCR', 'h']), WrongTypeError);
      const again = await sessions.resume(session.id, 3);
      await assert.rejects(again.prepare(['INCR', 'h'], { requestId: 2 }).send(), WrongTypeError);
      await assert.rejects(again.prepare(['INCR', 'g'], { requestId: 2 }).send(), MismatchError);
      for (const own of [0, 1, 2]) assert.throws(() => session.prepare(['INCR', 'g'], { requestId: own }), RangeError);
      await assert.rejects(session.call(['NOSUCHCOMMAND']), ServerError);
      assert.equal(String(await session.call(['HGET', 'h', 'f'])), '1');
      await assert.rejects(again.prepare(['HSET', 'h', 'f', 1], { requestId: 1 }).send(), EvictedError);
    });

    test('a session stands in for a connection', async () => {
      const session = await sessions.open();
      await session.records.put('r', { a: 1 });
      assert.equal((await session.records.exchange('r', { expected: { a: 1 }, set: { a: 2 } })).applied, true);
      assert.equal(await new ExactlyOnceState(session, 's/', codec.text).put('k', 'v', 1), 'applied');
      assert.deepEqual((await new RecordStore(connection).get('r'))?.toObject(), { a: '2' });
      assert.equal(session.nextRequestId, 4);
      assert.deepEqual(await session.cells.cell('main/c', codec.integer).cas(0, 5), { applied: true, version: 1 });
      assert.equal((await session.runs.appendEvent({ runId: 'run', eventType: 'RunStarted', eventData: {} })).runSeq, 1);
      assert.equal(session.nextRequestId, 6);
      assert.equal((await session.records.get('r'))?.text('a'), '2');
      // Nothing waits in a session, so nothing can be followed.
      await assert.rejects(collect(session.runs.follow('run')), TypeError);
      await assert.rejects(collect(session.cells.cell('main/c').watch()), TypeError);
      assert.equal(await session.cells.cell('main/c').waitAfter(1, 60_000), null);
    });

    test('a prepared request runs once, however often it is sent', async () => {
      const session = await sessions.open();
      const first = session.prepare(['INCR', 'n']);
      assert.deepEqual([first.id, first.words], [1, ['INCR', 'n']]);
      assert.equal(await session.call(['INCR', 'n']), '1');
      assert.equal((await session.info())?.low, 1, 'it is open until it is answered');
      assert.deepEqual(await Promise.all(range(5, () => first.send())), range(5, () => '2'));
      assert.equal(await first.send(), '2');
      assert.throws(() => session.prepare(['INCR', 'n'], { requestId: session.prepare(['INCR', 'n']).id }), /3 is the number of a request of this session/);
      session.forget(3);
      const wrong = session.prepare(['LPUSH', 'n', 'x']);
      await assert.rejects(wrong.send(), WrongTypeError);
      await assert.rejects(wrong.send(), WrongTypeError);
      assert.equal(await session.call(['INCR', 'n']), '3');
    });

    test('a lost answer is asked for again', async () => {
      const through = await server.connect({ RESP, socket: { host: '127.0.0.1', port: proxy.port } });
      const session = await new Sessions(through).open();
      for (const n of range(20, (i) => i + 1)) {
        await eventually(() => answers(through)); // it has connected again, so that the call is what is cut
        proxy.cutAfter({ reply: n % 4 }); // the server has run it, and its reply does not come, or a part of it
        assert.equal(await session.call(['INCR', 'n']), `${n}`);
      }
      for (const n of range(10, (i) => i + 21)) {
        await eventually(() => answers(through));
        proxy.cutAfter({ request: n }); // a part of the request comes
        assert.equal(await session.call(['INCR', 'n']), `${n}`);
      }
    });

    test('a request without an answer can be called again', async () => {
      const session = await (await throughProxy({ responseTimeoutMs: 200 })).open({ retryForMs: 100 });
      assert.equal(await session.call(['INCR', 'n']), '1');
      proxy.cutAfter({ reply: 0 });
      proxy.refuse();
      const lost = await session.call(['INCR', 'n']).catch((error: unknown) => error);
      assert.ok(lost instanceof UnansweredError && lost.requestId === 2);
      // Another command cannot be sent under its number.
      assert.throws(() => session.prepare(['INCR', 'other'], { requestId: lost.requestId }), RangeError);
      proxy.accept();
      await insist(() => session.call(['INCR', 'other']), session);
      assert.equal((await session.info())?.low, 2); // its reply is kept
      assert.equal(await lost.request.send(), '2');
      assert.equal(await lost.request.send(), '2');
      const before = session.nextRequestId;
      await session.call(['INCR', 'other']);
      assert.equal((await session.info())?.low, before);
      proxy.refuse();
      proxy.cut();
      await assert.rejects(session.call(['INCR', 'n']), UnansweredError);
      proxy.accept();
      session.forget(before + 1);
      await insist(() => session.call(['INCR', 'other']), session);
      assert.equal((await session.info())?.low, session.nextRequestId - 1);
    });

    /** Calls until there is an answer, while a client with little patience connects again. */
    async function insist(call: () => Promise<unknown>, session: Session): Promise<void> {
      for (;;) {
        try {
          await call();
          return;
        } catch (error) {
          if (!(error instanceof UnansweredError)) throw error;
          session.forget(error.requestId);
        }
      }
    }

    test('a request goes another way when its connection has silently died', async () => {
      const through = await server.connect({ RESP, socket: { host: '127.0.0.1', port: proxy.port }, responseTimeoutMs: 500 });
      const session = await new Sessions(through).open();
      assert.equal(await session.call(['INCR', 'n']), '1');
      proxy.freeze();
      assert.equal(await session.call(['INCR', 'n']), '2');
      proxy.freeze();
      assert.equal(await session.call(['INCR', 'n']), '3');
      through.client.destroy(); // to close it would wait for the answers
    });

    test('a session that is gone is an error that says so', async () => {
      const session = await sessions.open();
      await sessions.close(session.id);
      await assert.rejects(session.call(['INCR', 'n']), (error) => error instanceof SessionLostError
        && error.sessionId === session.id && error.requestId === 1 && !error.maybeApplied && error.message.endsWith('its request 1 has not run'));
      const never = () => assert.fail('nothing was pushed');
      for (const request of [session.call(['INCR', 'n']), session.ack(1), session.pending(), session.serve(never)]) {
        await assert.rejects(request, SessionLostError);
      }

      // The request ran, its answer was lost, and so was the session: nobody knows.
      const through = await (await throughProxy()).open();
      proxy.cutAfter({ reply: 0 });
      proxy.refuse();
      const asking = assert.rejects(through.call(['INCR', 'm']), (error) => error instanceof SessionLostError
        && error.maybeApplied && !error.isTemporary && error.message.endsWith('its request 1 may have run, or not'));
      await eventually(() => proxy.cuts === 1);
      await sessions.close(through.id);
      proxy.accept();
      await asking;
    });

    test('what another session is missing is no loss of this one', async () => {
      const [session, other] = [await sessions.open(), await sessions.open()];
      assert.equal(await session.push(other.id, 'work'), 1);
      await assert.rejects(session.push('session:none', 'work'), NoSessionError);
      await assert.rejects(sessions.push('session:none', 'work'), NoSessionError);
      assert.equal(await session.call(['INCR', 'n']), '1');
      assert.deepEqual((await sessions.pending(other.id)).map(({ payload }) => payload.toString()), ['work']);
    });

    test('a session is kept alive while it asks nothing', async () => {
      const session = await sessions.open({ ttlMs: 600 });
      const short = await sessions.open({ ttlMs: 600 });
      await connection.ask(['SESSION.OPEN', 'ID', 'session:alone', 'TTL', '600']);
      await eventually(async () => (await sessions.info('session:alone')) === null);
      await sleep(700);
      assert.equal(await session.call(['INCR', 'n']), '1');
      assert.equal(await short.call(['INCR', 'n']), '2');
    });

    test('a session is resumed with the number of its next new request', async () => {
      const session = await sessions.open();
      await session.call(['INCR', 'n']);
      const words = ['INCR', 'n'] as const;
      const request = session.prepare(words);
      const [id, requestId] = [session.id, request.id]; // stored before it is sent
      assert.equal(await request.send(), '2');

      const again = await sessions.resume(id, requestId + 1);
      assert.equal(again.nextRequestId, 3);
      const repeated = again.prepare(words, { requestId });
      assert.throws(() => again.prepare(['INCR', 'm'], { requestId }), RangeError);
      assert.equal(await again.call(['INCR', 'n']), '3'); // under the number 3; the reply of 2 is kept
      assert.equal(await repeated.send(), '2'); // it had run

      // With the number of the stored request itself it is the same, as long as that is prepared first.
      const same = await sessions.resume(id, requestId);
      assert.equal(same.nextRequestId, 2);
      assert.equal(await same.prepare(words, { requestId }).send(), '2');
      assert.equal(same.nextRequestId, 3);

      // Another request under that number, or one whose reply was dropped, does not run.
      const other = await sessions.resume(id, 9);
      await assert.rejects(other.prepare(['INCR', 'm'], { requestId }).send(), MismatchError);
      await again.call(['INCR', 'n']);
      await assert.rejects(other.prepare(words, { requestId }).send(), EvictedError);
      assert.equal(String(await again.call(['GET', 'n'])), '4');
    });

    test('pushed requests are served in order and acknowledged', async () => {
      const session = await sessions.open();
      for (const n of [1, 2, 3]) assert.equal(await sessions.push(session.id, `${n}`), n);
      assert.deepEqual((await session.pending({ after: 1, limit: 1 })).map(({ id, payload }) => [id, `${payload}`]), [[2, '2']]);
      const seen: PushedRequest[] = [];
      const stop = new AbortController();
      const serving = session.serve((request) => { seen.push(request); }, { signal: stop.signal });
      await eventually(() => seen.length === 3);
      for (const n of [4, 5]) await sessions.push(session.id, `${n}`);
      await eventually(() => seen.length === 5);
      await eventually(() => hasPending(session, 0));
      stop.abort();
      await serving;
      assert.deepEqual(seen.map(({ id, payload }) => [id, `${payload}`]), range(5, (i) => [i + 1, `${i + 1}`]));
      assert.equal(await session.ack(5), 0);
    });

    test('a request whose handler fails comes again', async () => {
      const session = await sessions.open();
      for (const n of [1, 2]) await sessions.push(session.id, `${n}`);
      const seen: number[] = [];
      const own = new UnavailableError("the handler's own");
      const fail = ({ id }: PushedRequest) => {
        seen.push(id);
        if (seen.length === 2) throw own;
      };
      await assert.rejects(session.serve(fail), own);
      assert.deepEqual((await session.pending()).map(({ id }) => id), [2]);
      const stop = new AbortController();
      const serving = session.serve(fail, { signal: stop.signal });
      await eventually(() => hasPending(session, 0));
      stop.abort();
      await serving;
      assert.deepEqual(seen, [1, 2, 2]);
    });

    test('requests are served once, over lost connections and kill -9', async () => {
      const session = await (await throughProxy()).open();
      const pusher = await sessions.open();
      const seen: number[] = [];
      const lost: unknown[] = [];
      const stop = new AbortController();
      const serving = session.serve(({ id }) => { seen.push(id); }, { signal: stop.signal, onRetry: (error) => lost.push(error) });
      for (const n of range(100, (i) => i + 1)) {
        assert.equal(await pusher.push(session.id, `${n}`), n);
        if (n % 10 === 0) proxy.cut();
        if (n === 55) {
          await server.kill();
          await server.run();
        }
      }
      await eventually(() => hasPending(session, 0));
      // It waits now, and not for an acknowledgement.
      await eventually(() => {
        proxy.cut();
        return lost.length > 0;
      });
      await pusher.push(session.id, '101');
      await eventually(() => hasPending(session, 0));
      stop.abort();
      await serving;
      assert.deepEqual(seen, range(101, (i) => i + 1));
      assert.ok(lost.every((error) => error instanceof UnavailableError));
    });

    test('requests that were not acknowledged are found', async () => {
      const [one, other] = [await sessions.open(), await sessions.open()];
      await sessions.push(one.id, 'a');
      await sessions.push(other.id, 'b');
      assert.equal(await sessions.hasRetry(1), false);
      const later = Date.parse((await one.pending())[0]?.lastSent ?? '') + 60_000;
      assert.equal(await sessions.hasRetry(later), true);
      const [first] = await sessions.retry(later, 1);
      assert.deepEqual([first?.id, `${first?.payload}`], [1, first?.sessionId === one.id ? 'a' : 'b']);
      const all = [first, ...await sessions.retry(later)];
      assert.deepEqual(new Set(all.map((each) => each?.sessionId)), new Set([one.id, other.id]));
    });

    test('hooks', async () => {
      const library = `#!lua name=hooks
redis.register_function('expired', function(keys, args) redis.call('SET', 'expired', keys[1]) end)`;
      await connection.ask(['FUNCTION', 'LOAD', 'REPLACE', library]);
      assert.deepEqual([await sessions.hook('created'), await sessions.hook('expired')], [null, null]);
      await sessions.setHook('expired', 'expired');
      try {
        assert.deepEqual([await sessions.hook('created'), await sessions.hook('expired')], [null, 'expired']);
        const session = await sessions.open();
        await session.close();
        assert.equal(await connection.client.get('expired'), session.id);
      } finally {
        await sessions.setHook('expired', null);
      }
      assert.equal(await sessions.hook('expired'), null);
    });
  });
}
