//! Databases that are swapped and emptied while clients work in them.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use wire::{Connection, Reply};

use crate::support::{Holdfast, eventually, info, ok};

const CLIENTS: usize = 6;
const DATABASES: usize = 3;
const SWEEPS: usize = 300;

#[test]
fn swapping_and_flushing_under_load_disturbs_nobody() {
    let Some((server, mut control)) = Holdfast::start_with_client(&["--threads", "2"]) else { return };
    let before: u64 = info(&mut control, "used_memory");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (connection, done) = (server.connect(), &done);
            scope.spawn(move || work(connection, number, done));
        }
        let swept = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| sweep(&mut control)));
        // The scope waits for the others, so they have to know even if this fails.
        done.store(true, Relaxed);
        if let Err(panic) = swept {
            std::panic::resume_unwind(panic);
        }
    });
    ok(&mut control, "FLUSHALL ASYNC");
    for database in 0..DATABASES {
        ok(&mut control, &format!("SELECT {database}"));
        assert_eq!(control.run("DBSIZE").integer(), 0, "database {database}");
    }
    eventually("the memory comes back", || info::<u64>(&mut control, "used_memory") < before + (4 << 20));
}

fn sweep(control: &mut Connection) {
    for round in 0..SWEEPS {
        ok(control, &format!("SWAPDB {} {}", round % DATABASES, (round + 1) % DATABASES));
        match round % 10 {
            3 => ok(control, "FLUSHALL ASYNC"),
            6 => ok(control, "FLUSHDB ASYNC"),
            9 => ok(control, "FLUSHALL SYNC"),
            _ => thread::yield_now(),
        }
    }
}

/// Writes rising numbers in one database. Swaps bring older ones back and flushes take them away; nothing else may
/// be found there.
fn work(mut connection: Connection, number: usize, done: &AtomicBool) {
    const PIPELINE: usize = 20;
    ok(&mut connection, &format!("SELECT {}", number % DATABASES));
    let mut written = 0;
    while !done.load(Relaxed) {
        for count in written + 1..=written + PIPELINE {
            connection.queue_line(&format!("SET client:{number} {count}"));
            connection.queue_line(&format!("GET client:{number}"));
            connection.queue_line(&format!("HSET hash:{number} {} {count}", count % 50));
        }
        for _ in 0..PIPELINE {
            written += 1;
            assert_eq!(connection.read().to_string(), "+OK");
            match connection.read() {
                Reply::NilBulk => {}
                found => {
                    let found: usize = found.text().parse().expect("only numbers are written");
                    assert!((1..=written).contains(&found), "client {number} found {found} after {written}");
                }
            }
            assert!(matches!(connection.read(), Reply::Integer(0 | 1)));
        }
    }
}
