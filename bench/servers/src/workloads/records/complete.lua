-- Completes a job, if the worker still has it: KEYS are the job and the queue, ARGV the worker's token, the result and the time.
if redis.call('HGET', KEYS[1], 'attempt') ~= ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], 'state', 'completed', 'result_ref', ARGV[2], 'updated_at', ARGV[3])
redis.call('ZREM', KEYS[2], KEYS[1])
return 1
