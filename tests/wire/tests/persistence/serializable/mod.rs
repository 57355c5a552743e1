//! Transactions and scripts of many clients over the same few keys, through kills of the server: whatever they were told
//! could have happened one after the other.

mod history;

use std::collections::BTreeSet;
use std::sync::RwLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use history::{Outcome, Transaction, Writer, check};
use wire::{Connection, Random, Reply, Server};

use crate::support::Home;

const CLIENTS: usize = 8;
const KEYS: usize = 6;
const KILLS: usize = 5;
const COMMITS_A_ROUND: u64 = 2000;
const THREADS: &[&str] = &["--threads", "4", "--worker-balance", "spread"];

#[test]
fn what_transactions_were_told_could_have_happened_one_after_the_other() {
    let Some(home) = Home::fresh() else { return };
    let mut random = Random::from_env();
    let numbers = AtomicU64::new(1);
    let mut history = Vec::new();
    for _ in 0..KILLS {
        let server = home.start(THREADS);
        let commits = 1 + random.next_u64() % COMMITS_A_ROUND;
        history.extend(round(&server, random.next_u64(), &numbers, commits));
        server.kill();
    }
    let server = home.start(THREADS);
    let last: Vec<Writer> = (0..KEYS).map(|key| writer(&server.connect().run(&read(key)))).collect();
    let committed = history.iter().filter(|one| matches!(one.outcome, Outcome::Committed(_))).count();
    assert!(committed > KILLS, "{committed} of {} were committed", history.len());
    check(&history, &last).unwrap_or_else(|wrong| panic!("{wrong}"));
}

/// All clients run transactions until so many were committed; then the server is killed.
fn round(server: &Server, seed: u64, numbers: &AtomicU64, commits: u64) -> Vec<Transaction> {
    let (done, server_id) = (&AtomicU64::new(0), server.process_id());
    // Held by those whose reads would be lost with the answer, so that nobody could tell what they have written over.
    let unread = &RwLock::new(());
    let client = |number: usize| {
        let (mut connection, mut random) = (server.connect(), Random::new(seed ^ number as u64));
        move || {
            let mut history = Vec::new();
            loop {
                let number = numbers.fetch_add(1, SeqCst);
                let at_once = random.one_in(2);
                let guard = at_once.then(|| unread.read().expect("no client failed"));
                let seen = match at_once && random.one_in(2) {
                    true => script(&mut connection, &mut random, number),
                    false => transaction(&mut connection, &mut random, number, at_once),
                };
                drop(guard);
                let Seen { transaction, alive } = seen;
                let committed = matches!(transaction.outcome, Outcome::Committed(_));
                history.push(transaction);
                if !alive {
                    return history;
                }
                if committed && done.fetch_add(1, SeqCst) + 1 == commits {
                    let _guard = unread.write().expect("no client failed");
                    let _ = std::process::Command::new("kill").args(["-s", "KILL", &server_id.to_string()]).status();
                    while !matches!(connection.run("PING"), Reply::Closed) {}
                }
            }
        }
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(client(number))).collect();
        clients.into_iter().flat_map(|client| client.join().expect("a client failed")).collect()
    })
}

/// What a client has seen of a transaction, and whether the server is still there.
struct Seen {
    transaction: Transaction,
    alive: bool,
}

/// Keys of every type that has a value to write a number to.
fn read(key: usize) -> String {
    match key % 3 {
        0 => format!("GET string:{key}"),
        1 => format!("HGET hash:{key} value"),
        _ => format!("CELL.GET cell:{key}"),
    }
}

fn write(key: usize, number: u64) -> String {
    match key % 3 {
        0 => format!("SET string:{key} {number}"),
        1 => format!("HSET hash:{key} value {number}"),
        _ => format!("CELL.SET cell:{key} {number}"),
    }
}

fn writer(reply: &Reply) -> Writer {
    (!reply.is_nil()).then(|| reply.text().parse().expect("a number"))
}

/// Some keys to read, in any order, each with whether it is written then.
fn plan(random: &mut Random) -> Vec<(usize, bool)> {
    let mut keys: Vec<usize> = (0..KEYS).collect();
    (0..1 + random.below(4))
        .map(|_| {
            let at = random.below(keys.len());
            (keys.swap_remove(at), random.one_in(2))
        })
        .collect()
}

/// A transaction by TXN.BEGIN, step by step or in one write.
fn transaction(connection: &mut Connection, random: &mut Random, number: u64, at_once: bool) -> Seen {
    let plan = plan(random);
    let commits = !random.one_in(10);
    let mut steps = vec![Step::Begin];
    for (key, writes) in &plan {
        steps.push(Step::Read(*key));
        if *writes {
            steps.extend([Step::Write(*key), Step::ReadOwn(*key)]);
        }
    }
    steps.push(if commits { Step::Commit } else { Step::RollBack });
    if at_once {
        steps.iter().for_each(|step| connection.queue_line(&step.line(number)));
    }
    let mut seen = Transaction { number, reads: Vec::new(), writes: Default::default(), outcome: Outcome::Refused };
    let mut failed = false;
    for step in steps {
        let line = step.line(number);
        if !at_once {
            connection.queue_line(&line);
        }
        match (connection.read(), step) {
            (Reply::Closed, _) => {
                if matches!(step, Step::Commit) && !failed {
                    seen.writes = written(&plan);
                    seen.outcome = Outcome::Unknown;
                }
                return Seen { transaction: seen, alive: false };
            }
            (Reply::Error(text), step) if text.starts_with(b"CONFLICT") => {
                assert!(!matches!(step, Step::Begin | Step::RollBack), "{line}");
                failed = true;
                // Step by step it gives up; in one write the rest must answer the same.
                if !at_once && !matches!(step, Step::Commit) {
                    match connection.run("TXN.ROLLBACK") {
                        Reply::Closed => return Seen { transaction: seen, alive: false },
                        reply => assert_eq!(reply, Reply::Simple(b"OK".to_vec())),
                    }
                    break;
                }
            }
            (Reply::Simple(ok), Step::RollBack) => assert_eq!(ok, b"OK"),
            (reply, _) if failed => panic!("{line} was answered with {reply} after a conflict"),
            (reply, Step::Read(key)) => seen.reads.push((key, writer(&reply))),
            (reply, Step::ReadOwn(_)) => assert_eq!(writer(&reply), Some(number), "{line}"),
            (reply, Step::Commit) => {
                seen.writes = written(&plan);
                seen.outcome = Outcome::Committed(Some(reply.integer()));
            }
            (reply, Step::Begin | Step::Write(_) | Step::RollBack) => {
                assert!(!reply.is_error(), "{line} was answered with {reply}");
            }
        }
    }
    Seen { transaction: seen, alive: true }
}

fn written(plan: &[(usize, bool)]) -> BTreeSet<usize> {
    plan.iter().filter(|(_, writes)| *writes).map(|(key, _)| *key).collect()
}

#[derive(Clone, Copy)]
enum Step {
    Begin,
    Read(usize),
    Write(usize),
    /// Of a key that it has written.
    ReadOwn(usize),
    Commit,
    RollBack,
}

impl Step {
    fn line(self, number: u64) -> String {
        match self {
            Step::Begin => "TXN.BEGIN".into(),
            Step::Read(key) | Step::ReadOwn(key) => read(key),
            Step::Write(key) => write(key, number),
            Step::Commit => "TXN.COMMIT".into(),
            Step::RollBack => "TXN.ROLLBACK".into(),
        }
    }
}

/// The same by a script that declares its keys.
fn script(connection: &mut Connection, random: &mut Random, number: u64) -> Seen {
    const SCRIPT: &str = "local replies = {}
        for at = 1, #KEYS do
            local kind, writes = string.sub(KEYS[at], 1, 4), ARGV[at + 1] == '1'
            if kind == 'stri' then
                replies[at] = redis.call('GET', KEYS[at]) or 0
                if writes then redis.call('SET', KEYS[at], ARGV[1]) end
            elseif kind == 'hash' then
                replies[at] = redis.call('HGET', KEYS[at], 'value') or 0
                if writes then redis.call('HSET', KEYS[at], 'value', ARGV[1]) end
            else
                replies[at] = redis.call('CELL.GET', KEYS[at]) or 0
                if writes then redis.call('CELL.SET', KEYS[at], ARGV[1]) end
            end
        end
        return replies";
    let plan = plan(random);
    let name = |key: usize| format!("{}:{key}", ["string", "hash", "cell"][key % 3]);
    let mut args = vec!["EVAL".to_string(), SCRIPT.into(), plan.len().to_string()];
    args.extend(plan.iter().map(|(key, _)| name(*key)));
    args.push(number.to_string());
    args.extend(plan.iter().map(|(_, writes)| u8::from(*writes).to_string()));
    let mut seen = Transaction { number, reads: Vec::new(), writes: Default::default(), outcome: Outcome::Refused };
    match connection.run_args(&args) {
        // It was killed before this was sent.
        Reply::Closed => Seen { transaction: seen, alive: false },
        reply => {
            let read = |reply: &Reply| if let Reply::Integer(0) = reply { None } else { writer(reply) };
            seen.reads = plan.iter().zip(reply.items()).map(|((key, _), reply)| (*key, read(reply))).collect();
            seen.writes = written(&plan);
            seen.outcome = Outcome::Committed(None);
            Seen { transaction: seen, alive: true }
        }
    }
}
