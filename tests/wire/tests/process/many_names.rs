//! Clients that subscribe to and watch very many names: each name costs the same however many there are, and the end of
//! such a client keeps nobody waiting.

use std::ops::Range;

use wire::Connection;

use crate::support::{Holdfast, eventually, info, ok};

const NAMES: usize = 100_000;
/// Names in one request.
const STEP: usize = 5_000;

#[test]
fn very_many_channels_cost_what_each_of_them_costs() {
    let Some(server) = Holdfast::start(&["--threads", "1"]) else { return };
    let (mut subscriber, mut other) = (server.connect(), server.connect());
    for (command, names) in [("SUBSCRIBE", NAMES), ("PSUBSCRIBE", NAMES / 10), ("SSUBSCRIBE", NAMES / 10)] {
        in_steps(&mut subscriber, command, names);
    }
    in_steps(&mut subscriber, "UNSUBSCRIBE", NAMES / 2);
    assert_eq!(other.run(&format!("PUBLISH name:{} text", NAMES - 1)).integer(), 1);
    assert_eq!(other.run("PUBLISH name:40000 text").integer(), 0, "that one was given up");
    drop(subscriber);
    eventually("all subscriptions have ended", || {
        assert_eq!(other.run("PING").to_string(), "+PONG");
        info::<usize>(&mut other, "pubsub_channels") == 0
            && info::<usize>(&mut other, "pubsub_patterns") == 0
            && info::<usize>(&mut other, "pubsubshard_channels") == 0
    });
}

/// Each name costs the same, also when it is watched again, as a client does that watches the same keys for each of its
/// transactions. Whatever ends the watches gives their memory back.
#[test]
fn very_many_watches_cost_what_each_of_them_costs_and_give_it_back() {
    let Some(server) = Holdfast::start(&["--threads", "1"]) else { return };
    let (mut watcher, mut other) = (server.connect(), server.connect());
    let before: u64 = info(&mut other, "used_memory");
    for end in ["UNWATCH", "EXEC", "DISCARD", "RESET"] {
        watch_all(&mut watcher);
        watch_all(&mut watcher);
        assert_eq!(info::<usize>(&mut other, "total_watched_keys"), NAMES);
        if ["EXEC", "DISCARD"].contains(&end) {
            ok(&mut watcher, "MULTI");
        }
        let reply = watcher.run(end).to_string();
        assert!(end != "EXEC" || reply == "[]", "{reply}");
        assert_eq!(info::<usize>(&mut other, "total_watched_keys"), 0);
        gives_back(&mut other, before);
    }
    watch_all(&mut watcher);
    drop(watcher);
    eventually("no key is watched", || {
        assert_eq!(other.run("PING").to_string(), "+PONG");
        info::<usize>(&mut other, "total_watched_keys") == 0
    });
    gives_back(&mut other, before);
}

/// What a caching client has read is remembered until there is no such client.
#[test]
fn very_many_tracked_keys_give_their_memory_back() {
    let Some(server) = Holdfast::start(&["--threads", "1"]) else { return };
    let (mut reader, mut other) = (server.connect(), server.connect());
    let before: u64 = info(&mut other, "used_memory");
    reader.run("HELLO 3");
    ok(&mut reader, "CLIENT TRACKING ON");
    reader.run(&request("MGET", 0..NAMES));
    assert_eq!(info::<usize>(&mut other, "tracking_total_keys"), NAMES);
    drop(reader);
    eventually("no key is tracked", || info::<usize>(&mut other, "tracking_total_keys") == 0);
    gives_back(&mut other, before);
}

/// Waits until the server takes about as much memory as it took.
fn gives_back(connection: &mut Connection, before: u64) {
    eventually("the memory is given back", || info::<u64>(connection, "used_memory") < before + (2 << 20));
}

/// Gives a command so many names, some thousands in a request, and reads a reply for each name.
fn in_steps(connection: &mut Connection, command: &str, names: usize) {
    for start in (0..names).step_by(STEP) {
        let step = start..names.min(start + STEP);
        connection.queue_line(&request(command, step.clone()));
        step.for_each(|_| drop(connection.read()));
    }
}

fn watch_all(connection: &mut Connection) {
    ok(connection, &request("WATCH", 0..NAMES));
}

fn request(command: &str, names: Range<usize>) -> String {
    names.fold(command.to_owned(), |request, number| request + &format!(" name:{number}"))
}
