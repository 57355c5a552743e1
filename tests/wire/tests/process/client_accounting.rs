//! What clients use: CLIENT LIST and INFO say what the process really takes, and the limits act on it, `maxmemory-clients` too.

use wire::{Connection, Reply};

use crate::support::{Holdfast, eventually, info, ok};

const MIB: usize = 1 << 20;
/// Each way to hold memory takes at least so much, or the comparison would say little.
const HELD_MIN: u64 = 8 << 20;

/// Has clients hold memory in some way, and compares what CLIENT LIST and INFO say of it with the process.
#[track_caller]
fn compare(prepare: impl FnOnce(&mut Connection), hold: impl FnOnce(&Holdfast, &mut Connection) -> Vec<Connection>) {
    let Some((server, mut admin)) = Holdfast::start_with_client(&["--appendonly", "no"]) else { return };
    prepare(&mut admin);
    let (used_before, clients_before) = figures(&mut admin);
    let _holding = hold(&server, &mut admin);
    let mut last = (0, 0);
    eventually("what clients use is what the process takes", || {
        let (used, clients) = figures(&mut admin);
        let (used, clients) = (used.saturating_sub(used_before), clients.saturating_sub(clients_before));
        if last != (used, clients) {
            println!("the process takes {used} bytes more, the clients {clients}");
            last = (used, clients);
        }
        used >= HELD_MIN && used.abs_diff(clients) <= used / 10
    });
    // Requests may still be executed between the two.
    eventually("INFO says what CLIENT LIST says", || {
        let listed: u64 = listed(&mut admin, "tot-mem").iter().sum();
        info::<u64>(&mut admin, "mem_clients_normal").abs_diff(listed) <= listed / 100
    });
}

/// The memory in use, and that of all clients.
fn figures(admin: &mut Connection) -> (u64, u64) {
    let clients = listed(admin, "tot-mem").iter().sum();
    (info(admin, "used_memory"), clients)
}

/// A figure of CLIENT LIST for each client, oldest first.
fn listed(admin: &mut Connection, figure: &str) -> Vec<u64> {
    let text = admin.run("CLIENT LIST").text().to_owned();
    let of = |line: &str| {
        let value = line.split(' ').find_map(|word| word.strip_prefix(figure)?.strip_prefix('='));
        value.and_then(|value| value.parse().ok()).expect("each client has every figure")
    };
    text.lines().map(of).collect()
}

/// Sets a value of that many bytes.
#[track_caller]
fn set(client: &mut Connection, name: &str, bytes: usize) {
    assert_eq!(client.run_with(&format!("SET {name}"), &[&vec![b'v'; bytes]]).to_string(), "+OK");
}

fn nothing(_: &mut Connection) {}

/// Sends a request many times and reads no reply.
fn ask(server: &Holdfast, line: &str, times: usize) -> Vec<Connection> {
    let mut deaf = server.connect();
    (0..times).for_each(|_| deaf.queue_line(line));
    deaf.flush();
    vec![deaf]
}

#[test]
fn unread_replies_large() {
    compare(|admin| set(admin, "large", MIB), |server, _| ask(server, "GET large", 70));
}

#[test]
fn unread_replies_of_many_megabytes() {
    compare(|admin| set(admin, "huge", 20 * MIB), |server, _| ask(server, "GET huge", 2));
}

#[test]
fn unread_replies_small() {
    compare(|admin| set(admin, "small", 100), |server, _| ask(server, "GET small", 200_000));
}

#[test]
fn unread_replies_of_many_elements() {
    let prepare = |admin: &mut Connection| {
        let list = format!("RPUSH list {}", "element ".repeat(10_000));
        (0..10).for_each(|_| drop(admin.run(&list)));
    };
    compare(prepare, |server, _| ask(server, "LRANGE list 0 -1", 20));
}

#[test]
fn unfinished_requests() {
    compare(nothing, |server, _| {
        let begin = |bytes: usize| unfinished(server.connect(), bytes, 50_000_000);
        let short = (0..100).map(|_| begin(20_000));
        [5 * MIB, 9 * MIB].into_iter().map(begin).chain(short).collect()
    });
}

#[test]
fn unfinished_requests_of_many_arguments() {
    compare(nothing, |server, _| {
        let mut client = server.connect();
        client.queue_raw(b"*1000000\r\n");
        client.queue_raw(&b"$10\r\n0123456789\r\n".repeat(500_000));
        client.flush();
        vec![client]
    });
}

#[test]
fn queued_commands() {
    compare(nothing, |server, _| {
        let (mut large, mut small) = (server.connect(), server.connect());
        ok(&mut large, "MULTI");
        ok(&mut small, "MULTI");
        for _ in 0..10 {
            assert_eq!(large.run_with("SET k", &[&vec![b'v'; MIB]]).to_string(), "+QUEUED");
        }
        for _ in 0..20 {
            let replies = small.pipeline(&["SET k 123"; 1_000]);
            assert!(replies.iter().all(|reply| reply.to_string() == "+QUEUED"));
        }
        vec![large, small]
    });
}

#[test]
fn interactive_transactions() {
    compare(nothing, |server, _| {
        let begin = |_| {
            let mut client = server.connect();
            ok(&mut client, "TXN.BEGIN");
            client
        };
        let mut clients: Vec<Connection> = (0..21).map(begin).collect();
        for number in 0..10 {
            set(&mut clients[0], &format!("large:{number}"), 500_000);
        }
        for (number, client) in clients.iter_mut().enumerate().skip(1) {
            let lines: Vec<String> = (0..1_000).map(|key| format!("SET {number}:{key} {}", "v".repeat(200))).collect();
            assert!(client.pipeline(&lines).iter().all(|reply| reply.to_string() == "+OK"));
        }
        clients
    });
}

#[test]
fn unread_messages() {
    compare(nothing, |server, admin| {
        let mut subscriber = server.connect();
        drop(subscriber.run("SUBSCRIBE channel"));
        for _ in 0..20 {
            assert_eq!(admin.run_with("PUBLISH channel", &[&vec![b'm'; 500_000]]).integer(), 1);
        }
        for _ in 0..40 {
            let replies = admin.pipeline(&vec![format!("PUBLISH channel {}", "m".repeat(100)); 1_000]);
            assert!(replies.iter().all(|reply| reply.integer() == 1));
        }
        vec![subscriber]
    });
}

#[test]
fn names_that_are_subscribed_to_and_watched() {
    compare(nothing, |server, _| {
        let mut clients = Vec::new();
        for (command, messages) in [("SUBSCRIBE", true), ("PSUBSCRIBE", true), ("SSUBSCRIBE", true), ("WATCH", false)] {
            let mut client = server.connect();
            for start in (0..20_000).step_by(1_000) {
                let names = (start..start + 1_000).map(|number| format!(" name:{number}:{}*", "n".repeat(40)));
                client.queue_line(&names.fold(command.to_owned(), |line, name| line + &name));
                (0..if messages { 1_000 } else { 1 }).for_each(|_| drop(client.read()));
            }
            clients.push(client);
        }
        clients
    });
}

#[test]
fn unread_invalidations() {
    compare(nothing, |server, admin| {
        let mut tracker = server.connect();
        drop(tracker.run("HELLO 3"));
        ok(&mut tracker, "CLIENT TRACKING ON BCAST");
        for _ in 0..100 {
            let lines: Vec<String> = (0..1_000).map(|key| format!("SET key:{key}:{} 1", "k".repeat(200))).collect();
            assert!(admin.pipeline(&lines).iter().all(|reply| reply.to_string() == "+OK"));
        }
        vec![tracker]
    });
}

#[test]
fn lines_of_monitor() {
    compare(
        |admin| set(admin, "k", MIB),
        |server, admin| {
            let mut monitor = server.connect();
            ok(&mut monitor, "MONITOR");
            (0..30).for_each(|_| set(admin, "k", MIB));
            vec![monitor]
        },
    );
}

#[test]
fn attachments_to_sessions_and_their_requests() {
    let names = || (0..50_000).map(|number| format!("session:{number}:{}", "n".repeat(40)));
    let prepare = |admin: &mut Connection| {
        let lines: Vec<String> = names().map(|name| format!("SESSION.OPEN ID {name}")).collect();
        lines.chunks(1_000).for_each(|lines| drop(admin.pipeline(lines)));
    };
    compare(prepare, |server, admin| {
        let mut client = server.connect();
        drop(client.run("HELLO 3"));
        let lines: Vec<String> = names().map(|name| format!("SESSION.ATTACH {name}")).collect();
        for lines in lines.chunks(1_000) {
            assert!(client.pipeline(lines).iter().all(|reply| reply.to_string() == "+OK"));
        }
        let first = names().next().expect("there is one");
        for id in 1..=30 {
            assert_eq!(admin.run_with(&format!("SESSION.PUSH {first}"), &[&vec![b'p'; 500_000]]).integer(), id);
            assert_eq!(admin.run(&format!("SESSION.ACK {first} {id}")).integer(), 1);
        }
        vec![client]
    });
}

#[test]
fn commands_that_wait() {
    compare(
        |admin| ok(admin, "IDX.CREATE index PREFIX 1 record: FIELD f"),
        |server, _| {
            let wait = |line: &str, long: &[u8], end: &[&str]| {
                let mut client = server.connect();
                let mut args = wire::split_args(line).expect("it is well written");
                args.push(long.to_vec());
                args.extend(end.iter().map(|word| word.as_bytes().to_vec()));
                client.queue(&args);
                client.flush();
                client
            };
            let long = |number: u8| vec![b'a' + number; 1_000_000];
            let mut clients: Vec<Connection> = (0..5).map(|number| wait("BLPOP", &long(number), &["0"])).collect();
            clients.extend((0..5).map(|number| wait("CLAIM 1 index SET 1 f", &long(number), &["BLOCK", "0"])));
            let names = (0..10_000).map(|number| format!("key:{number}:{}", "n".repeat(40))).collect::<Vec<_>>();
            clients.push(wait(&format!("BLPOP {}", names.join(" ")), b"last", &["0"]));
            clients
        },
    );
}

#[test]
fn idle_clients_with_names() {
    compare(nothing, |server, _| {
        let connect = |_| {
            let mut client = server.connect();
            ok(&mut client, &format!("CLIENT SETNAME {}", "n".repeat(8_000)));
            client
        };
        (0..1_000).map(connect).collect()
    });
}

/// The limit of unread output acts on what it takes.
#[test]
fn the_output_limit_is_one_of_memory() {
    let Some((server, mut admin)) = Holdfast::start_with_client(&["--client-output-buffer-limit", "normal 20mb 0 0"])
    else {
        return;
    };
    set(&mut admin, "large", MIB);
    let before: u64 = info(&mut admin, "used_memory");
    ok(&mut admin, "CONFIG RESETSTAT");
    let mut deaf = server.connect();
    for number in 1..=100 {
        deaf.queue_line("GET large");
        deaf.flush();
        eventually("it was executed, or the client is closed", || {
            let asked = admin.run("INFO commandstats").text().contains(&format!("cmdstat_get:calls={number},"));
            asked || info::<u64>(&mut admin, "client_output_buffer_limit_disconnections") == 1
        });
        let used = info::<u64>(&mut admin, "used_memory") - before;
        assert!(used < 23 * MIB as u64, "{used} bytes after {number} replies");
        if info::<u64>(&mut admin, "client_output_buffer_limit_disconnections") == 1 {
            assert!(number > 14, "{number} replies of a megabyte, some of which the system has, are not 20");
            return;
        }
    }
    panic!("the limit never acted");
}

/// Keys that are there, and what others may do, in a server that one client tries to fill.
fn start_full() -> Option<(Holdfast, Connection)> {
    let server = Holdfast::start(&["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru", "--appendonly", "no"])?;
    let mut admin = server.connect();
    (0..40).for_each(|number| set(&mut admin, &format!("key:{number}"), MIB - 1024));
    assert_eq!(admin.run("DBSIZE").integer(), 40);
    Some((server, admin))
}

#[track_caller]
fn assert_keys_stay(admin: &mut Connection) {
    let keys = admin.run("DBSIZE").integer();
    assert!(keys >= 30, "{keys} keys of 40 are left");
    ok(admin, "SET small 1");
}

#[test]
fn one_client_cannot_queue_all_keys_away() {
    let Some((server, mut admin)) = start_full() else { return };
    let mut greedy = server.connect();
    ok(&mut greedy, "MULTI");
    let refused = (0..200)
        .map(|_| greedy.run_with("GET", &[&vec![b'n'; MIB - 1024]]).to_string())
        .position(|reply| reply != "+QUEUED")
        .expect("a queue of 200 MB is too much");
    assert!(refused > 30, "{refused} commands of a megabyte were queued");
    assert_keys_stay(&mut admin);
    assert!(greedy.run("EXEC").to_string().starts_with("-EXECABORT "));
    ok(&mut greedy, "SET small 2");
}

#[test]
fn one_client_cannot_leave_all_keys_unread() {
    let Some((server, mut admin)) = start_full() else { return };
    let mut deaf = server.connect();
    (0..200).for_each(|_| deaf.queue_line("GET key:39"));
    deaf.flush();
    eventually("it is closed", || info::<u32>(&mut admin, "evicted_clients") == 1);
    assert_keys_stay(&mut admin);
}

#[test]
fn one_client_cannot_send_all_keys_away() {
    let Some((server, mut admin)) = start_full() else { return };
    let mut endless = unfinished(server.connect(), 60 * MIB, 200_000_000);
    eventually("it is closed", || info::<u32>(&mut admin, "evicted_clients") == 1);
    assert_eq!(endless.read_until_killed(), Reply::Closed);
    assert_keys_stay(&mut admin);
}

/// An attachment ends with its session, and is forgotten.
#[test]
fn attachments_that_are_over_take_nothing() {
    let Some(server) = Holdfast::start(&["--appendonly", "no"]) else { return };
    let (mut admin, mut client) = (server.connect(), server.connect());
    drop(client.run("HELLO 3"));
    let mut rounds = |count: usize| {
        for number in 0..count {
            let sid = format!("session:{number}:{}", "n".repeat(100));
            let lines = ["OPEN ID", "ATTACH", "CLOSE"].map(|action| format!("SESSION.{action} {sid}"));
            assert!(client.pipeline(&lines).iter().all(|reply| !reply.is_error()));
        }
    };
    rounds(500);
    let before = figures(&mut admin);
    rounds(10_000);
    let after = figures(&mut admin);
    assert!(after.0 < before.0 + 200_000, "{} bytes for sessions that are gone", after.0 - before.0);
    assert!(after.1 < before.1 + 50_000, "{} bytes of the client", after.1 - before.1);
}

// `maxmemory-clients`: clients that use too much memory are closed, largest first, and the rest is served.

#[test]
fn the_largest_unfinished_requests_are_closed_and_honest_clients_are_served() {
    let Some((server, mut honest)) =
        Holdfast::start_with_client(&["--maxmemory", "200mb", "--maxmemory-clients", "10%"])
    else {
        return;
    };
    let mut small = unfinished(server.connect(), MIB, 2 * MIB);
    let greedy: Vec<Connection> = (0..20).map(|_| unfinished(server.connect(), 20 * MIB, 50 * MIB)).collect();
    for mut client in greedy {
        assert_eq!(client.read(), Reply::Closed);
    }
    assert_eq!(info::<u32>(&mut honest, "evicted_clients"), 20);
    eventually("their memory is given back", || info::<u64>(&mut honest, "used_memory") < 40 * MIB as u64);
    ok(&mut honest, "SET a 1");
    finish(&mut small, MIB);
}

#[test]
fn a_protected_client_is_spared() {
    let Some((server, mut asker)) = Holdfast::start_with_client(&["--maxmemory-clients", "60mb"]) else { return };
    let mut protected = server.connect();
    ok(&mut protected, "CLIENT NO-EVICT on");
    let mut protected = unfinished(protected, 9 * MIB, 50 * MIB);
    eventually("it has arrived", || listed(&mut asker, "qbuf").iter().any(|bytes| *bytes > 9 * MIB as u64));
    let mut other = unfinished(server.connect(), 40 * MIB, 50 * MIB);
    assert_eq!(other.read(), Reply::Closed);
    finish(&mut protected, 41 * MIB);
    assert_eq!(info::<u32>(&mut asker, "evicted_clients"), 1);
}

#[test]
fn queued_commands_and_names_count() {
    let Some(server) = Holdfast::start(&[]) else { return };
    let (mut asker, mut queues, mut listens, mut watches) =
        (server.connect(), server.connect(), server.connect(), server.connect());
    ok(&mut queues, "MULTI");
    assert_eq!(queues.run_with("SET a", &[&vec![b'v'; 2 * MIB]]).to_string(), "+QUEUED");
    let name = vec![b'n'; MIB];
    drop(listens.run_with("SUBSCRIBE", &[&name]));
    assert_eq!(watches.run_with("WATCH", &[&name]).to_string(), "+OK");
    let sizes = listed(&mut asker, "tot-mem");
    let mib = MIB as u64;
    assert!(sizes[0] < mib / 10 && sizes[1] > 2 * mib && sizes[2] > mib && sizes[3] > mib, "{sizes:?}");
    assert!(listed(&mut asker, "multi-mem")[1] > 2 * mib);
    ok(&mut queues, "DISCARD");
    drop(listens.run("UNSUBSCRIBE"));
    ok(&mut watches, "UNWATCH");
    assert!(listed(&mut asker, "tot-mem").iter().all(|bytes| *bytes < mib / 10));

    ok(&mut asker, "CONFIG SET maxmemory-clients 4mb");
    ok(&mut queues, "MULTI");
    for _ in 0..5 {
        queues.queue_line(&format!("SET a {}", "v".repeat(MIB)));
    }
    while queues.read() != Reply::Closed {}
    assert_eq!(info::<u32>(&mut asker, "evicted_clients"), 1);
    ok(&mut asker, "CONFIG RESETSTAT");
    assert_eq!(info::<u32>(&mut asker, "evicted_clients"), 0);
}

/// Has the client begin a request that sets a value, and send some of that.
fn unfinished(mut client: Connection, bytes: usize, announced: usize) -> Connection {
    client.queue_raw(format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${announced}\r\n").as_bytes());
    client.queue_raw(&vec![b'v'; bytes]);
    client.flush();
    client
}

/// Has it send the rest.
fn finish(client: &mut Connection, bytes: usize) {
    client.queue_raw(&vec![b'v'; bytes]);
    client.queue_raw(b"\r\n");
    assert_eq!(client.read().to_string(), "+OK");
}
