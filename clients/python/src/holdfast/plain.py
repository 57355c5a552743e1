"""What a plain Redis does by script and SCAN in the place of Holdfast's commands for records. Knows the scripts and their arguments,
refuses to know when they are used.

Each script goes with its request (EVAL): one that was loaded before is gone after a restart of the server.
"""

from collections.abc import Sequence

from .fields import Record, read_ttl, read_values
from .replies import Reply, items, raw, row
from .request import Request
from .words import Key, Word, key_word

#: A record and its time to live, as they are at one instant; also on Holdfast, where it can be a part of a transaction and of a session.
GET = b"""local fields = redis.pcall('HGETALL', KEYS[1])
if fields.err then return fields end
return {fields, redis.call('PTTL', KEYS[1])}"""

#: The same of several keys. One that is no hash any more has no fields.
GET_ALL = b"""local rows = {}
for i, key in ipairs(KEYS) do
    local fields = redis.pcall('HGETALL', key)
    if fields.err then fields = {} end
    rows[i] = {fields, redis.call('PTTL', key)}
end
return rows"""

COMPARE_AND_SWAP = b"""local current = redis.pcall('HGET', KEYS[1], ARGV[1])
if type(current) == 'table' and current.err then return current end
if current ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1"""

#: What HCAS does, and HPUT with REPLACE. ARGV: n field value ... n field ... n field value ... n field ... n field offset-ms ...: the expected
#: and the absent fields, those to set, to remove and to stamp; then REPLACE or KEEP, then PX ms, PXAT ms or PERSIST, if it is given.
EXCHANGE = b"""local key, at = KEYS[1], 1
local function take(each)
    local list, length = {}, tonumber(ARGV[at]) * each
    for i = 1, length do list[i] = ARGV[at + i] end
    at = at + 1 + length
    return list
end
local expected, absent, set, remove, stamps = take(2), take(1), take(2), take(1), take(2)
local replaces, lifetime, ms = ARGV[at] == 'REPLACE', ARGV[at + 1], ARGV[at + 2]

local length = redis.pcall('HLEN', key) -- a key of another type is refused before anything is changed
if type(length) == 'table' then return length end
local named = {}
for i = 1, #set, 2 do named[set[i]] = true end
if #stamps > 0 then
    local clock = redis.call('TIME')
    local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
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
if (lifetime == 'PX' or lifetime == 'PXAT') and tonumber(ms) <= 0 then return redis.error_reply('ERR invalid expire time') end
local holds = 1
for i = 1, #expected, 2 do
    if redis.call('HGET', key, expected[i]) ~= expected[i + 1] then holds = 0 end
end
for i = 1, #absent do
    if redis.call('HEXISTS', key, absent[i]) == 1 then holds = 0 end
end
if holds == 1 then
    for i = 1, #set, 2 do redis.call('HSET', key, set[i], set[i + 1]) end
    for i = 1, #remove do redis.call('HDEL', key, remove[i]) end
    if replaces then
        for _, field in ipairs(redis.call('HKEYS', key)) do
            if not named[field] then redis.call('HDEL', key, field) end
        end
    end
    if lifetime == 'PX' then redis.call('PEXPIRE', key, ms) end
    if lifetime == 'PXAT' then redis.call('PEXPIREAT', key, ms) end
    if lifetime == 'PERSIST' then redis.call('PERSIST', key) end
end
local current = {}
for i = 1, #expected, 2 do current[#current + 1] = redis.call('HGET', key, expected[i]) end
return {holds, current}"""


def script(text: bytes, key: Word, *arguments: Word) -> list[Word]:
    """The command that runs a script about one key."""
    return [b"EVAL", text, b"1", key, *arguments]


def read_record(reply: Reply) -> Record | None:
    """What GET says; None if there is no record."""
    fields, ttl_ms = row(reply, 2)
    values = read_values(fields)
    return Record(values, read_ttl(ttl_ms)) if values else None


def scan_keys(prefix: Key, cursor: Word, count: int) -> Request[tuple[Word, list[Word]]]:
    """A page of keys of hashes: the next cursor, which is `0` behind the last one, and the keys."""

    def read(reply: Reply) -> tuple[Word, list[Word]]:
        following, keys = row(reply, 2)
        return raw(following), [raw(key) for key in items(keys)]

    words = [b"SCAN", cursor, b"MATCH", glob(key_word(prefix)), b"COUNT", b"%d" % count, b"TYPE", b"hash"]
    return Request(words, read)


def get_all(keys: Sequence[Word]) -> Request[list[Record | None]]:
    return Request([b"EVAL", GET_ALL, b"%d" % len(keys), *keys], lambda reply: [read_record(each) for each in items(reply)])


def glob(prefix: Word) -> Word:
    """A pattern for keys with this prefix, whatever bytes it has."""
    return b"".join(b"\\%c" % byte if byte in b"*?[]\\" else b"%c" % byte for byte in prefix) + b"*"
