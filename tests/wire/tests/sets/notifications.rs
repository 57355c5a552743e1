//! Keyspace notifications of sets.

use wire::check_events;

#[test]
fn adding_and_removing() {
    check_events(
        r#"
        SADD s a => new s, sadd s
        SADD s a =>
        SADD s a b c d => sadd s
        SADD n 1 => new n, sadd n
        SADD n x => sadd n
        SREM s nosuch =>
        SREM s a nosuch b => srem s
        SREM s c d => srem s, del s
        SREM s a =>
        SREM none a =>
        SREM n 1 x 2 => srem n, del n
        "#,
    );
}

#[test]
fn popping() {
    check_events(
        r#"
        SADD s a b c d e f g h i j => new s, sadd s
        SPOP s => spop s
        SPOP s 0 =>
        SPOP s 2 => spop s
        SPOP s 6 => spop s
        SPOP s => spop s, del s
        SPOP s =>
        SPOP s 3 =>
        SPOP none 0 =>
        SADD s a b => new s, sadd s
        SPOP s 2 => spop s, del s
        SADD s a b => new s, sadd s
        SPOP s 9 => spop s, del s
        SADD s a => new s, sadd s
        SPOP s 1 => spop s, del s
        SADD n 1 => new n, sadd n
        SPOP n => spop n, del n
        "#,
    );
}

#[test]
fn moving() {
    check_events(
        r#"
        SADD s a b c d => new s, sadd s
        SMOVE s t a => srem s, new t, sadd t
        SMOVE s t b => srem s, sadd t
        SMOVE s t nosuch =>
        SMOVE s s c =>
        SMOVE s s nosuch =>
        SADD t c => sadd t
        SMOVE s t c => srem s
        SMOVE s t d => srem s, del s, sadd t
        SMOVE s t d =>
        SMOVE none t d =>
        SADD s a => new s, sadd s
        SMOVE s t a => srem s, del s
        SADD s z => new s, sadd s
        SMOVE s u z => srem s, del s, new u, sadd u
        "#,
    );
}

#[test]
fn reading() {
    check_events(
        r#"
        SADD s a => new s, sadd s
        SCARD s =>
        SMEMBERS s =>
        SISMEMBER s nosuch =>
        SRANDMEMBER s =>
        SCARD none => keymiss none
        SMEMBERS none => keymiss none
        SISMEMBER none a => keymiss none
        SMISMEMBER none a b => keymiss none
        SRANDMEMBER none => keymiss none
        SRANDMEMBER none 1 => keymiss none
        SRANDMEMBER none 0 => keymiss none
        SSCAN none 0 => keymiss none
        SINTER none none2 => keymiss none, keymiss none2
        SINTER s none => keymiss none
        SINTER none none => keymiss none, keymiss none
        SINTER none s none2 => keymiss none, keymiss none2
        SINTERCARD 2 none none2 => keymiss none, keymiss none2
        SUNION none s none2 => keymiss none, keymiss none2
        SDIFF none none2 => keymiss none, keymiss none2
        SDIFF s none => keymiss none
        "#,
    );
}

#[test]
fn storing() {
    check_events(
        r#"
        SADD a x y => new a, sadd a
        SADD b y => new b, sadd b
        SUNIONSTORE to a b => new to, sunionstore to
        SUNIONSTORE to a b => sunionstore to
        SUNIONSTORE to none => keymiss none, del to
        SUNIONSTORE to none => keymiss none
        SINTERSTORE to a b => new to, sinterstore to
        SINTERSTORE to a b => sinterstore to
        SINTERSTORE to a none => keymiss none, del to
        SINTERSTORE to a none => keymiss none
        SINTERSTORE to a => new to, sinterstore to
        SDIFFSTORE to a b => sdiffstore to
        SDIFFSTORE to a a => del to
        SDIFFSTORE to a a =>
        SDIFFSTORE to none a => keymiss none
        SET to x => new to, set to
        SUNIONSTORE to a => sunionstore to
        SET to x => set to
        SINTERSTORE to none a => keymiss none, del to
        SET to x => new to, set to
        SINTERSTORE to a b => sinterstore to
        SUNIONSTORE a a => sunionstore a
        SDIFFSTORE a a b => sdiffstore a
        SDIFFSTORE a a a => del a
        ZUNIONSTORE z 1 b => new z, zunionstore z
        "#,
    );
}

/// A script and a transaction publish the events of each command in it, in order.
#[test]
fn scripts_and_transactions() {
    check_events(
        r#"
        EVAL "redis.call('SADD', KEYS[1], 'a', 'b'); redis.call('SPOP', KEYS[1]); redis.call('SREM', KEYS[1], 'a', 'b')" 1 s => new s, sadd s, spop s, srem s, del s
        MULTI =>
        SADD s a =>
        SMOVE s t a =>
        SREM t a =>
        EXEC => new s, sadd s, srem s, del s, new t, sadd t, srem t, del t
        "#,
    );
}
