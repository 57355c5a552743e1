-- Appends an event to the log of a run, once for each idempotency key. KEYS: sequence numbers by idempotency key (a hash),
-- the last sequence number, the events (a stream). ARGV: idempotency key, type, data, step.
local known = redis.call('HGET', KEYS[1], ARGV[1])
if known then
  return tonumber(known)
end
local seq = redis.call('INCR', KEYS[2])
redis.call('XADD', KEYS[3], '*', 'seq', seq, 'key', ARGV[1], 'type', ARGV[2], 'data', ARGV[3], 'step', ARGV[4])
redis.call('HSET', KEYS[1], ARGV[1], seq)
return seq
