//! The filters of CLIENT LIST and CLIENT KILL: those of Redis, and those that Valkey 9 has beyond.

use crate::{eventually, has_filters_of_valkey};
use wire::{Connection, Session};

/// The ids of the clients that CLIENT LIST returns with these filters, in order.
fn listed(connection: &mut Connection, filters: &str) -> Vec<i64> {
    let text = connection.run(&format!("CLIENT LIST {filters}")).text().to_owned();
    let id =
        |line: &str| line.split(' ').find_map(|field| field.strip_prefix("id=")?.parse().ok()).expect("it has an id");
    let mut ids: Vec<i64> = text.lines().map(id).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn clients_are_listed_by_what_is_true_of_them() {
    let session = Session::start();
    if !has_filters_of_valkey(&session) {
        return;
    }
    let [mut me, mut other, mut listener] = [(); 3].map(|()| session.connect());
    let [my_id, other_id, listener_id] =
        [&mut me, &mut other, &mut listener].map(|connection| connection.run("CLIENT ID").integer());
    let all = [my_id, other_id, listener_id];
    other.run("CLIENT SETNAME worker-7");
    other.run("CLIENT SETINFO LIB-NAME jobs");
    other.run("CLIENT SETINFO LIB-VER 1.2");
    other.run("SELECT 3");
    other.run("CLIENT NO-TOUCH ON");
    me.run("ACL SETUSER alice on >pw +@all ~*");
    other.run("AUTH alice pw");
    listener.run("SUBSCRIBE news");
    let fields = me.run(&format!("CLIENT LIST ID {other_id}")).text().to_owned();
    let field = |name: &str| {
        fields.split(' ').find_map(|field| field.strip_prefix(name)).expect("the line has the field").to_owned()
    };
    let (address, local_address) = (field("addr="), field("laddr="));
    let others: Vec<i64> = vec![my_id, listener_id];
    for filters in [
        "NAME worker-7".to_owned(),
        "LIB-NAME jobs".to_owned(),
        "LIB-VER 1.2".to_owned(),
        "DB 3".to_owned(),
        "FLAGS T".to_owned(),
        "USER alice".to_owned(),
        format!("ADDR {address}"),
        format!("ADDR {address} LADDR {local_address} IP 127.0.0.1 NAME worker-7"),
        format!("TYPE normal ID {my_id} {other_id} {listener_id} SKIPME yes"),
    ] {
        assert_eq!(listed(&mut me, &filters), [other_id], "{filters}");
    }
    for filters in [
        "NOT-NAME worker-7".to_owned(),
        "NOT-LIB-NAME jobs".to_owned(),
        "NOT-LIB-VER 1.2".to_owned(),
        "NOT-DB 3".to_owned(),
        "NOT-FLAGS T".to_owned(),
        "NOT-USER alice".to_owned(),
        format!("NOT-ADDR {address}"),
        format!("NOT-ID {other_id}"),
        format!("not-id 999999 {other_id}"),
    ] {
        let listed = listed(&mut me, &filters);
        assert!(others.iter().all(|id| listed.contains(id)) && !listed.contains(&other_id), "{filters}: {listed:?}");
    }
    assert_eq!(listed(&mut me, "TYPE pubsub"), [listener_id]);
    assert_eq!(listed(&mut me, "FLAGS P"), [listener_id]);
    assert!(listed(&mut me, "FLAGS N").contains(&my_id));
    for none in [
        "TYPE replica",
        "TYPE primary",
        "IP 10.9.8.7",
        "NOT-IP 127.0.0.1",
        "FLAGS TP",
        "NAME worker-7 DB 4",
        "NAME nosuch",
        "MAXAGE 100000",
        "IDLE 100000",
        &format!("NOT-LADDR {local_address}"),
        &format!("ID {my_id} SKIPME yes"),
    ] {
        assert_eq!(listed(&mut me, none), [0; 0], "{none}");
    }
    for everyone in ["SKIPME no", "NOT-TYPE replica", "NOT-FLAGS TP", "NOT-NAME nosuch", "NOT-ID 999999"] {
        let listed = listed(&mut me, everyone);
        assert!(all.iter().all(|id| listed.contains(id)), "{everyone}: {listed:?}");
    }
    eventually(|| listed(&mut me, "NAME worker-7 IDLE 1 MAXAGE 1") == [other_id]);
    me.run("ACL DELUSER alice");
}

#[test]
fn clients_are_closed_by_what_is_true_of_them() {
    let session = Session::start();
    if !has_filters_of_valkey(&session) {
        return;
    }
    let mut killer = session.connect();
    let mut workers: Vec<Connection> = (0..6).map(|_| session.connect()).collect();
    for (number, worker) in workers.iter_mut().enumerate() {
        worker.run(&format!("CLIENT SETNAME worker-{number}"));
        worker.run(&format!("CLIENT SETINFO LIB-NAME lib-{}", number % 2));
    }
    let ids: Vec<i64> = workers.iter_mut().map(|worker| worker.run("CLIENT ID").integer()).collect();
    workers[4].run("CLIENT NO-EVICT ON");
    let closes = |killer: &mut Connection, filters: &str| killer.run(&format!("CLIENT KILL {filters}")).integer();
    assert_eq!(closes(&mut killer, "NAME worker-0 LIB-NAME lib-1"), 0);
    assert_eq!(closes(&mut killer, "NAME worker-0 LIB-NAME lib-0"), 1);
    assert_eq!(closes(&mut killer, "FLAGS e"), 1);
    assert_eq!(closes(&mut killer, &format!("ID {} {} 999999 NOT-NAME worker-2", ids[1], ids[2])), 1);
    assert_eq!(closes(&mut killer, "LIB-NAME lib-1 NOT-NAME worker-3"), 1);
    for closed in [0, 1, 4, 5] {
        assert_eq!(workers[closed].read().to_string(), "(closed)", "{closed}");
    }
    for open in [2, 3] {
        assert_eq!(workers[open].run("PING").to_string(), "+PONG", "{open}");
    }
}

#[test]
fn filters_are_checked() {
    let session = Session::start();
    if !has_filters_of_valkey(&session) {
        return;
    }
    for command in ["LIST", "KILL"] {
        session.check(&format!(
            r#"
            > CLIENT {command} TYPE normal NAME
            -ERR syntax error
            > CLIENT {command} NOT-NOSUCH 1
            -ERR syntax error
            > CLIENT {command} NOT-MAXAGE 1
            -ERR syntax error
            > CLIENT {command} NOT-IDLE 1
            -ERR syntax error
            > CLIENT {command} NOT-SKIPME yes
            -ERR syntax error
            > CLIENT {command} SKIPME maybe
            -ERR syntax error
            > CLIENT {command} NOT-TYPE nosuch
            -ERR Unknown client type 'nosuch'
            > CLIENT {command} NOT-USER nosuch
            -ERR No such user 'nosuch'
            > CLIENT {command} NOT-ID 0
            -ERR client-id should be greater than 0
            > CLIENT {command} FLAGS NZ
            ~-ERR Unknown flags found in the provided filter: *Z
            > CLIENT {command} NOT-FLAGS Z
            -ERR Unknown flags found in the NOT-FLAGS filter: Z
            > CLIENT {command} DB x
            -ERR DB is not an integer or out of range
            > CLIENT {command} DB 16
            -ERR DB number should be between 0 and 15
            > CLIENT {command} NOT-DB -1
            -ERR NOT-DB number should be between 0 and 15
            > CLIENT {command} IDLE x
            -ERR idle is not an integer or out of range
            > CLIENT {command} IDLE 0
            -ERR idle should be greater than 0
            > CLIENT {command} MAXAGE 0
            -ERR maxage should be greater than 0
            > CLIENT {command} MAXAGE x
            -ERR maxage is not an integer or out of range
            "#
        ));
    }
}
