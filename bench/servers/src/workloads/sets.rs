//! Load on many sets, small ones and larger ones, every reply of which is checked, and their memory. Knows nothing of how a server keeps them.

use std::collections::VecDeque;
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use redis_protocol::resp2::decode::decode_range;
use redis_protocol::resp2::types::RangeFrame;

use super::data_sets::NOTHING;
use super::workload::{COMMAND_TARGETS, Driver, LIGHT, MEDIUM, Needs, RequestCounts, Setup, Workload};
use crate::load::{CLIENTS, Connections, Footprint, KEYS, Loader, Random, SETTLE, Template, Traffic, expect, numbered};
use crate::measure::{Bound, Metric, Sample, Target};
use crate::servers::{Connection, Persistence, Reply, Server};

/// The tags of jobs: the members of set n are the tags n to n + 9.
static TAGS: Setup = Setup { size: KEYS, size_quick: KEYS, load: load_tags };

const KEY: &str = "gbe:state:tags:__rand_int__";
const MEMBER: &str = "tag___rand_int__";

/// Short members in each set: few enough for every server's small form.
const MEMBERS: u64 = 10;

/// The watchers of topics: the members of set n are the users 500 n to 500 n + 999, so it shares half of them with the next.
static WATCHERS: Setup = Setup { size: 1_000, size_quick: 200, load: load_watchers };

const LARGE_KEY: &str = "gbe:state:watchers:__rand_int__";
const USER: &str = "user__rand_int__";
const USERS: u64 = 1_000;
const SHARED: u64 = 500;

fn load_watchers(server: &Server, sets: u64) -> Result<()> {
    let mut loader = Loader::new(server)?;
    for set in 0..sets {
        let key = numbered(LARGE_KEY, set);
        let users: Vec<_> = (set * SHARED..set * SHARED + USERS).map(|user| numbered(USER, user)).collect();
        let request: Vec<_> = ["SADD", &key].into_iter().chain(users.iter().map(String::as_str)).collect();
        loader.send(&request, Reply::Integer(USERS as i64))?;
    }
    loader.finish()
}

fn load_tags(server: &Server, sets: u64) -> Result<()> {
    let mut loader = Loader::new(server)?;
    for set in 0..sets {
        let (key, members) = (numbered(KEY, set), (set..set + MEMBERS).map(|member| numbered(MEMBER, member)));
        let members: Vec<_> = members.collect();
        let request: Vec<_> = ["SADD", &key].into_iter().chain(members.iter().map(String::as_str)).collect();
        loader.send(&request, Reply::Integer(MEMBERS as i64))?;
    }
    loader.finish()
}

/// SADD of a member that a random set has, or has not yet.
fn sadd(server: &Server, pipeline: u32, operations: u64) -> Result<Sample> {
    let mut control = server.connect()?;
    let before = members(&mut control)?;
    let mut additions = Additions::new();
    let sample = run(server, pipeline, operations, &mut additions)?;
    let (after, added) = (members(&mut control)?, additions.added);
    ensure!(after == before + added, "{before} members were there and {added} were added, but now there are {after}");
    Ok(sample)
}

/// SISMEMBER of a member that a random set has, or has not.
fn sismember(server: &Server, pipeline: u32, operations: u64) -> Result<Sample> {
    run(server, pipeline, operations, &mut Questions::new())
}

/// SINTER of two sets that share half of their members.
fn sinter(server: &Server, pipeline: u32, operations: u64) -> Result<Sample> {
    let sets = match server.connect()?.call(&["DBSIZE"])? {
        Reply::Integer(sets @ 2..) => sets as u64,
        other => bail!("DBSIZE answered {other:?}"),
    };
    run(server, pipeline, operations, &mut Intersections::new(sets))
}

/// Memory of a set, over the empty server.
fn memory(server: &mut Server, sets: u64) -> Result<Sample> {
    let mut control = server.connect()?;
    let before = Footprint::measure(server, &mut control)?;
    load_tags(server, sets)?;
    thread::sleep(SETTLE);
    Ok(Footprint::measure(server, &mut control)?.since(&before, sets))
}

fn run(server: &Server, pipeline: u32, operations: u64, traffic: &mut impl Traffic) -> Result<Sample> {
    Connections::new(server)?.senders(CLIENTS as usize)?.run(server, pipeline, operations, traffic)
}

/// How many members all sets have.
fn members(control: &mut Connection) -> Result<u64> {
    let mut sum = 0;
    for first in (0..KEYS).step_by(BATCH as usize) {
        let batch = first..KEYS.min(first + BATCH);
        batch.clone().for_each(|set| control.push(&["SCARD", &numbered(KEY, set)]));
        control.flush()?;
        for set in batch {
            match control.read_reply()? {
                Reply::Integer(count @ 1..) => sum += count as u64,
                other => bail!("SCARD of set {set} answered {other:?}"),
            }
        }
    }
    Ok(sum)
}

/// Few enough that their replies fit a socket's buffer before they are read.
const BATCH: u64 = 500;

/// Of the members that are added, so many are new at first.
const NEW: u64 = 4;

struct Additions {
    random: Random,
    template: Template,
    added: u64,
}

impl Additions {
    fn new() -> Self {
        Additions { random: Random(0), template: Template::new(&["SADD", KEY, MEMBER]), added: 0 }
    }
}

impl Traffic for Additions {
    fn next_request(&mut self, _sender: usize, requests: &mut Vec<u8>) {
        let set = self.random.below(KEYS);
        let member = set + self.random.below(MEMBERS + NEW);
        self.template.write(requests, [set, member].into_iter());
    }

    fn check_reply(&mut self, _sender: usize, received: &[u8]) -> Result<Option<usize>> {
        let is_new = received.starts_with(b":1");
        let answer = if is_new { b":1\r\n" } else { b":0\r\n" };
        let whole = expect(received, answer)?;
        self.added += u64::from(whole && is_new);
        Ok(whole.then_some(answer.len()))
    }
}

struct Questions {
    random: Random,
    template: Template,
    /// Of each sender, the replies to what it has in flight.
    expected: Vec<VecDeque<bool>>,
}

/// Members beyond these are in no set, whatever was added to it.
const NEVER: u64 = MEMBERS + NEW;

impl Questions {
    fn new() -> Self {
        let template = Template::new(&["SISMEMBER", KEY, MEMBER]);
        Questions { random: Random(0), template, expected: vec![VecDeque::new(); CLIENTS as usize] }
    }
}

impl Traffic for Questions {
    fn next_request(&mut self, sender: usize, requests: &mut Vec<u8>) {
        let (set, at) = (self.random.below(KEYS), self.random.below(MEMBERS));
        let is_member = self.random.below(2) == 0;
        let member = set + if is_member { at } else { NEVER + at };
        self.template.write(requests, [set, member].into_iter());
        self.expected[sender].push_back(is_member);
    }

    fn check_reply(&mut self, sender: usize, received: &[u8]) -> Result<Option<usize>> {
        let is_member = *self.expected[sender].front().context("a reply without a request")?;
        let answer = if is_member { b":1\r\n" } else { b":0\r\n" };
        let whole = expect(received, answer)?;
        if whole {
            self.expected[sender].pop_front();
        }
        Ok(whole.then_some(answer.len()))
    }
}

struct Intersections {
    random: Random,
    template: Template,
    sets: u64,
}

impl Intersections {
    fn new(sets: u64) -> Self {
        Intersections { random: Random(0), template: Template::new(&["SINTER", LARGE_KEY, LARGE_KEY]), sets }
    }
}

impl Traffic for Intersections {
    fn next_request(&mut self, _sender: usize, requests: &mut Vec<u8>) {
        let set = self.random.below(self.sets - 1);
        self.template.write(requests, [set, set + 1].into_iter());
    }

    /// As many users as the two have in common, in any order.
    fn check_reply(&mut self, _sender: usize, received: &[u8]) -> Result<Option<usize>> {
        let is_user = |frame: &RangeFrame| match frame {
            RangeFrame::BulkString((start, end)) => received[*start..*end].starts_with(b"user"),
            _ => false,
        };
        match decode_range(received) {
            Ok(None) => Ok(None),
            Ok(Some((RangeFrame::Array(users), length)))
                if users.len() == SHARED as usize && users.iter().all(is_user) =>
            {
                Ok(Some(length))
            }
            _ => bail!("SINTER answered {:?}", String::from_utf8_lossy(&received[..received.len().min(200)])),
        }
    }
}

/// Each looks for a thousand members and replies with half of them.
const LARGE: RequestCounts = &[(1, 30_000), (8, 40_000)];

pub(crate) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "sets-sadd",
        about: "SADD, 1 member",
        persistence: Persistence::Off,
        setup: &TAGS,
        driver: Driver::Clients { run: sadd, amounts: MEDIUM, needs: Needs::Command("SADD") },
        targets: COMMAND_TARGETS,
    },
    Workload {
        name: "sets-sismember",
        about: "SISMEMBER, 1 of 10",
        persistence: Persistence::Off,
        setup: &TAGS,
        driver: Driver::Clients { run: sismember, amounts: LIGHT, needs: Needs::Command("SISMEMBER") },
        targets: COMMAND_TARGETS,
    },
    Workload {
        name: "sets-sinter",
        about: "SINTER, 2 sets of 1,000",
        persistence: Persistence::Off,
        setup: &WATCHERS,
        driver: Driver::Clients { run: sinter, amounts: LARGE, needs: Needs::Command("SINTER") },
        targets: COMMAND_TARGETS,
    },
    Workload {
        name: "sets-memory",
        about: "Memory per set of 10",
        persistence: Persistence::Off,
        setup: &NOTHING,
        driver: Driver::Custom { run: memory, amount: 1_000_000, amount_quick: 100_000, needs: Needs::Command("SADD") },
        targets: &[Target { pipeline: None, metric: Metric::RssPerItem, bound: Bound::AtMost(0.9) }],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(traffic: &mut impl Traffic, sender: usize) -> String {
        let mut requests = Vec::new();
        traffic.next_request(sender, &mut requests);
        String::from_utf8(requests).unwrap()
    }

    /// The numbers of the set and of the member.
    fn numbers(request: &str) -> (u64, u64) {
        let words: Vec<_> = request.lines().collect();
        let number = |word: &str| word[word.len() - 12..].parse().unwrap();
        (number(words[4]), number(words[6]))
    }

    #[test]
    fn additions_are_counted_and_some_are_new() {
        let mut additions = Additions::new();
        let mut new = 0;
        for _ in 0..1_000 {
            let (set, member) = numbers(&asked(&mut additions, 0));
            assert!((set..set + MEMBERS + NEW).contains(&member));
            new += u64::from(member >= set + MEMBERS);
        }
        assert!((150..450).contains(&new), "{new}");
        assert_eq!(additions.check_reply(0, b":1").unwrap(), None);
        assert_eq!(additions.check_reply(0, b":1\r\n:0").unwrap(), Some(4));
        assert_eq!(additions.check_reply(0, b":0\r\n").unwrap(), Some(4));
        assert_eq!(additions.added, 1);
        assert!(additions.check_reply(0, b":2\r\n").is_err());
        assert!(additions.check_reply(0, b"-WRONGTYPE no\r\n").is_err());
    }

    #[test]
    fn an_intersection_has_as_many_members_as_two_sets_share() {
        let mut intersections = Intersections::new(3);
        for _ in 0..100 {
            let (set, next) = numbers(&asked(&mut intersections, 0));
            assert!(set < 2 && next == set + 1);
        }
        let reply = |users: u64| {
            let users: Vec<_> = (0..users).map(|user| format!("$16\r\n{}\r\n", numbered(USER, user))).collect();
            format!("*{}\r\n{}", users.len(), users.concat())
        };
        let whole = reply(SHARED);
        assert_eq!(intersections.check_reply(0, &whole.as_bytes()[..whole.len() - 1]).unwrap(), None);
        assert_eq!(intersections.check_reply(0, whole.as_bytes()).unwrap(), Some(whole.len()));
        assert!(intersections.check_reply(0, reply(SHARED - 1).as_bytes()).is_err());
        assert!(intersections.check_reply(0, whole.replace("user", "tag_").as_bytes()).is_err());
    }

    #[test]
    fn half_of_the_questions_are_about_members() {
        let mut questions = Questions::new();
        let mut members = 0;
        for _ in 0..1_000 {
            let (set, member) = numbers(&asked(&mut questions, 7));
            let (answer, wrong) = if member < set + MEMBERS { (":1\r\n", ":0\r\n") } else { (":0\r\n", ":1\r\n") };
            members += u64::from(answer == ":1\r\n");
            assert!(questions.check_reply(7, wrong.as_bytes()).is_err());
            assert_eq!(questions.check_reply(7, &answer.as_bytes()[..2]).unwrap(), None);
            assert_eq!(questions.check_reply(7, answer.as_bytes()).unwrap(), Some(4));
        }
        assert!((400..600).contains(&members), "{members}");
        assert!(questions.check_reply(7, b":1\r\n").is_err());
    }
}
