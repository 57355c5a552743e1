//! SINTER, SINTERCARD, SUNION, SDIFF.

use wire::check;

#[test]
fn sinter() {
    check(
        r#"
        ! SADD a 1 2 3 x
        ! SADD b 2 3 4 x
        ! SADD c 3 x y
        SINTER a => ~["x", "1", "2", "3"]
        SINTER a b => ~["x", "2", "3"]
        SINTER b a => ~["x", "2", "3"]
        SINTER a b c => ~["x", "3"]
        SINTER a a => ~["x", "1", "2", "3"]
        SINTER a a a b b => ~["x", "2", "3"]
        SINTER a nosuch => []
        SINTER nosuch a => []
        SINTER nosuch => []
        SINTER nosuch nosuch2 => []
        ! SADD n 1 2 3
        ! SADD m 2 3 4
        SINTER n m => ~["2", "3"]
        SINTER n a => ~["1", "2", "3"]
        SINTER a n m => ~["2", "3"]
        ! SADD other p q
        SINTER a other => []
        SINTER a b other => []
        DBSIZE => :6
        "#,
    );
}

#[test]
fn sunion() {
    check(
        r#"
        ! SADD a 1 2 x
        ! SADD b 2 y
        SUNION a => ~["x", "1", "2"]
        SUNION a b => ~["x", "y", "1", "2"]
        SUNION b a b => ~["x", "y", "1", "2"]
        SUNION a nosuch => ~["x", "1", "2"]
        SUNION nosuch a => ~["x", "1", "2"]
        SUNION nosuch nosuch2 => []
        ! SADD n 1 5
        ! SADD m 5 9
        SUNION n m => ~["1", "5", "9"]
        SUNION n b => ~["y", "1", "2", "5"]
        DBSIZE => :4
        "#,
    );
}

#[test]
fn sdiff() {
    check(
        r#"
        ! SADD a 1 2 3 x
        ! SADD b 2 y
        ! SADD c x
        SDIFF a => ~["x", "1", "2", "3"]
        SDIFF a b => ~["x", "1", "3"]
        SDIFF b a => ["y"]
        SDIFF a b c => ~["1", "3"]
        SDIFF a b b b => ~["x", "1", "3"]
        SDIFF a a => []
        SDIFF a b a => []
        SDIFF a nosuch => ~["x", "1", "2", "3"]
        SDIFF nosuch a => []
        SDIFF nosuch => []
        SDIFF a nosuch c nosuch => ~["1", "2", "3"]
        ! SADD n 1 2 3
        ! SADD m 2 3 4
        SDIFF n m => ["1"]
        SDIFF m n => ["4"]
        SDIFF n a => []
        DBSIZE => :5
        "#,
    );
}

#[test]
fn sintercard() {
    check(
        r#"
        ! SADD a 1 2 3 x
        ! SADD b 2 3 4 x
        SINTERCARD 1 a => :4
        SINTERCARD 2 a b => :3
        SINTERCARD 2 a a => :4
        SINTERCARD 2 a nosuch => :0
        SINTERCARD 1 nosuch => :0
        SINTERCARD 2 a b LIMIT 0 => :3
        SINTERCARD 2 a b LIMIT 1 => :1
        SINTERCARD 2 a b LIMIT 2 => :2
        SINTERCARD 2 a b LIMIT 3 => :3
        SINTERCARD 2 a b LIMIT 100 => :3
        SINTERCARD 2 a b limit 9223372036854775807 => :3
        SINTERCARD 1 a LIMIT 2 => :2
        SINTERCARD 2 a nosuch LIMIT 2 => :0
        // The last one counts.
        > SINTERCARD 2 a b LIMIT 1 LIMIT 2
        :2
        // A key may have any name.
        ! SADD LIMIT 1 2
        > SINTERCARD 2 a LIMIT
        :2
        > SINTERCARD 2 LIMIT a LIMIT 1
        :1
        ! HELLO 3
        > SINTERCARD 2 a b
        :3
        > SINTERCARD 2 a nosuch
        :0
        "#,
    );
}

#[test]
fn sintercard_refuses_bad_arguments() {
    check(
        r#"
        ! SADD a 1 2
        -ERR numkeys should be greater than 0
            SINTERCARD 0 a
            SINTERCARD -1 a
            SINTERCARD abc a
            SINTERCARD 1.5 a
            SINTERCARD "" a
            SINTERCARD 99999999999999999999 a
        -ERR Number of keys can't be greater than number of args
            SINTERCARD 9223372036854775807 a
            SINTERCARD 2147483648 a
            SINTERCARD 2 a
            SINTERCARD 3 a b
        -ERR syntax error
            SINTERCARD 1 a b
            SINTERCARD 1 a LIMIT
            SINTERCARD 1 a LIMIT 1 more
            SINTERCARD 1 a LIMIT 1 LIMIT
            SINTERCARD 1 a more
        -ERR LIMIT can't be negative
            SINTERCARD 1 a LIMIT -1
            SINTERCARD 1 a LIMIT -9223372036854775808
            SINTERCARD 1 a LIMIT abc
            SINTERCARD 1 a LIMIT 1.5
            SINTERCARD 1 a LIMIT ""
            SINTERCARD 1 a LIMIT 9223372036854775808
            SINTERCARD 1 a LIMIT -1 LIMIT 1
        // Arguments are checked before the types of keys.
        ! SET str x
        SINTERCARD 1 str LIMIT -1 => -ERR LIMIT can't be negative
        SINTERCARD 1 str more => -ERR syntax error
        SINTERCARD 0 str => -ERR numkeys should be greater than 0
        SINTERCARD 2 str => -ERR Number of keys can't be greater than number of args
        SINTERCARD 1 str LIMIT 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        "#,
    );
}

#[test]
fn in_resp3_results_are_sets() {
    check(
        r#"
        ! HELLO 3
        ! SADD a x y
        ! SADD b y z
        SINTER a b => set["y"]
        SUNION a b => set["x", "y", "z"]
        SDIFF a b => set["x"]
        SINTER a nosuch => set[]
        SUNION nosuch => set[]
        SDIFF nosuch a => set[]
        SDIFF a a => set[]
        "#,
    );
}

/// A key of another type is an error even where the result is known to be empty before it is read.
#[test]
fn every_key_is_checked() {
    check(
        r#"
        ! SADD a x
        ! SADD b y
        ! SET str x
        ! HSET h f v
        ! ZADD z 1 x
        -WRONGTYPE Operation against a key holding the wrong kind of value
            SINTER a str
            SINTER str a
            SINTER a h
            SINTER z a
            SINTER str nosuch
            SINTER a b str
            SINTER a nosuch str
            SINTERCARD 2 nosuch str
            SINTERCARD 2 str nosuch
            SINTERCARD 3 a b str LIMIT 1
            SUNION str
            SUNION a str
            SUNION z
            SDIFF a str
            SDIFF a a str
        "#,
    );
}

#[test]
fn encodings_mix() {
    check(
        r#"
        ! SADD numbers 1 2 3 -5 100000 5000000000
        ! SADD table 1 -5 5000000000 x 01 +2 "3 " 100000.0
        ! SADD more 2 1
        OBJECT ENCODING numbers => "intset"
        OBJECT ENCODING table => "hashtable" | "listpack"
        SINTER numbers table => ~["1", "-5", "5000000000"]
        SINTER table numbers => ~["1", "-5", "5000000000"]
        SINTER table numbers more => ["1"]
        SINTERCARD 2 table numbers => :3
        SDIFF numbers table => ~["2", "3", "100000"]
        SDIFF table numbers => ~["+2", "100000.0", "3 ", "x", "01"]
        SDIFF numbers table more => ~["3", "100000"]
        SUNION more table => ~["+2", "100000.0", "3 ", "x", "1", "2", "-5", "01", "5000000000"]
        "#,
    );
}

/// An expired key is an empty set.
#[test]
fn expired_keys_are_empty() {
    check(
        r#"
        ! SADD a x y
        ! SADD b y z
        > PEXPIRE b 1
        :1
        # eventually
        > EXISTS b
        :0
        SINTER a b => []
        SUNION a b => ~["x", "y"]
        SDIFF a b => ~["x", "y"]
        SINTERCARD 2 a b => :0
        SDIFF b a => []
        "#,
    );
}
