//! Which commands fail a transaction that watches their key.

use wire::Session;

/// What is there before, and a command that changes `k`.
const CHANGES: &[(&str, &str)] = &[
    ("SADD k a", "SADD k b"),
    ("", "SADD k a"),
    ("SADD k a", "SREM k a"),
    ("SADD k a b", "SREM k nosuch a"),
    ("SADD k a", "SPOP k"),
    ("SADD k a b", "SPOP k 1"),
    ("SADD k a b", "SPOP k 5"),
    ("SADD k a b", "SMOVE k other a"),
    ("SADD other a b", "SMOVE other k a"),
    ("SADD k a b|SADD other a", "SMOVE k other a"),
    ("SADD other a b", "SUNIONSTORE k other"),
    ("SADD k a", "SUNIONSTORE k nosuch"),
    ("SADD k a", "SINTERSTORE k nosuch"),
    ("SADD k a", "SDIFFSTORE k k k"),
    // The same members again: the value is a new one.
    ("SADD k a", "SUNIONSTORE k k"),
    ("SADD k a", "SINTERSTORE k k"),
    ("SADD k a", "SDIFFSTORE k k"),
    ("SADD k a", "EXPIRE k 100"),
    ("SADD k a", "DEL k"),
    ("SADD k a", "SET k x"),
    ("SADD k a", "RENAME k other"),
    ("SADD other a", "COPY other k"),
    ("ZADD k 1 a", "ZADD k 2 b"),
    ("ZADD k 1 a", "ZINCRBY k 1 a"),
    ("ZADD k 1 a", "ZREM k a"),
    ("ZADD k 1 a 2 b", "ZPOPMAX k"),
    ("ZADD k 1 a", "ZREMRANGEBYRANK k 0 -1"),
    ("ZADD other 1 a", "ZUNIONSTORE k 1 other"),
    ("ZADD k 1 a", "ZINTERSTORE k 1 nosuch"),
    ("RPUSH k a", "LPUSH k a"),
    ("RPUSH k a", "LSET k 0 b"),
    ("RPUSH k a", "LPOP k"),
    ("RPUSH k a", "LREM k 0 a"),
    ("RPUSH k a b", "LTRIM k 0 0"),
    ("RPUSH k a b", "LMOVE k k LEFT RIGHT"),
    ("RPUSH other a", "RPOPLPUSH other k"),
    ("HSET k a 1", "HSET k a 2"),
    ("HSET k a 1", "HINCRBY k a 1"),
    ("HSET k a 1", "HDEL k a"),
];

/// The same of commands that leave `k` as it is.
const NO_CHANGES: &[(&str, &str)] = &[
    ("SADD k a", "SADD k a"),
    ("SADD k a", "SADD k a a a"),
    ("SADD k a", "SREM k nosuch"),
    ("", "SREM k nosuch"),
    ("SADD k a", "SPOP k 0"),
    ("", "SPOP k"),
    ("", "SPOP k 2"),
    ("SADD k a", "SMOVE k k a"),
    ("SADD k a", "SMOVE k other nosuch"),
    ("", "SMOVE k other a"),
    ("SADD k a", "SMOVE nosuch k a"),
    // The destination has the member already.
    ("SADD other a b|SADD k a", "SMOVE other k a"),
    ("SADD k a", "SUNIONSTORE other k"),
    ("SADD k a", "SINTERSTORE other k k"),
    ("", "SUNIONSTORE k nosuch"),
    ("", "SINTERSTORE k nosuch"),
    ("", "SDIFFSTORE k nosuch"),
    ("SADD k a", "SRANDMEMBER k"),
    ("SADD k a", "SSCAN k 0"),
    ("SADD k a", "SADD k"),
    ("SET k x", "SADD k a"),
    ("ZADD k 1 a", "ZADD k 1 a"),
    ("ZADD k 1 a", "ZINCRBY k 0 a"),
    ("ZADD k 1 a", "ZREM k nosuch"),
    ("ZADD k 1 a", "ZADD k XX 1 nosuch"),
    ("ZADD k 1 a", "ZADD k NX 9 a"),
    ("ZADD k 1 a", "ZREMRANGEBYSCORE k 50 60"),
    ("ZADD k 1 a", "ZRANGESTORE other k 0 -1"),
    ("ZADD k 1 a", "ZUNIONSTORE other 1 k"),
    ("", "ZINTERSTORE k 1 nosuch"),
    ("RPUSH k a", "LPOP k 0"),
    ("RPUSH k a", "LREM k 0 nosuch"),
    ("RPUSH k a", "LINSERT k BEFORE nosuch b"),
    ("", "LPUSHX k a"),
    ("", "LMOVE k other LEFT LEFT"),
    ("HSET k a 1", "HDEL k nosuch"),
    ("HSET k a 1", "HSETNX k a 2"),
];

#[test]
fn a_watched_key_that_changes_fails_the_transaction() {
    watch(CHANGES, "(nil array)");
}

#[test]
fn a_watched_key_that_stays_as_it_is_does_not() {
    watch(NO_CHANGES, "[+PONG]");
}

/// Watches `k`, lets another client run the command of each row, and compares what becomes of a transaction.
fn watch(rows: &[(&str, &str)], outcome: &str) {
    let session = Session::start();
    let (mut watching, mut other) = (session.connect(), session.connect());
    for (before, command) in rows {
        other.run("FLUSHALL");
        for command in before.split('|').filter(|command| !command.is_empty()) {
            assert!(!other.run(command).is_error(), "{command}");
        }
        watching.run("WATCH k");
        other.run(command);
        assert_eq!(watching.pipeline(&["MULTI", "PING", "EXEC"])[2].to_string(), outcome, "{command} after {before:?}");
    }
}
