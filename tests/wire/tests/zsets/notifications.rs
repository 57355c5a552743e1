//! Keyspace notifications of sorted sets.

use wire::check_events;

#[test]
fn adding() {
    check_events(
        r#"
        ZADD z 1 a => new z, zadd z
        ZADD z 1 a =>
        ZADD z 2 a => zadd z
        ZADD z 2 a 3 b => zadd z
        ZADD z 4 a 4 b 4 c => zadd z
        ZADD z XX 1 nosuch =>
        ZADD z NX 1 a =>
        ZADD z GT 1 a =>
        ZADD z GT CH 9 a => zadd z
        ZADD none XX 1 a =>
        ZADD none XX INCR 1 a =>
        ZADD z INCR 1 a => zincr z
        ZADD z INCR 0 a =>
        ZADD z NX INCR 1 a =>
        ZADD y INCR 1 a => new y, zincr y
        ZINCRBY z 1 a => zincr z
        ZINCRBY z 0 a =>
        ZINCRBY x 1 a => new x, zincr x
        ZREM z nosuch =>
        ZREM z a => zrem z
        ZREM z b c => zrem z, del z
        ZREM z a =>
        ZREM none a =>
        "#,
    );
}

#[test]
fn reading() {
    check_events(
        r#"
        ZADD z 1 a => new z, zadd z
        ZCARD z =>
        ZSCORE z a =>
        ZSCORE z nosuch =>
        ZCARD none => keymiss none
        ZSCORE none a => keymiss none
        ZMSCORE none a => keymiss none
        ZRANK none a => keymiss none
        ZREVRANK none a => keymiss none
        ZCOUNT none 1 2 => keymiss none
        ZLEXCOUNT none - + => keymiss none
        ZRANGE none 0 -1 => keymiss none
        ZREVRANGE none 0 -1 => keymiss none
        ZRANGEBYSCORE none 1 2 => keymiss none
        ZRANGEBYLEX none - + => keymiss none
        ZRANDMEMBER none => keymiss none
        ZRANDMEMBER none 1 => keymiss none
        ZSCAN none 0 => keymiss none
        ZUNION 2 none none2 => keymiss none, keymiss none2
        ZINTER 2 none none2 => keymiss none, keymiss none2
        ZDIFF 2 none none2 => keymiss none, keymiss none2
        ZINTERCARD 2 none z => keymiss none
        "#,
    );
}

#[test]
fn removing() {
    check_events(
        r#"
        ZADD z 1 a 2 b 3 c 4 d 5 e 6 f 7 g 8 h => new z, zadd z
        ZREMRANGEBYRANK z 0 0 => zremrangebyrank z
        ZREMRANGEBYRANK z 50 60 =>
        ZREMRANGEBYSCORE z 2 3 => zremrangebyscore z
        ZREMRANGEBYSCORE z 50 60 =>
        ZREMRANGEBYLEX z [x + =>
        ZPOPMIN z => zpopmin z
        ZPOPMAX z 2 => zpopmax z
        ZPOPMIN z 0 =>
        ZPOPMIN none =>
        ZMPOP 2 none z MIN => zpopmin z
        ZMPOP 1 none MIN =>
        ZPOPMIN z 10 => zpopmin z, del z
        ZADD z 0 a 0 b => new z, zadd z
        ZREMRANGEBYLEX z - [a => zremrangebylex z
        ZREMRANGEBYLEX z - + => zremrangebylex z, del z
        ZREMRANGEBYRANK none 0 -1 =>
        ZADD z 1 a => new z, zadd z
        ZREMRANGEBYRANK z 0 -1 => zremrangebyrank z, del z
        ZADD z 1 a => new z, zadd z
        ZREMRANGEBYSCORE z 0 1 => zremrangebyscore z, del z
        ZADD z 1 a => new z, zadd z
        ZPOPMAX z => zpopmax z, del z
        ZADD z 1 a 2 b => new z, zadd z
        ZMPOP 1 z MAX COUNT 5 => zpopmax z, del z
        BZPOPMIN none 0.01 =>
        ZADD z 1 a 2 b => new z, zadd z
        BZPOPMIN z 1 => zpopmin z
        BZMPOP 1 1 z MAX => zpopmax z, del z
        "#,
    );
}

#[test]
fn storing() {
    check_events(
        r#"
        ZADD a 1 x 2 y => new a, zadd a
        ZADD b 2 y => new b, zadd b
        ZUNIONSTORE to 2 a b => new to, zunionstore to
        ZUNIONSTORE to 2 a b => zunionstore to
        ZUNIONSTORE to 1 none => keymiss none, del to
        ZUNIONSTORE to 1 none => keymiss none
        ZINTERSTORE to 2 a b => new to, zinterstore to
        ZINTERSTORE to 2 a none => keymiss none, del to
        ZDIFFSTORE to 2 a b => new to, zdiffstore to
        ZDIFFSTORE to 2 a a => del to
        ZDIFFSTORE to 2 a a =>
        ZRANGESTORE to a 0 -1 => new to, zrangestore to
        ZRANGESTORE to a 0 0 => zrangestore to
        ZRANGESTORE to a 5 6 => del to
        ZRANGESTORE to a 5 6 =>
        ZRANGESTORE to none 0 -1 => keymiss none
        SET to x => new to, set to
        ZUNIONSTORE to 1 a => zunionstore to
        ZRANGESTORE a a 0 0 => zrangestore a
        ZUNIONSTORE b 2 a b => zunionstore b
        "#,
    );
}
