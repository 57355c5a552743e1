//! `maxmemory-clients`: clients that use too much memory are closed, largest first, and the rest is served.

use wire::{Connection, Reply};

use crate::support::{Holdfast, eventually, info, ok};

const MIB: usize = 1 << 20;

#[test]
fn the_largest_unfinished_requests_are_closed_and_honest_clients_are_served() {
    let Some(server) = Holdfast::start(&["--maxmemory", "200mb", "--maxmemory-clients", "10%"]) else { return };
    let mut honest = server.connect();
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
    let Some(server) = Holdfast::start(&["--maxmemory-clients", "60mb"]) else { return };
    let mut asker = server.connect();
    let mut protected = server.connect();
    ok(&mut protected, "CLIENT NO-EVICT on");
    let mut protected = unfinished(protected, 9 * MIB, 50 * MIB);
    eventually("it has arrived", || list(&mut asker, "qbuf").iter().any(|bytes| *bytes > 9 * MIB));
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
    let sizes = list(&mut asker, "tot-mem");
    assert!(sizes[0] < MIB / 10 && sizes[1] > 2 * MIB && sizes[2] > MIB && sizes[3] > MIB, "{sizes:?}");
    assert!(list(&mut asker, "multi-mem")[1] > 2 * MIB);
    ok(&mut queues, "DISCARD");
    drop(listens.run("UNSUBSCRIBE"));
    ok(&mut watches, "UNWATCH");
    assert!(list(&mut asker, "tot-mem").iter().all(|bytes| *bytes < MIB / 10));

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

/// A figure of CLIENT LIST for each client, oldest first.
fn list(asker: &mut Connection, figure: &str) -> Vec<usize> {
    let text = asker.run("CLIENT LIST").text().to_owned();
    let of = |line: &str| {
        let words = line.split(' ').find_map(|word| word.strip_prefix(figure)?.strip_prefix('='));
        words.and_then(|value| value.parse().ok()).expect("each client has every figure")
    };
    text.lines().map(of).collect()
}
