//! Sends actions over one connection and writes down what came back, and when.

use std::sync::Barrier;
use std::thread;

use wire::{Connection, Random, Reply};

use crate::action::Action;
use crate::author::{Author, index_definition};
use crate::history::{Answer, Clock, History, Operation, merged};
use crate::scripts::{SCRIPTS, library};

pub(crate) struct Client<'a> {
    number: usize,
    connection: Connection,
    known: &'a Known,
    clock: &'a Clock,
    history: History,
}

/// What the clients of a server have to know of it.
pub(crate) struct Known {
    /// Of the scripts, which it has as functions too.
    digests: Vec<String>,
    /// It is a Holdfast, with an index of the keys in play.
    pub(crate) has_own_commands: bool,
}

/// The server closed the connection.
pub(crate) struct HungUp;

impl<'a> Client<'a> {
    pub(crate) fn new(number: usize, connection: Connection, known: &'a Known, clock: &'a Clock) -> Client<'a> {
        Client { number, connection, known, clock, history: History::new() }
    }

    pub(crate) fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// What it has done since it was last asked.
    pub(crate) fn take_history(&mut self) -> History {
        std::mem::take(&mut self.history)
    }

    /// Sends all actions in one write; each may take effect from then on.
    pub(crate) fn send(&mut self, actions: Vec<Action>) -> Result<Vec<Reply>, HungUp> {
        let requests: Vec<Vec<Vec<String>>> =
            actions.iter().map(|action| action.requests(&self.known.digests)).collect();
        requests.iter().flatten().for_each(|request| self.connection.queue(request));
        let invoked = self.clock.now();
        self.connection.flush();
        let mut replies = Vec::new();
        for (action, requests) in actions.into_iter().zip(requests) {
            // Once it is closed it stays closed.
            for request in &requests[..requests.len() - 1] {
                check_queued(request, &self.connection.read());
            }
            replies.extend(self.receive(action, invoked));
        }
        if self.history.last().is_some_and(|last| matches!(last.answer, Answer::None)) {
            return Err(HungUp);
        }
        Ok(replies)
    }

    /// Sends each request of an action after the reply to the one before it; the last one lets it take effect.
    pub(crate) fn send_in_steps(&mut self, action: Action) -> Result<Vec<Reply>, HungUp> {
        let mut requests = action.requests(&self.known.digests);
        let last = requests.pop().expect("an action has a request");
        for request in requests {
            let reply = self.connection.run_args(&request);
            if reply == Reply::Closed {
                return Err(HungUp);
            }
            check_queued(&request, &reply);
        }
        self.connection.queue(&last);
        let invoked = self.clock.now();
        self.receive(action, invoked).map(|reply| vec![reply]).ok_or(HungUp)
    }

    fn receive(&mut self, action: Action, invoked: u64) -> Option<Reply> {
        let reply = match self.connection.read() {
            Reply::Closed => None,
            reply => Some(action.tidy(reply)),
        };
        let returned = if reply.is_some() { self.clock.now() } else { u64::MAX };
        let answer = reply.clone().map_or(Answer::None, Answer::Reply);
        self.history.push(Operation { client: self.number, action, answer, invoked, returned });
        reply
    }

    /// Does what its author makes up, until it has done so much or the server ends.
    fn work(&mut self, mut author: Author, operations: usize) -> Result<(), HungUp> {
        while self.history.len() < operations {
            let replies = self.send_next(&mut author)?;
            author.is_told(&replies);
        }
        self.send(author.ending()).map(|_| ())
    }

    /// Sends what comes next, in one write or in steps.
    pub(crate) fn send_next(&mut self, author: &mut Author) -> Result<Vec<Reply>, HungUp> {
        let mut actions = author.next();
        match (actions.pop(), author.in_steps()) {
            (Some(only), true) if actions.is_empty() => self.send_in_steps(only),
            (last, _) => self.send(actions.into_iter().chain(last).collect()),
        }
    }
}

/// What comes before the last request of an action is answered with OK or QUEUED, but for the one that is refused.
#[track_caller]
fn check_queued(request: &[String], reply: &Reply) {
    let fine = match request {
        _ if *reply == Reply::Closed => true,
        [word] if word == "MULTI" => reply.to_string() == "+OK",
        [word] if word == "INCR" => reply.is_error(),
        _ => reply.to_string() == "+QUEUED",
    };
    assert!(fine, "{request:?}: {reply}");
}

/// All clients at work at once; what they have done, as an error where the server has closed a connection.
pub(crate) fn work_together(
    clients: &mut [Client<'_>],
    random: &mut Random,
    keys: &'static [&'static str],
    operations: usize,
) -> Result<History, History> {
    let start = &Barrier::new(clients.len());
    let all_finished = thread::scope(|scope| {
        let mut workers = Vec::new();
        for client in clients.iter_mut() {
            let author =
                Author::new(Random::new(random.next_u64()), client.number, keys, client.known.has_own_commands);
            workers.push(scope.spawn(move || {
                start.wait();
                client.work(author, operations)
            }));
        }
        // All are waited for, whatever the first of them says.
        let finished: Vec<bool> =
            workers.into_iter().map(|worker| worker.join().expect("a client failed").is_ok()).collect();
        finished.into_iter().all(|finished| finished)
    });
    let history = merged(clients.iter_mut().map(Client::take_history));
    if all_finished { Ok(history) } else { Err(history) }
}

/// Makes the scripts known to a server, also as functions, and the index where it can have one.
pub(crate) fn prepare(connection: &mut Connection) -> Known {
    let load = |source: &str| connection.run_with("SCRIPT LOAD", &[source.as_bytes()]).text().to_owned();
    let digests = SCRIPTS.iter().map(|script| script.source).map(load).collect();
    assert!(!connection.run_with("FUNCTION LOAD REPLACE", &[library().as_bytes()]).is_error());
    let has_own_commands = match connection.run(&index_definition()).to_string().as_str() {
        // After a start it is there.
        "+OK" | "-ERR the name 'by_f' is taken by an index" => true,
        reply if reply.contains("ERR unknown command") => false,
        reply => panic!("{reply}"),
    };
    Known { digests, has_own_commands }
}
