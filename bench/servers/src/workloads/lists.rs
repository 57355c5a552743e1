//! Load on many queues, every reply of which is checked, and the memory of a long one. Knows nothing of how a server keeps them.

use std::collections::VecDeque;
use std::thread;

use anyhow::{Context, Result, bail};
use redis_protocol::resp2::decode::decode_range;
use redis_protocol::resp2::types::RangeFrame;

use super::data_sets::NOTHING;
use super::records::list_wakeup;
use super::workload::{COMMAND_TARGETS, Driver, HEAVY, MEDIUM, Needs, Setup, Workload};
use crate::load::{CLIENTS, Connections, Footprint, Loader, Random, SETTLE, Template, Traffic, numbered};
use crate::measure::{Bound, Metric, Sample, Target};
use crate::servers::{Persistence, Reply, Server};

/// Queues of jobs, each with as many elements as a page shows, and some.
static QUEUES: Setup = Setup { size: QUEUE_COUNT, size_quick: QUEUE_COUNT, load: load_queues };

const QUEUE_COUNT: u64 = 10_000;
const ELEMENTS: u64 = 120;
const PAGE: u64 = 100;

const KEY: &str = "gbe:queue:__rand_int__";
/// 32 bytes.
const ELEMENT: &str = "job:__rand_int__:0123456789abcde";
const ELEMENT_BYTES: usize = 32;

fn load_queues(server: &Server, queues: u64) -> Result<()> {
    let mut loader = Loader::new(server)?;
    for queue in 0..queues {
        push(&mut loader, &numbered(KEY, queue), 0..ELEMENTS, ELEMENTS)?;
    }
    loader.finish()
}

/// Pushes the elements of these numbers; the list has so many then.
fn push(loader: &mut Loader, key: &str, numbers: std::ops::Range<u64>, len: u64) -> Result<()> {
    let elements: Vec<String> = numbers.map(|number| numbered(ELEMENT, number)).collect();
    let request: Vec<&str> = ["RPUSH", key].into_iter().chain(elements.iter().map(String::as_str)).collect();
    loader.send(&request, Reply::Integer(len as i64))
}

/// LPUSH and RPOP by turns: what comes in front goes out behind.
fn queue(server: &Server, pipeline: u32, operations: u64) -> Result<Sample> {
    run(server, pipeline, operations, &mut Requests::new(&[&["LPUSH", KEY, ELEMENT], &["RPOP", KEY]]))
}

/// LMOVE of the last element of a queue to its front.
fn lmove(server: &Server, pipeline: u32, operations: u64) -> Result<Sample> {
    run(server, pipeline, operations, &mut Requests::new(&[&["LMOVE", KEY, KEY, "RIGHT", "LEFT"]]))
}

/// LRANGE of a page.
fn lrange(server: &Server, pipeline: u32, operations: u64) -> Result<Sample> {
    run(server, pipeline, operations, &mut Requests::new(&[&["LRANGE", KEY, "0", "99"]]))
}

/// Memory of an element of one long list, over the empty server.
fn memory(server: &mut Server, elements: u64) -> Result<Sample> {
    const AT_ONCE: u64 = 500;
    let mut control = server.connect()?;
    let before = Footprint::measure(server, &mut control)?;
    let mut loader = Loader::new(server)?;
    for first in (0..elements).step_by(AT_ONCE as usize) {
        push(&mut loader, "gbe:queue:long", first..first + AT_ONCE, first + AT_ONCE)?;
    }
    loader.finish()?;
    thread::sleep(SETTLE);
    Ok(Footprint::measure(server, &mut control)?.since(&before, elements))
}

fn run(server: &Server, pipeline: u32, operations: u64, traffic: &mut impl Traffic) -> Result<Sample> {
    Connections::new(server)?.senders(CLIENTS as usize)?.run(server, pipeline, operations, traffic)
}

/// Requests of some kinds in turn. The first are each to a random queue, those that follow to one that had a first long before:
/// what is pushed to a queue is popped from it, in every round, but not while it is still in the CPU's cache.
struct Requests {
    random: Random,
    /// The queues that had a first request, oldest first.
    before: VecDeque<u64>,
    templates: Vec<Template>,
    /// Of each sender, the kinds of what it has in flight, and of its next.
    asked: Vec<VecDeque<usize>>,
    next: Vec<usize>,
}

/// So many requests before.
const LONG_BEFORE: u64 = 5_000;

impl Requests {
    fn new(commands: &[&[&str]]) -> Self {
        Requests {
            random: Random(0),
            before: (0..LONG_BEFORE).collect(),
            templates: commands.iter().map(|command| Template::new(command)).collect(),
            asked: vec![VecDeque::new(); CLIENTS as usize],
            next: vec![0; CLIENTS as usize],
        }
    }
}

impl Traffic for Requests {
    fn next_request(&mut self, sender: usize, requests: &mut Vec<u8>) {
        let kind = self.next[sender];
        let queue = match kind {
            0 => self.random.below(QUEUE_COUNT),
            _ => self.before.pop_front().unwrap_or_default(),
        };
        if kind == 0 && self.templates.len() > 1 {
            self.before.push_back(queue);
        }
        self.next[sender] = (kind + 1) % self.templates.len();
        self.templates[kind].write(requests, [queue, queue].into_iter());
        self.asked[sender].push_back(kind);
    }

    /// The length of a list, an element, or a page of them.
    fn check_reply(&mut self, sender: usize, received: &[u8]) -> Result<Option<usize>> {
        self.asked[sender].front().context("a reply without a request")?;
        let is_element =
            |frame: &RangeFrame| matches!(frame, RangeFrame::BulkString((start, end)) if end - start == ELEMENT_BYTES);
        let length = match decode_range(received) {
            Ok(None) => return Ok(None),
            Ok(Some((RangeFrame::Integer(number), length))) if number > 0 => length,
            Ok(Some((frame, length))) if is_element(&frame) => length,
            Ok(Some((RangeFrame::Array(items), length)))
                if items.len() == PAGE as usize && items.iter().all(is_element) =>
            {
                length
            }
            _ => bail!("a queue answered {:?}", String::from_utf8_lossy(&received[..received.len().min(200)])),
        };
        self.asked[sender].pop_front();
        Ok(Some(length))
    }
}

pub(crate) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "lists-queue",
        about: "LPUSH and RPOP, 32 bytes",
        persistence: Persistence::Off,
        setup: &QUEUES,
        driver: Driver::Clients { run: queue, amounts: MEDIUM, needs: Needs::Command("LPUSH") },
        targets: COMMAND_TARGETS,
    },
    Workload {
        name: "lists-lmove",
        about: "LMOVE within a queue",
        persistence: Persistence::Off,
        setup: &QUEUES,
        driver: Driver::Clients { run: lmove, amounts: MEDIUM, needs: Needs::Command("LMOVE") },
        targets: COMMAND_TARGETS,
    },
    Workload {
        name: "lists-lrange",
        about: "LRANGE, 100 elements",
        persistence: Persistence::Off,
        setup: &QUEUES,
        driver: Driver::Clients { run: lrange, amounts: HEAVY, needs: Needs::Command("LRANGE") },
        targets: COMMAND_TARGETS,
    },
    Workload {
        name: "lists-wakeup",
        about: "LPUSH to a waiting BRPOP",
        persistence: Persistence::Off,
        setup: &NOTHING,
        driver: Driver::Custom {
            run: list_wakeup,
            amount: 10_000,
            amount_quick: 2_000,
            needs: Needs::Command("BRPOP"),
        },
        targets: &[
            Target { pipeline: None, metric: Metric::LatencyP50, bound: Bound::AtMost(1.0) },
            Target { pipeline: None, metric: Metric::LatencyP99, bound: Bound::AtMost(1.0) },
        ],
    },
    Workload {
        name: "lists-memory",
        about: "Memory per element of a list",
        persistence: Persistence::Off,
        setup: &NOTHING,
        driver: Driver::Custom {
            run: memory,
            amount: 1_000_000,
            amount_quick: 100_000,
            needs: Needs::Command("LPUSH"),
        },
        targets: &[Target { pipeline: None, metric: Metric::RssPerItem, bound: Bound::AtMost(0.9) }],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_made_in_turn_and_replies_may_come_in_pieces() {
        let mut requests = Requests::new(&[&["LPUSH", KEY, ELEMENT], &["RPOP", KEY]]);
        let mut sent = Vec::new();
        requests.next_request(3, &mut sent);
        requests.next_request(3, &mut sent);
        assert!(sent.starts_with(b"*3\r\n$5\r\nLPUSH\r\n$22\r\ngbe:queue:"), "{}", String::from_utf8_lossy(&sent));
        let replies = b":121\r\n$32\r\njob:000000000001:0123456789abcde\r\n";
        for end in 0..6 {
            assert_eq!(requests.check_reply(3, &replies[..end]).unwrap(), None);
        }
        assert_eq!(requests.check_reply(3, replies).unwrap(), Some(6));
        assert_eq!(requests.check_reply(3, &replies[6..]).unwrap(), Some(replies.len() - 6));
        assert!(requests.check_reply(3, replies).is_err(), "nothing was asked for");
    }

    #[test]
    fn as_much_is_popped_from_a_queue_as_was_pushed() {
        let mut requests = Requests::new(&[&["LPUSH", KEY, ELEMENT], &["RPOP", KEY]]);
        let mut pushed_less_popped = vec![0_i32; QUEUE_COUNT as usize];
        for number in 0..400_000 {
            let mut sent = Vec::new();
            requests.next_request(number % CLIENTS as usize, &mut sent);
            let at = sent.windows(4).position(|bytes| bytes == b"gbe:").unwrap() + "gbe:queue:".len();
            let queue: usize = std::str::from_utf8(&sent[at..at + 12]).unwrap().parse().unwrap();
            pushed_less_popped[queue] += if sent.starts_with(b"*3") { 1 } else { -1 };
        }
        assert!(pushed_less_popped.iter().all(|net| (-1..10).contains(net)), "{:?}", pushed_less_popped.iter().min());
    }

    #[test]
    fn wrong_replies_are_refused() {
        for wrong in ["$-1\r\n", "$3\r\nabc\r\n", ":0\r\n", "*1\r\n$3\r\nabc\r\n", "-ERR no\r\n"] {
            let mut requests = Requests::new(&[&["RPOP", KEY]]);
            requests.next_request(0, &mut Vec::new());
            assert!(requests.check_reply(0, wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }
}
