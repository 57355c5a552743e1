//! Sets in transactions and in scripts. Who watches them, and what caching clients are told, is in `collections`.

use wire::check;

#[test]
fn sets_in_a_transaction() {
    check(
        r#"
        > MULTI
        +OK
        +QUEUED
            SADD s a b
            SADD s b
            SREM s a
            SMEMBERS s
            SISMEMBER s a
            SMISMEMBER s a b
            SPOP s -1
            SMOVE s t b
            SCARD s
            SPOP t
            SPOP t
            SRANDMEMBER t
            SPOP t 1
            SADD str x
            SET str x
            SADD str x
            SUNIONSTORE to nosuch
        > EXEC
        [:2, :0, :1, ["b"], :0, [:0, :1], -"ERR value is out of range, must be positive", :1, :0, "b", (nil), (nil), [], :1, +OK, -"WRONGTYPE Operation against a key holding the wrong kind of value", :0]
        > DBSIZE
        :1
        ! HELLO 3
        > MULTI
        +OK
        +QUEUED
            SADD s a
            SMEMBERS s
            SMEMBERS nosuch
            SRANDMEMBER s 1
            SPOP s 1
            SPOP s
        > EXEC
        [:1, set["a"], set[], ["a"], set["a"], _]
        "#,
    );
}

#[test]
fn sets_in_a_script() {
    check(
        r#"
        > EVAL "return redis.call('SADD', KEYS[1], 'a', 'b', 1)" 1 s
        :3
        > EVAL "return redis.call('SISMEMBER', KEYS[1], 'a')" 1 s
        :1
        > EVAL "return redis.call('SMISMEMBER', KEYS[1], 'a', 'x', 1)" 1 s
        [:1, :0, :1]
        > EVAL "return redis.call('SREM', KEYS[1], 'b', 1)" 1 s
        :2
        > EVAL "return redis.call('SMEMBERS', KEYS[1])" 1 s
        ["a"]
        > EVAL "return type(redis.call('SMEMBERS', KEYS[1]))" 1 s
        "table"
        > EVAL "return redis.call('SMEMBERS', KEYS[1])" 1 nosuch
        []
        > EVAL "return #redis.call('SINTER', KEYS[1], KEYS[2])" 2 s nosuch
        :0
        > EVAL "return redis.call('SPOP', KEYS[1])" 1 s
        "a"
        > EVAL "return redis.call('SPOP', KEYS[1])" 1 s
        (nil)
        > EVAL "return tostring(redis.call('SPOP', KEYS[1]))" 1 s
        "false"
        > EVAL "return redis.call('SPOP', KEYS[1], 2)" 1 s
        []
        > EVAL "return redis.call('SRANDMEMBER', KEYS[1])" 1 s
        (nil)
        > EVAL "return redis.call('SADD', KEYS[1], 1.5, 7)" 1 s
        :2
        > SMEMBERS s
        ~["1.5", "7"]
        > EVAL "return redis.pcall('SADD', KEYS[1])" 1 s
        -ERR Wrong number of args calling Redis command from script
        > EVAL "return redis.pcall('SPOP', KEYS[1], -1)" 1 s
        -ERR value is out of range, must be positive
        > SET str x
        +OK
        > EVAL "return redis.pcall('SADD', KEYS[1], 'a')" 1 str
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > EVAL "return redis.call('SMEMBERS', KEYS[1])" 1 str
        ~-WRONGTYPE Operation against a key holding the wrong kind of value script: *
        > EVAL_RO "return redis.call('SCARD', KEYS[1])" 1 s
        :2
        > EVAL_RO "return redis.call('SINTERCARD', 1, KEYS[1])" 1 s
        :2
        ~-ERR Write commands are not allowed from read-only scripts*
            EVAL_RO "return redis.call('SADD', KEYS[1], 'a')" 1 s
            EVAL_RO "return redis.call('SPOP', KEYS[1])" 1 s
            EVAL_RO "return redis.call('SINTERSTORE', 'to', KEYS[1])" 1 s
        "#,
    );
}

/// A set of RESP3 is a table `{set = {member = true}}` for a script, and one of these is a set for a client.
#[test]
fn sets_of_resp3_in_a_script() {
    check(
        r#"
        > SADD s a
        :1
        > EVAL "redis.setresp(3); local r = redis.call('SMEMBERS', KEYS[1]); return tostring(r['set']['a'])" 1 s
        "true"
        > EVAL "redis.setresp(3); return #redis.call('SMEMBERS', KEYS[1])" 1 s
        :0
        > EVAL "redis.setresp(3); return redis.call('SMEMBERS', KEYS[1])" 1 s
        ["a"]
        > EVAL "redis.setresp(3); return redis.call('SMEMBERS', KEYS[1])" 1 nosuch
        []
        > EVAL "redis.setresp(3); local r = redis.call('SRANDMEMBER', KEYS[1], -2); return r[2]" 1 s
        "a"
        > EVAL "redis.setresp(3); return tostring(redis.call('SPOP', KEYS[1]))" 1 nosuch
        "nil"
        > HELLO 3
        *
        > EVAL "return redis.call('SMEMBERS', KEYS[1])" 1 s
        ["a"]
        > EVAL "redis.setresp(3); return redis.call('SMEMBERS', KEYS[1])" 1 s
        set["a"]
        > EVAL "redis.setresp(3); return redis.call('SUNION', KEYS[1], 'nosuch')" 1 s
        set["a"]
        > EVAL "redis.setresp(3); return redis.call('SMEMBERS', KEYS[1])" 1 nosuch
        set[]
        > EVAL "redis.setresp(3); return redis.call('SRANDMEMBER', KEYS[1], -2)" 1 s
        ["a", "a"]
        > EVAL "redis.setresp(3); return redis.call('SPOP', KEYS[1], 1)" 1 s
        set["a"]
        "#,
    );
}

/// What a script popped is what it adds elsewhere.
#[test]
fn a_script_pops_and_adds_elsewhere() {
    check(
        r#"
        > SADD from a b c d e f g h
        :8
        > EVAL "for _ = 1, 8 do redis.call('SADD', KEYS[2], redis.call('SPOP', KEYS[1])) end" 2 from to
        (nil)
        > EXISTS from
        :0
        > SMEMBERS to
        ~["a", "b", "c", "d", "e", "f", "g", "h"]
        > EVAL "local all = redis.call('SPOP', KEYS[1], 8); return redis.call('SADD', KEYS[2], unpack(all))" 2 to from
        :8
        > SMEMBERS from
        ~["a", "b", "c", "d", "e", "f", "g", "h"]
        "#,
    );
}
