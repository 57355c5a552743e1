-- Sets a field of a hash once for a request: the reply is kept, and a retry gets it.
-- KEYS: where the reply is kept, the hash. ARGV: field, value.
local kept = redis.call('GET', KEYS[1])
if kept then return tonumber(kept) end
local reply = redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
redis.call('SET', KEYS[1], reply, 'PX', 90000)
return reply
