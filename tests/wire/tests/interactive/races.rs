//! Transactions of many clients at once, on all workers: money is neither made nor lost, and no reader ever sees a sum
//! that never was.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use wire::{Connection, Random, Reply, Server, fresh_dir};

use crate::start;

const ACCOUNTS: usize = 8;
const START: i64 = 100;

/// A server with connections on all its workers.
fn server() -> Option<Server> {
    start()?;
    Some(Server::start(&fresh_dir(), &["--threads", "2", "--worker-balance", "spread"]))
}

fn is_conflict(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(text) if text.starts_with(b"CONFLICT"))
}

/// The value of an account; `None` when the transaction has lost.
fn balance(client: &mut Connection, account: usize) -> Option<i64> {
    let reply = client.run(&format!("GET account{account}"));
    match is_conflict(&reply) {
        true => None,
        false => Some(reply.text().parse().expect("an account holds a number")),
    }
}

/// Moves money in a transaction; true when it was committed.
fn transfer(client: &mut Connection, from: usize, to: usize, amount: i64) -> bool {
    client.run("TXN.BEGIN");
    let moved = (|| {
        let (left, right) = (balance(client, from)?, balance(client, to)?);
        let writes = [format!("SET account{from} {}", left - amount), format!("SET account{to} {}", right + amount)];
        let written = writes.map(|write| client.run(&write));
        (!written.iter().any(is_conflict)).then_some(())
    })();
    match moved {
        Some(()) => !is_conflict(&client.run("TXN.COMMIT")),
        None => {
            client.run("TXN.ROLLBACK");
            false
        }
    }
}

#[test]
fn transfers_keep_the_sum_and_no_reader_sees_another() {
    let Some(server) = server() else { return };
    let mut control = server.connect();
    for account in 0..ACCOUNTS {
        control.run(&format!("SET account{account} {START}"));
    }
    let (is_over, sums, moved) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let seed = Random::from_env().next_u64();
    thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let (server, moved) = (&server, &moved);
                scope.spawn(move || {
                    let (mut client, mut random) = (server.connect(), Random::new(seed + writer));
                    for _ in 0..600 {
                        let from = random.below(ACCOUNTS);
                        let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
                        let amount = random.below(10) as i64;
                        // Plain transactions race with them.
                        let is_plain = random.one_in(4);
                        let done = match is_plain {
                            true => {
                                let moves = [
                                    "MULTI".to_owned(),
                                    format!("DECRBY account{from} {amount}"),
                                    format!("INCRBY account{to} {amount}"),
                                    "EXEC".to_owned(),
                                ];
                                client.pipeline(&moves);
                                true
                            }
                            false => transfer(&mut client, from, to, amount),
                        };
                        moved.fetch_add(usize::from(done && !is_plain), Ordering::Relaxed);
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = server.connect();
                while !is_over.load(Ordering::Relaxed) {
                    client.run("TXN.BEGIN");
                    let balances: Option<Vec<i64>> =
                        (0..ACCOUNTS).map(|account| balance(&mut client, account)).collect();
                    // All of them were answered: they belong to one state, whether it can still be committed or not.
                    if let Some(balances) = balances {
                        assert_eq!(balances.iter().sum::<i64>(), START * ACCOUNTS as i64, "{balances:?}");
                        sums.fetch_add(1, Ordering::Relaxed);
                    }
                    client.run("TXN.ROLLBACK");
                }
            });
        }
        writers.into_iter().for_each(|writer| writer.join().expect("a writer has failed"));
        is_over.store(true, Ordering::Relaxed);
    });
    let total: i64 = (0..ACCOUNTS).map(|account| balance(&mut control, account).expect("no transaction")).sum();
    assert_eq!(total, START * ACCOUNTS as i64);
    assert!(moved.load(Ordering::Relaxed) > 0, "no transfer was committed");
    assert!(sums.load(Ordering::Relaxed) > 0, "no reader has seen all accounts");
}

#[test]
fn an_open_transaction_holds_nobody_up() {
    let Some(server) = server() else { return };
    let (mut holder, mut other) = (server.connect(), server.connect());
    holder.run("TXN.BEGIN");
    holder.run("MSET a 1 b 2");
    holder.run("GET c");
    for command in ["SET a 2", "SET c 3", "MSET b 1 a 1", "FLUSHALL", "SET a 4", "BGREWRITEAOF"] {
        assert!(!other.run(command).is_error(), "{command}");
    }
    assert!(is_conflict(&holder.run("TXN.COMMIT")));
}
