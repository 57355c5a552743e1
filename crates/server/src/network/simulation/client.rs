//! A simulated client: the requests that it sends, and the model that its replies are checked against. Refuses to know
//! how the server computes them.

use super::stream::{Pipe, take};
use fastrand::Rng;
use resp::OwnedRequest;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The list that clients push to and take from, and the channel that they publish to.
pub(super) const QUEUE: &str = "queue";
const CHANNEL: &str = "news";
/// The key of a long value, and its length: more than fits into one piece of output.
pub(super) const LONG_KEY: &str = "long";
pub(super) const LONG_BYTES: usize = 300_000;

/// A script that becomes long, and leaves its worker, if the clock ticks fast. It locks all keys.
pub(super) const SCRIPT: &str = "for i = 1, 20 do redis.call('EXISTS', 'queue') end return ARGV[1]";

/// The kinds of requests in a simulation.
#[derive(Clone, Copy)]
pub(super) struct Menu {
    pub(super) waits: bool,
    pub(super) long: bool,
    pub(super) messages: bool,
    pub(super) scripts: bool,
    pub(super) closes: bool,
}

/// What a reply must be.
enum Expected {
    Exact(Vec<u8>),
    /// One more than the previous count.
    Count,
    Integer,
    /// An element that no other client has got, or none.
    Element,
    /// The reply of WAITAOF.
    Durable,
}

struct Planned {
    /// Where the request ends in the client's bytes.
    end: usize,
    expected: Expected,
    /// Its client may have to wait: it gets no reply then if it half-closes.
    waits: bool,
}

pub(super) struct SimulatedClient {
    pub(super) pipe: Rc<RefCell<Pipe>>,
    requests: Vec<Planned>,
    /// Its counter, which no other client uses.
    pub(super) counter: String,
    /// All bytes that it sends, and how many of them have arrived.
    bytes: Vec<u8>,
    pub(super) sent: usize,
    /// The request after which the server closes.
    closes_at: Option<usize>,
    received: Vec<u8>,
    /// How many replies it has, and how many of them were counts.
    pub(super) replies: usize,
    pub(super) counted: u64,
    /// The last message of each publisher.
    messages: BTreeMap<String, usize>,
    pub(super) elements: Vec<String>,
    pub(super) trouble: Trouble,
}

/// Events that excuse missing replies.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// It was killed, has exceeded a limit, or is gone: even a reply may be cut.
    pub(super) is_cut: bool,
    /// The journal has failed: replies may be errors, and the last ones are dropped.
    pub(super) journal_failed: bool,
    /// How many complete requests it had sent when it half-closed or the server stopped.
    pub(super) complete: Option<usize>,
    /// Clients were paused.
    pub(super) was_paused: bool,
    /// The server stops, and a request may wait for the lock of a long script: it is not executed then.
    pub(super) stopped_with_scripts: bool,
    /// The counter when it was killed: nothing is executed from then on.
    pub(super) counted_at_kill: Option<u64>,
}

impl SimulatedClient {
    fn new(number: usize, window: usize) -> SimulatedClient {
        SimulatedClient {
            pipe: Rc::new(RefCell::new(Pipe::new(window))),
            requests: Vec::new(),
            counter: format!("counter:{number}"),
            bytes: Vec::new(),
            sent: 0,
            closes_at: None,
            received: Vec::new(),
            replies: 0,
            counted: 0,
            messages: BTreeMap::new(),
            elements: Vec::new(),
            trouble: Trouble::default(),
        }
    }

    /// A client that sends these requests and gets these replies.
    pub(super) fn asking(requests: &[(&[&str], &str)]) -> SimulatedClient {
        let mut client = SimulatedClient::new(0, usize::MAX);
        requests.iter().for_each(|(words, reply)| client.plan(words, exact(reply), false));
        client
    }

    /// A client with random requests.
    pub(super) fn random(number: usize, window: usize, rng: &mut Rng, menu: Menu) -> SimulatedClient {
        let mut client = SimulatedClient::new(number, window);
        let count = if rng.u8(..4) == 0 { rng.usize(1..60) } else { rng.usize(1..12) };
        let subscribes = menu.messages && rng.u8(..4) == 0;
        if subscribes {
            let reply = format!("*3\r\n$9\r\nsubscribe\r\n$4\r\n{CHANNEL}\r\n:1\r\n");
            client.plan(&["SUBSCRIBE", CHANNEL], Expected::Exact(reply.into_bytes()), false);
        }
        for index in 0..count {
            match subscribes {
                true => client.plan_ping(index),
                false => client.plan_request(number, index, rng, menu),
            }
            if client.closes_at.is_some() {
                // The following requests must not be executed.
                client.plan(&["INCR", &client.counter.clone()], Expected::Count, false);
                break;
            }
        }
        client
    }

    fn plan(&mut self, words: &[&str], expected: Expected, waits: bool) {
        let request: OwnedRequest = words.iter().map(|word| word.as_bytes()).collect();
        self.bytes.extend_from_slice(&request.as_request().encoded());
        self.requests.push(Planned { end: self.bytes.len(), expected, waits });
    }

    /// Plans a PING, nearly the only request of a client that has subscribed.
    fn plan_ping(&mut self, index: usize) {
        let text = format!("ping {index}");
        let reply = format!("*2\r\n$4\r\npong\r\n${}\r\n{text}\r\n", text.len());
        self.plan(&["PING", &text], Expected::Exact(reply.into_bytes()), false);
    }

    fn plan_request(&mut self, number: usize, index: usize, rng: &mut Rng, menu: Menu) {
        let text = format!("{number}.{index}");
        match rng.u8(..24) {
            0..=4 => self.plan(&["INCR", &self.counter.clone()], Expected::Count, false),
            5..=7 => self.plan(&["ECHO", &text], bulk(&text), false),
            8 => {
                self.plan(&["MULTI"], exact("+OK\r\n"), false);
                self.plan(&["ECHO", &text], exact("+QUEUED\r\n"), false);
                self.plan(&["EXEC"], exact(&format!("*1\r\n${}\r\n{text}\r\n", text.len())), false);
            }
            9..=11 => self.plan(&["RPUSH", QUEUE, &text], Expected::Integer, false),
            12 | 13 if menu.waits => {
                let timeout = format!("0.{:03}", rng.usize(1..400));
                self.plan(&["BLPOP", QUEUE, &timeout], Expected::Element, true);
            }
            14 if menu.waits => {
                let timeout = if rng.bool() { "0" } else { "100" };
                self.plan(&["WAITAOF", "1", "0", timeout], Expected::Durable, true);
            }
            15 | 16 if menu.long => {
                let len = rng.usize(1..LONG_BYTES);
                let reply = [format!("${len}\r\n").as_bytes(), &vec![b'x'; len], b"\r\n"].concat();
                self.plan(&["GETRANGE", LONG_KEY, "0", &(len - 1).to_string()], Expected::Exact(reply), false);
            }
            17 if menu.long => {
                let text = text.repeat(rng.usize(1..15_000));
                self.plan(&["ECHO", &text], bulk(&text), false);
            }
            18 | 19 if menu.messages => self.plan(&["PUBLISH", CHANNEL, &text], Expected::Integer, false),
            20 | 21 if menu.scripts => self.plan(&["EVAL", SCRIPT, "0", &text], bulk(&text), false),
            22 if menu.closes && rng.bool() => {
                self.closes_at = Some(self.requests.len());
                match rng.bool() {
                    true => self.plan(&["QUIT"], exact("+OK\r\n"), false),
                    false => {
                        self.bytes.extend_from_slice(b"*1\r\n$x\r\n");
                        let expected = exact("-ERR Protocol error: invalid bulk length\r\n");
                        self.requests.push(Planned { end: self.bytes.len(), expected, waits: false });
                    }
                }
            }
            _ => self.plan(&["PING"], exact("+PONG\r\n"), false),
        }
    }

    /// How many bytes are left to send.
    pub(super) fn left(&self) -> usize {
        let pipe = self.pipe.borrow();
        if pipe.is_half_closed || pipe.is_reset { 0 } else { self.bytes.len() - self.sent }
    }

    /// Lets the next `len` bytes arrive.
    pub(super) fn send(&mut self, len: usize) {
        if len == 0 {
            return;
        }
        let mut pipe = self.pipe.borrow_mut();
        pipe.to_server.extend(&self.bytes[self.sent..self.sent + len]);
        pipe.notify_reader();
        self.sent += len;
    }

    /// Lets the rest of its next request arrive.
    pub(super) fn send_request(&mut self) {
        self.send(self.requests[self.complete()].end - self.sent);
    }

    pub(super) fn send_all(&mut self) {
        self.send(self.left());
    }

    /// Reads up to `len` bytes, and checks the replies that are complete.
    pub(super) fn read(&mut self, len: usize) {
        let mut pipe = self.pipe.borrow_mut();
        let len = len.min(pipe.to_client.len());
        if len == 0 {
            return;
        }
        let at = self.received.len();
        self.received.resize(at + len, 0);
        take(&mut pipe.to_client, &mut self.received[at..]);
        pipe.notify_writer();
        drop(pipe);
        let received = std::mem::take(&mut self.received);
        let mut at = 0;
        while let Some(len) = frame_len(&received[at..]) {
            self.check(&received[at..at + len]);
            at += len;
        }
        self.received = received;
        self.received.drain(..at);
    }

    pub(super) fn half_close(&mut self) {
        self.trouble.complete.get_or_insert(self.complete());
        let mut pipe = self.pipe.borrow_mut();
        pipe.is_half_closed = true;
        pipe.notify_reader();
    }

    /// Disconnects without notice.
    pub(super) fn reset(&mut self) {
        self.trouble.is_cut = true;
        let mut pipe = self.pipe.borrow_mut();
        pipe.is_reset = true;
        pipe.notify_reader();
        pipe.notify_writer();
    }

    /// Notes that the server stops.
    pub(super) fn note_stop(&mut self) {
        self.trouble.complete.get_or_insert(self.complete());
    }

    /// How many requests have arrived completely.
    pub(super) fn complete(&self) -> usize {
        self.requests.partition_point(|request| request.end <= self.sent)
    }

    fn check(&mut self, frame: &[u8]) {
        let text = String::from_utf8_lossy(frame);
        if let Some(message) = text.strip_prefix("*3\r\n$7\r\nmessage\r\n") {
            return self.check_message(message);
        }
        let index = self.replies;
        assert!(index < self.complete(), "a reply without a request: {text:.200}");
        assert!(self.closes_at.is_none_or(|closes_at| index <= closes_at), "a reply after the close: {text:.200}");
        self.replies += 1;
        let text = text.as_ref();
        if self.trouble.journal_failed && text.starts_with("-MISCONF") {
            return;
        }
        match &self.requests[index].expected {
            Expected::Exact(exact) => {
                assert!(frame == exact, "request {index}: {text:.200}, not {:.200}", String::from_utf8_lossy(exact));
            }
            Expected::Count => {
                self.counted += 1;
                let expected = format!(":{}\r\n", self.counted);
                // A change without a reply, because the journal has failed, may have been made.
                assert!(text == expected || self.trouble.journal_failed, "request {index}: {text}, not {expected}");
            }
            Expected::Integer => assert!(text.starts_with(':'), "request {index}: {text}"),
            Expected::Durable => {
                let is_known = text.starts_with("*2\r\n:") || text.starts_with("-ERR WAITAOF cannot be used");
                assert!(is_known || is_unblocked(text), "request {index}: {text}");
            }
            Expected::Element => match text.strip_prefix("*2\r\n$5\r\nqueue\r\n") {
                Some(element) => self.elements.push(last_line(element).to_owned()),
                None => assert!(text == "*-1\r\n" || is_unblocked(text), "request {index}: {text}"),
            },
        }
    }

    /// Checks that messages of a publisher arrive in the order in which they were published.
    fn check_message(&mut self, message: &str) {
        let (publisher, index) = last_line(message).split_once('.').expect("a message is complete");
        let (last, index) = (self.messages.get(publisher), index.parse().expect("a message is complete"));
        assert!(last.is_none_or(|last| *last < index), "message {index} of {publisher} after {last:?}");
        self.messages.insert(publisher.to_owned(), index);
    }

    /// Checks the client's replies when nothing more happens.
    pub(super) fn check_end(&self, counter: Option<u64>, is_stopping: bool) {
        let trouble = &self.trouble;
        let must_answer = self.must_answer();
        assert!(self.replies >= must_answer, "stuck: {} replies, {must_answer} requests, {trouble:?}", self.replies);
        let has_partial = !self.received.is_empty();
        assert!(!has_partial || trouble.is_cut, "half a reply: {:.200}", String::from_utf8_lossy(&self.received));
        if let Some(counter) = counter {
            self.check_counter(counter);
        }
        let may_be_closed = trouble.is_cut || trouble.journal_failed || trouble.complete.is_some();
        let is_closed = self.pipe.borrow().is_closed;
        let closes = self.closes_at.is_some_and(|at| self.replies > at);
        assert!(is_closed || !is_stopping, "open, though the server has stopped");
        assert!(may_be_closed || is_closed == closes, "closed: {is_closed}, after {} replies", self.replies);
    }

    /// Checks that the executed requests are those that were answered.
    fn check_counter(&self, counter: u64) {
        let executable = self.complete().min(self.closes_at.map_or(usize::MAX, |at| at + 1));
        let counts = |request: &&Planned| matches!(request.expected, Expected::Count);
        let executable = self.requests[..executable].iter().filter(counts).count() as u64;
        assert!(counter <= executable, "executed {counter} of {executable} requests");
        match self.trouble.is_cut {
            true => assert!(counter >= self.counted, "{} replies, executed {counter}", self.counted),
            false => assert_eq!(counter, self.counted, "executed, and replies"),
        }
        if let Some(counted) = self.trouble.counted_at_kill {
            assert_eq!(counter, counted, "executed after the connection was killed");
        }
    }

    /// How many requests must be answered.
    fn must_answer(&self) -> usize {
        let Trouble { is_cut, journal_failed, complete, was_paused, stopped_with_scripts, .. } = self.trouble;
        let all = self.closes_at.map_or(self.requests.len(), |at| at + 1);
        match complete {
            _ if is_cut || journal_failed => 0,
            None => all,
            Some(_) if was_paused || stopped_with_scripts => 0,
            Some(complete) => {
                let first_wait = self.requests.iter().position(|request| request.waits).unwrap_or(usize::MAX);
                all.min(complete).min(first_wait)
            }
        }
    }
}

fn exact(text: &str) -> Expected {
    Expected::Exact(text.as_bytes().to_vec())
}

fn bulk(text: &str) -> Expected {
    exact(&format!("${}\r\n{text}\r\n", text.len()))
}

fn is_unblocked(reply: &str) -> bool {
    reply.starts_with("-UNBLOCKED")
}

fn last_line(text: &str) -> &str {
    text.trim_end().rsplit("\r\n").next().unwrap_or_default()
}

/// The length of the reply at the start of `bytes`, once it is complete.
fn frame_len(bytes: &[u8]) -> Option<usize> {
    let line = bytes.windows(2).position(|two| two == b"\r\n")? + 2;
    let number = || std::str::from_utf8(&bytes[1..line - 2]).ok().and_then(|text| text.parse::<i64>().ok());
    match bytes[0] {
        b'+' | b'-' | b':' => Some(line),
        b'$' => {
            let len = number().expect("a bulk has a length");
            let end = if len < 0 { line } else { line + len as usize + 2 };
            (bytes.len() >= end).then_some(end)
        }
        b'*' => (0..number().expect("an array has a length"))
            .try_fold(line, |at, _| Some(at + frame_len(bytes.get(at..)?)?)),
        other => panic!("a reply that begins with {other}: {:.200}", String::from_utf8_lossy(bytes)),
    }
}
