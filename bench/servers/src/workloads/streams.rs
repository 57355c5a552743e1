//! Streams as a queue: entries are added, delivered to the consumers of a group and acknowledged; every reply is checked. Knows nothing
//! of how a server keeps entries.

use std::thread;

use anyhow::{Context, Result, bail, ensure};
use redis_protocol::resp2::decode::decode_range;
use redis_protocol::resp2::types::RangeFrame;

use super::data_sets::NOTHING;
use super::workload::{COMMAND_TARGETS, Driver, MEDIUM, Needs, Setup, Workload};
use crate::load::{CLIENTS, Connections, Footprint, Loader, SETTLE, Template, Traffic, numbered};
use crate::measure::{Bound, Metric, Sample, Target};
use crate::servers::{Connection, Persistence, Reply, Server, simple};

const KEY: &str = "gbe:queue:jobs";
const GROUP: &str = "workers";
/// An entry: what a job is, of whom, when, and how often it was tried.
const ENTRY: [&str; 8] =
    ["job_id", "job___rand_int__", "tenant", "acme", "queued_at", "1763172__rand_int__", "attempt", "1"];
/// The oldest entries go, as in a queue that is kept for a while.
const KEPT: &str = "1000000";

/// A stream with a group that has read nothing.
static QUEUE: Setup = Setup {
    size: 1_000_000,
    size_quick: 100_000,
    load: |server, size| {
        fill(server, size)?;
        let reply = server.connect()?.call(&["XGROUP", "CREATE", KEY, GROUP, "0"])?;
        ensure!(reply == simple("OK"), "XGROUP CREATE answered {reply:?}");
        Ok(())
    },
};

fn fill(server: &Server, size: u64) -> Result<()> {
    let mut loader = Loader::new(server)?;
    for number in 0..size {
        let id = format!("{}-{}", 1_763_172_000_000 + number / 3, number % 3);
        let values = ENTRY.map(|word| numbered(word, number));
        let mut request = vec!["XADD", KEY, &id];
        request.extend(values.iter().map(|value| &**value));
        loader.send(&request, Reply::BulkString(id.clone().into_bytes()))?;
    }
    loader.finish()
}

fn run(server: &Server, pipeline: u32, operations: u64, traffic: &mut impl Traffic) -> Result<Sample> {
    Connections::new(server)?.senders(CLIENTS as usize)?.run(server, pipeline, operations, traffic)
}

fn length(control: &mut Connection) -> Result<u64> {
    match control.call(&["XLEN", KEY])? {
        Reply::Integer(length) => Ok(length as u64),
        other => bail!("XLEN answered {other:?}"),
    }
}

/// XADD with a limit.
fn xadd(server: &Server, pipeline: u32, operations: u64) -> Result<Sample> {
    let request = ["XADD", KEY, "MAXLEN", "~", KEPT, "*"].into_iter().chain(ENTRY).collect::<Vec<_>>();
    let mut additions = Additions { template: Template::new(&request), number: 0 };
    let sample = run(server, pipeline, operations, &mut additions)?;
    ensure!(length(&mut server.connect()?)? > 0, "nothing was added");
    Ok(sample)
}

struct Additions {
    template: Template,
    number: u64,
}

impl Traffic for Additions {
    fn next_request(&mut self, _sender: usize, requests: &mut Vec<u8>) {
        self.number += 1;
        self.template.write(requests, [self.number, self.number].into_iter());
    }

    /// An id, of which the form is checked.
    fn check_reply(&mut self, _sender: usize, received: &[u8]) -> Result<Option<usize>> {
        let is_id =
            |text: &[u8]| text.contains(&b'-') && text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-');
        match decode_range(received) {
            Ok(None) => Ok(None),
            Ok(Some((RangeFrame::BulkString((start, end)), length))) if is_id(&received[start..end]) => {
                Ok(Some(length))
            }
            _ => bail!("XADD answered {:?}", String::from_utf8_lossy(received)),
        }
    }
}

/// XREADGROUP of one entry and XACK of the one before it, in turns: each consumer has one entry in its hands for each request in flight.
fn xreadgroup_xack(server: &Server, pipeline: u32, operations: u64) -> Result<Sample> {
    let mut control = server.connect()?;
    // What was read before is read again.
    control.call(&["XGROUP", "SETID", KEY, GROUP, "0"])?;
    let mut deliveries = Deliveries::new();
    run(server, pipeline, operations, &mut deliveries)
}

struct Deliveries {
    senders: Vec<Consumer>,
}

struct Consumer {
    read: Template,
    /// Entries to acknowledge.
    delivered: Vec<Vec<u8>>,
    /// What each request in flight is: a read, or an acknowledgement.
    in_flight: std::collections::VecDeque<bool>,
}

impl Deliveries {
    fn new() -> Deliveries {
        let consumer = |number: u32| {
            let name = format!("worker_{number}");
            Consumer {
                read: Template::new(&["XREADGROUP", "GROUP", GROUP, &name, "COUNT", "1", "STREAMS", KEY, ">"]),
                delivered: Vec::new(),
                in_flight: Default::default(),
            }
        };
        Deliveries { senders: (0..CLIENTS).map(consumer).collect() }
    }
}

impl Traffic for Deliveries {
    fn next_request(&mut self, sender: usize, requests: &mut Vec<u8>) {
        let consumer = &mut self.senders[sender];
        match consumer.delivered.pop() {
            None => {
                consumer.read.write(requests, std::iter::empty());
                consumer.in_flight.push_back(true);
            }
            Some(id) => {
                let head = format!(
                    "*4\r\n$4\r\nXACK\r\n${}\r\n{KEY}\r\n${}\r\n{GROUP}\r\n${}\r\n",
                    KEY.len(),
                    GROUP.len(),
                    id.len()
                );
                requests.extend_from_slice(head.as_bytes());
                requests.extend_from_slice(&id);
                requests.extend_from_slice(b"\r\n");
                consumer.in_flight.push_back(false);
            }
        }
    }

    fn check_reply(&mut self, sender: usize, received: &[u8]) -> Result<Option<usize>> {
        let consumer = &mut self.senders[sender];
        let is_read = *consumer.in_flight.front().context("a reply without a request")?;
        let Ok(Some((frame, length))) = decode_range(received) else { return Ok(None) };
        match (is_read, frame) {
            (false, RangeFrame::Integer(1)) => {}
            (true, RangeFrame::Array(streams)) => {
                let id = first_id(&streams).with_context(|| format!("{:?}", String::from_utf8_lossy(received)))?;
                consumer.delivered.push(received[id.0..id.1].to_vec());
            }
            // The end of the stream: nothing is left to deliver.
            (true, RangeFrame::Null) => {}
            _ => bail!(
                "{} answered {:?}",
                if is_read { "XREADGROUP" } else { "XACK" },
                String::from_utf8_lossy(received)
            ),
        }
        consumer.in_flight.pop_front();
        Ok(Some(length))
    }
}

/// Where the id of the first entry of the first stream lies.
fn first_id(streams: &[RangeFrame]) -> Option<(usize, usize)> {
    let RangeFrame::Array(stream) = streams.first()? else { return None };
    let RangeFrame::Array(entries) = stream.get(1)? else { return None };
    let RangeFrame::Array(entry) = entries.first()? else { return None };
    match entry.first()? {
        RangeFrame::BulkString(range) => Some(*range),
        _ => None,
    }
}

/// Memory per entry, over the empty server.
fn memory(server: &mut Server, entries: u64) -> Result<Sample> {
    let mut control = server.connect()?;
    let before = Footprint::measure(server, &mut control)?;
    fill(server, entries)?;
    thread::sleep(SETTLE);
    let after = Footprint::measure(server, &mut control)?;
    ensure!(length(&mut control)? == entries, "entries are missing");
    Ok(after.since(&before, entries))
}

pub(crate) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "streams-xadd",
        about: "XADD, 4 fields",
        persistence: Persistence::Off,
        setup: &QUEUE,
        driver: Driver::Clients { run: xadd, amounts: MEDIUM, needs: Needs::Command("XADD") },
        targets: COMMAND_TARGETS,
    },
    Workload {
        name: "streams-group",
        about: "XREADGROUP + XACK",
        persistence: Persistence::Off,
        setup: &QUEUE,
        driver: Driver::Clients { run: xreadgroup_xack, amounts: MEDIUM, needs: Needs::Command("XREADGROUP") },
        targets: COMMAND_TARGETS,
    },
    Workload {
        name: "streams-memory",
        about: "Memory per stream entry, 4 fields",
        persistence: Persistence::Off,
        setup: &NOTHING,
        driver: Driver::Custom { run: memory, amount: 1_000_000, amount_quick: 100_000, needs: Needs::Command("XADD") },
        targets: &[Target { pipeline: None, metric: Metric::RssPerItem, bound: Bound::AtMost(0.9) }],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_delivered_is_acknowledged() {
        let mut deliveries = Deliveries::new();
        let mut requests = Vec::new();
        deliveries.next_request(0, &mut requests);
        let reply = b"*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n5-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n";
        for end in 0..reply.len() {
            assert_eq!(deliveries.check_reply(0, &reply[..end]).unwrap(), None);
        }
        assert_eq!(deliveries.check_reply(0, reply).unwrap(), Some(reply.len()));
        requests.clear();
        deliveries.next_request(0, &mut requests);
        assert!(requests.ends_with(b"$3\r\n5-1\r\n"), "{}", String::from_utf8_lossy(&requests));
        assert!(deliveries.check_reply(0, b":0\r\n").is_err(), "it was not pending");
        assert_eq!(deliveries.check_reply(0, b":1\r\n").unwrap(), Some(4));
    }

    #[test]
    fn an_id_is_two_numbers() {
        let mut additions = Additions { template: Template::new(&["XADD"]), number: 0 };
        assert_eq!(additions.check_reply(0, b"$3\r\n5-1\r\n").unwrap(), Some(9));
        assert!(additions.check_reply(0, b"-ERR no\r\n").is_err());
    }
}
