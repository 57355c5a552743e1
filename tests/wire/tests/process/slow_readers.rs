//! Clients that ask and do not listen: they are cut off, and nobody else notices.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use wire::Connection;

use crate::support::{Holdfast, eventually, info, ok};

const VALUE_BYTES: usize = 64 * 1024;
const MIB: u64 = 1 << 20;
const CUT_OFF: &str = "client_output_buffer_limit_disconnections";

#[test]
fn a_client_that_does_not_read_its_replies_is_cut_off() {
    const REQUESTS: usize = 2000;
    let Some((server, mut other)) = Holdfast::start_with_client(&["--client-output-buffer-limit", "normal 1mb 0 0"])
    else {
        return;
    };
    // A long name, so that the requests are more than is read at once.
    let name = "k".repeat(200);
    ok(&mut other, &format!("SET {name} {}", "v".repeat(VALUE_BYTES)));
    let before: u64 = info(&mut other, "used_memory");
    with_others_at_work(&server, || {
        for cut_off in 1..=3 {
            let mut deaf = server.connect();
            for _ in 0..REQUESTS {
                deaf.queue_line(&format!("GET {name}"));
            }
            deaf.flush();
            eventually("it is cut off", || info::<u64>(&mut other, CUT_OFF) >= cut_off);
            let received = deaf.read_raw(REQUESTS * (VALUE_BYTES + 16)).len();
            assert!(received < REQUESTS * VALUE_BYTES, "{received} bytes came");
        }
    });
    assert_eq!(info::<u64>(&mut other, CUT_OFF), 3, "each is counted once");
    let peak: u64 = info(&mut other, "used_memory_peak");
    assert!(peak < before + 16 * MIB, "the limit is held on the way: {before} before, {peak} at the peak");
    eventually("its memory comes back", || info::<u64>(&mut other, "used_memory") < before + MIB);
}

#[test]
fn a_client_that_reads_may_ask_for_any_amount() {
    let Some((_server, mut client)) = Holdfast::start_with_client(&["--client-output-buffer-limit", "normal 1mb 0 0"])
    else {
        return;
    };
    let value = vec![b'v'; VALUE_BYTES];
    assert_eq!(client.run_with("SET big", &[&value]).to_string(), "+OK");
    for _ in 0..40 {
        for _ in 0..8 {
            client.queue_line("GET big");
        }
        for _ in 0..8 {
            assert_eq!(client.read().bytes(), value);
        }
    }
    assert_eq!(info::<u64>(&mut client, CUT_OFF), 0);
}

#[test]
fn beyond_the_soft_limit_a_client_has_some_seconds() {
    let Some(server) = Holdfast::start(&["--client-output-buffer-limit", "normal 0 256kb 1"]) else { return };
    let (mut deaf, mut other) = (server.connect(), server.connect());
    ok(&mut other, &format!("SET big {}", "v".repeat(VALUE_BYTES)));
    for _ in 0..500 {
        deaf.queue_line("GET big");
    }
    // After this it is as still as can be: nothing it does reminds the server of it.
    deaf.flush();
    eventually("it is cut off", || info::<u64>(&mut other, CUT_OFF) == 1);
    eventually("it is gone", || info::<u64>(&mut other, "connected_clients") == 1);
}

#[test]
fn a_monitor_that_does_not_read_is_cut_off() {
    let Some(server) = Holdfast::start(&["--client-output-buffer-limit", "normal 1mb 0 0"]) else { return };
    let (mut deaf, mut listening, mut other) = (server.connect(), server.connect(), server.connect());
    ok(&mut deaf, "MONITOR");
    ok(&mut listening, "MONITOR");
    let value = vec![b'v'; VALUE_BYTES];
    let before: u64 = info(&mut other, "used_memory");
    assert!(listening.read().to_string().ends_with("\"INFO\""));
    let mut watchers = 2;
    while watchers == 2 {
        assert_eq!(other.run_with("SET big", &[&value]).to_string(), "+OK");
        assert!(listening.read().to_string().contains("\"SET\" \"big\" \"vvvv"));
        watchers = other.run("CLIENT LIST").text().lines().filter(|line| line.contains(" flags=O ")).count();
    }
    assert_eq!(watchers, 1, "the one that reads stays");
    eventually("it is counted", || {
        let counted = info::<u64>(&mut other, CUT_OFF) == 1;
        assert!(listening.read().to_string().ends_with("\"INFO\""));
        counted
    });
    ok(&mut other, "SET last one");
    assert!(listening.read().to_string().ends_with("\"SET\" \"last\" \"one\""));
    drop(listening);
    eventually("its memory comes back", || info::<u64>(&mut other, "used_memory") < before + MIB);
}

/// Runs `work` while other clients write and read, and checks their every reply.
fn with_others_at_work(server: &Holdfast, work: impl FnOnce()) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in 0..2 {
            let (mut connection, done) = (server.connect(), &done);
            scope.spawn(move || write_and_read(&mut connection, number, done));
        }
        // Set even if the work panics: the scope waits for the others.
        let _end = OnDrop(|| done.store(true, Relaxed));
        work();
    });
}

fn write_and_read(connection: &mut Connection, number: usize, done: &AtomicBool) {
    let mut round = 0;
    while !done.load(Relaxed) {
        round += 1;
        ok(connection, &format!("SET other:{number} {round}"));
        assert_eq!(connection.run(&format!("GET other:{number}")).text(), round.to_string());
        thread::yield_now();
    }
}

struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn one_small_request_cannot_ask_for_more_than_the_limit() {
    let Some(server) = Holdfast::start(&["--client-output-buffer-limit", "normal 16mb 0 0"]) else { return };
    let (mut client, mut other) = (server.connect(), server.connect());
    let value = vec![b'x'; 1 << 20];
    assert_eq!(client.run_with("SET m", &[&value]).to_string(), "+OK");
    client.queue_raw(format!("MGET{}\r\n", " m".repeat(1_500)).as_bytes());
    client.flush();
    eventually("it is closed and counted", || {
        info::<u64>(&mut other, "client_output_buffer_limit_disconnections") == 1
    });
    let peak: u64 = info(&mut other, "used_memory_peak");
    assert!(peak < 100 << 20, "a reply of 1.5 GB was cut at the limit of 16 MB, peak {peak}");
    assert_eq!(other.run("PING").to_string(), "+PONG");
}
