//! Sorted sets in transactions, under WATCH, in scripts, and what caching clients are told of them.

use wire::check;

#[test]
fn sorted_sets_in_a_transaction() {
    check(
        r#"
        > MULTI
        +OK
        > ZADD z 1 a 2 b
        +QUEUED
        > ZINCRBY z 5 a
        +QUEUED
        > ZRANGE z 0 -1 WITHSCORES
        +QUEUED
        > ZSCORE z nosuch
        +QUEUED
        > ZADD z x a
        +QUEUED
        > ZADD z 1
        -ERR wrong number of arguments for 'zadd' command
        > EXEC
        -EXECABORT Transaction discarded because of previous errors.
        > MULTI
        +OK
        > ZADD z 1 a 2 b
        +QUEUED
        > ZINCRBY z 5 a
        +QUEUED
        > ZRANGE z 0 -1 WITHSCORES
        +QUEUED
        > ZSCORE z nosuch
        +QUEUED
        > ZADD z x a
        +QUEUED
        > ZPOPMIN z
        +QUEUED
        > ZMPOP 1 nosuch MIN
        +QUEUED
        > ZADD z INCR NX 1 a
        +QUEUED
        > EXEC
        [:2, "6", ["b", "2", "a", "6"], (nil), -"ERR value is not a valid float", ["b", "2"], (nil array), (nil)]
        > MULTI
        +OK
        > ZADD z 9 c
        +QUEUED
        > DISCARD
        +OK
        > ZRANGE z 0 -1
        ["a"]
        "#,
    );
}

#[test]
fn watch_sees_changes_of_sorted_sets() {
    check(
        r#"
        > ZADD z 1 a
        :1
        > WATCH z
        +OK
        2> ZADD z 2 b
        :1
        > MULTI
        +OK
        > ZCARD z
        +QUEUED
        > EXEC
        (nil array)
        > WATCH z
        +OK
        2> ZADD z 2 b
        :0
        // The same score again is no change.
        > MULTI
        +OK
        > ZCARD z
        +QUEUED
        > EXEC
        [:2]
        > WATCH z
        +OK
        2> ZINCRBY z 0 b
        "2"
        > MULTI
        +OK
        > ZCARD z
        +QUEUED
        > EXEC
        [:2]
        > WATCH z
        +OK
        2> ZREM z nosuch
        :0
        2> ZADD z XX 1 nosuch
        :0
        2> ZADD z NX 9 a
        :0
        2> ZREMRANGEBYSCORE z 50 60
        :0
        2> ZRANGESTORE other z 0 -1
        :2
        2> ZUNIONSTORE other 1 z
        :2
        > MULTI
        +OK
        > ZCARD z
        +QUEUED
        > EXEC
        [:2]
        > WATCH z
        +OK
        2> ZPOPMAX z
        ["b", "2"]
        > MULTI
        +OK
        > ZCARD z
        +QUEUED
        > EXEC
        (nil array)
        > WATCH z
        +OK
        2> ZREMRANGEBYRANK z 0 -1
        :1
        > MULTI
        +OK
        > ZCARD z
        +QUEUED
        > EXEC
        (nil array)
        > WATCH to
        +OK
        2> ZUNIONSTORE to 1 other
        :2
        > MULTI
        +OK
        > ZCARD to
        +QUEUED
        > EXEC
        (nil array)
        > WATCH to
        +OK
        2> ZINTERSTORE to 1 nosuch
        :0
        > MULTI
        +OK
        > ZCARD to
        +QUEUED
        > EXEC
        (nil array)
        > WATCH to
        +OK
        2> ZINTERSTORE to 1 nosuch
        :0
        > MULTI
        +OK
        > ZCARD to
        +QUEUED
        > EXEC
        [:0]
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

#[test]
fn caching_clients_are_told_of_changes() {
    check(
        r#"
        > HELLO 3
        *
        > CLIENT TRACKING ON
        +OK
        > ZSCORE z a
        _
        2> ZADD z 1 a
        :1
        1< push["invalidate", ["z"]]
        > ZRANGE z 0 -1
        ["a"]
        2> ZADD z 1 a
        :0
        2> ZADD z XX 5 nosuch
        :0
        2> ZADD z 2 a
        :0
        1< push["invalidate", ["z"]]
        > ZCARD z
        :1
        2> ZINCRBY z 1 a
        "3"
        1< push["invalidate", ["z"]]
        > ZRANK z a
        :0
        2> ZREM z nosuch
        :0
        2> ZREM z a
        :1
        1< push["invalidate", ["z"]]
        > ZUNION 2 z y
        []
        2> ZADD y 1 a
        :1
        1< push["invalidate", ["y"]]
        2> ZADD z 1 a
        :1
        1< push["invalidate", ["z"]]
        > ZINTERCARD 2 z y
        :1
        2> ZPOPMIN y
        ["a", "1"]
        1< push["invalidate", ["y"]]
        2> ZMPOP 2 y z MAX
        ["z", [["a", "1"]]]
        1< push["invalidate", ["z"]]
        > ZRANGE to 0 -1
        []
        2> ZADD from 1 a 2 b
        :2
        2> ZRANGESTORE to from 0 -1
        :2
        1< push["invalidate", ["to"]]
        > ZMSCORE to a
        [,1]
        2> ZUNIONSTORE to 1 from
        :2
        1< push["invalidate", ["to"]]
        > ZRANDMEMBER to 0
        []
        2> ZREMRANGEBYSCORE to 7 8
        :0
        2> ZREMRANGEBYSCORE to 2 2
        :1
        1< push["invalidate", ["to"]]
        > ZSCAN to 0
        ["0", ["a", "1"]]
        2> ZREMRANGEBYRANK to 0 -1
        :1
        1< push["invalidate", ["to"]]
        > ZLEXCOUNT from - +
        :2
        > ZCOUNT from 0 1
        :1
        2> ZREMRANGEBYLEX from - [a
        :1
        1< push["invalidate", ["from"]]
        > ZREVRANGE from 0 -1
        ["b"]
        2> RENAME from elsewhere
        +OK
        1< push["invalidate", ["from"]]
        // Only what was read: the source of a store is none of it.
        > ZRANGESTORE copy elsewhere 0 -1
        :1
        2> ZADD elsewhere 1 new
        :1
        > PING
        +PONG
        "#,
    );
}
