// Loads a server through the TypeScript package while that is killed: jobs, transactions, appends, a stateful node and a session that counts.
// What was acknowledged goes into a ledger, from which the program goes on when it was killed itself. README.md has the ledger's lines.
//
//     node load.js URL LEDGER NAME SECONDS

import { existsSync, readFileSync, writeFileSync, openSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  CellStore, ConflictError, Connection, ExactlyOnceState, HoldfastError, LostError, Queue, RecordStore, RunStore, Sessions, StatefulNode,
  UnansweredError, codec, type PreparedRequest, type Session,
} from '../../../clients/typescript/src/index.js';

type Line = Record<string, any>;

const ACCOUNTS = [0, 1, 2, 3, 4, 5].map((number) => `account/${number}`);
const LEASE_MS = 500;
const PATIENCE_MS = 60_000;

/** Lines of JSON, each written before the program goes on. */
class Ledger {
  readonly lines: Line[] = [];
  readonly #file: number;

  constructor(path: string) {
    if (existsSync(path)) {
      // A line that was cut off was not acknowledged to anybody.
      const text = readFileSync(path, 'utf8');
      const whole = text.slice(0, text.lastIndexOf('\n') + 1);
      this.lines = whole.split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as Line);
      writeFileSync(path, whole);
    }
    this.#file = openSync(path, 'a');
  }

  write(line: Line): void {
    writeSync(this.#file, `${JSON.stringify(line)}\n`);
  }

  /** The number of the last line of a kind. */
  last(what: string): number {
    return Math.max(0, ...this.lines.filter((line) => what in line).map((line) => line[what] as number));
  }
}

/** Calls again while the server is away. */
async function insist<T>(call: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof HoldfastError && error.isTemporary) || performance.now() > deadline) throw error;
    }
    await sleep(20);
  }
}

const [url = '', path = '', name = '', seconds = '0'] = process.argv.slice(2);
const ledger = new Ledger(path);
const connection = await insist(() => Connection.open({ url, responseTimeoutMs: 2000 }));
const records = new RecordStore(connection);
const runs = new RunStore(connection);
const cells = new CellStore(connection);
const queue = new Queue(records, { indexes: ['due'], leaseMs: LEASE_MS });
const until = performance.now() + Number(seconds) * 1000;
const goesOn = (): boolean => performance.now() < until;

async function addJobs(): Promise<void> {
  let number = ledger.last('added');
  while (goesOn()) {
    number += 1;
    const key = `job:${name}:${`${number}`.padStart(6, '0')}`;
    await insist(() => queue.add(key, { n: number }));
    ledger.write({ added: number });
    await sleep(10);
  }
}

async function work(worker: string): Promise<void> {
  for (;;) {
    const job = await insist(() => queue.next(`${name}-${worker}`, 2 * LEASE_MS));
    if (job === null) {
      if (!goesOn()) return;
      continue;
    }
    const chance = Math.random();
    if (chance < 0.05) continue; // as a worker that dies: its lease ends
    try {
      if (chance < 0.1) {
        await insist(() => job.retry(0));
      } else {
        await insist(() => job.complete({ by: name, token: job.token }));
        ledger.write({ completed: job.key, token: job.token });
      }
    } catch (error) {
      if (!(error instanceof LostError)) throw error;
      ledger.write({ lost: job.key, token: job.token });
    }
  }
}

async function transfer(): Promise<void> {
  let number = ledger.last('transfer');
  while (goesOn()) {
    number += 1;
    const source = Math.floor(Math.random() * ACCOUNTS.length);
    const target = (source + 1 + Math.floor(Math.random() * (ACCOUNTS.length - 1))) % ACCOUNTS.length;
    const [from, to] = [ACCOUNTS[source] as string, ACCOUNTS[target] as string];
    const amount = 1 + Math.floor(Math.random() * 9);
    ledger.write({ transfer: number });
    try {
      await cells.transaction(10, async (txn) => {
        const [payer, payee] = [txn.cell(from, codec.integer), txn.cell(to, codec.integer)];
        const [before, after] = [(await payer.get())?.value as number, (await payee.get())?.value as number];
        await payer.set(before - amount);
        await payee.set(after + amount);
        const event = { runId: `transfers/${name}`, eventType: 'Moved', eventData: { amount, from, to }, idempotencyKey: `t-${number}` };
        await txn.runs.appendEvent(event);
      });
      ledger.write({ moved: number });
    } catch (error) {
      if (error instanceof ConflictError) ledger.write({ conflict: number });
      else if (!(error instanceof HoldfastError && error.isTemporary)) throw error;
      else await sleep(20); // it was made or not
    }
    if (number % 5 === 0) {
      const held = await insist(() => cells.getCells(ACCOUNTS, codec.integer));
      ledger.write({ sum: held.reduce((sum, each) => sum + (each?.value ?? 0), 0) });
    }
  }
}

async function append(): Promise<void> {
  let number = ledger.last('appended');
  while (goesOn()) {
    number += 1;
    const event = { runId: `log/${name}`, eventType: 'Noted', eventData: number, idempotencyKey: `k-${number}` };
    const appended = await insist(() => runs.appendEvent(event));
    ledger.write({ appended: number, seq: appended.runSeq, mismatch: appended.mismatch });
    await sleep(5);
  }
}

/** Reads an input that can be read again from any position: the key and the amount of each follow from its number. */
async function processInput(): Promise<void> {
  const state = new ExactlyOnceState(connection, `sums-${name}/`, StatefulNode.codec<number, string>());
  while (goesOn()) {
    // A new node, as after a crash of the pipeline.
    const node = new StatefulNode(`sums-${name}`, state);
    let position = Number((await insist(() => node.recover())) ?? 0);
    for (let left = 5 + Math.floor(Math.random() * 36); left > 0; left -= 1) {
      position += 1;
      const [at, amount] = [position, position % 7];
      const outputs = await insist(() => node.process(`key-${at % 3}`, at, (held) => {
        const total = (held ?? 0) + amount;
        return { state: total, outputs: [`${at}: ${total}`] };
      }));
      for (const { id, value } of outputs ?? []) await insist(() => records.setField(`sink-${name}`, id, value));
      if (at % 10 === 0) {
        await insist(() => node.checkpoint(at));
        ledger.write({ checkpoint: at });
      }
    }
  }
}

async function count(): Promise<void> {
  const sessions = new Sessions(connection);
  const words = ['INCR', `count:${name}`] as const;
  const opened = ledger.lines.filter((line) => 'session' in line).at(-1);
  const prepared = ledger.last('prepared');
  let session: Session;
  let request: PreparedRequest | null = null;
  if (opened === undefined) {
    session = await insist(() => sessions.open());
    ledger.write({ session: session.id });
  } else {
    session = await insist(() => sessions.resume(opened['session'], prepared + 1));
    if (prepared > ledger.last('answered')) request = session.prepare(words, { requestId: prepared });
  }
  while (goesOn()) {
    if (request === null) {
      request = session.prepare(words);
      ledger.write({ prepared: request.id });
    }
    let value: unknown;
    try {
      value = await request.send();
    } catch (error) {
      if (!(error instanceof UnansweredError)) throw error;
      value = await error.request.send();
    }
    ledger.write({ answered: request.id, value: Number(value) });
    request = null;
    await sleep(5);
  }
}

console.log('begins');
await Promise.all([addJobs(), work('a'), work('b'), transfer(), append(), processInput(), count()]);
await connection.close();
