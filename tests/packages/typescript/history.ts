// Runs a history with the TypeScript package: reads one operation a line, as JSON, and prints its result in the neutral form of README.md.
// Knows how operations are called in TypeScript; refuses to know what their results should be.

import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  CellStore, ClosedError, ConflictError, Connection, EvictedError, ExactlyOnceState, LostError, MemoryState, MismatchError,
  NoGroupsError, NoSessionError, Queue, RecordStore, ReplyError, RunStore, ServerError, SessionLostError, Sessions, StatefulNode, UnavailableError,
  WrongTypeError, codec,
  type Asker, type Cell, type CellVersion, type Codec, type CommandWords, type Exchange, type Fields, type Filter, type GroupLimits, type Held, type Indexed, type Job,
  type NewEvent, type NodeEntry, type PreparedRequest, type Reply, type RunSnapshot, type Scope, type ScopeLimits, type Session, type StateBackend, type StateVersion,
  type Swap,
} from '../../../clients/typescript/src/index.js';

type Op = Record<string, any>;
type Json = unknown;

const HOUR_MS = 3_600_000;
const CODECS: Record<string, Codec<any>> = { text: codec.text, integer: codec.integer, json: codec.json, raw: codec.raw };

/** The kinds of errors. A wrong argument and the server's ERR are one: nothing was changed. */
const KINDS: readonly (readonly [new (...args: any[]) => Error, string])[] = [
  [WrongTypeError, 'wrong-type'], [ConflictError, 'conflict'], [NoSessionError, 'no-session'], [MismatchError, 'mismatch'],
  [EvictedError, 'evicted'], [ServerError, 'refused'], [NoGroupsError, 'refused'], [LostError, 'lost'], [SessionLostError, 'session-lost'], [ClosedError, 'closed'],
  [ReplyError, 'reply'], [UnavailableError, 'unavailable'], [RangeError, 'refused'], [TypeError, 'refused'],
];

/** What a transaction's body throws by itself. */
class Abort extends Error {}

/** What operations are asked of: a store, a transaction or a session. */
interface On {
  readonly asker: Asker;
  readonly records: RecordStore;
  readonly runs: RunStore;
  readonly cells: any;
}

function data(text: string): Buffer {
  return text.startsWith('hex:') ? Buffer.from(text.slice(4), 'hex') : Buffer.from(text);
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function shown(value: Uint8Array | string | null | undefined): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string') return value;
  try {
    return UTF8.decode(value);
  } catch {
    return `hex:${Buffer.from(value).toString('hex')}`;
  }
}

function changes(fields: Record<string, string | null> = {}): any {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, value === null ? null : data(value)]));
}

function shownFields(fields: Fields): Record<string, string | null> {
  return Object.fromEntries([...fields].map(([name, value]) => [name, shown(value)]));
}

function exchangeOf(op: Op): Exchange {
  return {
    expected: changes(op['if']), absent: op['absent'], set: changes(op['set']), remove: op['remove'],
    ...(op['ttl'] === undefined ? {} : { lifetime: { ms: op['ttl'] } }),
  };
}

function filtersOf(filters: Op[]): Filter[] {
  return filters.map(({ field, op, value, values }) =>
    (values === undefined ? { field, op, value: data(value) } : { field, op, values: values.map(data) }) as Filter);
}

function valueIn(op: Op): unknown {
  return op['codec'] === 'raw' ? data(op['value']) : op['value'];
}

function valueOut(value: unknown): Json {
  return value instanceof Uint8Array ? shown(value) : value;
}

function versionIn(version: number | [number, number]): number | StateVersion {
  return typeof version === 'number' ? version : { epoch: version[0], round: version[1] };
}

function shownVersion({ epoch, round }: StateVersion): string {
  return epoch === 0 ? `${round}` : `${epoch}.${round}`;
}

function shownReply(reply: Reply): Json {
  if (Array.isArray(reply)) return reply.map(shownReply);
  return shown(reply as Buffer | string | null);
}

function held(version: CellVersion<unknown> | null, op: Op = {}): Json {
  return version === null ? null : { value: cellValue(version.value, op), version: version.version };
}

function cellValue(value: unknown, op: Op): Json {
  if (op['codec'] === 'json' && value instanceof Uint8Array) throw new ReplyError('no JSON, which is bytes here and an error in Rust');
  return valueOut(value);
}

function heldState(state: Held<unknown> | null): Json {
  return state === null ? null : { value: valueOut(state.value), version: shownVersion(state.version) };
}

function swapped(swap: Swap<unknown>, op: Op): Json {
  if (swap.applied) return { done: swap.version };
  return { current: swap.current === null ? null : [cellValue(swap.current.value, op), swap.current.version] };
}

function shownSnapshot(snapshot: RunSnapshot | null): Json {
  if (snapshot === null) return null;
  const steps = Object.entries(snapshot.steps).map(([name, step]) => [name, {
    status: step.status, attempts: step.attempts, data: step.data ?? null, started: step.startedAt !== undefined,
  }]);
  return {
    status: snapshot.status, seq: snapshot.lastEventSeq, data: snapshot.data ?? null, started: snapshot.startedAt !== undefined,
    updated: snapshot.updatedAt !== undefined, steps: Object.fromEntries(steps),
  };
}

function scopeOf(op: Op): Scope {
  return op['scope'] === 'group' ? { group: data(op['group']) } : op['scope'];
}

function shownLimits({ held, rate, weight, pause }: GroupLimits | ScopeLimits): Json {
  const numbers = typeof rate === 'object' && rate !== null ? [rate.takes, rate.perMs, rate.burst] : rate ?? null;
  return { held: held ?? null, rate: numbers, weight: weight ?? null, pause: pause ?? null };
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const each of items) found.push(each);
  return found;
}

class Driver {
  readonly #connection: Connection;
  readonly #store: On;
  readonly #cells: CellStore;
  readonly #queue: Queue;
  readonly #grouped: Queue;
  readonly #sessionsOf: Sessions;
  readonly #jobs = new Map<number, Job>();
  readonly #sessions = new Map<number, Session>();
  readonly #requests = new Map<number, PreparedRequest>();
  readonly #memory = new Map<string, MemoryState<any>>();
  readonly #nodes = new Map<string, StatefulNode<any, any>>();
  readonly #snapshots = new Map<number, Buffer>();

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#cells = new CellStore(connection);
    const records = new RecordStore(connection);
    this.#store = { asker: connection, records, runs: new RunStore(connection), cells: this.#cells };
    this.#queue = new Queue(records, { indexes: ['due'], attemptsMax: 3 });
    this.#grouped = new Queue(records, { indexes: ['turns'], leaseMs: HOUR_MS, attemptsMax: 3, groupBy: 'tenant' });
    this.#sessionsOf = new Sessions(connection);
  }

  async run(op: Op): Promise<Json> {
    return this.#perform(this.#store, op);
  }

  async #perform(on: On, op: Op): Promise<Json> {
    try {
      return (await this.#operation(on, op)) ?? null;
    } catch (error) {
      if (error instanceof Abort) throw error;
      const kind = KINDS.find(([type]) => error instanceof type);
      if (kind === undefined) throw error;
      return { error: kind[1], _message: String(error) };
    }
  }

  async #operation(on: On, op: Op): Promise<Json> {
    const family = op['op'].split('.')[0];
    switch (family) {
      case 'r': return this.#record(on.records, op);
      case 'i': return this.#index(on.records, op);
      case 'q': return this.#job(op);
      case 'g': return this.#group(op);
      case 'c':
      case 'b': return this.#cell(on, op);
      case 't': return op['op'] === 't.run' ? this.#transaction(op) : this.#readTransaction(op);
      case 'e': return this.#run(on.runs, op);
      case 's': return this.#state(on, op);
      case 'n': return this.#node(op);
      case 'v': return this.#session(op);
      default: throw new Error(`no operation ${op['op']}`);
    }
  }

  async #record(records: RecordStore, op: Op): Promise<Json> {
    const key = data(op['key'] ?? '');
    switch (op['op']) {
      case 'r.get': {
        const record = await records.get(key);
        return record === null ? null : { fields: shownFields(record), ttl: record.ttlMs !== null };
      }
      case 'r.put':
        return op['ttl'] === undefined ? records.put(key, changes(op['fields'])) : records.put(key, changes(op['fields']), op['ttl']);
      case 'r.delete': return records.delete(key);
      case 'r.get_field': return shown(await records.getField(key, op['field']));
      case 'r.set_field': return records.setField(key, op['field'], op['value'] === null ? null : data(op['value']));
      case 'r.set_fields': return records.setFields(key, changes(op['fields']));
      case 'r.cas': return records.compareAndSwap(key, op['field'], data(op['expected']), data(op['value']));
      case 'r.exchange': {
        const { applied, current } = await records.exchange(key, exchangeOf(op));
        return { applied, current: shownFields(current) };
      }
      case 'r.scan': {
        const options = { ...(op['limit'] === undefined ? {} : { limit: op['limit'] }), ...(op['fields'] === undefined ? {} : { fields: op['fields'] }) };
        const found = await all(records.scan(data(op['prefix']), { filters: filtersOf(op['filters']), ...options }));
        const rows = found.map(({ rawKey, fields, ttlMs }) => [shown(rawKey), shownFields(fields), ttlMs !== null] as const);
        return op['limit'] === undefined ? rows.sort(([a], [b]) => Buffer.compare(Buffer.from(a ?? ''), Buffer.from(b ?? ''))) : rows.length;
      }
      default: throw new Error(`no operation ${op['op']}`);
    }
  }

  async #index(records: RecordStore, op: Op): Promise<Json> {
    const rows = (found: readonly Indexed[]): Json => found.map(({ rawKey, score, fields }) => [shown(rawKey), score, shownFields(fields)]);
    switch (op['op']) {
      case 'i.create': return records.createIndex('by-n', { prefixes: ['rec:'], field: 'n' });
      case 'i.drop': return records.dropIndex('by-n');
      case 'i.list': return (await records.indexes()).sort();
      case 'i.range': {
        const limit = op['limit'] === undefined ? {} : { limit: op['limit'] };
        return rows(await records.range('by-n', op['min'], op['max'], { filters: filtersOf(op['filters']), ...limit }));
      }
      case 'i.sweep': {
        const retry = { counter: 'swept', max: op['max'], else: { state: 'given up' } };
        const where = { field: 'state', values: op['values'] };
        const swept = await records.sweep({ index: 'by-n', before: op['before'], set: op['set'], where, retry });
        return swept.map(({ rawKey, fate }) => [shown(rawKey), fate]);
      }
      default:
        return rows(await records.claim({ indexes: ['by-n'], set: op['set'], where: { state: op['values'] }, counter: 'claims', count: op['count'] }));
    }
  }

  async #job(op: Op): Promise<Json> {
    switch (op['op']) {
      case 'q.index': return this.#queue.createIndex('due', 'job:');
      case 'q.add':
        await sleep(2); // two jobs of one millisecond come in the order of their keys
        return this.#queue.add(op['key'], changes(op['fields']), op['delay']);
      case 'q.next': return this.#taken(op, await this.#queue.next(op['worker'], op['wait']));
      default: {
        const job = this.#jobs.get(op['slot']);
        if (job === undefined) return 'no job';
        const fields = changes(op['fields']);
        switch (op['how']) {
          case 'complete': return job.complete(fields);
          case 'fail': return job.fail(fields);
          case 'retry':
            await sleep(2);
            return job.retry(op['after'], fields);
          case 'renew': return job.renew(HOUR_MS);
          default: {
            const { applied, current } = await job.update(exchangeOf(op));
            return { applied, current: shownFields(current) };
          }
        }
      }
    }
  }

  #taken(op: Op, job: Job | null): Json {
    if (job === null) return null;
    this.#jobs.set(op['slot'], job);
    const { run_at: _, ...fields } = shownFields(job.fields);
    return { key: job.key, token: job.token, fields };
  }

  async #group(op: Op): Promise<Json> {
    switch (op['op']) {
      case 'g.index': return this.#grouped.createIndex(op['index'], 'task:');
      case 'g.add': {
        await sleep(2);
        const options = { delayMs: op['delay'], ...(op['group'] === undefined ? {} : { group: Buffer.concat(Array(op['repeat'] ?? 1).fill(data(op['group']))) }) };
        return this.#grouped.add(op['key'], changes(op['fields']), options);
      }
      case 'g.next': {
        if (op['order'] === undefined) return this.#taken(op, await this.#grouped.next(op['worker'], 0));
        const [job = null] = await this.#grouped.claim({ ...this.#grouped.request(op['worker']), order: op['order'] });
        return this.#taken(op, job);
      }
      case 'g.limit': {
        const limits = Object.fromEntries(['held', 'weight', 'pause'].filter((name) => name in op).map((name) => [name, op[name]]));
        if (Array.isArray(op['rate'])) {
          const [takes, perMs, burst] = op['rate'];
          limits['rate'] = burst === undefined ? { takes, perMs } : { takes, perMs, burst };
        } else if (op['rate'] !== undefined) {
          limits['rate'] = op['rate'];
        }
        return this.#grouped.limit(scopeOf(op), limits);
      }
      case 'g.reset': return this.#grouped.resetLimits(op['scope'] === undefined ? undefined : scopeOf(op));
      case 'g.limits': {
        const set = await this.#grouped.limits();
        return Object.fromEntries(set.map((each) => {
          const name = typeof each.scope === 'object' ? `group ${shown(each.scope.group as string | Buffer)}` : each.scope;
          return [name, shownLimits(each)];
        }));
      }
      case 'g.groups': {
        const groups = await all(this.#grouped.groups());
        return Object.fromEntries(groups.map(({ rawName, records, held, firstScore, allowedAt, limits }) => {
          const allowed = allowedAt === null ? 'not by time' : allowedAt > 0 ? 'later' : 'now';
          return [`group ${shown(rawName)}`, { records, held, first: firstScore !== null, allowed, limits: shownLimits(limits) }];
        }));
      }
      default: throw new Error(`no operation ${op['op']}`);
    }
  }

  async #cell(on: On, op: Op): Promise<Json> {
    switch (op['op']) {
      case 'c.mget': return (await on.cells.getCells(op['names'].map(data), CODECS[op['codec']])).map((each: CellVersion<unknown> | null) => held(each, op));
      case 'b.fork': return on.cells.branch(op['branch']).fork(op['to']);
      case 'b.drop': return on.cells.branch(op['branch']).dropCells();
      case 'b.cells': return (await all<string>(on.cells.branch(op['branch']).cells())).sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    }
    const kind = CODECS[op['codec'] ?? 'text'];
    const cell: Cell<any> = op['branch'] === undefined
      ? on.cells.cell(data(op['name']), kind) : on.cells.branch(op['branch']).cell(data(op['name']), kind);
    switch (op['op']) {
      case 'c.init': return cell.init(valueIn(op));
      case 'c.set': return op['ttl'] === undefined ? cell.set(valueIn(op)) : cell.setFor(valueIn(op), op['ttl']);
      case 'c.cas':
        return swapped(op['ttl'] === undefined
          ? await cell.cas(op['expected'], valueIn(op)) : await cell.casFor(op['expected'], valueIn(op), op['ttl']), op);
      case 'c.get': return held(await cell.get(), op);
      case 'c.get_version': return held(await cell.getVersion(op['version']), op);
      case 'c.wait_after': return held(await cell.waitAfter(op['version'], 1), op);
      case 'c.history': return (await cell.history(op['before'], op['limit'])).map((each) => held(each, op));
      case 'c.delete': return cell.delete();
      case 'c.delete_if': return cell.deleteIf(op['version']);
      default: throw new Error(`no operation ${op['op']}`);
    }
  }

  async #transaction(op: Op): Promise<Json> {
    let tried = 0;
    try {
      const results = await this.#cells.transaction(op['tries'], async (transaction) => {
        tried += 1;
        const inside: On = { asker: transaction, records: transaction.records, runs: transaction.runs, cells: transaction };
        const made: Json[] = [];
        for (const each of op['ops']) made.push(await this.#perform(inside, each));
        if (op['outside'] !== null && tried <= op['outside_times']) await this.#perform(this.#store, op['outside']);
        if (op['fails']) throw new Abort();
        return made;
      });
      return { results, tried };
    } catch (error) {
      if (error instanceof Abort) return { aborted: tried };
      throw error;
    }
  }

  async #readTransaction(op: Op): Promise<Json> {
    return this.#cells.readTransaction(async (transaction) => {
      if (op['outside'] !== null) await this.#perform(this.#store, op['outside']);
      const made: Json[] = [];
      for (const each of op['ops']) made.push(await this.#perform({ ...this.#store, cells: transaction }, each));
      return made;
    });
  }

  async #run(runs: RunStore, op: Op): Promise<Json> {
    switch (op['op']) {
      case 'e.append': {
        const attributes = op['attributes'] === undefined ? undefined
          : Object.fromEntries(Object.entries<string>(op['attributes']).map(([name, value]) => [name, data(value)]));
        const event: NewEvent = {
          runId: op['run'], eventType: op['type'], eventData: op['data'], idempotencyKey: op['key'], eventId: op['event_id'],
          stepId: op['step'], logicalAttemptId: op['logical_attempt'], emittedAt: op['emitted_at'], engineRunRef: op['ref'],
          planVersion: op['plan'], attributes,
        };
        const appended = op['if_last'] === undefined ? await runs.appendEvent(event) : await runs.appendEvent(event, { ifLast: op['if_last'] });
        if (appended.outcome === 'behind') return { outcome: 'behind', seq: appended.runSeq };
        const { outcome, runSeq, mismatch, eventId } = appended;
        return { outcome, seq: runSeq, mismatch, event_id: eventId.startsWith('ev-') ? eventId : 'random' };
      }
      case 'e.events':
        return (await runs.fetchEvents(op['run'], { afterSeq: op['after'], limit: op['limit'] })).map((event) => ({
          run: event.runId, seq: event.runSeq, type: event.eventType, data: valueOut(event.eventData), key: event.idempotencyKey,
          event_id: event.eventId.startsWith('ev-') ? event.eventId : 'random',
          emitted_at: event.emittedAt.startsWith('at-') ? event.emittedAt : 'now',
          step: event.stepId ?? null, logical_attempt: event.logicalAttemptId ?? null, ref: event.engineRunRef ?? null,
          plan: event.planVersion ?? null,
          attributes: Object.fromEntries(Object.entries(event.attributes ?? {}).map(([name, value]) => [name, valueOut(value)])),
        }));
      case 'e.snapshot': return shownSnapshot(await runs.getSnapshot(op['run']));
      case 'e.project':
        return shownSnapshot(await runs.projectSnapshot(op['run'], undefined, op['up_to'] === undefined ? {} : { upTo: op['up_to'] }));
      case 'e.fold':
        return runs.projectSnapshot<string[]>(op['run'], { initial: () => [], apply: (types, { eventType }) => [...types, eventType] });
      case 'e.lag': return (await runs.lag(op['run'], op['position'])).events;
      case 'e.info': {
        const info = await runs.info(op['run']);
        return info === null ? null : { status: info.status, events: info.events };
      }
      case 'e.delete': return runs.delete(op['run']);
      case 'e.list': return (await all(runs.list({ prefix: op['prefix'], ...(op['statuses'].length === 0 ? {} : { status: op['statuses'] }) }))).sort();
      default: throw new Error(`no operation ${op['op']}`);
    }
  }

  #backend(on: On, op: Op): StateBackend<any> {
    const name: string = op['state'];
    if (!name.startsWith('memory:')) return new ExactlyOnceState(on.asker, name, codec.raw as Codec<any>);
    return this.#inMemory(name, codec.raw as Codec<any>);
  }

  #inMemory(name: string, of: Codec<any>): MemoryState<any> {
    const state = this.#memory.get(name) ?? new MemoryState<any>(of);
    this.#memory.set(name, state);
    return state;
  }

  async #state(on: On, op: Op): Promise<Json> {
    const state = this.#backend(on, op);
    const key = data(op['key'] ?? '');
    const position = op['position'] === undefined ? undefined : data(op['position']);
    switch (op['op']) {
      case 's.put':
        return op['ordered'] ? state.putOrdered(key, data(op['value']), versionIn(op['version'])) : state.put(key, data(op['value']), versionIn(op['version']));
      case 's.add':
        return op['ordered'] ? state.addOrdered(key, versionIn(op['version']), op['number']) : state.add(key, versionIn(op['version']), op['number']);
      case 's.seal': return state.seal(key, versionIn(op['version']));
      case 's.get': return heldState(await state.get(key));
      case 's.mget': return (await state.mget(op['keys'].map(data))).map(heldState);
      case 's.snapshot': {
        const blob = await state.snapshot(position);
        this.#snapshots.set(op['slot'], blob);
        return { _blob: blob.toString('hex') };
      }
      case 's.take': {
        if (op['_blob'] !== undefined) this.#snapshots.set(op['slot'], Buffer.from(op['_blob'], 'hex'));
        const blob = this.#snapshots.get(op['slot']) ?? Buffer.alloc(0);
        return { position: shown(op['merges'] ? await state.merge(blob) : await state.restore(blob)) };
      }
      case 's.checkpoint': return state.checkpoint(key, position);
      case 's.take_checkpoint': {
        const restored = op['merges'] ? await state.mergeCheckpoint(key) : await state.restoreCheckpoint(key);
        return restored === null ? null : { position: shown(restored.position) };
      }
      default: throw new Error(`no operation ${op['op']}`);
    }
  }

  #nodeOf(op: Op): StatefulNode<any, any> {
    const name: string = op['node'];
    let node = this.#nodes.get(name);
    if (node === undefined || op['again'] === true) {
      const kind = StatefulNode.codec<any, any>() as Codec<NodeEntry<any, any>>;
      const backend = name.startsWith('memory:') ? this.#inMemory(name, kind) : new ExactlyOnceState(this.#connection, `${name}/`, kind);
      node = new StatefulNode(name, backend);
      this.#nodes.set(name, node);
    }
    return node;
  }

  async #node(op: Op): Promise<Json> {
    const node = this.#nodeOf(op);
    switch (op['op']) {
      case 'n.process': {
        const outputs = await node.process(data(op['key']), versionIn(op['version']), (state: any) => {
          const [count, total] = state === null ? [0, 0] : [state.count, state.total];
          const now = { count: count + 1, total: total + op['amount'] };
          return { state: now, outputs: [{ count: now.count, key: op['key'] }, `the total is ${now.total}`, null].slice(0, op['outputs']) };
        });
        return outputs === null ? null : outputs.map(({ id, value }) => [id, value]);
      }
      case 'n.checkpoint': return node.checkpoint(data(op['position']));
      default: return shown(await node.recover());
    }
  }

  async #session(op: Op): Promise<Json> {
    const session = this.#sessions.get(op['slot']) as Session;
    const words = (op['words'] ?? []).map((each: string, i: number) => (i === 0 ? each : data(each))) as unknown as CommandWords;
    switch (op['op']) {
      case 'v.open': {
        const opened = await this.#sessionsOf.open({ capabilities: op['capabilities'] });
        this.#sessions.set(op['slot'], opened);
        return { _id: opened.id };
      }
      case 'v.resume': {
        const resumed = await this.#sessionsOf.resume(op['_id'], op['next']);
        this.#sessions.set(op['slot'], resumed);
        return resumed.nextRequestId;
      }
      case 'v.do':
        return this.#perform({ asker: session, records: session.records, runs: session.runs, cells: session.cells }, op['inner']);
      case 'v.call': return shownReply(await session.call(words));
      case 'v.prepare': {
        const request = session.prepare(words, op['request_id'] === undefined ? {} : { requestId: op['request_id'] });
        this.#requests.set(op['request'], request);
        return request.id;
      }
      case 'v.send': {
        const request = this.#requests.get(op['request']);
        return request === undefined ? 'no request' : shownReply(await request.send());
      }
      case 'v.push':
        if (op['through'] === null) return this.#sessionsOf.push(op['_id'], data(op['payload']));
        return (this.#sessions.get(op['through']) as Session).push(op['_id'], data(op['payload']));
      case 'v.pending':
        return (await session.pending({ after: op['after'], limit: op['limit'] })).map(({ id, payload }) => [id, shown(payload)]);
      case 'v.ack': return session.ack(op['id']);
      case 'v.info': {
        const info = await this.#sessionsOf.info(op['_id']);
        if (info === null) return null;
        const { low, replies, pending, lastId, attached, capabilities, ttlMs } = info;
        return { low, replies, pending, last_id: lastId, attached, capabilities, ttl: ttlMs };
      }
      case 'v.close': return session.close();
      case 'v.ids': return { _ids: (await all(this.#sessionsOf.ids())).sort() };
      case 'v.retry': {
        await sleep(2); // what was sent in this very millisecond is not sent again
        const before = Date.now() + HOUR_MS;
        const has = await this.#sessionsOf.hasRetry(before);
        const rows = (await this.#sessionsOf.retry(before, 1000)).map(({ sessionId, id, payload }) => [sessionId, id, shown(payload)]);
        return { has, _rows: rows };
      }
      default: throw new Error(`no operation ${op['op']}`);
    }
  }
}

const connection = await Connection.open({ url: process.argv[2] ?? '', RESP: process.argv[3] === '2' ? 2 : 3 });
const driver = new Driver(connection);
for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await driver.run(JSON.parse(line)))}\n`);
}
await connection.close();
