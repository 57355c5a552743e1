//! Many clients on few keys, in pipelines: every command is atomic, and what one of them was told holds for all. That each
//! kind of request is atomic, `linearizable` shows in short races; here they are long, and clients send ahead.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use wire::{Connection, Reply, Session};

const CLIENTS: usize = 8;
const ROUNDS: usize = 500;
/// Commands a client sends before it reads their replies.
const PIPELINE: usize = 20;

#[test]
fn no_increment_is_lost() {
    let session = Session::start();
    let sums = in_parallel(&session, CLIENTS, |_, connection| {
        run_all(connection, (0..ROUNDS).map(|_| "INCR a".into())).iter().map(Reply::integer).collect::<Vec<i64>>()
    });
    // Each sum was told to exactly one client, and to each client they only ever rose.
    assert!(sums.iter().all(|told| told.is_sorted()));
    let all: BTreeSet<i64> = sums.into_iter().flatten().collect();
    let total = (CLIENTS * ROUNDS) as i64;
    assert_eq!(all, (1..=total).collect());
    assert_eq!(session.connect().run("GET a").text(), total.to_string());
}

#[test]
fn a_lock_has_one_winner() {
    let session = Session::start();
    for command in ["SETNX", "SET NX", "HSETNX", "MSETNX", "RENAMENX"] {
        session.connect().run("FLUSHALL");
        let wins = in_parallel(&session, CLIENTS, |client, connection| {
            let attempts = (0..ROUNDS).map(|round| match command {
                "SETNX" => format!("SETNX lock:{round} {client}"),
                "SET NX" => format!("SET lock:{round} {client} NX EX 100"),
                "HSETNX" => format!("HSETNX locks {round} {client}"),
                "MSETNX" => format!("MSETNX lock:{round} {client} twin:{round} {client}"),
                _ => {
                    connection.run(&format!("SET mine:{client}:{round} {client}"));
                    format!("RENAMENX mine:{client}:{round} lock:{round}")
                }
            });
            let attempts: Vec<String> = attempts.collect();
            let replies = run_all(connection, attempts);
            let won = |reply: &Reply| matches!(reply, Reply::Integer(1) | Reply::Simple(_));
            (0..ROUNDS).filter(|round| won(&replies[*round])).collect::<Vec<usize>>()
        });
        let mut won: Vec<usize> = wins.iter().flatten().copied().collect();
        won.sort_unstable();
        assert_eq!(won, (0..ROUNDS).collect::<Vec<_>>(), "{command}: each lock once");
        // Whoever was told so is the one whose value is there.
        let mut connection = session.connect();
        for (client, rounds) in wins.iter().enumerate() {
            for round in rounds {
                let value = match command {
                    "HSETNX" => connection.run(&format!("HGET locks {round}")),
                    _ => connection.run(&format!("GET lock:{round}")),
                };
                assert_eq!(value.text(), client.to_string(), "{command} {round}");
            }
        }
    }
}

#[test]
fn mget_never_sees_half_of_an_mset() {
    let session = Session::start();
    while_writing(
        &session,
        |client, round| format!("MSET left {client}:{round} right {client}:{round} {{t}}other {client}:{round}"),
        |connection| {
            let values = connection.run("MGET left right {t}other");
            let [left, right, other] = values.items() else { panic!("{values}") };
            assert!(left == right && right == other, "torn: {values}");
        },
    );
}

#[test]
fn a_reader_never_sees_half_of_an_hset() {
    let session = Session::start();
    while_writing(
        &session,
        |client, round| format!("HSET h one {client}:{round} two {client}:{round} three {client}:{round}"),
        |connection| {
            let values = connection.run("HMGET h one two three");
            let [one, two, three] = values.items() else { panic!("{values}") };
            assert!(one == two && two == three, "torn: {values}");
            let all = connection.run("HVALS h");
            assert!(all.items().iter().all(|value| *value == all.items()[0]), "torn: {all}");
        },
    );
}

#[test]
fn a_flush_takes_all_or_nothing_of_an_mset() {
    let session = Session::start();
    while_writing(
        &session,
        |client, round| match client {
            0 => "FLUSHALL".to_owned(),
            _ => format!("MSET left {client}:{round} right {client}:{round}"),
        },
        |connection| {
            let values = connection.run("MGET left right");
            let [left, right] = values.items() else { panic!("{values}") };
            assert_eq!(left, right, "torn: {values}");
        },
    );
}

#[test]
fn a_renamed_key_is_always_somewhere() {
    let session = Session::start();
    session.connect().run("SET a treasure");
    while_writing(
        &session,
        |client, _| match client % 3 {
            0 => "RENAME a b".to_owned(),
            1 => "RENAME b c".to_owned(),
            _ => "RENAMENX c a".to_owned(),
        },
        |connection| assert_eq!(connection.run("EXISTS a b c").integer(), 1),
    );
    let values = session.connect().run("MGET a b c");
    let found: Vec<&Reply> = values.items().iter().filter(|value| !value.is_nil()).collect();
    assert_eq!(found.len(), 1, "{values}");
    assert_eq!(found[0].text(), "treasure");
}

#[test]
fn a_job_is_taken_once() {
    let session = Session::start();
    for take in ["GETDEL job:", "DEL job:", "RENAME job:"] {
        let mut connection = session.connect();
        connection.run("FLUSHALL");
        run_all(&mut connection, (0..ROUNDS).map(|i| format!("SET job:{i} work")));
        let taken = in_parallel(&session, CLIENTS, |client, connection| {
            let attempts = (0..ROUNDS).map(|i| match take {
                "RENAME job:" => format!("RENAME job:{i} taken:{client}:{i}"),
                _ => format!("{take}{i}"),
            });
            let replies = run_all(connection, attempts);
            let got = |reply: &Reply| matches!(reply, Reply::Integer(1) | Reply::Bulk(_) | Reply::Simple(_));
            (0..ROUNDS).filter(|i| got(&replies[*i])).collect::<Vec<usize>>()
        });
        let mut all: Vec<usize> = taken.into_iter().flatten().collect();
        all.sort_unstable();
        assert_eq!(all, (0..ROUNDS).collect::<Vec<_>>(), "{take}: each job once");
        assert_eq!(connection.run("KEYS job:*").items().len(), 0);
    }
}

/// Runs `work` on one connection per client, all starting together.
fn in_parallel<T: Send>(
    session: &Session,
    clients: usize,
    work: impl Fn(usize, &mut Connection) -> T + Sync,
) -> Vec<T> {
    let start = Barrier::new(clients);
    thread::scope(|scope| {
        let handles: Vec<_> = (0..clients)
            .map(|client| {
                let (start, work) = (&start, &work);
                scope.spawn(move || {
                    let mut connection = session.connect();
                    start.wait();
                    work(client, &mut connection)
                })
            })
            .collect();
        handles.into_iter().map(|handle| handle.join().expect("a client failed")).collect()
    })
}

/// Half of the clients write, pipelined, while the other half check what they see.
fn while_writing(
    session: &Session,
    write: impl Fn(usize, usize) -> String + Sync,
    check: impl Fn(&mut Connection) + Sync,
) {
    const WRITERS: usize = CLIENTS / 2;
    let writers_done = AtomicUsize::new(0);
    in_parallel(session, CLIENTS, |client, connection| {
        if client < WRITERS {
            let _done = CountOnDrop(&writers_done);
            run_all(connection, (0..ROUNDS).map(|round| write(client, round)));
        } else {
            // At least once, however fast the writers are.
            loop {
                check(connection);
                if writers_done.load(Ordering::Relaxed) == WRITERS {
                    break;
                }
            }
        }
    });
}

/// Counts even if the writer fails; otherwise the checkers would wait for it for ever.
struct CountOnDrop<'a>(&'a AtomicUsize);

impl Drop for CountOnDrop<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Sends commands in pipelines; returns every reply.
fn run_all(connection: &mut Connection, commands: impl IntoIterator<Item = String>) -> Vec<Reply> {
    let commands: Vec<String> = commands.into_iter().collect();
    commands.chunks(PIPELINE).flat_map(|chunk| connection.pipeline(chunk)).collect()
}
