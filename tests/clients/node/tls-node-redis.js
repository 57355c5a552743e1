// node-redis over TLS; tests/clients/tls.sh runs it. Ends with an error if something is not as without TLS.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createClient } from 'redis';

const { TLS_PORT, TLS_CA, TLS_CERT, TLS_KEY } = process.env;
const ca = readFileSync(TLS_CA);
const shown = { cert: readFileSync(TLS_CERT), key: readFileSync(TLS_KEY) };
const open = async (options) => {
  const socket = { host: 'localhost', port: Number(TLS_PORT), tls: true, ca, reconnectStrategy: false, ...options };
  const client = createClient({ socket });
  client.on('error', () => {});
  await client.connect();
  return client;
};

const client = await open(shown);
assert.equal(await client.set('greeting', 'hello'), 'OK');
assert.equal(await client.get('greeting'), 'hello');
const large = 'x'.repeat(3_000_000);
await client.set('large', large);
assert.equal(await client.get('large'), large);
const many = await Promise.all(Array.from({ length: 1000 }, (_, number) => client.echo(String(number))));
assert.deepEqual(many, Array.from({ length: 1000 }, (_, number) => String(number)));

const waiting = await open(shown);
const popped = waiting.blPop('node-jobs', 10);
await client.rPush('node-jobs', '1');
assert.equal((await popped).element, '1');

const subscriber = await open(shown);
const heard = new Promise((resolve) => subscriber.subscribe('node-news', resolve).then(() => client.publish('node-news', 'today')));
assert.equal(await heard, 'today');

await assert.rejects(open({}).then((stranger) => stranger.ping()));
for (const each of [client, waiting, subscriber]) each.destroy();
