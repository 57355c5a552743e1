// node-redis: functions that become methods. A server may come with libraries of its own, so the tests ask for theirs by name.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { RESP_TYPES } from 'redis';
import { nodeRedisClients } from './node-redis-clients.js';
import { jobsLibrary, lacks, raceForJobs, range } from './support.js';

const functions = {
  jobs: {
    claim: {
      NUMBER_OF_KEYS: 1,
      parseCommand(parser, job, field, expected, next) {
        parser.pushKey(job);
        parser.push(field, expected, next);
      },
      transformReply: (reply) => reply === 1,
    },
    state_of: {
      NUMBER_OF_KEYS: 1,
      IS_READ_ONLY: true,
      parseCommand(parser, job) { parser.pushKey(job); },
    },
  },
};

for (const RESP of [2, 3]) {
  describe(`node-redis RESP${RESP}, functions`, () => {
    const clients = nodeRedisClients(RESP, { functions });

    // Each test begins with the library `jobs` and no other of ours, and leaves none.
    const withFunctions = (name, body) => test(name, async (t) => {
      const { client } = clients;
      if (await lacks(t, (...words) => client.sendCommand(words), 'fcall', 'fcall_ro', 'function')) return;
      await client.functionFlush();
      assert.equal(await client.functionLoad(jobsLibrary), 'jobs');
      await client.hSet('job', 'state', 'pending');
      await body(client);
      await client.functionFlush();
    });

    // RESP3 has maps and sets where RESP2 has arrays; node-redis gives objects without a prototype.
    const plain = (libraries) => libraries.map((library) => ({
      ...library,
      functions: library.functions.map((each) => ({ ...each, flags: [...each.flags] })).sort((a, b) => (a.name < b.name ? -1 : 1)),
    }));

    const jobs = {
      library_name: 'jobs',
      engine: 'LUA',
      functions: [
        { name: 'claim', description: null, flags: [] },
        { name: 'state_of', description: 'Tells the state of a job.', flags: ['no-writes'] },
      ],
    };

    withFunctions('functions as methods', async (client) => {
      assert.equal(await client.jobs.claim('job', 'state', 'pending', 'claimed'), true);
      assert.equal(await client.jobs.claim('job', 'state', 'pending', 'claimed'), false);
      assert.equal(await client.jobs.state_of('job'), 'claimed');
      const replies = await client.multi().jobs.claim('job', 'state', 'claimed', 'running').jobs.state_of('job').exec();
      assert.deepEqual(replies, [true, 'running']);
    });

    withFunctions('FCALL and FCALL_RO', async (client) => {
      const swap = { keys: ['job'], arguments: ['state', 'pending', 'claimed'] };
      await assert.rejects(client.fCallRo('claim', swap), { message: /^ERR Can not execute a script with write flag using \*_ro command/ });
      assert.equal(await client.fCall('claim', swap), 1);
      assert.equal(await client.fCallRo('state_of', { keys: ['job'] }), 'claimed');
      await assert.rejects(client.fCall('nosuch'), { message: 'ERR Function not found' });
    });

    withFunctions('FUNCTION LIST', async (client) => {
      assert.deepEqual(plain(await client.functionList({ LIBRARYNAME: 'jobs' })), [jobs]);
      assert.deepEqual(plain(await client.functionList({ LIBRARYNAME: 'nosuch*' })), []);
      const [withCode] = plain(await client.functionListWithCode({ LIBRARYNAME: 'j*s' }));
      assert.deepEqual(withCode, { ...jobs, library_code: jobsLibrary });
    });

    withFunctions('FUNCTION LOAD, DELETE, FLUSH', async (client) => {
      await assert.rejects(client.functionLoad(jobsLibrary), { message: "ERR Library 'jobs' already exists" });
      const other = "#!lua name=jobs\nredis.register_function('other', function() return 'new' end)";
      assert.equal(await client.functionLoad(other, { REPLACE: true }), 'jobs');
      assert.equal(await client.fCall('other'), 'new');
      await assert.rejects(client.jobs.state_of('job'), { message: 'ERR Function not found' });
      assert.equal(await client.functionDelete('jobs'), 'OK');
      await assert.rejects(client.functionDelete('jobs'), { message: 'ERR Library not found' });
      await client.functionLoad(other);
      assert.equal(await client.functionFlush('ASYNC'), 'OK');
      assert.deepEqual(await client.functionList({ LIBRARYNAME: 'jobs' }), []);
    });

    withFunctions('FUNCTION DUMP and RESTORE', async (client) => {
      const payload = await client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer }).functionDump();
      await client.functionFlush();
      assert.equal(await client.functionRestore(payload), 'OK');
      assert.equal(await client.jobs.state_of('job'), 'pending');
      await assert.rejects(client.functionRestore(payload), { message: /Library jobs already exists/ });
      assert.equal(await client.functionRestore(payload, { mode: 'REPLACE' }), 'OK');
      assert.equal(await client.functionRestore(payload, { mode: 'FLUSH' }), 'OK');
      assert.deepEqual(plain(await client.functionList({ LIBRARYNAME: 'jobs' })), [jobs]);
    });

    withFunctions('FUNCTION STATS', async (client) => {
      const before = await client.functionStats();
      assert.equal(before.running_script, null);
      await client.functionLoad("#!lua name=one_more\nredis.register_function('one_more', function() end)");
      const after = await client.functionStats();
      assert.equal(after.engines.LUA.libraries_count, before.engines.LUA.libraries_count + 1);
      assert.equal(after.engines.LUA.functions_count, before.engines.LUA.functions_count + 1);
    });

    withFunctions('every job is claimed once', async (client) => {
      const names = range(100, (i) => `gbe:state:tasks:email-send:job_${i}`);
      await Promise.all(names.map((job) => client.hSet(job, 'state', 'pending')));
      const workers = await Promise.all(range(8, () => clients.connect()));
      await raceForJobs(names, async (worker, job) => Number(await workers[worker].jobs.claim(job, 'state', 'pending', String(worker))));
    });
  });
}
