// The examples run as programs, and check themselves.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { RecordStore, RunStore } from '../src/index.js';
import { Server } from './server.js';

const server = await Server.start();
const skip = await server.lacks('run.append', 'hcas');
const projector = fileURLToPath(new URL('../examples/projector.js', import.meta.url));
const url = `redis://127.0.0.1:${server.port}`;

test('the projector sees each event once', { skip }, async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [projector, '--url', url, '--demo']);
  assert.match(stdout, /^8: run completed$/m);
  assert.match(stdout, /^Every event was counted once\.$/m);
});

test('the projector goes on behind its watermark', { skip }, async () => {
  const connection = await server.connect();
  const [runs, records] = [new RunStore(connection), new RecordStore(connection)];
  for (const eventType of ['RunStarted', 'RunPaused', 'RunCompleted']) await runs.appendEvent({ runId: 'r', eventType, eventData: 0 });
  await records.put('projection:r', { watermark: 2, run: 'paused' });
  const { stdout } = await promisify(execFile)(process.execPath, [projector, '--url', url, '--run', 'r']);
  assert.equal(stdout, '3: run completed\n');
});
