//! Values in a transaction: of the wrong type, large, and those for which a command would wait. `model` has commands of every type.

use crate::{check, start};

#[test]
fn a_value_of_the_wrong_type_is_the_commands_error() {
    check(
        r#"
        ! SET a text
        ! TXN.BEGIN
        HGET a f => -WRONGTYPE Operation against a key holding the wrong kind of value
        INCR a => -ERR value is not an integer or out of range
        HSET a f v => -WRONGTYPE Operation against a key holding the wrong kind of value
        ! SET b 1
        ! TXN.COMMIT
        MGET a b => ["text", "1"]
        "#,
    );
}

#[test]
fn large_values_are_copied_whole() {
    let Some(session) = start() else { return };
    let mut client = session.connect();
    for i in 0..2000 {
        client.queue_line(&format!("HSET h f{i} {i}"));
        client.queue_line(&format!("ZADD z {i} m{i}"));
        client.queue_line(&format!("SADD s m{i}"));
    }
    client.flush();
    (0..6000).for_each(|_| drop(client.read()));
    client.run("TXN.BEGIN");
    for command in ["HSET h f5 new", "ZADD z 7000 m0", "SREM s m1"] {
        assert!(!client.run(command).is_error(), "{command}");
    }
    assert_eq!(
        [client.run("HLEN h").integer(), client.run("ZCARD z").integer(), client.run("SCARD s").integer()],
        [2000, 2000, 1999]
    );
    assert_eq!(client.run("ZRANK z m0").integer(), 1999);
    client.run("TXN.COMMIT");
    let mut other = session.connect();
    assert_eq!(other.run("HGET h f5").text(), "new");
    assert_eq!(other.run("ZRANK z m0").integer(), 1999);
    assert_eq!(other.run("SCARD s").integer(), 1999);
}

#[test]
fn commands_that_could_wait_do_not() {
    check(
        r#"
        ! TXN.BEGIN
        > BZPOPMIN z 0
        (nil array)
        ! ZADD z 1 a
        > BZPOPMIN z 0
        ["z", "a", "1"]
        ! TXN.COMMIT
        EXISTS z => :0
        "#,
    );
}
