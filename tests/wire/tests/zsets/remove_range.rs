//! Ranges taken out: ZREMRANGEBYRANK, ZREMRANGEBYSCORE, ZREMRANGEBYLEX.

use wire::{Session, check};

#[test]
fn zremrangebyrank() {
    check(
        r#"
        ! ZADD z 1 a 2 b 3 c 4 d 5 e
        > ZREMRANGEBYRANK z 5 6
        :0
        > ZREMRANGEBYRANK z 3 2
        :0
        > ZREMRANGEBYRANK z 1 1
        :1
        > ZREMRANGEBYRANK z -1 -1
        :1
        > ZRANGE z 0 -1
        ["a", "c", "d"]
        > ZREMRANGEBYRANK z -100 0
        :1
        > ZREMRANGEBYRANK z 1 100
        :1
        > ZRANGE z 0 -1
        ["c"]
        > ZREMRANGEBYRANK z 0 -1
        :1
        > EXISTS z
        :0
        > ZREMRANGEBYRANK z 0 -1
        :0
        > ZREMRANGEBYRANK nosuch 0 -1
        :0
        "#,
    );
}

#[test]
fn zremrangebyscore() {
    check(
        r#"
        ! ZADD z 1 a 2 b 3 c 4 d 5 e inf f -inf g
        :0
            ZREMRANGEBYSCORE z 6 7
            ZREMRANGEBYSCORE z 3 2
            ZREMRANGEBYSCORE z (2 (3
        > ZREMRANGEBYSCORE z (2 3
        :1
        > ZREMRANGEBYSCORE z 5 +inf
        :2
        > ZRANGE z 0 -1
        ["g", "a", "b", "d"]
        > ZREMRANGEBYSCORE z -inf (2
        :2
        > ZRANGE z 0 -1
        ["b", "d"]
        > ZREMRANGEBYSCORE z -inf +inf
        :2
        > EXISTS z
        :0
        > ZREMRANGEBYSCORE nosuch 0 1
        :0
        "#,
    );
}

#[test]
fn zremrangebylex() {
    check(
        r#"
        ! ZADD z 0 a 0 b 0 c 0 d 0 e
        > ZREMRANGEBYLEX z [x [z
        :0
        > ZREMRANGEBYLEX z [c [b
        :0
        > ZREMRANGEBYLEX z (a (c
        :1
        > ZREMRANGEBYLEX z [e +
        :1
        > ZRANGE z 0 -1
        ["a", "c", "d"]
        > ZREMRANGEBYLEX z - (c
        :1
        > ZRANGE z 0 -1
        ["c", "d"]
        > ZREMRANGEBYLEX z - +
        :2
        > EXISTS z
        :0
        > ZREMRANGEBYLEX nosuch - +
        :0
        "#,
    );
}

#[test]
fn removals_by_range_refuse_bad_arguments() {
    check(
        r#"
        ! ZADD z 1 a
        -ERR value is not an integer or out of range
            ZREMRANGEBYRANK z x 1
            ZREMRANGEBYRANK z 0 x
            ZREMRANGEBYRANK z 0.5 1
            ZREMRANGEBYRANK z (0 1
        -ERR min or max is not a float
            ZREMRANGEBYSCORE z x 1
            ZREMRANGEBYSCORE z 0 x
            ZREMRANGEBYSCORE z nan 1
        -ERR min or max not valid string range item
            ZREMRANGEBYLEX z a b
            ZREMRANGEBYLEX z - b
        ZCARD z => :1
        ZREMRANGEBYRANK nosuch x 1 => -ERR value is not an integer or out of range
        ZREMRANGEBYSCORE nosuch x 1 => -ERR min or max is not a float
        ZREMRANGEBYLEX nosuch a b => -ERR min or max not valid string range item
        ! SET s x
        ZREMRANGEBYRANK s x 1 => -ERR value is not an integer or out of range
        ZREMRANGEBYSCORE s x 1 => -ERR min or max is not a float
        ZREMRANGEBYLEX s a b => -ERR min or max not valid string range item
        "#,
    );
}

/// Small and large sets are kept differently: both must agree.
#[test]
fn removals_from_a_large_set() {
    let session = Session::start();
    let mut connection = session.connect();
    let members: Vec<String> = (0..1000).map(|i| format!("{i} m{i:03}")).collect();
    for (command, removed, first, last) in [
        ("ZREMRANGEBYRANK z 0 9", 10, "m010", "m999"),
        ("ZREMRANGEBYRANK z -5 -1", 5, "m000", "m994"),
        ("ZREMRANGEBYRANK z 1 998", 998, "m000", "m999"),
        ("ZREMRANGEBYSCORE z (100 +inf", 899, "m000", "m100"),
        ("ZREMRANGEBYSCORE z -inf 500", 501, "m501", "m999"),
        ("ZREMRANGEBYSCORE z 0.5 (999", 998, "m000", "m999"),
    ] {
        connection.run("DEL z");
        connection.run(&format!("ZADD z {}", members.join(" ")));
        assert_eq!(connection.run(command).integer(), removed, "{command}");
        assert_eq!(connection.run("ZCARD z").integer(), 1000 - removed, "{command}");
        assert_eq!(connection.run("ZRANGE z 0 0").items()[0].text(), first, "{command}");
        assert_eq!(connection.run("ZRANGE z -1 -1").items()[0].text(), last, "{command}");
        assert_eq!(connection.run(&format!("ZRANK z {last}")).integer(), 999 - removed, "{command}");
    }
    let members: Vec<String> = (0..1000).map(|i| format!("0 m{i:03}")).collect();
    for (command, removed, first, last) in [
        ("ZREMRANGEBYLEX z - (m500", 500, "m500", "m999"),
        ("ZREMRANGEBYLEX z [m5 +", 500, "m000", "m499"),
        ("ZREMRANGEBYLEX z (m000 (m999", 998, "m000", "m999"),
    ] {
        connection.run("DEL z");
        connection.run(&format!("ZADD z {}", members.join(" ")));
        assert_eq!(connection.run(command).integer(), removed, "{command}");
        assert_eq!(connection.run("ZCARD z").integer(), 1000 - removed, "{command}");
        assert_eq!(connection.run("ZRANGE z 0 0").items()[0].text(), first, "{command}");
        assert_eq!(connection.run("ZRANGE z -1 -1").items()[0].text(), last, "{command}");
    }
}
