// Records on a plain Redis or Valkey, which has none of Holdfast's commands: the scripts that write them in one step, and the
// pages of a scan. Knows the words and the replies; refuses to know when they are used.

import { list, text, type Reply } from '../replies.js';
import { countedList, countedValues, splitChanges, word, type Changes, type Key, type Value, type Word } from '../words.js';
import { expectedOf, lifetimeWords, stampWords, type Exchange, type PutOptions } from './requests.js';

/** The fields and the time to live of a record as they are at one instant: on Holdfast too, in sessions and in transactions. */
const GET = `local fields = redis.pcall('HGETALL', KEYS[1])
if fields.err then return fields end
return {fields, redis.call('PTTL', KEYS[1])}`;

const COMPARE_AND_SWAP = `local current = redis.pcall('HGET', KEYS[1], ARGV[1])
if type(current) == 'table' then return current end
if current ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1`;

/**
 * What HCAS does, and HPUT with REPLACE. ARGV: 0|1 (replace) 0|PX|PXAT|PERSIST time, n field value … (expected), n field … (absent),
 * n field value … (to set), n field … (to remove), n field offset … (stamps)
 */
const EXCHANGE = `local at = 4
local function take(each)
  local items, length = {}, tonumber(ARGV[at]) * each
  for i = 1, length do items[i] = ARGV[at + i] end
  at = at + 1 + length
  return items
end
local expected, absent, set, remove, stamps = take(2), take(1), take(2), take(1), take(2)
local known = redis.pcall('HLEN', KEYS[1])
if type(known) == 'table' then return known end
if #stamps > 0 then
  local named, clock = {}, redis.call('TIME')
  local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
  for i = 1, #set, 2 do named[set[i]] = true end
  for i = 1, #remove do named[remove[i]] = true end
  for i = 1, #stamps, 2 do
    local time = now + tonumber(stamps[i + 1])
    if named[stamps[i]] then return redis.error_reply('ERR a field of STAMP is named twice') end
    if time < 0 or time >= 2 ^ 63 then return redis.error_reply('ERR STAMP must be a time from 0 to 2^63-1') end
    named[stamps[i]] = true
    set[#set + 1] = stamps[i]
    set[#set + 1] = string.format('%.0f', time)
  end
end
if (ARGV[2] == 'PX' or ARGV[2] == 'PXAT') and tonumber(ARGV[3]) <= 0 then return redis.error_reply('ERR invalid expire time') end
local holds = 1
for i = 1, #expected, 2 do
  if redis.call('HGET', KEYS[1], expected[i]) ~= expected[i + 1] then holds = 0 end
end
for i = 1, #absent do
  if redis.call('HEXISTS', KEYS[1], absent[i]) == 1 then holds = 0 end
end
if holds == 1 then
  local ttl = -1
  if ARGV[1] == '1' then
    ttl = redis.call('PTTL', KEYS[1])
    redis.call('DEL', KEYS[1])
  end
  for i = 1, #set, 2 do redis.call('HSET', KEYS[1], set[i], set[i + 1]) end
  for i = 1, #remove do redis.call('HDEL', KEYS[1], remove[i]) end
  if ARGV[2] == 'PX' then redis.call('PEXPIRE', KEYS[1], ARGV[3])
  elseif ARGV[2] == 'PXAT' then redis.call('PEXPIREAT', KEYS[1], ARGV[3])
  elseif ARGV[2] == 'PERSIST' then redis.call('PERSIST', KEYS[1])
  elseif ttl >= 0 then redis.call('PEXPIRE', KEYS[1], ttl) end
end
local current = {}
for i = 1, #expected, 2 do current[#current + 1] = redis.call('HGET', KEYS[1], expected[i]) end
return {holds, current}`;

/** How many keys a page of a scan looks at. */
const PAGE = 500;

export function getWords(key: Key): Word[] {
  return ['EVAL', GET, '1', word(key)];
}

export function compareAndSwapWords(key: Key, field: string, expected: Value, value: Value): Word[] {
  return ['EVAL', COMPARE_AND_SWAP, '1', word(key), field, word(expected), word(value)];
}

export function putWords(key: Key, set: Changes, { replace = false, ...options }: PutOptions): Word[] {
  return changeWords(key, { set, ...options }, replace);
}

/** A reply of the same form as that of HCAS with WITHCURRENT. */
export function exchangeWords(key: Key, exchange: Exchange): Word[] {
  return changeWords(key, exchange, false);
}

function changeWords(key: Key, exchange: Exchange, replace: boolean): Word[] {
  const { absent = [], set: changes = {}, stamp = {}, remove = [], lifetime } = exchange;
  const expected = expectedOf(exchange);
  const { set, remove: removed } = splitChanges(changes);
  const [how = '0', time = '0'] = lifetime === undefined ? [] : lifetimeWords(lifetime);
  const lists = [
    ...countedValues(expected), ...countedList(absent), ...countedValues(set), ...countedList([...removed, ...remove]), ...stampWords(stamp),
  ];
  return ['EVAL', EXCHANGE, '1', word(key), replace ? '1' : '0', how, time, ...lists];
}

export function scanWords(prefix: Key, cursor: string): Word[] {
  return ['SCAN', cursor, 'MATCH', pattern(prefix), 'COUNT', `${PAGE}`, 'TYPE', 'hash'];
}

export function readScan(reply: Reply): { next: string; keys: readonly Reply[] } {
  const [next, keys] = list(reply);
  return { next: text(next), keys: list(keys) };
}

/** The pattern of all keys that begin so. */
function pattern(prefix: Key): Buffer {
  const bytes = Buffer.from(word(prefix)).toString('latin1');
  return Buffer.from(`${bytes.replaceAll(/[*?[\]\\^-]/g, '\\$&')}*`, 'latin1');
}
