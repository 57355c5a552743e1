//! Clients race on a few keys, with every kind of request; then one order is looked for in which all of it makes sense:
//! each action at one instant between its request and its reply, each reply what the model says.
//!
//! A failure prints the seed, and the shortest history that has no such order. The seed says what is asked, not how
//! threads take turns, so a failure may take a few runs to come back; HOLDFAST_TEST_ROUNDS asks for more.

mod action;
mod author;
mod checker;
mod client;
mod crash;
mod history;
mod judgements;
#[path = "../model/model.rs"]
mod keys;
mod model;
mod report;
mod scripts;

#[path = "../process/support.rs"]
#[allow(dead_code, reason = "the tests of the process use all of it, these some")]
mod process;

use std::env;

use wire::{Connection, Random, Session};

use author::{Author, KEYS, readings};
use client::{Client, prepare, work_together};
use history::{Clock, History, merged};
use model::Model;
use process::{Holdfast, ok};
use report::{assert_linearizable, readable};
use scripts::LIBRARY;

const ROUNDS: usize = 60;
const CLIENTS: usize = 6;
/// What each client does in a round, or a few more, as a pipeline ends where it ends.
const OPERATIONS: usize = 6;
/// Every connection on a thread of its own, where the server decides by load otherwise.
const SPREAD: &[&str] = &["--threads", "8", "--worker-balance", "spread"];

#[test]
fn racing_clients_agree_on_one_order() {
    let session = Session::start();
    let _library = DeleteLibrary(session.connect());
    race(&|| session.connect());
}

#[test]
fn racing_clients_on_many_threads_agree_on_one_order() {
    let Some(server) = Holdfast::start(SPREAD) else { return };
    race(&|| server.connect());
}

/// The model is what the server is judged by, so it is judged first: by replies to clients that take turns.
#[test]
fn the_model_says_what_the_server_says() {
    const STEPS: usize = 2000;
    const SHOWN: usize = 20;
    let session = Session::start();
    let _library = DeleteLibrary(session.connect());
    let (clock, mut random, mut model) = (Clock::default(), Random::from_env(), Model::default());
    let known = prepare(&mut session.connect());
    let client = |number| Client::new(number, session.connect(), &known, &clock);
    let author = |number| Author::new(Random::new(random.next_u64()), number, KEYS, known.has_own_commands);
    let mut clients: Vec<_> = (0..CLIENTS).map(client).zip((0..CLIENTS).map(author)).collect();
    let mut history = History::new();
    for _ in 0..STEPS {
        let (client, author) = &mut clients[random.below(CLIENTS)];
        let replies = client.send_next(author).ok().expect("the server goes on");
        author.is_told(&replies);
        for (operation, reply) in client.take_history().into_iter().zip(replies) {
            let expected = model.act(operation.client, &operation.action);
            history.push(operation);
            if reply != expected {
                let last = &history[history.len().saturating_sub(SHOWN)..];
                panic!("{}the model says {expected}", readable(last));
            }
        }
    }
}

fn race(connect: &dyn Fn() -> Connection) {
    let (clock, mut random) = (Clock::default(), Random::from_env());
    let known = prepare(&mut connect());
    let mut clients: Vec<Client> = (1..=CLIENTS).map(|number| Client::new(number, connect(), &known, &clock)).collect();
    let mut referee = Client::new(0, connect(), &known, &clock);
    for round in 0..rounds() {
        ok(referee.connection(), "FLUSHALL");
        let keys = &KEYS[..2 + random.below(KEYS.len() - 1)];
        send_all(&mut referee, Author::new(Random::new(random.next_u64()), 0, keys, known.has_own_commands).opening());
        let raced = work_together(&mut clients, &mut random, keys, OPERATIONS).ok().expect("no connection is closed");
        send_all(&mut referee, readings(known.has_own_commands));
        assert_linearizable(&merged([referee.take_history(), raced]), &format!("round {round}"));
    }
}

/// FLUSHALL leaves functions, and other tests may share the server.
struct DeleteLibrary(Connection);

impl Drop for DeleteLibrary {
    fn drop(&mut self) {
        self.0.run(&format!("FUNCTION DELETE {LIBRARY}"));
    }
}

fn send_all(client: &mut Client<'_>, actions: Vec<action::Action>) {
    assert!(client.send(actions).is_ok(), "the server has closed the connection");
}

/// `HOLDFAST_TEST_ROUNDS`, or what a test has time for.
fn rounds() -> usize {
    env::var("HOLDFAST_TEST_ROUNDS").map_or(ROUNDS, |given| given.parse().expect("HOLDFAST_TEST_ROUNDS is a number"))
}
