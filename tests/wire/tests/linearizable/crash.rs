//! The same with a server that is killed while the clients are at work, and started again: what was answered has taken
//! effect, what was not may have, whole, and whatever was seen stays.

use std::env;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use wire::own::SetOnDrop;
use wire::{Random, Server, binary};

use crate::author::{Author, KEYS, readings};
use crate::client::{Client, prepare, work_together};
use crate::history::{Answer, Clock, History, merged};
use crate::process::{Dir, ok};
use crate::report::assert_linearizable;
use crate::{CLIENTS, OPERATIONS, SPREAD, rounds, send_all};

/// A start takes as long as so many rounds without one.
const ROUNDS_PER_KILL: usize = 10;
/// Under its default policy Redis replies before it writes while a sync is under way.
const REDIS: &[&str] = &["--appendonly", "yes", "--appendfsync", "always", "--save", ""];

#[test]
fn clients_of_a_server_that_is_killed_agree_on_one_order() {
    if env::var_os("HOLDFAST_TEST_ADDR").is_some() {
        wire::skip("this test starts a server of its own");
        return;
    }
    let version = Command::new(binary()).arg("--version").output().expect("cannot start the server's binary");
    let args = if version.stdout.starts_with(b"holdfast ") { SPREAD } else { REDIS };
    let (dir, clock, mut random) = (Dir::fresh(), Clock::default(), Random::from_env());
    let mut server = start(&dir, args);
    for round in 0..rounds().div_ceil(ROUNDS_PER_KILL) {
        let keys = &KEYS[..2 + random.below(KEYS.len() - 1)];
        let mut history = before(server, &clock, &mut random, keys);
        // Its process is gone, and so is whatever it has not done.
        let end = clock.now();
        for lost in history.iter_mut().filter(|operation| matches!(operation.answer, Answer::None)) {
            lost.returned = end;
        }
        server = start(&dir, args);
        let after = after(&server, &clock, &mut random, keys);
        assert_linearizable(&merged([history, after]), &format!("round {round}"));
    }
}

fn start(dir: &Dir, args: &[&str]) -> Server {
    Server::start_with(dir.path(), |command| dir.keep_output(command.args(args)))
}

/// The clients at work until the server is killed, or just after.
fn before(server: Server, clock: &Clock, random: &mut Random, keys: &'static [&'static str]) -> History {
    let mut connection = server.connect();
    let known = prepare(&mut connection);
    ok(&mut connection, "FLUSHALL");
    let mut referee = Client::new(0, connection, &known, clock);
    send_all(&mut referee, Author::new(Random::new(random.next_u64()), 0, keys, known.has_own_commands).opening());
    let mut clients: Vec<Client> =
        (1..=CLIENTS).map(|number| Client::new(number, server.connect(), &known, clock)).collect();
    if random.one_in(2) {
        // What it leaves behind then comes from a snapshot in part. Whether one begins just now does not matter.
        referee.connection().run("BGREWRITEAOF");
    }
    // Most actions take two instants, some share their first.
    let moment = clock.now() + random.below(2 * CLIENTS * OPERATIONS) as u64;
    let done = &AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(move || {
            while clock.passed() < moment && !done.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            server.kill();
        });
        let _done = SetOnDrop(done);
        let (Ok(history) | Err(history)) = work_together(&mut clients, random, keys, OPERATIONS);
        merged([referee.take_history(), history])
    })
}

/// Other clients at work on what the first ones left behind, and all that is there in the end.
fn after(server: &Server, clock: &Clock, random: &mut Random, keys: &'static [&'static str]) -> History {
    let known = prepare(&mut server.connect());
    let client = |number| Client::new(CLIENTS + 1 + number, server.connect(), &known, clock);
    let mut referee = client(0);
    send_all(&mut referee, readings(known.has_own_commands));
    let mut clients: Vec<Client> = (1..=CLIENTS).map(client).collect();
    let history = work_together(&mut clients, random, keys, 2).ok().expect("no connection is closed");
    send_all(&mut referee, readings(known.has_own_commands));
    merged([referee.take_history(), history])
}
