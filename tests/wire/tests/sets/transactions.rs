//! Sets in transactions, under WATCH and in scripts; invalidation of client-side caches.

use wire::check;

#[test]
fn sets_in_a_transaction() {
    check(
        r#"
        > MULTI
        +OK
        > SADD s a b
        +QUEUED
        > SADD s
        -ERR wrong number of arguments for 'sadd' command
        > EXEC
        -EXECABORT Transaction discarded because of previous errors.
        > EXISTS s
        :0
        > MULTI
        +OK
        > SADD s a b
        +QUEUED
        > SADD s b
        +QUEUED
        > SREM s a
        +QUEUED
        > SMEMBERS s
        +QUEUED
        > SISMEMBER s a
        +QUEUED
        > SMISMEMBER s a b
        +QUEUED
        > SPOP s -1
        +QUEUED
        > SMOVE s t b
        +QUEUED
        > SCARD s
        +QUEUED
        > SPOP t
        +QUEUED
        > SPOP t
        +QUEUED
        > SRANDMEMBER t
        +QUEUED
        > SPOP t 1
        +QUEUED
        > SADD str x
        +QUEUED
        > SET str x
        +QUEUED
        > SADD str x
        +QUEUED
        > SUNIONSTORE to nosuch
        +QUEUED
        > EXEC
        [:2, :0, :1, ["b"], :0, [:0, :1], -"ERR value is out of range, must be positive", :1, :0, "b", (nil), (nil), [], :1, +OK, -"WRONGTYPE Operation against a key holding the wrong kind of value", :0]
        > DBSIZE
        :1
        > MULTI
        +OK
        > SADD s a
        +QUEUED
        > DISCARD
        +OK
        > EXISTS s
        :0
        "#,
    );
}

#[test]
fn sets_of_resp3_in_a_transaction() {
    check(
        r#"
        > HELLO 3
        *
        > MULTI
        +OK
        > SADD s a
        +QUEUED
        > SMEMBERS s
        +QUEUED
        > SMEMBERS nosuch
        +QUEUED
        > SRANDMEMBER s 1
        +QUEUED
        > SPOP s 1
        +QUEUED
        > SPOP s
        +QUEUED
        > EXEC
        [:1, set["a"], set[], ["a"], set["a"], _]
        "#,
    );
}

/// Which changes fail a transaction that watches the key.
#[test]
fn watch_sees_changes() {
    let touched = [
        ("SADD s a", "SADD s b"),
        ("", "SADD s a"),
        ("SADD s a", "SREM s a"),
        ("SADD s a b", "SREM s nosuch a"),
        ("SADD s a", "SPOP s"),
        ("SADD s a b", "SPOP s 1"),
        ("SADD s a b", "SPOP s 5"),
        ("SADD s a b", "SMOVE s other a"),
        ("SADD other a b", "SMOVE other s a"),
        ("SADD other a b", "SUNIONSTORE s other"),
        ("SADD s a", "SUNIONSTORE s nosuch"),
        ("SADD s a", "SINTERSTORE s nosuch"),
        ("SADD s a", "SDIFFSTORE s s s"),
        // The same members again: the value is a new one.
        ("SADD s a", "SUNIONSTORE s s"),
        ("SADD s a", "SINTERSTORE s s"),
        ("SADD s a", "SDIFFSTORE s s"),
        ("SADD s a", "EXPIRE s 100"),
        ("SADD s a", "DEL s"),
        ("SADD s a", "SET s x"),
        ("SADD s a", "RENAME s other"),
        ("SADD other a", "COPY other s"),
    ];
    for (before, change) in touched {
        watch(before, change, true);
    }
}

#[test]
fn watch_ignores_commands_that_change_nothing() {
    let untouched = [
        ("SADD s a", "SADD s a"),
        ("SADD s a", "SADD s a a a"),
        ("SADD s a", "SREM s nosuch"),
        ("", "SREM s nosuch"),
        ("SADD s a", "SPOP s 0"),
        ("", "SPOP s"),
        ("", "SPOP s 2"),
        ("SADD s a", "SMOVE s s a"),
        ("SADD s a", "SMOVE s other nosuch"),
        ("", "SMOVE s other a"),
        ("SADD s a", "SMOVE nosuch s a"),
        ("SADD s a", "SUNIONSTORE other s"),
        ("SADD s a", "SINTERSTORE other s s"),
        ("", "SUNIONSTORE s nosuch"),
        ("", "SINTERSTORE s nosuch"),
        ("", "SDIFFSTORE s nosuch"),
        ("SADD s a", "SRANDMEMBER s"),
        ("SADD s a", "SSCAN s 0"),
        ("SADD s a", "SADD s"),
        ("SET s x", "SADD s a"),
    ];
    for (before, change) in untouched {
        watch(before, change, false);
    }
}

/// SMOVE of a member that the destination has already: the destination does not change.
#[test]
fn watch_of_the_destination_of_a_move() {
    watch("SADD other a b|SADD s a", "SMOVE other s a", false);
    watch("SADD s a b|SADD other a", "SMOVE s other a", true);
}

/// Watches `s`, lets another client make the change, and compares whether the transaction then fails.
#[track_caller]
fn watch(before: &str, change: &str, touched: bool) {
    let before: String = before.split('|').map(|command| format!("> {command}\n*\n")).collect();
    let before = before.replace("> \n*\n", "");
    let outcome = if touched { "(nil array)" } else { "[+PONG]" };
    check(&format!(
        "
        {before}
        > WATCH s
        +OK
        2> {change}
        *
        > MULTI
        +OK
        > PING
        +QUEUED
        // after {change}
        > EXEC
        {outcome}
        "
    ));
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
        > EVAL_RO "return redis.call('SADD', KEYS[1], 'a')" 1 s
        ~-ERR Write commands are not allowed from read-only scripts*
        > EVAL_RO "return redis.call('SPOP', KEYS[1])" 1 s
        ~-ERR Write commands are not allowed from read-only scripts*
        > EVAL_RO "return redis.call('SINTERSTORE', 'to', KEYS[1])" 1 s
        ~-ERR Write commands are not allowed from read-only scripts*
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

#[test]
fn caching_clients_receive_invalidations() {
    check(
        r#"
        > HELLO 3
        *
        > CLIENT TRACKING ON
        +OK
        > SISMEMBER s a
        :0
        2> SADD s a
        :1
        1< push["invalidate", ["s"]]
        > SMEMBERS s
        set["a"]
        2> SADD s a
        :0
        2> SREM s nosuch
        :0
        2> SPOP s 0
        []
        2> SADD s b
        :1
        1< push["invalidate", ["s"]]
        > SCARD s
        :2
        2> SREM s a
        :1
        1< push["invalidate", ["s"]]
        > SMISMEMBER s a
        [:0]
        2> SPOP s
        "b"
        1< push["invalidate", ["s"]]
        > SINTER s t
        set[]
        2> SADD t x
        :1
        1< push["invalidate", ["t"]]
        2> SADD s x y
        :2
        1< push["invalidate", ["s"]]
        > SUNION s t
        set["x", "y"]
        2> SMOVE s t y
        :1
        1< push["invalidate", ["s"]]
        1< push["invalidate", ["t"]]
        > SDIFF s t
        set[]
        2> SMOVE t other nosuch
        :0
        2> SPOP t 5
        ~["x", "y"]
        1< push["invalidate", ["t"]]
        > SINTERCARD 2 s t
        :0
        2> SUNIONSTORE s other
        :0
        1< push["invalidate", ["s"]]
        > SRANDMEMBER to
        _
        2> SADD from a
        :1
        2> SUNIONSTORE to from
        :1
        1< push["invalidate", ["to"]]
        > SRANDMEMBER to 5
        ["a"]
        2> SINTERSTORE to from
        :1
        1< push["invalidate", ["to"]]
        > SSCAN to 0
        ["0", ["a"]]
        2> SDIFFSTORE to from from
        :0
        1< push["invalidate", ["to"]]
        > SMEMBERS to
        set[]
        2> SDIFFSTORE to from from
        :0
        > PING
        +PONG
        // Keys that a command reads only to store or move are not tracked.
        > SUNIONSTORE copy from
        :1
        > SMOVE copy elsewhere a
        :1
        2> SADD from z
        :1
        2> SADD elsewhere z
        :1
        2> SADD copy z
        :1
        > PING
        +PONG
        "#,
    );
}
