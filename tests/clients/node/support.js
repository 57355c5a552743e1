// What both Node suites share: the server's address, and how to skip what an older server lacks.
// Knows nothing about which server answers. The suites empty it.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

const [host, port] = process.env.HOLDFAST_TEST_ADDR.split(/:(?=\d+$)/);

export const address = { host, port: Number(port) };

export const FAR = 4_102_444_800; // the first second of the year 2100
export const everyByte = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));

// `ask` sends a command and answers its reply: lacks(t, ask, 'hgetex', 'client|setinfo') skips the test and says so.
export async function lacks(t, ask, ...commands) {
  const known = await ask('COMMAND', 'INFO', ...commands);
  const missing = commands.filter((_, i) => known[i] === null);
  if (missing.length > 0) t.skip(`the server has no ${missing}`);
  return missing.length > 0;
}

// "key:value" lines under "# Section" headings, as INFO prints them.
export function parseInfo(text) {
  const sections = {};
  let section;
  for (const line of text.split('\r\n')) {
    if (line.startsWith('# ')) section = sections[line.slice(2)] = {};
    else if (line) section[line.slice(0, line.indexOf(':'))] = line.slice(line.indexOf(':') + 1);
  }
  return sections;
}

export const range = (n, make) => Array.from({ length: n }, (_, i) => make(i));

// How a worker claims a job: KEYS[1] is the job's hash; ARGV: field, expected value, new value. Replies with 1 or 0.
export const compareAndSwap = readFileSync(new URL('../compare_and_swap.lua', import.meta.url), 'utf8');

// The same as a function, `claim`, beside one that only reads, `state_of`.
export const jobsLibrary = `#!lua name=jobs
redis.register_function('claim', function(KEYS, ARGV)
${compareAndSwap}
end)
redis.register_function{
  function_name = 'state_of',
  callback = function(keys, args) return redis.call('HGET', keys[1], 'state') end,
  flags = {'no-writes'},
  description = 'Tells the state of a job.',
}
`;

// Eight workers want the same hundred jobs. `claim(worker, job)` answers 1 to whoever gets the job, and each has one winner.
export async function raceForJobs(jobs, claim) {
  const wins = await Promise.all(range(8, async (worker) => {
    const won = [];
    for (const job of jobs) if ((await claim(worker, job)) === 1) won.push(job);
    return won;
  }));
  assert.deepEqual(wins.flat().sort(), [...jobs].sort());
  return wins;
}

// Waits for something that another client brings about. A test that waits in vain ends at the runner's limit.
export async function eventually(condition) {
  while (!(await condition())) await setTimeout(5);
}

// What arrived by events, in order: `put` is the listener, `take` waits for so many.
export class Inbox {
  #arrived = [];
  #bell = () => {};

  put = (...event) => {
    this.#arrived.push(event);
    this.#bell();
  };

  async take(count) {
    while (this.#arrived.length < count) await new Promise((resolve) => { this.#bell = resolve; });
    return this.#arrived.splice(0, count);
  }

  get isEmpty() {
    return this.#arrived.length === 0;
  }
}
