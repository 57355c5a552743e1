//! Limits on clients: how many, how much they may send at once, how long they may be silent.

use std::thread;
use std::time::Duration;

use wire::{Connection, Reply};

use crate::support::{Holdfast, eventually, info, ok};

const MIB: u64 = 1 << 20;

#[test]
fn one_client_too_many_is_told_so_and_closed() {
    let Some((server, mut asker)) = Holdfast::start_with_client(&["--maxclients", "3"]) else { return };
    eventually("it is alone", || info::<u32>(&mut asker, "connected_clients") == 1);
    let mut others = [server.connect(), server.connect()];
    for other in &mut others {
        assert_eq!(other.run("PING").to_string(), "+PONG");
    }
    for rejected in 1..=5 {
        let mut extra = server.connect();
        assert_eq!(extra.read().to_string(), "-ERR max number of clients reached");
        assert_eq!(extra.read(), Reply::Closed);
        assert_eq!(info::<u32>(&mut asker, "rejected_connections"), rejected);
    }
    drop(others);
    eventually("there is room again", || server.connect().run("PING").to_string() == "+PONG");
    assert_eq!(asker.run("CONFIG SET maxclients 10").to_string(), "+OK");
    let mut more: Vec<Connection> = (0..5).map(|_| server.connect()).collect();
    for other in &mut more {
        assert_eq!(other.run("PING").to_string(), "+PONG");
    }
}

#[test]
fn a_request_beyond_the_query_buffer_limit_ends_the_connection() {
    let Some(server) = Holdfast::start(&["--client-query-buffer-limit", "1mb"]) else { return };
    let (mut client, mut other) = (server.connect(), server.connect());
    let before: u64 = info(&mut other, "used_memory");
    let fits = vec![b'v'; 1_000_000];
    assert_eq!(client.run_with("ECHO", &[&fits]).bytes(), fits);
    client.queue_raw(b"*2\r\n$4\r\nECHO\r\n$8000000\r\n");
    client.queue_raw(&[b'v'; 2_000_000]);
    assert_eq!(client.read(), Reply::Closed);
    assert_eq!(info::<u32>(&mut other, "client_query_buffer_limit_disconnections"), 1);
    eventually("its memory comes back", || info::<u64>(&mut other, "used_memory") < before + MIB);
    assert_eq!(server.connect().run("PING").to_string(), "+PONG");
}

#[test]
fn the_first_bytes_of_a_request_take_no_more_than_they_are() {
    let Some((server, mut asker)) = Holdfast::start_with_client(&[]) else { return };
    assert_eq!(asker.run("CONFIG SET requirepass secret").to_string(), "+OK");
    let mut idle: Vec<Connection> = (0..500).map(|_| server.connect()).collect();
    eventually("all are connected", || info::<usize>(&mut asker, "connected_clients") == idle.len() + 1);
    let before: u64 = info(&mut asker, "used_memory");
    // In two pieces: the second is read when there is something unfinished already.
    for piece in [b"*", b"1"] {
        for stranger in &mut idle {
            stranger.queue_raw(piece);
            stranger.flush();
        }
        let sent = if piece == b"*" { 1 } else { 2 };
        eventually("it has arrived", || {
            asker.run("CLIENT LIST").text().lines().filter(|line| line.contains(&format!(" qbuf={sent} "))).count()
                == idle.len()
        });
    }
    let each = info::<u64>(&mut asker, "used_memory").saturating_sub(before) / idle.len() as u64;
    assert!(each < 2048, "{each} bytes for two");
}

#[test]
fn announced_lengths_take_no_memory() {
    let Some((server, mut asker)) = Holdfast::start_with_client(&[]) else { return };
    let before: u64 = info(&mut asker, "used_memory");
    let mut liars: Vec<Connection> = (0..50).map(|_| server.connect()).collect();
    for (number, liar) in liars.iter_mut().enumerate() {
        liar.queue_raw(if number % 2 == 0 { b"*1\r\n$500000000\r\n" } else { b"*1000000\r\n$3\r\nDEL\r\n" });
        liar.flush();
    }
    eventually("the server has read it all", || {
        let list = asker.run("CLIENT LIST");
        list.text().lines().filter(|line| line.contains(" cmd=NULL ") && !line.contains(" qbuf=0 ")).count() == 50
    });
    let after: u64 = info(&mut asker, "used_memory");
    assert!(after < before + 6 * MIB, "{before} before, {after} after");
    drop(liars);
    eventually("they are gone", || info::<u32>(&mut asker, "connected_clients") == 1);
}

/// A client that waits for the server is not silent, and neither is one that sends or reads slowly.
#[test]
fn silent_clients_are_closed_and_no_others() {
    let Some((server, mut lively)) = Holdfast::start_with_client(&["--timeout", "2"]) else { return };
    let [mut silent, mut monitor, mut blocked] = [(); 3].map(|()| server.connect());
    let ids = [&mut silent, &mut monitor, &mut blocked].map(|client| client.run("CLIENT ID").integer());
    ok(&mut monitor, "MONITOR");
    blocked.queue_line("WAIT 1 0");
    blocked.flush();
    let [mut paused, mut sender, mut reader] = [(); 3].map(|()| server.connect());
    assert_eq!(reader.run_with("SET big", &[&vec![b'v'; 1_000_000]]).to_string(), "+OK");
    ok(&mut lively, "CLIENT PAUSE 3500 WRITE");
    paused.queue_line("SET a 1");
    paused.flush();
    sender.queue_raw(b"*2\r\n$4\r\nECHO\r\n$40\r\n");
    (0..40).for_each(|_| reader.queue_line("GET big"));
    for _ in 0..40 {
        sender.queue_raw(b"v");
        sender.flush();
        assert_eq!(reader.read().bytes().len(), 1_000_000);
        assert_eq!(lively.run("PING").to_string(), "+PONG");
        thread::sleep(Duration::from_millis(100));
    }
    sender.queue_raw(b"\r\n");
    assert_eq!(sender.read().bytes(), [b'v'; 40]);
    assert_eq!(paused.read().to_string(), "+OK");
    let mut is_there = |id: i64| !lively.run(&format!("CLIENT LIST ID {id}")).text().is_empty();
    eventually("the silent one is closed", || !is_there(ids[0]));
    assert_eq!(silent.read(), Reply::Closed);
    assert!(is_there(ids[1]), "a monitor has nothing to say");
    assert!(is_there(ids[2]), "a blocked client waits for the server");
}
