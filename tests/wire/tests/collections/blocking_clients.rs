//! The clients that wait for elements: their order, how they are seen, how they are sent away.

use wire::{Connection, Reply, Session};

use crate::waiting::KINDS;
use crate::{Words, check_each};

#[test]
fn first_come_first_served() {
    check_each(
        KINDS,
        r#"
        > FIRST k 0
        # until blocked_clients:1
        2> LAST k 0
        # until blocked_clients:2
        3> SEVERAL k
        # until blocked_clients:3
        4> GIVE k a
        :1
        1< GOT k a
        # until blocked_clients:2
        4> GIVE k b
        :1
        2< GOT k b
        4> GIVE k c
        :1
        3< GOT_ALL k c
        4> EXISTS k
        :0
        # until blocked_clients:0
        "#,
    );
}

#[test]
fn several_are_served_in_turn_by_one_command() {
    check_each(
        KINDS,
        r#"
        > FIRST k 0
        # until blocked_clients:1
        2> LAST k 0
        # until blocked_clients:2
        3> SEVERAL k COUNT 2
        # until blocked_clients:3
        4> FIRST k 0
        # until blocked_clients:4
        5> GIVE k a b c d e f
        :6
        1< GOT k a
        2< GOT k f
        3< GOT_ALL k b c
        4< GOT k d
        5> SHOW k
        ["e"]
        "#,
    );
}

#[test]
fn several_are_served_in_turn_by_one_transaction() {
    check_each(
        KINDS,
        r#"
        > FIRST k 0
        # until blocked_clients:1
        2> FIRST k 0
        # until blocked_clients:2
        3> FIRST k 0
        # until blocked_clients:3
        4> MULTI
        +OK
        4> GIVE k a
        +QUEUED
        4> GIVE k b
        +QUEUED
        4> EXEC
        [*, *]
        1< GOT k a
        2< GOT k b
        # until blocked_clients:1
        4> GIVE k c d
        :2
        3< GOT k c
        "#,
    );
}

#[test]
fn who_comes_too_late_waits_on() {
    check_each(
        KINDS,
        r#"
        > FIRST k 0.02
        (nil array)
        > FIRST k 0
        # until blocked_clients:1
        // One that gives up does not hold the others.
        2> FIRST k 0.01
        (nil array)
        2> FIRST k 0
        # until blocked_clients:2
        3> GIVE k a
        :1
        1< GOT k a
        # until blocked_clients:1
        // The first comes back, behind the second.
        > FIRST k 0
        # until blocked_clients:2
        3> GIVE k b
        :1
        2< GOT k b
        3> GIVE k c
        :1
        1< GOT k c
        "#,
    );
}

#[test]
fn turns_are_per_key() {
    check_each(
        KINDS,
        r#"
        > FIRST a b 0
        # until blocked_clients:1
        2> FIRST b a 0
        # until blocked_clients:2
        3> FIRST b 0
        # until blocked_clients:3
        4> GIVE b x
        :1
        1< GOT b x
        4> GIVE b y
        :1
        2< GOT b y
        4> GIVE a z
        :1
        4> GIVE b w
        :1
        3< GOT b w
        4> DBSIZE
        :1
        "#,
    );
}

#[test]
fn what_follows_waits() {
    check_each(
        KINDS,
        r#"
        > FIRST k 0
        > SET after 1
        > PING
        # until blocked_clients:1
        2> GET after
        (nil)
        2> GIVE k a
        :1
        1< GOT k a
        1< +OK
        1< +PONG
        > FIRST k 0
        > FIRST k 0
        > GIVE k mine
        > SHOW k
        # until blocked_clients:1
        2> GIVE k a b
        :2
        1< GOT k a
        1< GOT k b
        1< :1
        1< ["mine"]
        > FIRST nosuch 0.01
        > FIRST nosuch 0.01
        > PING
        1< (nil array)
        1< (nil array)
        1< +PONG
        // A transaction waits too.
        > FIRST t 0
        > MULTI
        > GIVE t own
        > FIRST t 0
        > EXEC
        # until blocked_clients:1
        2> GIVE t a
        :1
        1< GOT t a
        1< +OK
        1< +QUEUED
        1< +QUEUED
        1< [:1, [*, "own", ...]]
        "#,
    );
}

#[test]
fn client_unblock() {
    for_each(|kind, session| {
        let (mut waiting, mut other) = (session.connect(), session.connect());
        let id = waiting.run("CLIENT ID").integer();
        let unblock = |other: &mut Connection, how: &str| other.run(&format!("CLIENT UNBLOCK {id} {how}")).to_string();
        assert_eq!(unblock(&mut other, ""), ":0", "nobody waits yet");
        for (command, how, reply) in [
            ("FIRST k 0", "", "(nil array)"),
            ("LAST k y 0", "TIMEOUT", "(nil array)"),
            ("SEVERAL k", "timeout", "(nil array)"),
            ("BLMOVE k m LEFT RIGHT 0", "", "(nil array)"),
            ("FIRST k 0", "ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK"),
            ("BRPOPLPUSH k m 0", "ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK"),
            ("SEVERAL_OF k y", "error", "-UNBLOCKED client unblocked via CLIENT UNBLOCK"),
        ] {
            wait_for(session, &mut waiting, &kind.put_into_line(command));
            assert_eq!(unblock(&mut other, how), ":1", "{command}");
            assert_eq!(waiting.read().to_string(), reply, "{command} {how}");
            assert_eq!(unblock(&mut other, how), ":0", "{command} has ended");
        }
        // A client that has been sent away takes nothing.
        assert_eq!(other.run(&kind.put_into_line("GIVE k a")).integer(), 1);
        assert_eq!(other.run("EXISTS k").integer(), 1);
        assert_eq!(waiting.run("PING").to_string(), "+PONG");

        wait_for(session, &mut waiting, &kind.put_into_line("FIRST y 0"));
        assert_eq!(unblock(&mut other, "NOSUCH"), "-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
        assert_eq!(other.run("CLIENT UNBLOCK 999999").to_string(), ":0");
        assert_eq!(other.run("CLIENT UNBLOCK x").to_string(), "-ERR value is not an integer or out of range");
        assert_eq!(unblock(&mut other, ""), ":1");
        assert_eq!(waiting.read().to_string(), "(nil array)");

        waiting.run("HELLO 3");
        wait_for(session, &mut waiting, &kind.put_into_line("FIRST y 0"));
        assert_eq!(unblock(&mut other, ""), ":1");
        assert_eq!(waiting.read().to_string(), "_");
    });
}

#[test]
fn client_list_shows_who_waits() {
    for_each(|kind, session| {
        let (mut waiting, mut other) = (session.connect(), session.connect());
        let id = waiting.run("CLIENT ID").integer();
        let flags = |other: &mut Connection| {
            let list = other.run(&format!("CLIENT LIST ID {id}")).text().to_owned();
            let field = |name: &str| list.split(' ').find_map(|field| field.strip_prefix(name)).map(str::to_owned);
            (field("flags=").expect("flags"), field("cmd=").expect("cmd"))
        };
        assert_eq!(flags(&mut other), ("N".to_owned(), "client|id".to_owned()));
        for command in ["FIRST k 0", "LAST k 0", "SEVERAL k"].map(|command| kind.put_into_line(command)) {
            let name = command.split(' ').next().expect("a name").to_lowercase();
            wait_for(session, &mut waiting, &command);
            assert_eq!(flags(&mut other), ("b".to_owned(), name.clone()));
            other.run(&kind.put_into_line("GIVE k a"));
            assert!(!waiting.read().is_nil());
            assert_eq!(flags(&mut other), ("N".to_owned(), name));
        }
    });
}

#[test]
fn who_has_left_takes_nothing() {
    for_each(|kind, session| {
        let [first, give, show] = ["FIRST k 0", "GIVE k @", "SHOW k"].map(|command| kind.put_into_line(command));
        let mut other = session.connect();
        let (mut leaving, mut killed, mut staying) = (session.connect(), session.connect(), session.connect());
        let id = killed.run("CLIENT ID").integer();
        wait_for(session, &mut leaving, &first);
        leaving.queue_line(&give.replace('@', "never"));
        leaving.flush();
        drop(leaving);
        session.check("# until blocked_clients:0");
        wait_for(session, &mut killed, &first);
        staying.queue_line(&first);
        staying.flush();
        session.check("# until blocked_clients:2");
        assert_eq!(other.run(&format!("CLIENT KILL ID {id}")).integer(), 1);
        assert_eq!(killed.read().to_string(), "(closed)");
        session.check("# until blocked_clients:1");
        assert_eq!(other.run(&give.replace('@', "a")).integer(), 1);
        assert_eq!(staying.read().items()[1].text(), "a");
        assert_eq!(other.run(&give.replace('@', "b")).integer(), 1);
        assert_eq!(other.run(&show).to_string(), r#"["b"]"#);
    });
}

#[test]
fn many_wait_for_one_key() {
    const CLIENTS: usize = 40;
    for_each(|kind, session| {
        let mut other = session.connect();
        let mut waiting: Vec<Connection> = (0..CLIENTS).map(|_| session.connect()).collect();
        for (at, client) in waiting.iter_mut().enumerate() {
            client.queue_line(&kind.put_into_line("FIRST k 0"));
            client.flush();
            session.check(&format!("# until blocked_clients:{}", at + 1));
        }
        // Half of them are served by one command, in the order in which they came; the rest one by one.
        let half: String = (0..CLIENTS / 2).map(|at| format!(" m{at:02}")).collect();
        assert_eq!(other.run(&kind.put_into_line(&format!("GIVE k{half}"))).integer(), CLIENTS as i64 / 2);
        assert_eq!(other.run("EXISTS k").integer(), 0);
        for (at, client) in waiting.iter_mut().enumerate() {
            if at >= CLIENTS / 2 {
                assert_eq!(other.run(&kind.put_into_line(&format!("GIVE k m{at:02}"))).integer(), 1);
            }
            assert_eq!(client.read().items()[1].text(), format!("m{at:02}"));
        }
        assert_eq!(other.run("EXISTS k").integer(), 0);
        session.check("# until blocked_clients:0");
    });
}

/// Many take, many give, all at once: everything is taken once.
#[test]
fn nothing_is_lost_and_nothing_is_taken_twice() {
    const TAKERS: usize = 8;
    const GIVERS: usize = 3;
    const EACH: usize = 200;
    for_each(|kind, session| {
        let mut taken: Vec<String> = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..TAKERS)
                .map(|at| {
                    let mut connection = session.connect();
                    let command = ["FIRST a b 0", "LAST b a 0", "BMPOP 0 2 a b FROM_START COUNT 3"][at % 3];
                    let command = kind.put_into(command);
                    scope.spawn(move || {
                        let mut taken = Vec::new();
                        loop {
                            let elements = elements_of(&connection.run(&command));
                            taken.extend(elements.iter().filter(|element| *element != "~end").cloned());
                            if elements.contains(&"~end".to_owned()) {
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
                            let reply = connection.run(&kind.put_into_line(&format!("GIVE {key} {giver}:{at}")));
                            assert!(!reply.is_error(), "{reply}");
                        }
                    })
                })
                .collect();
            givers.into_iter().for_each(|giver| giver.join().expect("a giver"));
            // One end at a time, each when the one before it has been taken: a sorted set holds a member once.
            let mut connection = session.connect();
            for _ in 0..TAKERS {
                assert!(connection.run(&kind.put_into_line("GIVE a ~end")).integer() >= 1);
                session.check("# eventually\n> EXISTS a b\n:0");
            }
            takers.into_iter().flat_map(|taker| taker.join().expect("a taker")).collect()
        });
        taken.sort();
        let mut expected: Vec<String> =
            (0..GIVERS).flat_map(|giver| (0..EACH).map(move |at| format!("{giver}:{at}"))).collect();
        expected.sort();
        assert_eq!(taken, expected);
    });
}

/// The elements in the reply to any of the commands: behind the key, alone or in an array, with scores or without.
fn elements_of(reply: &Reply) -> Vec<String> {
    match &reply.items()[1] {
        Reply::Array(elements) => {
            let name = |element: &Reply| match element {
                Reply::Array(pair) => pair[0].text().to_owned(),
                element => element.text().to_owned(),
            };
            elements.iter().map(name).collect()
        }
        element => vec![element.text().to_owned()],
    }
}

/// Runs a test for each type, with an empty server.
fn for_each(test: impl Fn(Words, &Session)) {
    for kind in KINDS {
        test(*kind, &Session::start());
    }
}

/// Sends a command and returns when its connection waits for it, the only one that does.
#[track_caller]
fn wait_for(session: &Session, connection: &mut Connection, command: &str) {
    connection.queue_line(command);
    connection.flush();
    session.check("# until blocked_clients:1");
}
