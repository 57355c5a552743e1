//! Sorted sets in transactions and in scripts. Who watches them is in `collections`.

use wire::check;

#[test]
fn sorted_sets_in_a_transaction() {
    check(
        r#"
        > MULTI
        +OK
        +QUEUED
            ZADD z 1 a 2 b
            ZINCRBY z 5 a
            ZRANGE z 0 -1 WITHSCORES
            ZSCORE z nosuch
            ZADD z x a
            ZPOPMIN z
            ZMPOP 1 nosuch MIN
            ZADD z INCR NX 1 a
        > EXEC
        [:2, "6", ["b", "2", "a", "6"], (nil), -"ERR value is not a valid float", ["b", "2"], (nil array), (nil)]
        > ZRANGE z 0 -1
        ["a"]
        "#,
    );
}

#[test]
fn sorted_sets_in_a_script() {
    check(
        r#"
        > EVAL "return redis.call('ZADD', KEYS[1], 1, 'a', 2.5, 'b')" 1 z
        :2
        > EVAL "return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')" 1 z
        ["a", "1", "b", "2.5"]
        > EVAL "return redis.call('ZSCORE', KEYS[1], 'b')" 1 z
        "2.5"
        > EVAL "return type(redis.call('ZSCORE', KEYS[1], 'b'))" 1 z
        "string"
        > EVAL "return redis.call('ZSCORE', KEYS[1], 'nosuch')" 1 z
        (nil)
        > EVAL "return tostring(redis.call('ZSCORE', KEYS[1], 'nosuch'))" 1 z
        "false"
        > EVAL "return redis.call('ZINCRBY', KEYS[1], 0.5, 'b')" 1 z
        "3"
        > EVAL "return redis.call('ZADD', KEYS[1], 0.1, 'c')" 1 z
        :1
        > EVAL "return redis.call('ZADD', KEYS[1], 0.5, 'c', 0.25 * 2, 'd')" 1 z
        :1
        > EVAL "return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(1')" 1 z
        ["c", "d"]
        > EVAL "return redis.call('ZPOPMIN', KEYS[1])" 1 z
        ["c", "0.5"]
        > EVAL "return redis.call('ZMPOP', 1, KEYS[1], 'MAX')" 1 z
        ["z", [["b", "3"]]]
        > EVAL "return redis.call('ZMPOP', 1, KEYS[1], 'MAX')" 1 nosuch
        (nil)
        > EVAL "return tostring(redis.call('ZMPOP', 1, KEYS[1], 'MAX'))" 1 nosuch
        "false"
        > EVAL "return redis.call('ZRANDMEMBER', KEYS[1], 0)" 1 z
        []
        > EVAL "return redis.pcall('ZADD', KEYS[1], 'x', 'a')" 1 z
        -ERR value is not a valid float
        > EVAL "return redis.pcall('ZADD', KEYS[1], 1)" 1 z
        -ERR Wrong number of args calling Redis command from script
        > EVAL "redis.setresp(3); return type(redis.call('ZSCORE', KEYS[1], 'a'))" 1 z
        "table"
        > EVAL "redis.setresp(3); local r = redis.call('ZSCORE', KEYS[1], 'a'); return tostring(r.double)" 1 z
        "1"
        > EVAL "redis.setresp(3); return #redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')" 1 z
        :2
        > EVAL "redis.setresp(3); return #redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')[1]" 1 z
        :2
        > EVAL_RO "return redis.call('ZCARD', KEYS[1])" 1 z
        :2
        > EVAL_RO "return redis.call('ZADD', KEYS[1], 1, 'a')" 1 z
        ~-ERR Write commands are not allowed from read-only scripts*
        > EVAL_RO "return redis.call('ZUNIONSTORE', 'to', 1, KEYS[1])" 1 z
        ~-ERR Write commands are not allowed from read-only scripts*
        > HELLO 3
        *
        > EVAL "return redis.call('ZSCORE', KEYS[1], 'a')" 1 z
        "1"
        > EVAL "redis.setresp(3); return redis.call('ZSCORE', KEYS[1], 'a')" 1 z
        ,1
        > EVAL "redis.setresp(3); return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')" 1 z
        [["d", ,0.5], ["a", ,1]]
        > EVAL "return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')" 1 z
        ["d", "0.5", "a", "1"]
        "#,
    );
}
