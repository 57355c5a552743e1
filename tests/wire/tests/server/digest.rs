//! DEBUG DIGEST and DIGEST-VALUE: the same data has the same signature in Redis and in Holdfast.

use wire::check;

#[test]
fn nothing_is_zero() {
    check(
        r#"
        DEBUG DIGEST => +0000000000000000000000000000000000000000
        DEBUG DIGEST-VALUE nosuch => [+0000000000000000000000000000000000000000]
        DEBUG DIGEST-VALUE => []
        DEBUG DIGEST x => -ERR unknown subcommand or wrong number of arguments for 'DIGEST'. Try DEBUG HELP.
        "#,
    );
}

#[test]
fn values_have_signatures() {
    check(
        r#"
        > SET k v
        +OK
        > SET n 12
        +OK
        > HSET h a 1
        :1
        > DEBUG DIGEST-VALUE k n h nosuch
        [+d79ee9fe5d5ad902d7f6620efc3b07b75ddd742f, +655ac46b180ad2f61a3cee25f0b1780fa2ec879a, +626a7b57a269f8f179a44902458ecb2f5920d35d, +0000000000000000000000000000000000000000]
        > HSET h a 2 b 1
        :1
        > DEBUG DIGEST-VALUE h
        [+d549b792d547e098e25376bd0ba66f382c2906b1]
        // That there is a deadline counts, not when.
        > PEXPIREAT h 9999999999999
        :1
        > DEBUG DIGEST-VALUE h
        [+33cc496d097e0acc23459d454ecca0a336874732]
        > PEXPIREAT h 9999999999990
        :1
        > DEBUG DIGEST-VALUE h
        [+33cc496d097e0acc23459d454ecca0a336874732]
        // The order of fields does not count.
        > HSET g b 1
        :1
        > HSET g a 2
        :1
        > DEBUG DIGEST-VALUE g
        [+d549b792d547e098e25376bd0ba66f382c2906b1]
        # needs redis >= 7.4
        > HSET t a 1 b 2
        :2
        > HPEXPIREAT t 9999999999999 FIELDS 1 a
        [:1]
        > DEBUG DIGEST-VALUE t
        [+c07db73128914a41e685572f9d83e5ec946f598d]
        "#,
    );
}

#[test]
fn everything_has_one_signature() {
    check(
        r#"
        > SET k v
        +OK
        > DEBUG DIGEST
        +264ccf65edec66bccfa7cc659414ccca432057d2
        > SET n 12
        +OK
        > DEBUG DIGEST
        +6dc4225ea2daae0d8912125446d9d6e4d1cdd2d7
        > HSET h b 1 a 2
        :2
        > DEBUG DIGEST
        +7530e9a633626f78b39d28ff364f223ef0c2cb48
        > PEXPIREAT h 9999999999999
        :1
        > SELECT 3
        +OK
        > SET k v
        +OK
        > DEBUG DIGEST
        +f37fced5a7e9a58ab563d1878467d0f131fb1f8c
        // Another order, the same data.
        > FLUSHALL
        +OK
        > SET k v
        +OK
        > SELECT 0
        +OK
        > HSET h a 2 b 1
        :2
        > SET n 12
        +OK
        > SET k v
        +OK
        > PEXPIREAT h 9999999999999
        :1
        > DEBUG DIGEST
        +f37fced5a7e9a58ab563d1878467d0f131fb1f8c
        "#,
    );
}
