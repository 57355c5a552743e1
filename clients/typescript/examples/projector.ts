// A projector: keeps a table of all steps of one run, made of its events alone, and shows it whenever it changes.
//
//   npm run build && node dist/examples/projector.js [--url redis://127.0.0.1:6379] [--run demo:order-7] [--demo]
//
// It keeps a watermark, the runSeq of the last event that it has seen, in a record beside its table, in one write with it. Kill
// it at any moment and start it again: it goes on behind the watermark, so each event is counted once. It does not poll: `follow`
// waits at the server, and goes on when the server was away. With --demo it plays the engine too: it appends the events of a small
// workflow, some of them twice, checks the table in the end, and removes what it has written.

import { parseArgs } from 'node:util';
import { Connection, RecordStore, RunStore, type CanonicalEngineEvent } from '../src/index.js';

const { values: options } = parseArgs({
  options: {
    url: { type: 'string', default: 'redis://127.0.0.1:6379' },
    run: { type: 'string', default: 'demo:order-7' },
    demo: { type: 'boolean', default: false },
  },
});

const connection = await Connection.open({ url: options.url });
const runs = new RunStore(connection);
const records = new RecordStore(connection);
const table = `projection:${options.run}`;

const stop = new AbortController();
process.once('SIGINT', () => stop.abort());
process.once('SIGTERM', () => stop.abort());

const engine = options.demo ? work() : Promise.resolve();
await project();
await engine;
if (options.demo) await check();
await connection.close();

/** Follows the run until it ends. */
async function project(): Promise<void> {
  const after = (await records.get(table))?.integer('watermark') ?? 0;
  for await (const event of runs.follow(options.run, { after, signal: stop.signal, onRetry: (error) => console.error(error.message) })) {
    await apply(event);
    if (['RunCompleted', 'RunFailed', 'RunCancelled'].includes(event.eventType)) return;
  }
}

/** The change of the table and the watermark are one write, and only if the watermark is the one before it. */
async function apply({ runSeq, eventType, stepId }: CanonicalEngineEvent): Promise<void> {
  const column = stepId === undefined ? 'run' : `step:${stepId}`;
  const state = eventType.replace(/^(Run|Step)/, '').toLowerCase();
  const first = runSeq === 1;
  const { applied } = await records.exchange(table, {
    ...(first ? { absent: ['watermark'] } : { expected: { watermark: runSeq - 1 } }),
    set: { watermark: runSeq, [column]: state },
  });
  if (!applied) throw new Error(`another projector writes ${table}`);
  console.log(`${runSeq}: ${column} ${state}`);
}

/** The engine: after each step it appends what became of it. It is not sure that its first try arrived, and appends again. */
async function work(): Promise<void> {
  const append = async (eventType: string, eventData: unknown, stepId?: string) => {
    const event = { runId: options.run, eventType, eventData, stepId };
    const { runSeq } = await runs.appendEvent(event);
    const again = await runs.appendEvent(event);
    if (!again.idempotent || again.runSeq !== runSeq) throw new Error('an event was stored twice');
  };
  await append('RunStarted', { customer: 'c-1' });
  for (const step of ['reserve', 'charge', 'ship']) {
    await append('StepStarted', null, step);
    await append('StepCompleted', { ok: true }, step);
  }
  await append('RunCompleted', null);
}

async function check(): Promise<void> {
  const found = (await records.get(table))?.toObject();
  const expected = { watermark: '8', run: 'completed', 'step:reserve': 'completed', 'step:charge': 'completed', 'step:ship': 'completed' };
  const same = Object.entries(expected).every(([name, value]) => found?.[name] === value);
  await connection.client.del([options.run, table]);
  if (!same) throw new Error(`the table is ${JSON.stringify(found)}`);
  console.log('Every event was counted once.');
}
