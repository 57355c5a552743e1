//! What it costs clients to act as one: scripts, transactions, messages. Knows nothing of how a server keeps steps
//! apart, only what must hold afterwards.

use std::collections::VecDeque;

use anyhow::{Context, Result, bail, ensure};

use super::beside_etcd::beside_etcd;
use super::data_sets::{JOB_KEY, JOB_RECORDS, NOTHING, STRING_KEY, STRINGS};
use super::workload::{Driver, Needs, RequestCounts, SCRIPTED, Workload};
use crate::load::{CLIENTS, Connections, KEYS, Random, Template, Traffic, expect, numbered};
use crate::measure::{Bound, Metric, Sample, Target};
use crate::servers::{ETCD, Persistence, Reply, Server};

/// Changes a field from one value to another if it has the first; returns whether it did.
const COMPARE_AND_SWAP: &str = include_str!("../compare_and_swap.lua");

/// EVALSHA of a compare-and-swap on random job records.
pub(crate) fn evalsha(server: &Server, pipeline: u32, operations: u64) -> Result<Sample> {
    let sha = load_compare_and_swap(server)?;
    swaps(server, pipeline, operations, &["EVALSHA", &sha, "1"])
}

/// The same by HCAS, a command of its own, where the server has it, and by the script elsewhere.
pub(crate) fn claim(server: &Server, pipeline: u32, operations: u64) -> Result<Sample> {
    match server.knows("HCAS")? {
        true => swaps(server, pipeline, operations, &["HCAS"]),
        false => evalsha(server, pipeline, operations),
    }
}

/// Has the script remembered, and returns what it is called by.
pub(crate) fn load_compare_and_swap(server: &Server) -> Result<String> {
    match server.connect()?.call(&["SCRIPT", "LOAD", COMPARE_AND_SWAP])? {
        Reply::BulkString(sha) => Ok(String::from_utf8(sha)?),
        other => bail!("SCRIPT LOAD answered {other:?}"),
    }
}

/// The same as a function: the server's own, if it has one of this name, or else a library of the same script.
pub(crate) fn fcall(server: &Server, pipeline: u32, operations: u64) -> Result<Sample> {
    let mut control = server.connect()?;
    // No record has this field, so nothing is swapped.
    match control.call(&["FCALL", FUNCTION, "1", &numbered(JOB_KEY, 0), "no such field", "a", "b"])? {
        Reply::Integer(0) => {}
        Reply::Error(text) if text.ends_with("Function not found") => {
            // The script's names for its keys and arguments are those of the function's parameters.
            let library = format!(
                "#!lua name=bench\nredis.register_function('{FUNCTION}', function(KEYS, ARGV)\n{COMPARE_AND_SWAP}\nend)"
            );
            let loaded = control.call(&["FUNCTION", "LOAD", &library])?;
            ensure!(loaded == Reply::BulkString("bench".into()), "FUNCTION LOAD answered {loaded:?}");
        }
        other => bail!("FCALL {FUNCTION} answered {other:?}"),
    }
    swaps(server, pipeline, operations, &["FCALL", FUNCTION, "1"])
}

const FUNCTION: &str = "compare_and_swap";

/// MULTI, a change of four records, EXEC. Each is sent as a whole, and `pipeline` of them are in flight.
pub(crate) fn multi(server: &Server, pipeline: u32, operations: u64) -> Result<Sample> {
    let connections = Connections::new(server)?.senders(CLIENTS as usize)?;
    connections.run(server, pipeline, operations, &mut Transactions::new())
}

/// A transaction that reads two strings, waits for them, and changes both, if no other client has meanwhile: TXN.BEGIN to
/// TXN.COMMIT where the server has it, and WATCH to EXEC elsewhere. Each client has strings of its own, so none conflicts.
/// What is counted are halves: the reads with what begins them, and the writes with what ends them.
pub(crate) fn interactive(server: &Server, pipeline: u32, operations: u64) -> Result<Sample> {
    let connections = Connections::new(server)?.senders(CLIENTS as usize)?;
    let mut traffic = Interactive::new(server.knows("TXN.BEGIN")?);
    connections.run(server, pipeline, operations, &mut traffic)
}

/// PUBLISH to fifty subscribers. What is counted are messages delivered, each subscriber's for itself; the latencies
/// are those of the publishers' replies.
pub(crate) fn publish(server: &Server, pipeline: u32, operations: u64) -> Result<Sample> {
    let connections = Connections::new(server)?.senders(PUBLISHERS)?;
    let connections = connections.receivers(SUBSCRIBERS, SUBSCRIBE.as_bytes(), SUBSCRIBED.as_bytes())?;
    let mut sample = connections.run(server, pipeline, operations, &mut Messages::new())?;
    sample.entry(Metric::Throughput).and_modify(|per_s| *per_s *= SUBSCRIBERS as f64);
    sample.entry(Metric::ServerCpu).and_modify(|us| *us /= SUBSCRIBERS as f64);
    Ok(sample)
}

/// Each of whom receives every message.
const SUBSCRIBERS: usize = 50;
const PUBLISHERS: usize = 10;

/// A run of swaps, after which exactly as many records are claimed as the replies say.
fn swaps(server: &Server, pipeline: u32, operations: u64, call: &[&str]) -> Result<Sample> {
    release_all(server)?;
    let connections = Connections::new(server)?.senders(CLIENTS as usize)?;
    let mut swaps = Swaps::new(call);
    let sample = connections.run(server, pipeline, operations, &mut swaps)?;
    swaps.check(operations, claimed(server)?)?;
    Ok(sample)
}

/// Claims and releases of random jobs, in random order: half of them find the record in the other state.
struct Swaps {
    random: Random,
    /// By `Swap`.
    templates: [Template; 2],
    swapped: [u64; 2],
    /// Of each sender, what it has in flight.
    asked: Vec<VecDeque<Swap>>,
}

#[derive(Clone, Copy)]
enum Swap {
    Claim,
    Release,
}

impl Swaps {
    /// `call` is what stands before the key.
    fn new(call: &[&str]) -> Self {
        let template = |from, to| Template::new(&[call, &[JOB_KEY, "state", from, to]].concat());
        Swaps {
            random: Random(0),
            templates: [template(PENDING, CLAIMED), template(CLAIMED, PENDING)],
            swapped: [0; 2],
            asked: vec![VecDeque::new(); CLIENTS as usize],
        }
    }

    /// Judges the whole run by what the server holds after it, if every record was pending before it.
    fn check(&self, operations: u64, claimed: u64) -> Result<()> {
        let [claims, releases] = self.swapped;
        ensure!(
            claims.checked_sub(releases) == Some(claimed),
            "{claims} claims and {releases} releases were answered with 1, but {claimed} records are claimed"
        );
        // So far from half that chance would not do it once in a million runs.
        let (swapped, half) = ((claims + releases) as f64, operations as f64 / 2.0);
        let tolerated = 5.0 * (operations as f64 / 4.0).sqrt();
        ensure!((swapped - half).abs() <= tolerated, "{swapped} of {operations} swaps were made, not half of them");
        Ok(())
    }
}

impl Traffic for Swaps {
    fn next_request(&mut self, sender: usize, requests: &mut Vec<u8>) {
        let record = self.random.below(KEYS);
        let swap = if self.random.below(2) == 0 { Swap::Claim } else { Swap::Release };
        self.templates[swap as usize].write(requests, std::iter::once(record));
        self.asked[sender].push_back(swap);
    }

    fn check_reply(&mut self, sender: usize, received: &[u8]) -> Result<Option<usize>> {
        let made = received.starts_with(b":1");
        let answer = if made { b":1\r\n" } else { b":0\r\n" };
        if !expect(received, answer)? {
            return Ok(None);
        }
        let swap = self.asked[sender].pop_front().context("a reply without a request")?;
        self.swapped[swap as usize] += u64::from(made);
        Ok(Some(answer.len()))
    }
}

// Of the same length: what a swap costs does not depend on which it is.
const PENDING: &str = "pending";
const CLAIMED: &str = "claimed";

fn release_all(server: &Server) -> Result<()> {
    each_record(server, |key| vec!["HSET", key, "state", PENDING], |reply| reply == Reply::Integer(0))
}

fn claimed(server: &Server) -> Result<u64> {
    let mut claimed = 0;
    let state = |reply| match reply {
        Reply::BulkString(state) if state == CLAIMED.as_bytes() => {
            claimed += 1;
            true
        }
        Reply::BulkString(state) => state == PENDING.as_bytes(),
        _ => false,
    };
    each_record(server, |key| vec!["HGET", key, "state"], state)?;
    Ok(claimed)
}

/// Sends a request for every job record; its reply must please.
fn each_record(
    server: &Server,
    request: impl for<'a> Fn(&'a str) -> Vec<&'a str>,
    mut pleases: impl FnMut(Reply) -> bool,
) -> Result<()> {
    let mut connection = server.connect()?;
    for first in (0..KEYS).step_by(BATCH) {
        let batch = first..KEYS.min(first + BATCH as u64);
        for number in batch.clone() {
            connection.push(&request(&numbered(JOB_KEY, number)));
        }
        connection.flush()?;
        for number in batch {
            let pleased = pleases(connection.read_reply()?);
            ensure!(pleased, "record {number} is not as it should be between two runs");
        }
    }
    Ok(())
}

/// Few enough that their replies fit a socket's buffer before they are read.
const BATCH: usize = 500;

struct Transactions {
    random: Random,
    template: Template,
}

/// Records that one transaction changes.
const CHANGED: usize = 4;

impl Transactions {
    fn new() -> Self {
        let mut template = Template::new(&["MULTI"]);
        for _ in 0..CHANGED {
            template = template.followed_by(&["HSET", JOB_KEY, "state", "running", "updated_at", "__rand_int__"]);
        }
        Transactions { random: Random(0), template: template.followed_by(&["EXEC"]) }
    }
}

impl Traffic for Transactions {
    fn next_request(&mut self, _sender: usize, requests: &mut Vec<u8>) {
        let mut numbers = [0; 2 * CHANGED];
        for i in (0..numbers.len()).step_by(2) {
            let (chosen, free) = numbers.split_at_mut(i);
            free[0] = self.random.below(KEYS);
            while chosen.iter().step_by(2).any(|record| *record == free[0]) {
                free[0] = self.random.below(KEYS);
            }
            free[1] = self.random.below(1_000_000_000_000);
        }
        self.template.write(requests, numbers.into_iter());
    }

    fn check_reply(&mut self, _sender: usize, received: &[u8]) -> Result<Option<usize>> {
        Ok(expect(received, EXECUTED.as_bytes())?.then_some(EXECUTED.len()))
    }
}

/// Every record has both fields, so none is added.
const EXECUTED: &str = "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*4\r\n:0\r\n:0\r\n:0\r\n:0\r\n";

/// Transactions in two halves.
struct Interactive {
    random: Random,
    has_txn: bool,
    /// Reads, then writes.
    templates: [Template; 2],
    /// Of each sender: the strings of the transaction that it has begun, and how many halves it has in flight.
    senders: Vec<(Option<[u64; 2]>, VecDeque<Half>)>,
}

#[derive(Clone, Copy)]
enum Half {
    Reads,
    Writes,
}

impl Interactive {
    fn new(has_txn: bool) -> Self {
        let value = format!("{:020}__rand_int__", 0);
        let (get, set) = (["GET", STRING_KEY], ["SET", STRING_KEY, &value]);
        let templates = match has_txn {
            true => [
                Template::new(&["TXN.BEGIN"]).followed_by(&get).followed_by(&get),
                Template::new(&set).followed_by(&set).followed_by(&["TXN.COMMIT"]),
            ],
            false => [
                Template::new(&["WATCH", STRING_KEY, STRING_KEY]).followed_by(&get).followed_by(&get),
                Template::new(&["MULTI"]).followed_by(&set).followed_by(&set).followed_by(&["EXEC"]),
            ],
        };
        Interactive { random: Random(0), has_txn, templates, senders: vec![Default::default(); CLIENTS as usize] }
    }

    /// Two strings of a sender's own.
    fn choose(&mut self, sender: usize) -> [u64; 2] {
        let own = KEYS / u64::from(CLIENTS);
        let first = self.random.below(own);
        let second = (first + 1 + self.random.below(own - 1)) % own;
        [first, second].map(|number| number * u64::from(CLIENTS) + sender as u64)
    }
}

impl Traffic for Interactive {
    fn next_request(&mut self, sender: usize, requests: &mut Vec<u8>) {
        let half = match self.senders[sender].0.take() {
            None => {
                let chosen = self.choose(sender);
                self.senders[sender].0 = Some(chosen);
                // WATCH names both before they are read.
                let times = if self.has_txn { 1 } else { 2 };
                self.templates[0].write(requests, chosen.into_iter().cycle().take(2 * times));
                Half::Reads
            }
            Some([first, second]) => {
                let values = [self.random.below(1_000_000), self.random.below(1_000_000)];
                self.templates[1].write(requests, [first, values[0], second, values[1]].into_iter());
                Half::Writes
            }
        };
        self.senders[sender].1.push_back(half);
    }

    fn check_reply(&mut self, sender: usize, received: &[u8]) -> Result<Option<usize>> {
        let half = *self.senders[sender].1.front().context("a reply without a request")?;
        let len = match half {
            Half::Reads => read_twice(received)?,
            Half::Writes if self.has_txn => committed(received)?,
            Half::Writes => expect(received, EXECUTED_TWO.as_bytes())?.then_some(EXECUTED_TWO.len()),
        };
        if len.is_some() {
            self.senders[sender].1.pop_front();
        }
        Ok(len)
    }
}

const EXECUTED_TWO: &str = "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n+OK\r\n";
const WRITTEN_TWO: &str = "+OK\r\n+OK\r\n:";

/// How long the answer to a beginning and two reads is: OK, and two strings of 32 bytes.
fn read_twice(received: &[u8]) -> Result<Option<usize>> {
    const OK: &[u8] = b"+OK\r\n";
    const LENGTH: &[u8] = b"$32\r\n";
    const STRING: usize = LENGTH.len() + 32 + 2;
    for (at, begins) in [(0, OK), (OK.len(), LENGTH), (OK.len() + STRING, LENGTH)] {
        if received.len() < at || !expect(&received[at..], begins)? {
            return Ok(None);
        }
    }
    let len = OK.len() + 2 * STRING;
    Ok((received.len() >= len).then_some(len))
}

/// How long the answer to two writes and a commit is: OK twice, and the number of a batch.
fn committed(received: &[u8]) -> Result<Option<usize>> {
    if !expect(received, WRITTEN_TWO.as_bytes())? {
        return Ok(None);
    }
    let end = received[WRITTEN_TWO.len()..].windows(2).position(|end| end == b"\r\n");
    Ok(end.map(|end| WRITTEN_TWO.len() + end + 2))
}

/// Numbered messages: every subscriber must receive those of each publisher in order, and all of them.
struct Messages {
    template: Template,
    published: Vec<u64>,
    /// Of each subscriber, how many it has received of each publisher.
    heard: Vec<[u64; PUBLISHERS]>,
    answer: String,
}

const SUBSCRIBE: &str = "*2\r\n$9\r\nSUBSCRIBE\r\n$9\r\ngbe:tasks\r\n";
const SUBSCRIBED: &str = "*3\r\n$9\r\nsubscribe\r\n$9\r\ngbe:tasks\r\n:1\r\n";
/// What a message looks like before and after the number of its publisher and its own.
const BEFORE: &str = "*3\r\n$7\r\nmessage\r\n$9\r\ngbe:tasks\r\n$64\r\n";
const AFTER: &str = " email-send completed, 8 steps of 8 done\r\n";
const DIGITS: usize = 12;

impl Messages {
    fn new() -> Self {
        let payload = format!("__rand_int____rand_int__{}", AFTER.trim_end());
        Messages {
            template: Template::new(&["PUBLISH", "gbe:tasks", &payload]),
            published: vec![0; PUBLISHERS],
            heard: vec![[0; PUBLISHERS]; SUBSCRIBERS],
            answer: format!(":{SUBSCRIBERS}\r\n"),
        }
    }
}

impl Traffic for Messages {
    fn next_request(&mut self, publisher: usize, requests: &mut Vec<u8>) {
        self.template.write(requests, [publisher as u64, self.published[publisher]].into_iter());
        self.published[publisher] += 1;
    }

    fn check_reply(&mut self, connection: usize, received: &[u8]) -> Result<Option<usize>> {
        let Some(subscriber) = connection.checked_sub(PUBLISHERS) else {
            let answer = self.answer.as_bytes();
            return Ok(expect(received, answer)?.then_some(answer.len()));
        };
        if !expect(received, BEFORE.as_bytes())? {
            return Ok(None);
        }
        let Some((numbers, rest)) = received[BEFORE.len()..].split_at_checked(2 * DIGITS) else {
            return Ok(None);
        };
        if !expect(rest, AFTER.as_bytes())? {
            return Ok(None);
        }
        let (publisher, number) = numbers.split_at(DIGITS);
        let (publisher, number) = (parsed(publisher)? as usize, parsed(number)?);
        let expected = self.heard[subscriber].get_mut(publisher).context("a message of an unknown publisher")?;
        ensure!(
            number == *expected,
            "subscriber {subscriber} heard message {number} of publisher {publisher} instead of message {expected}"
        );
        *expected += 1;
        Ok(Some(BEFORE.len() + numbers.len() + AFTER.len()))
    }
}

fn parsed(digits: &[u8]) -> Result<u64> {
    digits.iter().try_fold(0, |number, digit| {
        ensure!(digit.is_ascii_digit(), "a message with {:?} for a number", String::from_utf8_lossy(digits));
        Ok(number * 10 + u64::from(digit - b'0'))
    })
}

pub(crate) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "coordination-evalsha",
        about: "EVALSHA, CAS",
        persistence: Persistence::Off,
        setup: &JOB_RECORDS,
        driver: Driver::Clients { run: evalsha, amounts: SCRIPTED, needs: Needs::Command("EVALSHA") },
        targets: &[
            Target { pipeline: Some(1), metric: Metric::Throughput, bound: Bound::AtLeast(1.05) },
            Target { pipeline: Some(16), metric: Metric::Throughput, bound: Bound::AtLeast(1.8) },
            Target { pipeline: Some(16), metric: Metric::ServerCpu, bound: Bound::AtMost(0.7) },
        ],
    },
    Workload {
        name: "coordination-fcall",
        about: "FCALL, CAS",
        persistence: Persistence::Off,
        setup: &JOB_RECORDS,
        driver: Driver::Clients { run: fcall, amounts: SCRIPTED, needs: Needs::Command("FCALL") },
        targets: &[],
    },
    Workload {
        name: "coordination-multi",
        about: "MULTI, 4 HSET, EXEC",
        persistence: Persistence::Off,
        setup: &JOB_RECORDS,
        driver: Driver::Clients { run: multi, amounts: TRANSACTIONS, needs: Needs::Command("EXEC") },
        targets: &[Target { pipeline: Some(16), metric: Metric::Throughput, bound: Bound::AtLeast(1.5) }],
    },
    Workload {
        name: "coordination-txn",
        about: "TXN, 2 GET, 2 SET, in halves",
        persistence: Persistence::Off,
        setup: &STRINGS,
        driver: Driver::Clients { run: interactive, amounts: HALVES, needs: Needs::Command("WATCH") },
        targets: &[
            Target { pipeline: Some(1), metric: Metric::Throughput, bound: Bound::AtLeast(1.0) },
            Target { pipeline: Some(16), metric: Metric::Throughput, bound: Bound::AtLeast(1.0) },
        ],
    },
    Workload {
        name: "coordination-etcd",
        about: "TXN, 2 GET, 2 SET, beside etcd",
        persistence: Persistence::EverySecond,
        setup: &NOTHING,
        driver: Driver::Own { run: beside_etcd, amount: 10_000, amount_quick: 2_000, program: Some(ETCD) },
        targets: &[
            Target { pipeline: Some(1), metric: Metric::OfEtcd, bound: Bound::AtLeast(10.0) },
            Target { pipeline: Some(16), metric: Metric::OfEtcd, bound: Bound::AtLeast(10.0) },
        ],
    },
    Workload {
        name: "coordination-publish",
        about: "PUBLISH to 50 clients",
        persistence: Persistence::Off,
        setup: &NOTHING,
        driver: Driver::Clients { run: publish, amounts: PUBLISHED, needs: Needs::Command("PUBLISH") },
        targets: &[
            Target { pipeline: Some(1), metric: Metric::Throughput, bound: Bound::AtLeast(1.0) },
            Target { pipeline: Some(16), metric: Metric::Throughput, bound: Bound::AtLeast(1.0) },
        ],
    },
];

/// Each is six requests.
const TRANSACTIONS: RequestCounts = &[(1, 180_000), (8, 250_000), (32, 250_000)];
/// Each is three or four requests.
const HALVES: RequestCounts = &[(1, 200_000), (8, 500_000), (32, 500_000)];
/// Each is delivered fifty times.
const PUBLISHED: RequestCounts = &[(1, 70_000), (8, 200_000), (32, 200_000)];

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(traffic: &mut impl Traffic, sender: usize) -> String {
        let mut requests = Vec::new();
        traffic.next_request(sender, &mut requests);
        String::from_utf8(requests).unwrap()
    }

    #[test]
    fn swaps_are_counted_by_what_they_were() {
        let mut swaps = Swaps::new(&["FCALL", FUNCTION, "1"]);
        let requests: Vec<_> = (0..1_000).map(|_| asked(&mut swaps, 3)).collect();
        let claims = requests.iter().filter(|request| request.ends_with("pending\r\n$7\r\nclaimed\r\n")).count() as u64;
        assert!((400..600).contains(&claims));
        for request in &requests {
            assert!(
                request.starts_with("*7\r\n$5\r\nFCALL\r\n$16\r\ncompare_and_swap\r\n$1\r\n1\r\n$43\r\ngbe:state:")
            );
            assert_eq!(swaps.check_reply(3, b":1\r\n:0\r\n").unwrap(), Some(4));
        }
        assert_eq!(swaps.swapped, [claims, 1_000 - claims]);
        assert!(swaps.check_reply(3, b":1\r\n").is_err());
    }

    #[test]
    fn an_answer_to_a_swap_may_be_unfinished_but_not_an_error() {
        let mut swaps = Swaps::new(&["FCALL", FUNCTION, "1"]);
        asked(&mut swaps, 0);
        for unfinished in ["", ":", ":1", ":0\r"] {
            assert_eq!(swaps.check_reply(0, unfinished.as_bytes()).unwrap(), None);
        }
        for refused in [":2\r\n", "-NOSCRIPT No matching script\r\n", ":11\r\n", "$-1\r\n"] {
            assert!(swaps.check_reply(0, refused.as_bytes()).is_err(), "{refused:?}");
        }
        assert_eq!(swaps.swapped, [0, 0]);
    }

    #[test]
    fn a_run_is_judged_by_the_records_and_by_its_share_of_swaps() {
        let mut swaps = Swaps::new(&["FCALL", FUNCTION, "1"]);
        swaps.swapped = [260, 240];
        assert!(swaps.check(1_000, 20).is_ok());
        let error = swaps.check(1_000, 21).unwrap_err().to_string();
        assert_eq!(error, "260 claims and 240 releases were answered with 1, but 21 records are claimed");
        let error = swaps.check(2_000, 20).unwrap_err().to_string();
        assert_eq!(error, "500 of 2000 swaps were made, not half of them");
    }

    #[test]
    fn an_interactive_transaction_writes_what_it_has_read() {
        for has_txn in [true, false] {
            let mut traffic = Interactive::new(has_txn);
            for _ in 0..100 {
                let keys_of = |request: &str| -> Vec<String> {
                    let mut keys: Vec<_> =
                        request.lines().filter(|line| line.starts_with("gbe:")).map(String::from).collect();
                    keys.sort();
                    keys.dedup();
                    keys
                };
                let (reads, writes) = (asked(&mut traffic, 7), asked(&mut traffic, 7));
                assert_eq!(keys_of(&reads), keys_of(&writes));
                assert_eq!(keys_of(&reads).len(), 2);
                let string = format!("$32\r\n{}\r\n", "0".repeat(32));
                let read = format!("+OK\r\n{string}{string}");
                assert_eq!(traffic.check_reply(7, &read.as_bytes()[..read.len() - 1]).unwrap(), None);
                assert_eq!(traffic.check_reply(7, read.as_bytes()).unwrap(), Some(read.len()));
                let ended = if has_txn { "+OK\r\n+OK\r\n:123\r\n" } else { EXECUTED_TWO };
                assert_eq!(traffic.check_reply(7, &ended.as_bytes()[..ended.len() - 1]).unwrap(), None);
                assert_eq!(traffic.check_reply(7, ended.as_bytes()).unwrap(), Some(ended.len()));
            }
            asked(&mut traffic, 0);
            assert!(traffic.check_reply(0, b"-CONFLICT").is_err());
        }
    }

    #[test]
    fn a_transaction_changes_four_different_records() {
        let mut transactions = Transactions::new();
        for _ in 0..1_000 {
            let request = asked(&mut transactions, 0);
            assert!(request.starts_with("*1\r\n$5\r\nMULTI\r\n*6\r\n$4\r\nHSET\r\n"));
            assert!(request.ends_with("*1\r\n$4\r\nEXEC\r\n"));
            let mut keys: Vec<_> = request.lines().filter(|line| line.starts_with("gbe:")).collect();
            keys.sort();
            keys.dedup();
            assert_eq!(keys.len(), 4);
        }
    }

    #[test]
    fn a_transaction_that_was_refused_is_noticed() {
        let mut transactions = Transactions::new();
        assert_eq!(transactions.check_reply(0, EXECUTED.as_bytes()).unwrap(), Some(EXECUTED.len()));
        assert_eq!(transactions.check_reply(0, &EXECUTED.as_bytes()[..20]).unwrap(), None);
        assert!(transactions.check_reply(0, EXECUTED.replace("*4", "*-1").as_bytes()).is_err());
    }

    /// What a subscriber receives when this was published.
    fn delivered(request: &str) -> String {
        let payload = request.lines().last().unwrap();
        assert_eq!(payload.len(), 64);
        format!("{BEFORE}{payload}\r\n")
    }

    #[test]
    fn every_subscriber_hears_every_publisher_in_order() {
        let mut messages = Messages::new();
        let [first, second, other] = [7, 7, 0].map(|publisher| delivered(&asked(&mut messages, publisher)));
        for subscriber in [PUBLISHERS, PUBLISHERS + 49] {
            for message in [&first, &other, &second] {
                let received = message.clone() + "*3";
                for end in 0..message.len() {
                    assert_eq!(messages.check_reply(subscriber, &received.as_bytes()[..end]).unwrap(), None);
                }
                assert_eq!(messages.check_reply(subscriber, received.as_bytes()).unwrap(), Some(message.len()));
            }
            let error = messages.check_reply(subscriber, second.as_bytes()).unwrap_err().to_string();
            assert!(error.ends_with("heard message 1 of publisher 7 instead of message 2"), "{error}");
        }
        let error = messages.check_reply(PUBLISHERS + 1, second.as_bytes()).unwrap_err().to_string();
        assert_eq!(error, "subscriber 1 heard message 1 of publisher 7 instead of message 0");
    }

    #[test]
    fn a_message_that_did_not_reach_all_is_noticed() {
        let mut messages = Messages::new();
        assert_eq!(messages.check_reply(0, b":50\r\n").unwrap(), Some(5));
        assert!(messages.check_reply(0, b":49\r\n").is_err());
    }
}
