//! Limits of a user: what happens at each, that nothing is lost there, and that nobody else notices.
//!
//! Rates are tested with debts: after so much that paying it back would take days, a request is delayed until the limit
//! changes. So no test depends on time.

use wire::{Connection, Random, Reply};

use crate::support::{Own, allowed, eventually, ok, run_into_debt, send_delayed, usage};

const FULL: &str = "-LIMIT max number of clients of this user reached";
const LONG: &str = "-LIMIT the reply is longer than this user may get (limit:reply)";
const MEMORY: &str =
    "-LIMIT the clients of this user hold as much memory in buffers and transactions as they may (limit:memory)";

#[test]
fn clients_are_limited_by_whichever_way_they_come() {
    let Some((mut own, mut first)) = Own::start_with_user("bob", "~* +@all limit:clients=2") else { return };
    let mut second = own.login("bob");
    let mut third = own.server.connect();
    assert_eq!(third.run("AUTH bob pw").to_string(), FULL);
    assert_eq!(third.run("HELLO 2 AUTH bob pw").to_string(), FULL);
    assert_eq!(third.run("ACL WHOAMI").text(), "default", "it stays who it was");
    // Who is in stays in, and may say so again.
    ok(&mut second, "AUTH bob pw");
    assert_eq!(usage(&mut own.admin, "bob", "clients"), 2);
    assert_eq!(usage(&mut own.admin, "bob", "refused-clients"), 2);
    // RESET gives the place back.
    assert_eq!(first.run("RESET").to_string(), "+RESET");
    ok(&mut third, "AUTH bob pw");
    assert_eq!(first.run("AUTH bob pw").to_string(), FULL);
    // So does a connection that is killed,
    let id = third.run("CLIENT ID").integer();
    assert_eq!(own.admin.run(&format!("CLIENT KILL ID {id}")).integer(), 1);
    ok(&mut first, "AUTH bob pw");
    // or closes, or becomes another user.
    drop(second);
    let mut fourth = own.server.connect();
    eventually("the place is free", || fourth.run("AUTH bob pw").to_string() == "+OK");
    ok(&mut fourth, "AUTH default x");
    assert_eq!(usage(&mut own.admin, "bob", "clients"), 1);
    // A lower limit closes nobody, and a higher one counts at once.
    ok(&mut fourth, "AUTH bob pw");
    ok(&mut own.admin, "ACL SETUSER bob limit:clients=1");
    allowed(&mut first, "PING");
    let mut fifth = own.server.connect();
    assert_eq!(fifth.run("AUTH bob pw").to_string(), FULL);
    ok(&mut own.admin, "ACL SETUSER bob limit:clients=3");
    ok(&mut fifth, "AUTH bob pw");
    // A user that is made anew begins anew.
    assert_eq!(own.admin.run("ACL DELUSER bob").integer(), 1);
    own.set("bob", "~* +@all limit:clients=1");
    assert_eq!(usage(&mut own.admin, "bob", "clients"), 0);
    ok(&mut own.server.connect(), "AUTH bob pw");
}

#[test]
fn the_default_user_is_limited_when_a_connection_begins() {
    let Some((mut own, mut bob)) = Own::start_with_user("bob", "~* +@all") else { return };
    ok(&mut own.admin, "ACL SETUSER default limit:clients=1");
    let mut refused = own.server.connect();
    assert_eq!(refused.read().to_string(), FULL);
    assert_eq!(refused.read_until_killed(), Reply::Closed);
    // Nobody becomes it by the back door.
    assert_eq!(bob.run("RESET").to_string(), FULL);
    assert_eq!(bob.run("ACL WHOAMI").text(), "bob");
    assert!(own.admin.run("INFO stats").text().contains("rejected_connections:1"));
    // With a password, a connection is nobody until it gives it.
    ok(&mut own.admin, "CONFIG SET requirepass secret");
    let mut unknown = own.server.connect();
    assert!(unknown.run("PING").to_string().starts_with("-NOAUTH"));
    assert_eq!(unknown.run("AUTH secret").to_string(), FULL);
    ok(&mut unknown, "AUTH bob pw");
    let mut waiting = own.server.connect();
    assert!(waiting.run("PING").to_string().starts_with("-NOAUTH"));
    assert_eq!(usage(&mut own.admin, "default", "clients"), 1);
    assert_eq!(bob.run("RESET").to_string(), "+RESET");
    assert_eq!(usage(&mut own.admin, "bob", "clients"), 1);
    // Without it, those that are here already are counted, and new ones refused.
    ok(&mut own.admin, "CONFIG SET requirepass \"\"");
    allowed(&mut waiting, "PING");
    assert_eq!(usage(&mut own.admin, "default", "clients"), 3);
    assert_eq!(own.server.connect().read().to_string(), FULL);
    drop((waiting, bob));
    eventually("they are gone", || usage(&mut own.admin, "default", "clients") == 1);
}

#[test]
fn clients_are_counted_exactly_whatever_they_do() {
    const USERS: [&str; 3] = ["default", "bob", "carol"];
    let Some(mut own) = Own::start(&[]) else { return };
    own.set("bob", "~* +@all limit:clients=4");
    own.set("carol", "~* +@all");
    let mut random = Random::from_env();
    // Each with the user that it is.
    let mut clients: Vec<(Connection, usize)> = Vec::new();
    for step in 0..600 {
        let count = |clients: &[(Connection, usize)], user| clients.iter().filter(|(_, is)| *is == user).count();
        match random.below(8) {
            0 | 1 => clients.push((own.server.connect(), 0)),
            2..5 if !clients.is_empty() => {
                let (at, user) = (random.below(clients.len()), random.below(USERS.len()));
                let is_full = user == 1 && clients[at].1 != 1 && count(&clients, 1) >= 4;
                let reply = clients[at].0.run(&format!("AUTH {} pw", USERS[user])).to_string();
                assert_eq!(reply, if is_full { FULL } else { "+OK" });
                clients[at].1 = if is_full { clients[at].1 } else { user };
            }
            5 if !clients.is_empty() => {
                let at = random.below(clients.len());
                assert_eq!(clients[at].0.run("RESET").to_string(), "+RESET");
                clients[at].1 = 0;
            }
            6 if !clients.is_empty() => {
                let at = random.below(clients.len());
                let (mut connection, _) = clients.swap_remove(at);
                let id = connection.run("CLIENT ID").integer();
                assert_eq!(own.admin.run(&format!("CLIENT KILL ID {id}")).integer(), 1);
            }
            7 if !clients.is_empty() => {
                let at = random.below(clients.len());
                let (mut connection, user) = clients.swap_remove(at);
                if random.one_in(2) {
                    assert_eq!(connection.run("QUIT").to_string(), "+OK");
                }
                drop(connection);
                // The server notices a moment later.
                let expected = count(&clients, user) + usize::from(user == 0);
                eventually("its place is free", || usage(&mut own.admin, USERS[user], "clients") == expected as i64);
            }
            _ => {}
        }
        if step % 97 == 96 {
            assert!(own.admin.run("ACL DELUSER carol").integer() == 1);
            own.set("carol", "~* +@all");
            clients.retain(|(_, user)| *user != 2);
        }
        for (user, name) in USERS.iter().enumerate() {
            // A connection counts as the default user when its worker has it.
            let expected = (count(&clients, user) + usize::from(user == 0)) as i64;
            eventually("as many as there are", || usage(&mut own.admin, name, "clients") == expected);
        }
    }
}

#[test]
fn operations_beyond_the_limit_wait_and_nobody_else_does() {
    let Some((mut own, mut bob)) = Own::start_with_user("bob", "~* +@all limit:ops=1") else { return };
    let mut other = own.login("bob");
    let mut carol = own.user("carol", "~* +@all limit:ops=1000000");
    run_into_debt(&mut bob);
    send_delayed(&mut own, &mut bob, "bob", "SET a 1");
    // All of its clients together have the limit.
    send_delayed(&mut own, &mut other, "bob", "SET b 1");
    // Another user is served, though it asked later.
    for _ in 0..100 {
        allowed(&mut carol, "INCR c");
    }
    assert_eq!(own.admin.run("EXISTS a b").integer(), 0);
    assert!(usage(&mut own.admin, "bob", "delayed") >= 2);
    assert_eq!(usage(&mut own.admin, "carol", "delayed"), 0);
    assert!(usage(&mut own.admin, "bob", "ops") > 50000);
    // A limit that changes changes at once, for those who wait too.
    ok(&mut own.admin, "ACL SETUSER bob limit:ops=0");
    assert_eq!((bob.read().to_string(), other.read().to_string()), ("+OK".to_owned(), "+OK".to_owned()));
    assert_eq!(own.admin.run("EXISTS a b").integer(), 2);
}

#[test]
fn operations_within_the_limit_go_on_at_its_pace() {
    let Some((mut own, mut bob)) = Own::start_with_user("bob", "~* +@all limit:ops=500") else { return };
    let lines: Vec<String> = (0..1500).map(|_| "INCR a".to_owned()).collect();
    let replies = bob.pipeline(&lines);
    assert!(replies.iter().zip(1..).all(|(reply, number)| reply.integer() == number), "in order, and all of them");
    assert!(usage(&mut own.admin, "bob", "delayed") > 0);
    // AUTH, and as many as were sent.
    assert_eq!(usage(&mut own.admin, "bob", "ops"), 1501);
}

#[test]
fn a_delayed_client_loses_nothing_that_it_has_sent() {
    let Some((mut own, mut bob)) = Own::start_with_user("bob", "~* +@all limit:ops=1") else { return };
    run_into_debt(&mut bob);
    send_delayed(&mut own, &mut bob, "bob", "RPUSH a 1");
    for number in 2..=100 {
        bob.queue_line(&format!("RPUSH a {number}"));
    }
    bob.flush();
    bob.close_sending();
    // Its end is not noticed before its requests.
    let mut late = own.login("bob");
    send_delayed(&mut own, &mut late, "bob", "PING");
    assert_eq!(own.admin.run("LLEN a").integer(), 0);
    ok(&mut own.admin, "ACL SETUSER bob resetlimits");
    for number in 1..=100 {
        assert_eq!(bob.read().integer(), number);
    }
    assert_eq!(bob.read_until_killed(), Reply::Closed);
    assert_eq!(late.read().to_string(), "+PONG");
}

#[test]
fn a_delayed_client_can_be_killed() {
    let Some((mut own, mut bob)) = Own::start_with_user("bob", "~* +@all limit:ops=1") else { return };
    let id = bob.run("CLIENT ID").integer();
    run_into_debt(&mut bob);
    send_delayed(&mut own, &mut bob, "bob", "SET a 1");
    assert_eq!(own.admin.run(&format!("CLIENT KILL ID {id}")).integer(), 1);
    assert_eq!(bob.read_until_killed(), Reply::Closed);
    assert_eq!(usage(&mut own.admin, "bob", "clients"), 0);
    ok(&mut own.admin, "ACL SETUSER bob resetlimits");
    assert_eq!(own.admin.run("EXISTS a").integer(), 0);
}

#[test]
fn a_command_that_waits_is_served_whatever_its_user_owes() {
    let Some((mut own, mut bob)) = Own::start_with_user("bob", "~* +@all limit:ops=2") else { return };
    let mut waiter = own.login("bob");
    own.wait_in(&mut waiter, "BLPOP list 0");
    run_into_debt(&mut bob);
    assert_eq!(own.admin.run("RPUSH list x").integer(), 1);
    assert_eq!(waiter.read().to_string(), "[\"list\", \"x\"]");
    send_delayed(&mut own, &mut waiter, "bob", "PING");
}

#[test]
fn bytes_received_are_limited() {
    let Some((mut own, mut bob)) = Own::start_with_user("bob", "~* +@all limit:in=1k") else { return };
    let value = vec![b'x'; 3_000_000];
    // One request that takes as much as fifty minutes may: it is read at that pace.
    let before = usage(&mut own.admin, "bob", "delayed");
    bob.queue(&[b"SET".as_slice(), b"a", &value]);
    std::thread::scope(|scope| {
        scope.spawn(|| bob.flush());
        eventually("it is delayed", || usage(&mut own.admin, "bob", "delayed") > before);
        assert!(usage(&mut own.admin, "bob", "bytes-in") < 3_000_000);
        assert_eq!(own.admin.run("EXISTS a").integer(), 0);
        ok(&mut own.admin, "ACL SETUSER bob limit:in=1gb");
    });
    assert_eq!(bob.read().to_string(), "+OK");
    assert_eq!(own.admin.run("STRLEN a").integer(), 3_000_000);
    assert!(usage(&mut own.admin, "bob", "bytes-in") > 3_000_000);
}

#[test]
fn bytes_sent_are_limited_messages_too() {
    let Some((mut own, mut bob)) = Own::start_with_user("bob", "~* &* +@all limit:out=100") else { return };
    allowed(&mut own.admin, "SETRANGE a 500000 x");
    assert_eq!(bob.run("GET a").bytes().len(), 500_001, "what is owed is known afterwards");
    send_delayed(&mut own, &mut bob, "bob", "PING");
    ok(&mut own.admin, "ACL SETUSER bob limit:out=101");
    assert_eq!(bob.read().to_string(), "+PONG");
    // Messages are delivered, and what they take is owed.
    let mut listener = own.login("bob");
    listener.run("SUBSCRIBE news");
    let message = "m".repeat(500_000);
    for _ in 0..3 {
        assert_eq!(own.admin.run_args(&["PUBLISH", "news", &message]).integer(), 1);
        assert_eq!(listener.read().items()[2].text().len(), message.len());
    }
    assert!(usage(&mut own.admin, "bob", "bytes-out") > 2_000_000);
    send_delayed(&mut own, &mut bob, "bob", "PING");
    ok(&mut own.admin, "ACL SETUSER bob limit:out=0");
    assert_eq!(bob.read().to_string(), "+PONG");
}

#[test]
fn a_long_reply_is_refused_unless_something_would_be_lost() {
    let Some((mut own, mut bob)) = Own::start_with_user("bob", "~* &* +@all limit:reply=2kb") else { return };
    for key in ["a", "b", "c", "d", "e"] {
        allowed(&mut own.admin, &format!("SETRANGE {key} 2500 x"));
    }
    for _ in 0..3 {
        assert!(!own.admin.run_args(&["RPUSH", "list", &"x".repeat(1000)]).is_error());
    }
    // What only tells is refused, and nothing has changed.
    assert_eq!(own.admin.run_args(&["HSET", "hash", "f", &"x".repeat(2500)]).integer(), 1);
    let (echo, gets) = (format!("ECHO {}", "x".repeat(2500)), format!("BITFIELD a{}", " GET u8 0".repeat(1000)));
    let telling = [
        "GET a",
        "MGET none a",
        "LRANGE list 0 -1",
        &echo,
        "EVAL \"return redis.call('GET', 'a')\" 0",
        // These count as writes, and change nothing with these arguments.
        "GETEX a",
        "HGETEX hash FIELDS 1 f",
        "SORT list ALPHA",
        &gets,
        "REG.SNAPSHOT KEYS 1 register",
    ];
    allowed(&mut own.admin, &format!("REG.PUT register 1 {}", "x".repeat(2500)));
    for line in telling {
        assert_eq!(bob.run(line).to_string(), LONG, "{line}");
    }
    assert_eq!(usage(&mut own.admin, "bob", "refused-reply"), telling.len() as i64);
    assert_eq!(bob.run("LRANGE list 0 0").items().len(), 1);
    assert_eq!(bob.run("STRLEN a").integer(), 2501, "what follows is in step");
    assert_eq!(own.admin.run("GET a").bytes().len(), 2501, "nobody else has the limit");
    // What has changed something is told.
    assert_eq!(bob.run("GETEX a EX 1000").bytes().len(), 2501);
    assert_eq!(bob.run("HGETEX hash EX 1000 FIELDS 1 f").items()[0].bytes().len(), 2500);
    assert_eq!(bob.run(&format!("{gets} INCRBY u8 8 1")).items().len(), 1001);
    assert_eq!(own.admin.run("HTTL hash FIELDS 1 f").items()[0].integer(), 1000);
    assert_eq!(bob.run("GETDEL a").bytes().len(), 2501);
    assert_eq!(bob.run("LPOP list 3").items().len(), 3);
    let script = "redis.call('DEL', 'b') return string.rep('x', 3000)";
    assert_eq!(bob.run_args(&["EVAL", script, "1", "b"]).bytes().len(), 3000);
    assert_eq!(own.admin.run("EXISTS a b list").integer(), 0);
    // In a transaction the whole counts, and each command is refused for itself.
    ok(&mut bob, "MULTI");
    for line in ["SET x 1", "GET c", "GETDEL d", "GET x", "INCR x", "GET none"] {
        assert_eq!(bob.run(line).to_string(), "+QUEUED");
    }
    let replies = bob.run("EXEC");
    assert_eq!(replies.items()[2].bytes().len(), 2501);
    let shown: Vec<String> = replies.items().iter().map(|reply| reply.to_string()).collect();
    assert_eq!([&*shown[0], &*shown[1]], ["+OK", LONG]);
    assert_eq!(shown[3..], [LONG, ":2", LONG], "there is no room left, but for what was changed");
    // The same in an interactive one.
    ok(&mut bob, "TXN.BEGIN");
    assert_eq!(bob.run("GET c").to_string(), LONG);
    assert_eq!(bob.run("GETDEL e").bytes().len(), 2501);
    allowed(&mut bob, "TXN.COMMIT");
    assert_eq!(own.admin.run("EXISTS e").integer(), 0);
    // And for what was waited for.
    own.wait_in(&mut bob, "XREAD BLOCK 0 STREAMS stream $");
    assert!(!own.admin.run_args(&["XADD", "stream", "*", "f", &"x".repeat(3000)]).is_error());
    assert_eq!(bob.read().to_string(), LONG);
    own.wait_in(&mut bob, "BLPOP list 0");
    assert_eq!(own.admin.run_args(&["RPUSH", "list", &"x".repeat(3000)]).integer(), 1);
    assert_eq!(bob.read().items()[1].bytes().len(), 3000, "it is in no list any more");
    // A change counts for the next request.
    ok(&mut own.admin, "ACL SETUSER bob limit:reply=3kb");
    assert_eq!(bob.run("GET c").bytes().len(), 2501);
    // It counts from AUTH on, in the same packet too.
    let replies = own.server.connect().pipeline(&["SETRANGE long 4000 x", "AUTH bob pw", "GET long"]);
    assert_eq!(replies[2].to_string(), LONG);
}

#[test]
fn a_long_reply_on_an_index_is_refused() {
    let Some((mut own, mut bob)) = Own::start_with_user("bob", "~* +@all limit:reply=2kb") else { return };
    ok(&mut own.admin, "IDX.CREATE idx PREFIX 1 job: FIELD at");
    let lines: Vec<String> = (0..3000).map(|number| format!("HSET job:{number} at {number}")).collect();
    own.admin.pipeline(&lines);
    assert_eq!(bob.run("ZRANGE idx 0 -1").to_string(), LONG);
    assert_eq!(bob.run("IDX.RANGE idx -inf +inf").to_string(), LONG);
    assert_eq!(bob.run("ZCARD idx").integer(), 3000);
    assert_eq!(bob.run("ZRANGE idx 0 1").items().len(), 2);
    // Those that change records are answered in full, also in a transaction and a script.
    assert_eq!(bob.run("CLAIM 1 idx MAX 199 SET 1 at 5000 COUNT 200").items().len(), 200);
    assert_eq!(bob.run("SWEEP idx BEFORE 400 SET 1 at 5000").items().len(), 200);
    ok(&mut bob, "MULTI");
    assert_eq!(bob.run("CLAIM 1 idx MAX 599 SET 1 at 5000 COUNT 200 KEYS").to_string(), "+QUEUED");
    assert_eq!(bob.run("EXEC").items()[0].items().len(), 200);
    let script = "return redis.call('CLAIM', 1, 'idx', 'MAX', 799, 'SET', 1, 'at', 5000, 'COUNT', 200, 'KEYS')";
    assert_eq!(bob.run_args(&["EVAL", script, "0"]).items().len(), 200);
}

/// What it tells is marked as sent: nobody would be told again.
#[test]
fn requests_that_are_sent_again_are_told_however_long_they_are() {
    let Some((mut own, mut bob)) = Own::start_with_user("bob", "~* &* +@all limit:reply=2kb") else { return };
    allowed(&mut own.admin, "SESSION.OPEN ID s TTL 600000");
    for _ in 0..3 {
        assert!(!own.admin.run_args(&["SESSION.PUSH", "s", &"x".repeat(1500)]).is_error());
    }
    assert_eq!(bob.run("SESSION.RETRY 99999999999999").items().len(), 3);
}

#[test]
fn memory_of_transactions_is_limited_for_all_clients_of_a_user() {
    let Some((mut own, mut bob)) = Own::start_with_user("bob", "~* +@all limit:memory=1mb") else { return };
    let mut other = own.login("bob");
    let (most, few) = ("x".repeat(700_000), "x".repeat(400_000));
    ok(&mut bob, "MULTI");
    assert_eq!(bob.run_args(&["SET", "a", &most]).to_string(), "+QUEUED");
    assert!(usage(&mut own.admin, "bob", "memory") >= 700_000);
    ok(&mut other, "MULTI");
    assert_eq!(other.run_args(&["SET", "b", &few]).to_string(), MEMORY);
    assert!(other.run("EXEC").to_string().starts_with("-EXECABORT"));
    // The transaction that was there goes on, and gives back what it took.
    assert_eq!(bob.run("EXEC").to_string(), "[+OK]");
    ok(&mut other, "MULTI");
    assert_eq!(other.run_args(&["SET", "b", &few]).to_string(), "+QUEUED");
    // An interactive one is rolled back.
    ok(&mut bob, "TXN.BEGIN");
    ok(&mut bob, "SET c 1");
    assert_eq!(bob.run_args(&["SET", "d", &most]).to_string(), MEMORY);
    assert!(bob.run("TXN.COMMIT").is_error());
    assert_eq!(own.admin.run("EXISTS c d").integer(), 0);
    // Others have no part in it.
    ok(&mut own.admin, "MULTI");
    assert_eq!(own.admin.run_args(&["SET", "e", &most]).to_string(), "+QUEUED");
    assert_eq!(own.admin.run_args(&["SET", "f", &most]).to_string(), "+QUEUED");
    assert_eq!(own.admin.run("EXEC").to_string(), "[+OK, +OK]");
    assert_eq!(usage(&mut own.admin, "bob", "refused-memory"), 2);
    assert_eq!(other.run("EXEC").to_string(), "[+OK]");
}

#[test]
fn memory_of_buffers_is_limited_by_closing_the_largest() {
    let Some((mut own, mut small)) = Own::start_with_user("bob", "~* &* +@all limit:memory=2mb") else { return };
    let mut listener = own.login("bob");
    listener.run("SUBSCRIBE news");
    let mut stranger = own.server.connect();
    stranger.run("SUBSCRIBE news");
    // It does not read: the messages pile up.
    let message = "m".repeat(400_000);
    eventually("it is closed", || {
        own.admin.run_args(&["PUBLISH", "news", &message]);
        usage(&mut own.admin, "bob", "refused-memory") == 1
    });
    eventually("it is gone", || usage(&mut own.admin, "bob", "clients") == 1);
    // What was on its way may arrive.
    while listener.read_until_killed() != Reply::Closed {}
    // The other clients of the user stay, and those of others.
    allowed(&mut small, "PING");
    assert_eq!(stranger.read().items()[2].text().len(), message.len());
    eventually("nothing is held", || usage(&mut own.admin, "bob", "memory") < 100_000);
}

#[test]
fn usage_counts_all_that_a_user_does() {
    let Some((mut own, mut bob)) = Own::start_with_user("bob", "~* +@all") else { return };
    assert_eq!(usage(&mut own.admin, "bob", "ops"), 1, "AUTH");
    ok(&mut own.admin, "ACL RESETUSAGE");
    let ops = |own: &mut Own, expected| {
        assert_eq!(usage(&mut own.admin, "bob", "ops"), expected);
        ok(&mut own.admin, "ACL RESETUSAGE bob");
    };
    ok(&mut bob, "SET a 1");
    bob.run("GET");
    bob.run("NOSUCH");
    ops(&mut own, 3);
    // Each command of a transaction once, with MULTI and EXEC.
    bob.pipeline(&["MULTI", "SET a 1", "GET a", "GET", "EXEC", "MULTI", "SET a 1", "GET a", "EXEC"]);
    ops(&mut own, 9);
    // A script and its calls.
    bob.run_args(&["EVAL", "for i = 1, 10 do redis.call('GET', 'a') end", "0"]);
    ops(&mut own, 11);
    bob.pipeline(&["TXN.BEGIN", "SET a 1", "NOSUCH", "TXN.COMMIT"]);
    ops(&mut own, 4);
    assert_eq!(bob.run("ECHO hello").text(), "hello");
    assert_eq!(usage(&mut own.admin, "bob", "bytes-in"), 25);
    assert_eq!(usage(&mut own.admin, "bob", "bytes-out"), 11);
    assert_eq!(usage(&mut own.admin, "bob", "clients"), 1);
    ok(&mut own.admin, "CONFIG RESETSTAT");
    assert_eq!(usage(&mut own.admin, "bob", "bytes-in"), 0);
    // A long script comes back from another thread.
    let long = "local n = 0 for i = 1, 3000000 do n = n + i end redis.call('GET', 'a') return 1";
    assert_eq!(bob.run_args(&["EVAL", long, "0"]).integer(), 1);
    assert_eq!(usage(&mut own.admin, "bob", "ops"), 2);
    assert!(usage(&mut own.admin, "bob", "busy-us") > 0);
    // Of all users, and only of those that exist.
    let all = own.admin.run("ACL USAGE");
    let names: Vec<&str> = all.items().iter().map(|user| user.items()[1].text()).collect();
    assert_eq!(names, ["bob", "default"]);
    assert_eq!(own.admin.run("ACL USAGE nosuch").to_string(), "-ERR User 'nosuch' not found");
    assert_eq!(own.admin.run("ACL RESETUSAGE bob nosuch").to_string(), "-ERR User 'nosuch' not found");
    own.set("carol", "+@all -@dangerous +acl|whoami");
    assert!(own.admin.run("ACL DRYRUN carol ACL USAGE").text().contains("no permissions"));
    assert!(own.admin.run("ACL HELP").to_string().contains("USAGE [<username> ...]"));
}

/// Whoever logs in anew owes what the user owes, also for requests that were sent together with AUTH.
#[test]
fn a_new_connection_does_not_escape_a_rate() {
    for password in ["", "secret"] {
        let Some(mut own) = Own::start(&[]) else { return };
        ok(&mut own.admin, &format!("CONFIG SET requirepass \"{password}\""));
        let mut bob = own.user("bob", "~* +@all limit:ops=1");
        run_into_debt(&mut bob);
        for login in ["AUTH bob pw", "HELLO 2 AUTH bob pw"] {
            let mut again = own.server.connect();
            let before = usage(&mut own.admin, "bob", "delayed");
            again.queue_line(login);
            (0..20).for_each(|_| again.queue_line("INCR n"));
            again.flush();
            eventually("it is delayed", || usage(&mut own.admin, "bob", "delayed") > before);
            assert!(own.admin.run("GET n").is_nil(), "{login}, requirepass \"{password}\": nothing has run");
        }
    }
}

/// A connection that waits for its turn and is closed by its client keeps nobody out.
#[test]
fn a_delayed_connection_ends_with_its_client() {
    let Some((mut own, mut bob)) = Own::start_with_user("bob", "~* +@all limit:ops=1 limit:clients=6") else { return };
    run_into_debt(&mut bob);
    let mut delayed = Vec::new();
    for _ in 0..5 {
        let connection = own.login("bob");
        delayed.push(connection);
    }
    for connection in &mut delayed {
        send_delayed(&mut own, connection, "bob", "SET never 1");
    }
    assert_eq!(usage(&mut own.admin, "bob", "clients"), 6);
    drop(delayed);
    eventually("they are gone", || usage(&mut own.admin, "bob", "clients") == 1);
    assert!(own.admin.run("GET never").is_nil());
}

/// Otherwise one user could make another owe what it has not asked for.
#[test]
fn messages_are_redirected_to_connections_of_the_same_user() {
    let Some((mut own, mut victim)) = Own::start_with_user("victim", "~* +@all limit:out=1kb") else { return };
    let id = victim.run("CLIENT ID").integer();
    let mut bob = own.user("bob", "~* +@all");
    let redirect = format!("CLIENT TRACKING ON REDIRECT {id} BCAST");
    assert_eq!(bob.run(&redirect).to_string(), "-ERR The client ID you want redirect to does not exist");
    let mut second = own.login("victim");
    ok(&mut second, &redirect);
}
