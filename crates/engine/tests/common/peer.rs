//! A client and its worker, as a connection has them: it may wait, and its commands may take several slices. Knows how to ask; refuses to
//! know what.

use super::place::Place;
use engine::{Blocked, Client, ClientHandle, Engine, Flow, Worker};
use resp::OwnedRequest;
use std::sync::Arc;

/// Far more than any command of these tests takes.
pub(crate) const SLICES_MAX: usize = 20_000;

pub(crate) struct Peer<'p> {
    pub(crate) place: &'p Place,
    pub(crate) engine: &'p Engine,
    pub(crate) worker: Worker,
    pub(crate) client: Client,
    /// What it waits for: a key, a record, or the background thread, which does its command.
    pub(crate) blocked: Option<Blocked>,
}

impl<'p> Peer<'p> {
    pub(crate) fn new(place: &'p Place, worker: usize) -> Peer<'p> {
        let engine: &Engine = &place.engine;
        let (address, local) = ("127.0.0.1:9".to_owned(), "127.0.0.1:6379".to_owned());
        let handle = ClientHandle::new(engine.clients.next_id(), address, local, 9, place.now_ms(), Box::new(|| {}));
        let handle = Arc::new(handle);
        engine.clients.add(handle.clone());
        Peer { place, engine, worker: engine.worker(worker), client: Client::new(handle, true), blocked: None }
    }

    /// One that waits with this command.
    pub(crate) fn waiting(place: &'p Place, words: &str) -> Peer<'p> {
        let mut peer = Peer::new(place, 0);
        peer.wait(words);
        peer
    }

    /// Executes a slice of a command. The reply, after the last one; `None` when it is to be executed again, or when the client waits.
    pub(crate) fn slice(&mut self, words: &str) -> Option<Vec<u8>> {
        // A word may have blanks in it when it is quoted.
        let words = words.split('"').enumerate().flat_map(|(at, part)| match at % 2 {
            0 => part.split_ascii_whitespace().collect::<Vec<_>>(),
            _ => vec![part],
        });
        let request: OwnedRequest = words.map(str::as_bytes).collect();
        let mut reply = Vec::new();
        self.engine.begin(&mut self.worker);
        let flow = engine::execute(self.engine, &mut self.worker, &mut self.client, request.as_request(), &mut reply);
        assert!(matches!(flow, Flow::Continue) || reply.is_empty(), "there is no reply before the end");
        match flow {
            Flow::Continue => return Some(reply),
            Flow::Again => {}
            Flow::Block(blocked) => self.blocked = Some(blocked),
            Flow::Close | Flow::Paused(_) | Flow::AwaitScript => panic!("no such command is asked for here"),
        }
        None
    }

    /// Like `slice`, for a command that may have been left to the background thread: a slice there.
    pub(crate) fn step(&mut self, words: &str) -> Option<Vec<u8>> {
        let is_in_background = self.blocked.is_some();
        if is_in_background {
            assert!(engine::serve_background_slice(self.engine, &mut self.worker), "{words} waits for nothing");
        } else if let Some(reply) = self.slice(words) {
            return Some(reply);
        }
        self.outcome(false)
    }

    /// Executes a command to its end, and `between` between two of its slices. The reply, and how many slices there were.
    pub(crate) fn ask_in_slices(&mut self, words: &str, mut between: impl FnMut()) -> (String, usize) {
        for slices in 1..SLICES_MAX {
            match self.step(words) {
                Some(reply) => return (text(reply), slices),
                None => between(),
            }
        }
        panic!("{words} does not come to an end");
    }

    /// Executes a request of a client that may wait for keys or records. `None` when it does.
    pub(crate) fn execute(&mut self, words: &str) -> Option<Vec<u8>> {
        for _ in 0..SLICES_MAX {
            match self.slice(words) {
                None if self.blocked.is_none() => {}
                reply => return reply,
            }
        }
        panic!("{words} does not come to an end");
    }

    /// Executes a request that does not wait, and shows its reply as `flat` does.
    pub(crate) fn ask(&mut self, words: &str) -> String {
        flat(self.execute(words).unwrap_or_else(|| panic!("{words} waits")))
    }

    /// Executes a request that neither waits nor fails.
    pub(crate) fn say(&mut self, words: &str) -> String {
        let reply = text(self.execute(words).unwrap_or_else(|| panic!("{words} waits")));
        assert!(!reply.starts_with('-'), "{words}: {reply}");
        reply
    }

    /// Executes a command to its end, also where the background thread does it.
    pub(crate) fn raw(&mut self, words: &str) -> String {
        self.ask_in_slices(words, || {}).0
    }

    /// Executes a request that waits.
    pub(crate) fn wait(&mut self, words: &str) {
        let reply = self.execute(words);
        assert_eq!(reply, None, "{words} does not wait");
    }

    /// The reply that has ended its wait, by a timeout if its time is up.
    pub(crate) fn outcome(&mut self, time_is_up: bool) -> Option<Vec<u8>> {
        let event = &self.blocked.as_ref()?.event;
        let reply = engine::outcome(self.engine, &self.worker, &mut self.client, event, time_is_up)?;
        self.blocked = None;
        Some(reply)
    }

    /// What it was served with, as `flat` shows it.
    pub(crate) fn served(&mut self) -> Option<String> {
        self.outcome(false).map(flat)
    }
}

/// A reply as text. A blob is shown with escapes.
pub(crate) fn text(reply: Vec<u8>) -> String {
    match reply.iter().all(|byte| byte.is_ascii_graphic() || b" \r\n".contains(byte)) {
        true => reply.into_iter().map(char::from).collect(),
        false => reply.escape_ascii().to_string().replace("\\r\\n", "\r\n"),
    }
}

/// A reply without its types, lengths and line ends: `a 1` for a pair, `nil` for what is not there.
pub(crate) fn flat(reply: impl Into<Vec<u8>>) -> String {
    let reply = String::from_utf8(reply.into()).expect("replies are text here");
    let words = reply.split("\r\n").filter(|line| !line.is_empty()).filter_map(|line| match line {
        "$-1" | "*-1" => Some("nil"),
        _ if line.starts_with(['*', '$']) => None,
        _ => Some(line.trim_start_matches([':', '+'])),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The values of a reply, whatever lists they are in.
pub(crate) fn tokens(reply: &[u8]) -> Vec<String> {
    let (mut tokens, mut rest) = (Vec::new(), reply);
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let line = String::from_utf8_lossy(&rest[..end]).into_owned();
        rest = &rest[end + 2..];
        match line.split_at(1) {
            ("$", "-1") => tokens.push("(nil)".to_owned()),
            ("$", len) => {
                let len: usize = len.parse().expect("a length");
                tokens.push(String::from_utf8_lossy(&rest[..len]).into_owned());
                rest = &rest[len + 2..];
            }
            ("*" | "%" | "~", _) => {}
            (_, value) => tokens.push(value.to_owned()),
        }
    }
    tokens
}

/// So many names of keys, all in different shards.
pub(crate) fn names_apart(place: &Place, count: usize) -> Vec<String> {
    let mut shards = std::collections::BTreeSet::new();
    let names = (0..).map(|number| format!("key{number}"));
    names.filter(|name| shards.insert(place.engine.keyspace.shard_of(name.as_bytes()))).take(count).collect()
}
