//! The clients that wait for sorted sets: their order, how they are seen, how they are sent away.

use wire::{Connection, Session, check};

#[test]
fn first_come_first_served() {
    check(
        r#"
        > BZPOPMIN z 0
        # until blocked_clients:1
        2> BZPOPMAX z 0
        # until blocked_clients:2
        3> BZMPOP 0 1 z MIN
        # until blocked_clients:3
        4> ZADD z 1 a
        :1
        1< ["z", "a", "1"]
        # until blocked_clients:2
        4> ZADD z 2 b
        :1
        2< ["z", "b", "2"]
        4> ZADD z 3 c
        :1
        3< ["z", [["c", "3"]]]
        4> EXISTS z
        :0
        "#,
    );
}

#[test]
fn several_are_served_in_turn_by_one_command() {
    check(
        r#"
        > BZPOPMIN z 0
        # until blocked_clients:1
        2> BZPOPMAX z 0
        # until blocked_clients:2
        3> BZMPOP 0 1 z MIN COUNT 2
        # until blocked_clients:3
        4> BZPOPMIN z 0
        # until blocked_clients:4
        5> ZADD z 1 a 2 b 3 c 4 d 5 e 6 f
        :6
        1< ["z", "a", "1"]
        2< ["z", "f", "6"]
        3< ["z", [["b", "2"], ["c", "3"]]]
        4< ["z", "d", "4"]
        5> ZRANGE z 0 -1
        ["e"]
        "#,
    );
}

#[test]
fn who_comes_too_late_waits_on() {
    check(
        r#"
        > BZPOPMIN z 0
        # until blocked_clients:1
        2> BZPOPMIN z 0
        # until blocked_clients:2
        3> ZADD z 1 a
        :1
        1< ["z", "a", "1"]
        # until blocked_clients:1
        // The first comes back, behind the second.
        > BZPOPMIN z 0
        # until blocked_clients:2
        3> ZADD z 2 b
        :1
        2< ["z", "b", "2"]
        3> ZADD z 3 c
        :1
        1< ["z", "c", "3"]
        "#,
    );
}

#[test]
fn turns_are_per_key() {
    check(
        r#"
        > BZPOPMIN a b 0
        # until blocked_clients:1
        2> BZPOPMIN b a 0
        # until blocked_clients:2
        3> BZPOPMIN b 0
        # until blocked_clients:3
        4> ZADD b 1 x
        :1
        1< ["b", "x", "1"]
        4> ZADD b 2 y
        :1
        2< ["b", "y", "2"]
        4> ZADD a 3 z
        :1
        4> ZADD b 4 w
        :1
        3< ["b", "w", "4"]
        4> DBSIZE
        :1
        "#,
    );
}

#[test]
fn who_gives_up_does_not_hold_the_others() {
    check(
        r#"
        > BZPOPMIN z 0.02
        (nil array)
        > BZPOPMIN z 0
        # until blocked_clients:1
        2> BZPOPMIN z 0.01
        (nil array)
        3> ZADD z 1 a
        :1
        1< ["z", "a", "1"]
        2> PING
        +PONG
        "#,
    );
}

#[test]
fn what_follows_waits() {
    check(
        r#"
        > BZPOPMIN z 0
        > SET after 1
        > PING
        # until blocked_clients:1
        2> GET after
        (nil)
        2> ZADD z 1 a
        :1
        1< ["z", "a", "1"]
        1< +OK
        1< +PONG
        2> GET after
        "1"
        > BZPOPMIN z 0
        > BZPOPMIN z 0
        > ZCARD z
        # until blocked_clients:1
        2> ZADD z 1 a 2 b 3 c
        :3
        1< ["z", "a", "1"]
        1< ["z", "b", "2"]
        1< :1
        > DEL z
        :1
        > BZPOPMIN z 0.01
        > BZPOPMIN z 0.01
        > PING
        1< (nil array)
        1< (nil array)
        1< +PONG
        "#,
    );
}

#[test]
fn a_transaction_behind_it_waits_too() {
    check(
        r#"
        > BZPOPMIN z 0
        > MULTI
        > ZADD z 9 own
        > BZPOPMIN z 0
        > EXEC
        # until blocked_clients:1
        2> ZADD z 1 a
        :1
        1< ["z", "a", "1"]
        1< +OK
        1< +QUEUED
        1< +QUEUED
        1< [:1, ["z", "own", "9"]]
        "#,
    );
}

#[test]
fn info_counts_who_waits() {
    check(
        r#"
        # until blocked_clients:0
        > BZPOPMIN z 0
        2> BZPOPMIN z y 0
        3> BZMPOP 0 2 z y MIN
        # until blocked_clients:3
        4> ZADD z 1 a 2 b 3 c
        :3
        1< ["z", *, *]
        2< ["z", *, *]
        3< ["z", *]
        # until blocked_clients:0
        4> EXISTS z
        :0
        "#,
    );
}

#[test]
fn client_unblock() {
    let session = Session::start();
    let (mut waiting, mut other) = (session.connect(), session.connect());
    let id = waiting.run("CLIENT ID").integer();
    let unblock = |other: &mut Connection, how: &str| other.run(&format!("CLIENT UNBLOCK {id} {how}")).to_string();

    assert_eq!(unblock(&mut other, ""), ":0", "nobody waits yet");
    for (command, how, reply) in [
        ("BZPOPMIN z 0", "", "(nil array)"),
        ("BZPOPMAX z y 0", "TIMEOUT", "(nil array)"),
        ("BZMPOP 0 1 z MIN", "timeout", "(nil array)"),
        ("BZPOPMIN z 0", "ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK"),
        ("BZMPOP 0 2 z y MAX COUNT 3", "error", "-UNBLOCKED client unblocked via CLIENT UNBLOCK"),
    ] {
        wait_for(&session, &mut waiting, command);
        assert_eq!(unblock(&mut other, how), ":1", "{command}");
        assert_eq!(waiting.read().to_string(), reply, "{command} {how}");
        assert_eq!(unblock(&mut other, how), ":0", "{command} has ended");
    }
    // Whoever has been sent away takes nothing.
    assert_eq!(other.run("ZADD z 1 a").integer(), 1);
    assert_eq!(other.run("ZCARD z").integer(), 1);
    assert_eq!(waiting.run("PING").to_string(), "+PONG");

    wait_for(&session, &mut waiting, "BZPOPMIN y 0");
    assert_eq!(unblock(&mut other, "NOSUCH"), "-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
    assert_eq!(other.run("CLIENT UNBLOCK 999999").to_string(), ":0");
    assert_eq!(other.run("CLIENT UNBLOCK x").to_string(), "-ERR value is not an integer or out of range");
    assert_eq!(unblock(&mut other, ""), ":1");
    assert_eq!(waiting.read().to_string(), "(nil array)");

    waiting.run("HELLO 3");
    wait_for(&session, &mut waiting, "BZPOPMIN y 0");
    assert_eq!(unblock(&mut other, ""), ":1");
    assert_eq!(waiting.read().to_string(), "_");
}

#[test]
fn client_list_shows_who_waits() {
    let session = Session::start();
    let (mut waiting, mut other) = (session.connect(), session.connect());
    let id = waiting.run("CLIENT ID").integer();
    let flags = |other: &mut Connection| {
        let list = other.run(&format!("CLIENT LIST ID {id}")).text().to_owned();
        let field = |name: &str| list.split(' ').find_map(|field| field.strip_prefix(name)).map(str::to_owned);
        (field("flags=").expect("flags"), field("cmd=").expect("cmd"))
    };
    assert_eq!(flags(&mut other), ("N".to_owned(), "client|id".to_owned()));
    for (command, name) in [("BZPOPMIN z 0", "bzpopmin"), ("BZPOPMAX z 0", "bzpopmax"), ("BZMPOP 0 1 z MIN", "bzmpop")]
    {
        wait_for(&session, &mut waiting, command);
        assert_eq!(flags(&mut other), ("b".to_owned(), name.to_owned()));
        other.run("ZADD z 1 a");
        assert!(!waiting.read().is_nil());
        assert_eq!(flags(&mut other), ("N".to_owned(), name.to_owned()));
    }
}

#[test]
fn who_has_left_takes_nothing() {
    let session = Session::start();
    let mut other = session.connect();
    let (mut leaving, mut killed, mut staying) = (session.connect(), session.connect(), session.connect());
    let id = killed.run("CLIENT ID").integer();
    wait_for(&session, &mut leaving, "BZPOPMIN z 0");
    leaving.queue_line("ZADD z 5 never");
    leaving.flush();
    drop(leaving);
    session.check("# until blocked_clients:0");
    wait_for(&session, &mut killed, "BZPOPMIN z 0");
    staying.queue_line("BZPOPMIN z 0");
    staying.flush();
    session.check("# until blocked_clients:2");
    assert_eq!(other.run(&format!("CLIENT KILL ID {id}")).integer(), 1);
    assert_eq!(killed.read().to_string(), "(closed)");
    session.check("# until blocked_clients:1");
    assert_eq!(other.run("ZADD z 1 a").integer(), 1);
    assert_eq!(staying.read().to_string(), r#"["z", "a", "1"]"#);
    assert_eq!(other.run("ZADD z 2 b").integer(), 1);
    assert_eq!(other.run("ZRANGE z 0 -1").to_string(), r#"["b"]"#);
}

#[test]
fn many_wait_for_one_key() {
    const CLIENTS: usize = 40;
    let session = Session::start();
    let mut other = session.connect();
    let mut waiting: Vec<Connection> = (0..CLIENTS).map(|_| session.connect()).collect();
    for (at, client) in waiting.iter_mut().enumerate() {
        client.queue_line("BZPOPMIN z 0");
        client.flush();
        session.check(&format!("# until blocked_clients:{}", at + 1));
    }
    // Half of them are served by one command, in the order in which they came; the rest one by one.
    let half: Vec<String> = (0..CLIENTS / 2).map(|i| format!("{i} m{i}")).collect();
    assert_eq!(other.run(&format!("ZADD z {}", half.join(" "))).integer(), half.len() as i64);
    assert_eq!(other.run("EXISTS z").integer(), 0);
    for (at, client) in waiting.iter_mut().enumerate() {
        if at >= CLIENTS / 2 {
            assert_eq!(other.run(&format!("ZADD z {at} m{at}")).integer(), 1);
        }
        assert_eq!(client.read().to_string(), format!(r#"["z", "m{at}", "{at}"]"#));
    }
    assert_eq!(other.run("EXISTS z").integer(), 0);
    session.check("# until blocked_clients:0");
}

/// Many take, many give, all at once: everything is taken once.
#[test]
fn nothing_is_lost_and_nothing_is_taken_twice() {
    const TAKERS: usize = 8;
    const GIVERS: usize = 3;
    const EACH: usize = 200;
    let session = Session::start();
    let mut taken: Vec<String> = std::thread::scope(|scope| {
        let takers: Vec<_> = (0..TAKERS)
            .map(|at| {
                let mut connection = session.connect();
                let command = ["BZPOPMIN a b 0", "BZPOPMAX b a 0", "BZMPOP 0 2 a b MIN COUNT 3"][at % 3];
                scope.spawn(move || {
                    let mut taken = Vec::new();
                    loop {
                        let reply = connection.run(command);
                        let members: Vec<&str> = match reply.items() {
                            [_, member, _] => vec![member.text()],
                            [_, members] => members.items().iter().map(|pair| pair.items()[0].text()).collect(),
                            _ => panic!("{reply}"),
                        };
                        taken.extend(
                            members.iter().filter(|member| **member != "end").map(|member| (*member).to_owned()),
                        );
                        if members.contains(&"end") {
                            return taken;
                        }
                    }
                })
            })
            .collect();
        let givers: Vec<_> = (0..GIVERS)
            .map(|giver| {
                let mut connection = session.connect();
                scope.spawn(move || {
                    for at in 0..EACH {
                        let key = if (at + giver) % 2 == 0 { "a" } else { "b" };
                        assert_eq!(connection.run(&format!("ZADD {key} {at} {giver}:{at}")).integer(), 1);
                    }
                })
            })
            .collect();
        givers.into_iter().for_each(|giver| giver.join().expect("a giver"));
        // A set holds a member once: one end at a time, each when the one before it has been taken.
        let mut connection = session.connect();
        for _ in 0..TAKERS {
            assert_eq!(connection.run("ZADD a inf end").integer(), 1);
            session.check("# eventually\n> EXISTS a b\n:0");
        }
        takers.into_iter().flat_map(|taker| taker.join().expect("a taker")).collect()
    });
    taken.sort();
    let mut expected: Vec<String> =
        (0..GIVERS).flat_map(|giver| (0..EACH).map(move |at| format!("{giver}:{at}"))).collect();
    expected.sort();
    assert_eq!(taken, expected);
}

/// Sends a command and returns when its connection waits for it, the only one that does.
#[track_caller]
fn wait_for(session: &Session, connection: &mut Connection, command: &str) {
    connection.queue_line(command);
    connection.flush();
    session.check("# until blocked_clients:1");
}
