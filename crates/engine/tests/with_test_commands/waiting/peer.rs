//! A client for these tests. Knows nothing of what is tested.

use crate::common::place::Place;
use engine::{Blocked, Client, ClientHandle, Flow, Worker};
use execution::execute;
use execution::waiting;
use resp::OwnedRequest;
use std::sync::Arc;

pub(super) struct Peer<'p> {
    pub(super) place: &'p Place,
    pub(super) worker: Worker,
    pub(super) client: Client,
    /// What it waits for, if it does.
    pub(super) blocked: Option<Blocked>,
}

impl<'p> Peer<'p> {
    pub(super) fn new(place: &'p Place, worker: usize) -> Peer<'p> {
        let engine = &place.engine;
        let (address, local) = ("127.0.0.1:9".to_owned(), "127.0.0.1:6379".to_owned());
        let handle = ClientHandle::new(engine.clients.next_id(), address, local, 9, place.now_ms(), Box::new(|| {}));
        let handle = Arc::new(handle);
        engine.clients.add(handle.clone());
        Peer { place, worker: engine.worker(worker), client: Client::new(handle, true), blocked: None }
    }

    /// One that waits with this command.
    pub(super) fn waiting(place: &'p Place, words: &str) -> Peer<'p> {
        let mut peer = Peer::new(place, 0);
        peer.wait(words);
        peer
    }

    /// Executes a request. Its reply; nothing when the client waits.
    pub(super) fn execute(&mut self, words: &str) -> Option<String> {
        // A word may have blanks in it when it is quoted.
        let words = words.split('"').enumerate().flat_map(|(at, part)| match at % 2 {
            0 => part.split_ascii_whitespace().collect::<Vec<_>>(),
            _ => vec![part],
        });
        let request: OwnedRequest = words.map(str::as_bytes).collect();
        let mut reply = Vec::new();
        let engine = &self.place.engine;
        engine.begin(&mut self.worker);
        match execute::execute_to_end(engine, &mut self.worker, &mut self.client, request.as_request(), &mut reply) {
            Flow::Continue => Some(text(reply)),
            Flow::Block(blocked) => {
                assert!(reply.is_empty(), "one that waits has no reply yet");
                self.blocked = Some(blocked);
                None
            }
            Flow::Close | Flow::Paused(_) | Flow::Again | Flow::AwaitScript => {
                panic!("no such command is asked for here")
            }
        }
    }

    /// Executes a request that does not wait.
    pub(super) fn ask(&mut self, words: &str) -> String {
        self.execute(words).unwrap_or_else(|| panic!("{words} waits"))
    }

    /// Executes a request that waits.
    pub(super) fn wait(&mut self, words: &str) {
        let reply = self.execute(words);
        assert_eq!(reply, None, "{words} does not wait");
    }

    /// What it was served with.
    pub(super) fn served(&mut self) -> Option<String> {
        self.outcome(false)
    }

    /// The reply after its timeout.
    pub(super) fn outcome(&mut self, time_is_up: bool) -> Option<String> {
        let blocked = self.blocked.as_ref().expect("it waits");
        let reply = waiting::outcome(&self.place.engine, &self.worker, &mut self.client, &blocked.event, time_is_up)?;
        self.blocked = None;
        Some(text(reply))
    }
}

/// A reply without its types, lengths and line ends: `a 1` for a pair, `nil` for what is not there.
pub(super) fn text(reply: Vec<u8>) -> String {
    let reply = String::from_utf8(reply).expect("replies are text here");
    let words = reply.split("\r\n").filter(|line| !line.is_empty()).filter_map(|line| match line {
        "$-1" | "*-1" => Some("nil"),
        _ if line.starts_with(['*', '$']) => None,
        _ => Some(line.trim_start_matches([':', '+'])),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// So many names of keys, all in different shards.
pub(super) fn names_apart(place: &Place, count: usize) -> Vec<String> {
    let mut shards = std::collections::BTreeSet::new();
    let names = (0..).map(|number| format!("key{number}"));
    names.filter(|name| shards.insert(place.engine.keyspace.shard_of(name.as_bytes()))).take(count).collect()
}
