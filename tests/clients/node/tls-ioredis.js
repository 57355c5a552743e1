// ioredis over TLS; tests/clients/tls.sh runs it. Ends with an error if something is not as without TLS.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Redis } from 'ioredis';

const { TLS_PORT, TLS_CA, TLS_CERT, TLS_KEY } = process.env;
const ca = readFileSync(TLS_CA);
const shown = { cert: readFileSync(TLS_CERT), key: readFileSync(TLS_KEY) };
const open = (options) => {
  const client = new Redis({
    host: 'localhost',
    port: Number(TLS_PORT),
    tls: { ca, ...options },
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
  });
  client.on('error', () => {});
  return client;
};

const client = open(shown);
assert.equal(await client.set('greeting', 'hello'), 'OK');
assert.equal(await client.get('greeting'), 'hello');
const large = Buffer.alloc(3_000_000, 'x');
await client.set('large', large);
assert.deepEqual(await client.getBuffer('large'), large);
const pipeline = client.pipeline();
for (let number = 0; number < 1000; number++) pipeline.echo(String(number));
const replies = await pipeline.exec();
assert.deepEqual(replies.map(([, reply]) => reply), Array.from({ length: 1000 }, (_, number) => String(number)));

const waiting = open(shown);
const popped = waiting.blpop('io-jobs', 10);
await client.rpush('io-jobs', '1');
assert.deepEqual(await popped, ['io-jobs', '1']);

const subscriber = open(shown);
const heard = new Promise((resolve) => subscriber.on('message', (_, message) => resolve(message)));
await subscriber.subscribe('io-news');
await client.publish('io-news', 'today');
assert.equal(await heard, 'today');

const stranger = open({});
await assert.rejects(stranger.ping());
for (const each of [client, waiting, subscriber, stranger]) each.disconnect();
