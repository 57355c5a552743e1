-- Claims the next due job: KEYS[1] is the queue, ARGV the time, the end of the lease, and the worker.
local job = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, 1)[1]
if not job then
  return {}
end
redis.call('ZADD', KEYS[1], ARGV[2], job)
redis.call('HSET', job, 'state', 'running', 'worker', ARGV[3], 'run_at', ARGV[2])
redis.call('HINCRBY', job, 'attempt', 1)
return {job, redis.call('HGETALL', job)}
