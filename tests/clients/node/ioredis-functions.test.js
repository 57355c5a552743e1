// ioredis: functions, called by name. A server may come with libraries of its own, so the tests ask for theirs by name.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ioredisClients } from './ioredis-clients.js';
import { jobsLibrary, lacks, raceForJobs, range } from './support.js';

for (const protocol of [2, 3]) {
  describe(`ioredis RESP${protocol}, functions`, () => {
    const clients = ioredisClients(protocol);

    // Each test begins with the library `jobs` and no other of ours, and leaves none.
    const withFunctions = (name, body) => test(name, async (t) => {
      const { redis } = clients;
      if (await lacks(t, (...words) => redis.call(...words), 'fcall', 'fcall_ro', 'function')) return;
      await redis.function('FLUSH');
      assert.equal(await redis.function('LOAD', jobsLibrary), 'jobs');
      await redis.hset('job', 'state', 'pending');
      await body(redis);
      await redis.function('FLUSH');
    });

    const functionsOf = async (redis, library) => {
      const reply = await redis.function('LIST', 'LIBRARYNAME', library);
      return JSON.stringify(reply).match(/claim|state_of|other/g) ?? [];
    };

    withFunctions('FCALL and FCALL_RO', async (redis) => {
      assert.equal(await redis.fcall('claim', 1, 'job', 'state', 'pending', 'claimed'), 1);
      assert.equal(await redis.fcall('claim', 1, 'job', 'state', 'pending', 'claimed'), 0);
      assert.equal(await redis.fcall_ro('state_of', 1, 'job'), 'claimed');
      await assert.rejects(redis.fcall_ro('claim', 1, 'job', 'state', 'claimed', 'x'), {
        message: /^ERR Can not execute a script with write flag using \*_ro command/,
      });
      await assert.rejects(redis.fcall('nosuch', 0), { message: 'ERR Function not found' });
    });

    withFunctions('keys take the prefix of the client', async (redis) => {
      const tenant = clients.connect({ keyPrefix: 'tenant:' });
      await tenant.hset('job', 'state', 'of the tenant');
      assert.equal(await tenant.fcall('state_of', 1, 'job'), 'of the tenant');
    });

    withFunctions('in pipelines and transactions', async (redis) => {
      const replies = await redis.pipeline()
        .fcall('claim', 1, 'job', 'state', 'pending', 'claimed').fcall('nosuch', 0).fcall_ro('state_of', 1, 'job').exec();
      assert.deepEqual([replies[0], replies[2]], [[null, 1], [null, 'claimed']]);
      assert.equal(replies[1][0].message, 'ERR Function not found');
      const done = await redis.multi()
        .fcall('claim', 1, 'job', 'state', 'claimed', 'running').fcall_ro('state_of', 1, 'job').exec();
      assert.deepEqual(done, [[null, 1], [null, 'running']]);
    });

    withFunctions('LOAD, LIST, DELETE', async (redis) => {
      assert.deepEqual((await functionsOf(redis, 'jobs')).sort(), ['claim', 'state_of']);
      await assert.rejects(redis.function('LOAD', jobsLibrary), { message: "ERR Library 'jobs' already exists" });
      const other = "#!lua name=jobs\nredis.register_function('other', function() return 'new' end)";
      assert.equal(await redis.function('LOAD', 'REPLACE', other), 'jobs');
      assert.deepEqual(await functionsOf(redis, 'jobs'), ['other']);
      assert.equal(await redis.fcall('other', 0), 'new');
      assert.equal(await redis.function('DELETE', 'jobs'), 'OK');
      assert.deepEqual(await functionsOf(redis, 'jobs'), []);
      await assert.rejects(redis.function('DELETE', 'jobs'), { message: 'ERR Library not found' });
    });

    withFunctions('DUMP and RESTORE', async (redis) => {
      const payload = await redis.functionBuffer('DUMP');
      await redis.function('FLUSH');
      assert.deepEqual(await functionsOf(redis, 'jobs'), []);
      assert.equal(await redis.function('RESTORE', payload), 'OK');
      assert.equal(await redis.fcall_ro('state_of', 1, 'job'), 'pending');
      await assert.rejects(redis.function('RESTORE', payload), { message: /Library jobs already exists/ });
      assert.equal(await redis.function('RESTORE', payload, 'REPLACE'), 'OK');
    });

    withFunctions('every job is claimed once', async (redis) => {
      const jobs = range(100, (i) => `gbe:state:tasks:email-send:job_${i}`);
      await Promise.all(jobs.map((job) => redis.hset(job, 'state', 'pending')));
      const workers = range(8, () => clients.connect());
      await raceForJobs(jobs, (worker, job) => workers[worker].fcall('claim', 1, job, 'state', 'pending', worker));
    });
  });
}
