// The package of clients/typescript over TLS; tests/clients/tls.sh runs it. Ends with an error if something is not as without TLS.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Connection, RecordStore } from '../../../clients/typescript/dist/src/index.js';

const { TLS_PORT, TLS_CA, TLS_CERT, TLS_KEY } = process.env;
const open = (shown) =>
  Connection.open({
    url: `rediss://localhost:${TLS_PORT}`,
    socket: { tls: true, ca: readFileSync(TLS_CA), ...shown },
    responseTimeoutMs: 5000,
  });

const connection = await open({ cert: readFileSync(TLS_CERT), key: readFileSync(TLS_KEY) });
assert.ok(connection.isHoldfast);
const records = new RecordStore(connection);
await records.put('ts:user', { name: 'Ada', picture: 'x'.repeat(1_000_000) });
assert.equal((await records.get('ts:user'))?.text('name'), 'Ada');
assert.equal((await records.get('ts:user'))?.text('picture')?.length, 1_000_000);
// A request that waits has a connection of its own, with TLS too.
const popped = connection.askAndWait(['BLPOP', 'ts:jobs', '10'], 10_000);
await connection.ask(['RPUSH', 'ts:jobs', 'one']);
assert.equal(String((await popped)[1]), 'one');
await connection.close();
// Without a certificate, and with an authority that has not signed the server's: the error says that it was the certificate.
const shown = { cert: readFileSync(TLS_CERT), key: readFileSync(TLS_KEY) };
for (const wrong of [{}, { ...shown, ca: readFileSync(TLS_CERT) }]) {
  await assert.rejects(open(wrong), (error) => /certificate/i.test(error.message), 'the error names the certificate');
}
