//! CLIENT KILL: who is closed, and when.

use super::eventually;
use wire::{Connection, Session, check};

/// Connections that have spoken once, so that the server knows them.
fn connections<const COUNT: usize>(session: &Session) -> [Connection; COUNT] {
    std::array::from_fn(|_| {
        let mut connection = session.connect();
        connection.run("PING");
        connection
    })
}

fn field(connection: &mut Connection, name: &str) -> String {
    let info = connection.run("CLIENT INFO");
    let found = info.text().split([' ', '\n']).find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    found.unwrap().to_owned()
}

#[test]
fn by_number() {
    let session = Session::start();
    let [mut killer, mut victim, mut other] = connections(&session);
    let id = victim.run("CLIENT ID").integer();
    assert_eq!(killer.run(&format!("CLIENT KILL ID {id}")).integer(), 1);
    assert_eq!(killer.run(&format!("CLIENT LIST ID {id}")).text(), "");
    assert_eq!(victim.read().to_string(), "(closed)");
    assert_eq!(killer.run(&format!("CLIENT KILL ID {id}")).integer(), 0);
    assert_eq!(other.run("PING").to_string(), "+PONG");
}

#[test]
fn by_address_in_the_old_form_and_the_new() {
    let session = Session::start();
    let [mut killer, mut first, mut second] = connections(&session);
    let address = field(&mut first, "addr");
    assert_eq!(killer.run(&format!("CLIENT KILL {address}")).to_string(), "+OK");
    assert_eq!(first.read().to_string(), "(closed)");
    assert_eq!(killer.run(&format!("CLIENT KILL {address}")).to_string(), "-ERR No such client");
    let (address, local) = (field(&mut second, "addr"), field(&mut second, "laddr"));
    assert_eq!(killer.run(&format!("CLIENT KILL ADDR {address} LADDR 1.2.3.4:5")).integer(), 0);
    assert_eq!(killer.run(&format!("client kill addr {address} laddr {local}")).integer(), 1);
    assert_eq!(second.read().to_string(), "(closed)");
}

#[test]
fn oneself_last() {
    let session = Session::start();
    let [mut connection] = connections(&session);
    let (id, address) = (connection.run("CLIENT ID").integer(), field(&mut connection, "addr"));
    assert_eq!(connection.run(&format!("CLIENT KILL ID {id}")).integer(), 0);
    assert_eq!(connection.run(&format!("CLIENT KILL ADDR {address} SKIPME YES")).integer(), 0);
    connection.queue_line(&format!("CLIENT KILL ID {id} SKIPME no"));
    connection.queue_line("SET a 1");
    assert_eq!(connection.read().integer(), 1);
    assert_eq!(connection.read().to_string(), "(closed)");
    let [mut connection] = connections(&session);
    assert_eq!(connection.run("EXISTS a").integer(), 0);
    // The old form does not spare oneself.
    let address = field(&mut connection, "addr");
    assert_eq!(connection.run(&format!("CLIENT KILL {address}")).to_string(), "+OK");
    assert_eq!(connection.read().to_string(), "(closed)");
}

#[test]
fn everybody_else() {
    let session = Session::start();
    let [mut killer, mut first, mut second] = connections(&session);
    assert!(killer.run("CLIENT KILL TYPE normal USER default").integer() >= 2);
    assert_eq!(first.read().to_string(), "(closed)");
    assert_eq!(second.read().to_string(), "(closed)");
    assert_eq!(killer.run("CLIENT LIST").text().lines().count(), 1);
    assert_eq!(killer.run("CLIENT KILL TYPE pubsub").integer(), 0);
    assert_eq!(killer.run("CLIENT KILL TYPE replica").integer(), 0);
    assert_eq!(killer.run("CLIENT KILL SKIPME yes").integer(), 0);
}

#[test]
fn a_client_that_waits_can_be_killed() {
    let session = Session::start();
    let [mut killer, mut waiting, mut paused] = connections(&session);
    let ids = [&mut waiting, &mut paused].map(|connection| connection.run("CLIENT ID").integer());
    waiting.queue_line("WAIT 1 0");
    waiting.flush();
    killer.run("CLIENT PAUSE 100000 WRITE");
    paused.queue_line("SET a 1");
    paused.flush();
    for id in ids {
        assert_eq!(killer.run(&format!("CLIENT KILL ID {id}")).integer(), 1);
    }
    assert_eq!(waiting.read().to_string(), "(closed)");
    assert_eq!(paused.read().to_string(), "(closed)");
    killer.run("CLIENT UNPAUSE");
}

#[test]
fn only_the_old() {
    let session = Session::start();
    if !session.has_redis("7.4") {
        return;
    }
    let [mut killer, mut young] = connections(&session);
    let id = young.run("CLIENT ID").integer();
    assert_eq!(killer.run(&format!("CLIENT KILL ID {id} MAXAGE 100000")).integer(), 0);
    assert_eq!(young.run("PING").to_string(), "+PONG");
    eventually(|| killer.run(&format!("CLIENT KILL ID {id} MAXAGE 1")).integer() == 1);
    assert_eq!(young.read().to_string(), "(closed)");
}

#[test]
fn arguments_are_checked() {
    check(
        "
        CLIENT KILL => -ERR wrong number of arguments for 'client|kill' command
        CLIENT KILL 1.2.3.4:5 => -ERR No such client
        CLIENT KILL ID => -ERR No such client
        CLIENT KILL ID 0 => -ERR client-id should be greater than 0
        CLIENT KILL ID -1 => -ERR client-id should be greater than 0
        CLIENT KILL ID x => -ERR client-id should be greater than 0
        CLIENT KILL ID 999999 TYPE => -ERR syntax error
        CLIENT KILL TYPE nonsense => -ERR Unknown client type 'nonsense'
        CLIENT KILL USER nobody => -ERR No such user 'nobody'
        CLIENT KILL SKIPME maybe => -ERR syntax error
        CLIENT KILL nonsense 1 => -ERR syntax error
        // The last of two filters of a kind counts.
        CLIENT KILL ID 999998 ID 999999 => :0
        # needs redis >= 7.4
        CLIENT KILL MAXAGE 0 => -ERR maxage should be greater than 0
        CLIENT KILL MAXAGE x => -ERR maxage is not an integer or out of range
        ",
    );
}

#[test]
fn a_reply_beyond_the_output_limit_is_the_end() {
    check(
        r#"
        # config client-output-buffer-limit normal 50000 0 0
        > SETRANGE large 99999 x
        :100000
        2> GET large
        (closed)
        // Many replies are one, if they are asked for at once.
        > SETRANGE medium 9999 x
        :10000
        3> MGET medium medium medium medium medium medium medium
        (closed)
        > STRLEN large
        :100000
        "#,
    );
}

#[test]
fn small_replies_pass_whatever_the_output_limit() {
    check(
        r#"
        # config client-output-buffer-limit normal 10 0 0
        > ECHO "more than ten bytes"
        "more than ten bytes"
        "#,
    );
}
