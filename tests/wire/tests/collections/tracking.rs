//! What caching clients are told of sets and sorted sets.

use wire::{Reply, Session};

/// What a caching client reads, what another client then runs, and the keys of which the first is told.
const ROWS: &[(&str, &[&str], &[&str])] = &[
    ("SISMEMBER s a", &["SADD s a"], &["s"]),
    ("SMEMBERS s", &["SADD s a", "SREM s nosuch", "SPOP s 0"], &[]),
    ("SMEMBERS s", &["SADD s b"], &["s"]),
    ("SCARD s", &["SREM s a"], &["s"]),
    ("SMISMEMBER s a", &["SPOP s"], &["s"]),
    ("SINTER s t", &["SADD t x", "SADD s x y"], &["t", "s"]),
    ("SUNION s t", &["SMOVE s t y"], &["s", "t"]),
    ("SDIFF s t", &["SMOVE t other nosuch", "SPOP t 5"], &["t"]),
    ("SINTERCARD 2 s t", &["SUNIONSTORE s other"], &["s"]),
    ("SRANDMEMBER to", &["SADD from a", "SUNIONSTORE to from"], &["to"]),
    ("SRANDMEMBER to 5", &["SINTERSTORE to from"], &["to"]),
    ("SSCAN to 0", &["SDIFFSTORE to from from"], &["to"]),
    ("SMEMBERS to", &["SDIFFSTORE to from from"], &[]),
    // Keys that a command reads only to store or move are not tracked.
    ("SUNIONSTORE copy from", &["SADD from z"], &[]),
    ("SMOVE copy elsewhere a", &["SADD elsewhere z", "SADD copy z"], &[]),
    ("ZSCORE z a", &["ZADD z 1 a"], &["z"]),
    ("ZRANGE z 0 -1", &["ZADD z 1 a", "ZADD z XX 5 nosuch", "ZADD z 2 a"], &["z"]),
    ("ZCARD z", &["ZINCRBY z 1 a"], &["z"]),
    ("ZRANK z a", &["ZREM z nosuch", "ZREM z a"], &["z"]),
    ("ZUNION 2 z y", &["ZADD y 1 a", "ZADD z 1 a"], &["y", "z"]),
    ("ZINTERCARD 2 z y", &["ZPOPMIN y", "ZMPOP 2 y z MAX"], &["y", "z"]),
    ("ZRANGE zto 0 -1", &["ZADD zfrom 1 a 2 b", "ZRANGESTORE zto zfrom 0 -1"], &["zto"]),
    ("ZMSCORE zto a", &["ZUNIONSTORE zto 1 zfrom"], &["zto"]),
    ("ZRANDMEMBER zto 0", &["ZREMRANGEBYSCORE zto 7 8", "ZREMRANGEBYSCORE zto 2 2"], &["zto"]),
    ("ZSCAN zto 0", &["ZREMRANGEBYRANK zto 0 -1"], &["zto"]),
    ("ZLEXCOUNT zfrom - +", &["ZREMRANGEBYLEX zfrom - [a"], &["zfrom"]),
    ("ZCOUNT zfrom 0 1", &["ZADD zfrom 1 c"], &["zfrom"]),
    ("ZREVRANGE zfrom 0 -1", &["RENAME zfrom elsewhere2"], &["zfrom"]),
    ("ZRANGESTORE zcopy elsewhere2 0 -1", &["ZADD elsewhere2 1 new"], &[]),
];

#[test]
fn caching_clients_are_told_of_changes() {
    let session = Session::start();
    let (mut caching, mut other) = (session.connect(), session.connect());
    caching.run("HELLO 3");
    caching.run("CLIENT TRACKING ON");
    for (reading, changes, told) in ROWS {
        assert!(!caching.run(reading).is_error(), "{reading}");
        for (change, reply) in changes.iter().zip(other.pipeline(changes)) {
            assert!(!reply.is_error(), "{change}: {reply}");
        }
        for key in *told {
            assert_eq!(caching.read().to_string(), format!("push[\"invalidate\", [\"{key}\"]]"), "{changes:?}");
        }
        assert_eq!(caching.run("PING"), Reply::Simple(b"PONG".to_vec()), "after {changes:?}");
    }
}
