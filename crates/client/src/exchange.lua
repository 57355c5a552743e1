-- What HCAS does on Holdfast, for a plain Redis: every condition and every change of one record in one step.
-- ARGV: IF n field value … ABSENT n field … SET n field value … DEL n field … STAMP n field offset-ms … [PX ms] WITHCURRENT
local key, at = KEYS[1], 1
local function take(each)
    local list, length = {}, tonumber(ARGV[at + 1]) * each
    for i = 1, length do list[i] = ARGV[at + 1 + i] end
    at = at + 2 + length
    return list
end
local expected, absent, set, remove, stamps = take(2), take(1), take(2), take(1), take(2)
local ttl = ARGV[at] == 'PX' and ARGV[at + 1]

redis.call('HLEN', key) -- a key of another type is refused before anything is changed
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
    if ttl then redis.call('PEXPIRE', key, ttl) end
end
local current = {}
for i = 1, #expected, 2 do current[#current + 1] = redis.call('HGET', key, expected[i]) end
return {holds, current}
