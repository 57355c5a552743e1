//! Load on one large sorted set, every reply of which is checked. Knows nothing of how a server keeps it in order.

use std::collections::VecDeque;

use anyhow::{Context, Result, bail, ensure};
use redis_protocol::resp2::decode::decode_range;
use redis_protocol::resp2::types::RangeFrame;

use super::workload::{Driver, HEAVY, MEDIUM, Needs, Setup, Workload};
use crate::load::{CLIENTS, Connections, KEYS, Loader, Random, Template, Traffic, expect, numbered};
use crate::measure::{Bound, Metric, Sample, Target};
use crate::servers::{Connection, Persistence, Reply, Server, text};

/// A sorted set: member `number` has that number for a score.
static SCORES: Setup = Setup {
    size: 1_000_000,
    size_quick: KEYS,
    load: |server, size| {
        let mut loader = Loader::new(server)?;
        for number in 0..size {
            // Not in the order of their scores: no client's members come so.
            let number = shuffled(number, size);
            loader.send(&["ZADD", KEY, &number.to_string(), &numbered(MEMBER, number)], Reply::Integer(1))?;
        }
        loader.finish()
    },
};

const KEY: &str = "gbe:state:scores";
const MEMBER: &str = "job___rand_int__";

/// Each of the numbers below `size` once, in an order that is far from theirs.
fn shuffled(number: u64, size: u64) -> u64 {
    // A prime, and no divisor of any size in use: so no two numbers meet.
    number * 618_033_989 % size
}

/// ZADD of members that are there, with a random score.
fn zadd(server: &Server, pipeline: u32, operations: u64) -> Result<Sample> {
    let mut control = server.connect()?;
    let mut moves = Moves::new(size(&mut control)?);
    let sample = run(server, pipeline, operations, &mut moves)?;
    moves.check(&mut control)?;
    Ok(sample)
}

/// ZRANGEBYSCORE of ten neighbours.
fn zrangebyscore(server: &Server, pipeline: u32, operations: u64) -> Result<Sample> {
    let mut ranges = Ranges::new(size(&mut server.connect()?)?);
    run(server, pipeline, operations, &mut ranges)
}

/// ZINCRBY of members that are there, by up to a thousand.
fn zincrby(server: &Server, pipeline: u32, operations: u64) -> Result<Sample> {
    let mut control = server.connect()?;
    let members = size(&mut control)?;
    let mut sums = Sums::new(members, scores(&mut control, SAMPLE)?);
    let sample = run(server, pipeline, operations, &mut sums)?;
    sums.check(&scores(&mut control, SAMPLE)?)?;
    ensure!(size(&mut control)? == members, "members have come or gone");
    Ok(sample)
}

/// So many members are looked at again after a run.
const SAMPLE: u64 = 1_000;

fn run(server: &Server, pipeline: u32, operations: u64, traffic: &mut impl Traffic) -> Result<Sample> {
    Connections::new(server)?.senders(CLIENTS as usize)?.run(server, pipeline, operations, traffic)
}

/// How many members there are, by two accounts of the server's.
fn size(control: &mut Connection) -> Result<u64> {
    let (all, counted) = (control.call(&["ZCARD", KEY])?, control.call(&["ZCOUNT", KEY, "-inf", "+inf"])?);
    match (&all, &counted) {
        (Reply::Integer(all @ 1..), Reply::Integer(counted)) if all == counted => Ok(*all as u64),
        _ => bail!("ZCARD answered {all:?} and ZCOUNT of everything {counted:?}"),
    }
}

/// The scores of the first members.
fn scores(control: &mut Connection, members: u64) -> Result<Vec<u64>> {
    (0..members).for_each(|number| control.push(&["ZSCORE", KEY, &numbered(MEMBER, number)]));
    control.flush()?;
    let score = |number| {
        let reply = control.read_reply()?;
        let score = text(&reply).and_then(|text| text.parse().ok());
        score.with_context(|| format!("ZSCORE of member {number} answered {reply:?}"))
    };
    (0..members).map(score).collect()
}

/// New scores from which one can tell whose they are.
struct Moves {
    random: Random,
    template: Template,
    members: u64,
}

impl Moves {
    fn new(members: u64) -> Self {
        Moves { random: Random(0), template: Template::new(&["ZADD", KEY, "__rand_int__", MEMBER]), members }
    }

    fn check(&self, control: &mut Connection) -> Result<()> {
        let members = size(control)?;
        ensure!(members == self.members, "there were {} members, and now there are {members}", self.members);
        for (number, score) in scores(control, SAMPLE)?.into_iter().enumerate() {
            ensure!(score % self.members == number as u64, "member {number} has the score of another: {score}");
        }
        Ok(())
    }
}

impl Traffic for Moves {
    fn next_request(&mut self, _sender: usize, requests: &mut Vec<u8>) {
        let member = self.random.below(self.members);
        let score = self.random.below(100_000) * self.members + member;
        self.template.write(requests, [score, member].into_iter());
    }

    fn check_reply(&mut self, _sender: usize, received: &[u8]) -> Result<Option<usize>> {
        Ok(expect(received, NOTHING_ADDED)?.then_some(NOTHING_ADDED.len()))
    }
}

const NOTHING_ADDED: &[u8] = b":0\r\n";

/// Ranges of scores, each with ten members.
struct Ranges {
    random: Random,
    template: Template,
    answer: Template,
    members: u64,
    /// Of each sender, the first scores of what it has in flight.
    asked: Vec<VecDeque<u64>>,
    expected: Vec<u8>,
}

const RANGE: u64 = 10;

impl Ranges {
    fn new(members: u64) -> Self {
        Ranges {
            random: Random(0),
            template: Template::new(&["ZRANGEBYSCORE", KEY, "__rand_int__", "__rand_int__"]),
            // An array of strings, as a request is.
            answer: Template::new(&[MEMBER; RANGE as usize]),
            members,
            asked: vec![VecDeque::new(); CLIENTS as usize],
            expected: Vec::new(),
        }
    }
}

impl Traffic for Ranges {
    fn next_request(&mut self, sender: usize, requests: &mut Vec<u8>) {
        let first = self.random.below(self.members - RANGE);
        self.template.write(requests, [first, first + RANGE - 1].into_iter());
        self.asked[sender].push_back(first);
    }

    fn check_reply(&mut self, sender: usize, received: &[u8]) -> Result<Option<usize>> {
        let first = *self.asked[sender].front().context("a reply without a request")?;
        self.expected.clear();
        self.answer.write(&mut self.expected, first..first + RANGE);
        let whole = expect(received, &self.expected)?;
        if whole {
            self.asked[sender].pop_front();
        }
        Ok(whole.then_some(self.expected.len()))
    }
}

/// Increments, and what the scores of some members must be with them.
struct Sums {
    random: Random,
    template: Template,
    members: u64,
    /// Of the first members.
    expected: Vec<u64>,
}

const MOST: u64 = 1_000;

impl Sums {
    fn new(members: u64, scores: Vec<u64>) -> Self {
        let template = Template::new(&["ZINCRBY", KEY, "__rand_int__", MEMBER]);
        Sums { random: Random(0), template, members, expected: scores }
    }

    fn check(&self, scores: &[u64]) -> Result<()> {
        for (number, (expected, score)) in self.expected.iter().zip(scores).enumerate() {
            ensure!(score == expected, "member {number} has the score {score}, the increments make it {expected}");
        }
        Ok(())
    }
}

impl Traffic for Sums {
    fn next_request(&mut self, _sender: usize, requests: &mut Vec<u8>) {
        let (member, by) = (self.random.below(self.members), 1 + self.random.below(MOST));
        if let Some(expected) = self.expected.get_mut(member as usize) {
            *expected += by;
        }
        self.template.write(requests, [by, member].into_iter());
    }

    /// A score, of which the digits are checked: others may have raised it before and after.
    fn check_reply(&mut self, _sender: usize, received: &[u8]) -> Result<Option<usize>> {
        let is_score = |digits: &[u8]| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        match decode_range(received) {
            Ok(None) => Ok(None),
            Ok(Some((RangeFrame::BulkString((start, end)), length))) if is_score(&received[start..end]) => {
                Ok(Some(length))
            }
            _ => bail!("ZINCRBY answered {:?}", String::from_utf8_lossy(received)),
        }
    }
}

pub(crate) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "sorted-sets-zadd",
        about: "ZADD, new score",
        persistence: Persistence::Off,
        setup: &SCORES,
        driver: Driver::Clients { run: zadd, amounts: MEDIUM, needs: Needs::Command("ZADD") },
        targets: SORTED_SET_TARGETS,
    },
    Workload {
        name: "sorted-sets-zrangebyscore",
        about: "ZRANGEBYSCORE, 10 of 1 M",
        persistence: Persistence::Off,
        setup: &SCORES,
        driver: Driver::Clients { run: zrangebyscore, amounts: HEAVY, needs: Needs::Command("ZRANGEBYSCORE") },
        targets: SORTED_SET_TARGETS,
    },
    Workload {
        name: "sorted-sets-zincrby",
        about: "ZINCRBY",
        persistence: Persistence::Off,
        setup: &SCORES,
        driver: Driver::Clients { run: zincrby, amounts: MEDIUM, needs: Needs::Command("ZINCRBY") },
        targets: SORTED_SET_TARGETS,
    },
];

const SORTED_SET_TARGETS: &[Target] =
    &[Target { pipeline: Some(16), metric: Metric::Throughput, bound: Bound::AtLeast(1.5) }];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::Length;

    fn asked(traffic: &mut impl Traffic, sender: usize) -> String {
        let mut requests = Vec::new();
        traffic.next_request(sender, &mut requests);
        String::from_utf8(requests).unwrap()
    }

    #[test]
    fn every_number_is_shuffled_to_another() {
        for length in [Length::Full, Length::Quick] {
            let size = SCORES.size(length);
            let mut seen = vec![false; size as usize];
            (0..size).for_each(|number| seen[shuffled(number, size) as usize] = true);
            assert!(seen.iter().all(|seen| *seen));
        }
    }

    #[test]
    fn a_new_score_tells_whose_it_is() {
        let mut moves = Moves::new(1_000_000);
        for _ in 0..1_000 {
            let request = asked(&mut moves, 0);
            let words: Vec<_> = request.lines().collect();
            let (score, member): (u64, u64) = (words[6].parse().unwrap(), words[8][4..].parse().unwrap());
            assert_eq!(score % 1_000_000, member);
        }
        assert!(moves.check_reply(0, b":1\r\n").is_err());
    }

    #[test]
    fn a_range_is_its_ten_members_and_no_others() {
        let mut ranges = Ranges::new(11);
        assert!(asked(&mut ranges, 3).ends_with("\r\n000000000000\r\n$12\r\n000000000009\r\n"));
        let mut answer = "*10\r\n".to_string();
        (0..10).for_each(|number| answer += &format!("$16\r\njob_{number:012}\r\n"));
        for end in 0..answer.len() {
            assert_eq!(ranges.check_reply(3, &answer.as_bytes()[..end]).unwrap(), None);
        }
        assert!(ranges.check_reply(3, answer.replace("009", "010").as_bytes()).is_err());
        assert_eq!(ranges.check_reply(3, (answer.clone() + "*10").as_bytes()).unwrap(), Some(answer.len()));
        assert!(ranges.check_reply(3, answer.as_bytes()).is_err());
    }

    #[test]
    fn increments_are_added_up() {
        let mut sums = Sums::new(1, vec![5]);
        let request = asked(&mut sums, 0);
        let by: u64 = request.lines().nth(6).unwrap().parse().unwrap();
        assert!(sums.check(&[5 + by]).is_ok());
        assert!(sums.check(&[5]).is_err());
    }

    #[test]
    fn a_score_may_arrive_in_pieces_and_is_digits() {
        let mut sums = Sums::new(1, Vec::new());
        let answer = b"$3\r\n123\r\n$";
        for end in 0..9 {
            assert_eq!(sums.check_reply(0, &answer[..end]).unwrap(), None, "{end}");
        }
        assert_eq!(sums.check_reply(0, answer).unwrap(), Some(9));
        for refused in ["-ERR no\r\n", "$4\r\n123\r\n:", "$3\r\n1.5\r\n", "$0\r\n\r\n"] {
            assert!(sums.check_reply(0, refused.as_bytes()).is_err(), "{refused:?}");
        }
    }
}
