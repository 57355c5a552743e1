#!lua name=holdfast
redis.register_function('compare_and_swap', function(keys, args)
    local current = redis.call('HGET', keys[1], args[1])
    if current == args[2] then
        redis.call('HSET', keys[1], args[1], args[3])
        return 1
    else
        return 0
    end
end)
