-- Writes a value if the version is the expected one; returns the new version.
if (redis.call('HGET', KEYS[1], 'version') or '0') == ARGV[1] then
    redis.call('HSET', KEYS[1], 'value', ARGV[2])
    return redis.call('HINCRBY', KEYS[1], 'version', 1)
end
return false
