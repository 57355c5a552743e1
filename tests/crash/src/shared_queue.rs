//! A queue with groups and limits that all clients share: jobs are added, claimed, ended and expire. No client knows what the
//! others have claimed, so what must hold is what limits promise: no more of a group are held than may be, no window has more
//! takes than its rate allows, nothing is taken of a group that is paused, and what is counted is what is there.
//!
//! Only claims make a job held here, and no job changes its group, so no maximum is ever exceeded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use wire::{Random, Reply};

use crate::connection::{Connection, Outcome, Trouble};
use crate::grouped::{self, Counts};
use crate::indexes;
use crate::model::{CLOCK_SLACK_MS, Entry, Field, State, Value, parse_int};
use crate::request::{Command, Request, Subject, command, excerpt};
use crate::scripts;

pub(crate) const INDEX: &str = "shared:queue";
const PREFIX: &str = "shared:job:";
const JOBS: usize = 48;
const GROUPS: usize = 4;

/// Limits that a queue has from its beginning on. There are rates that are used up for longer than a start takes.
#[derive(Clone, Copy)]
struct Limited {
    /// None is the index as a whole.
    group: Option<usize>,
    held: i64,
    rate: Option<Rate>,
    is_paused: bool,
}

#[derive(Clone, Copy)]
struct Rate {
    takes: i64,
    per_ms: i64,
    burst: i64,
}

const SLOW: Rate = Rate { takes: 2, per_ms: 10_000, burst: 3 };
const FAST: Rate = Rate { takes: 40, per_ms: 1000, burst: 5 };
const ALL_SLOW: Rate = Rate { takes: 5, per_ms: 10_000, burst: 8 };

/// In the second way the index as a whole has a slow rate.
fn limits(way: usize) -> [Limited; 1 + GROUPS] {
    let of = |group, held, rate| Limited { group, held, rate, is_paused: false };
    [
        of(None, 6, (way == 1).then_some(ALL_SLOW)),
        of(Some(0), 2, (way == 0).then_some(SLOW)),
        of(Some(1), 2, Some(FAST)),
        of(Some(2), 4, None),
        Limited { is_paused: true, ..of(Some(3), 2, None) },
    ]
}

/// The maximum of each group that has no other.
const HELD_EACH: i64 = 2;
const WAYS: usize = 2;
/// Takes that are older take no part in the windows.
const REMEMBERED_MS: i64 = 120_000;
/// How long the server may take to remove what has expired.
const REMOVED_WITHIN: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(crate) struct SharedQueue {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// Which limits it has, once it was made.
    way: Option<usize>,
    /// Acknowledged, or found.
    takes: BTreeSet<Take>,
}

/// A take of a job: when, of which group, of which job, and the how manieth of that job.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Take {
    taken_ms: i64,
    group: usize,
    job: Vec<u8>,
    count: i64,
}

/// The queue as a server has it.
pub(crate) struct QueueFound {
    groups: BTreeMap<Vec<u8>, Counts>,
    /// What IDX.LIMIT lists.
    limits: State,
    takes: Vec<Take>,
}

impl SharedQueue {
    pub(crate) fn is_made(&self) -> bool {
        self.lock().way.is_some()
    }

    /// Makes the index and sets its limits.
    pub(crate) fn make(&self, connection: &mut Connection, random: &mut Random) -> Outcome<()> {
        let way = random.below(WAYS);
        connection.must_run(&create())?;
        for limit in limit_commands(way) {
            connection.must_run(&limit)?;
        }
        self.lock().way = Some(way);
        Ok(())
    }

    /// A job is added, claimed, ended or will expire, or somebody looks at the groups.
    pub(crate) fn write(&self, random: &mut Random) -> Request {
        let number = random.below(JOBS);
        let key = format!("{PREFIX}{number}");
        let job = |command| Request::new(0, command).about(Subject::Job);
        match random.below(20) {
            0..6 => {
                let (group, at) = (group_name(number % GROUPS), random.below(9).to_string());
                job(command(&[&"HSET", &key, &"group", &group, &"at", &at, &"state", &"pending"]))
            }
            6..14 => self.claim(random),
            14 => job(command(&[&"PEXPIRE", &key, &(100 + random.below(900)).to_string()])),
            15 => job(command(&[&"DEL", &key])),
            16 => job(command(&[&"HDEL", &key, &"at", &"state"])),
            17..19 => job(command(&[&"HCAS", &key, &"state", &"running", &"done"])),
            _ => Request::new(0, command(&[&"IDX.GROUPS", &INDEX])).about(Subject::Groups),
        }
    }

    /// Claims, alone, in a transaction or in a script.
    fn claim(&self, random: &mut Random) -> Request {
        let mut one = || {
            let (lease, count) = (format!("NOW+{}", 50 + random.below(800)), (1 + random.below(3)).to_string());
            let order = random.pick(&["fair", "score"]);
            let set: [&dyn AsRef<[u8]>; 8] = [&"SET", &"3", &"state", &"running", &"at", &lease, &"taken", &"NOW"];
            let head: [&dyn AsRef<[u8]>; 5] = [&"CLAIM", &"1", &INDEX, &"MAX", &"NOW"];
            let tail: [&dyn AsRef<[u8]>; 6] = [&"COUNTER", &"takes", &"COUNT", &count, &"ORDER", &order];
            let fields: [&dyn AsRef<[u8]>; 5] = [&"FIELDS", &"3", &"group", &"taken", &"takes"];
            command(&[&head[..], &set, &tail, &fields].concat())
        };
        let claims: Vec<Command> = vec![one(), one()];
        let request = match random.below(6) {
            0 => Request { commands: claims, ..Request::new(0, Vec::new()) },
            1 => Request::new(0, scripts::call_batch(random.one_in(2), &claims)),
            _ => Request::new(0, claims.into_iter().next().expect("there are two")),
        };
        request.about(Subject::Claim)
    }

    /// Notes what was taken. Says what no server may answer.
    pub(crate) fn acknowledge(&self, subject: Subject, reply: &Reply) -> Result<(), String> {
        let mut known = self.lock();
        let limits = known.way.map(limits).unwrap_or(limits(0));
        if subject == Subject::Groups {
            let groups = grouped::told(reply).ok_or_else(|| format!("{} in place of groups", reply.excerpt()))?;
            return check_caps(&limits, &groups);
        }
        let mut takes = Vec::new();
        read_takes(reply, &mut takes).ok_or_else(|| format!("a claim was answered {}", reply.excerpt()))?;
        if let Some(take) = takes.iter().find(|take| limits[1 + take.group].is_paused) {
            return Err(format!("{take:?}, whose group is paused"));
        }
        known.takes.extend(takes);
        Ok(())
    }

    /// Checks the queue as it was found, with all takes so far.
    pub(crate) fn check(&self, found: Option<QueueFound>) -> Result<(), String> {
        let mut known = self.lock();
        let (way, found) = match (known.way, found) {
            (Some(way), Some(found)) => (way, found),
            (None, _) => return Ok(()),
            (Some(_), None) => return Err("the index of the shared queue is gone".into()),
        };
        let mut expected = State::default();
        for limit in limit_commands(way) {
            grouped::set_limits(&mut expected, INDEX.as_bytes(), &limit[2..]);
        }
        if expected != found.limits {
            let shown = |state: &State| {
                let texts = state.entries.iter().map(|(place, entry)| match &entry.value {
                    Value::Definition(text) => format!("\n    {}: {}", excerpt(&place.key), excerpt(text)),
                    _ => unreachable!("limits are definitions"),
                });
                texts.collect::<String>()
            };
            return Err(format!(
                "the shared queue was given the limits{}\n  and has{}",
                shown(&expected),
                shown(&found.limits)
            ));
        }
        let limits = limits(way);
        check_caps(&limits, &found.groups)?;
        known.takes.extend(found.takes);
        // Where a test sets clocks wrong, times say nothing.
        if crate::model::clock_error_ms() == 0 {
            limits.iter().try_for_each(|limit| check_rate(limit, &known.takes))?;
        }
        let newest_ms = known.takes.last().map_or(0, |take| take.taken_ms);
        known.takes.retain(|take| take.taken_ms + REMEMBERED_MS > newest_ms);
        Ok(())
    }

    /// Forgets the queue: the server starts with an empty directory. A flush leaves the index, its limits and its rates.
    pub(crate) fn forget(&self) {
        *self.lock() = Known::default();
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("no thread panicked with it")
    }
}

fn create() -> Command {
    let groups = command(&[&"GROUP", &"group", &"HELD", &"state", &"1", &"running"]);
    let only = command(&[&"ONLY", &"state", &"2", &"pending", &"running"]);
    [indexes::create(INDEX, PREFIX, "at"), only, groups].concat()
}

fn limit_commands(way: usize) -> Vec<Command> {
    let each = command(&[&"IDX.LIMIT", &INDEX, &"EACH", &"HELD", &HELD_EACH.to_string()]);
    let own = limits(way).map(|limit| {
        let scope = match limit.group {
            None => command(&[&"ALL"]),
            Some(group) => command(&[&"GROUP", &group_name(group)]),
        };
        let held = command(&[&"HELD", &limit.held.to_string()]);
        let rate = limit.rate.map_or(Vec::new(), |Rate { takes, per_ms, burst }| {
            command(&[&"RATE", &takes.to_string(), &per_ms.to_string(), &"BURST", &burst.to_string()])
        });
        let weight = match limit.group {
            None => Vec::new(),
            Some(group) => command(&[&"WEIGHT", &(1 + group).to_string()]),
        };
        let pause = command(&[&"PAUSE", &if limit.is_paused { "yes" } else { "no" }]);
        [command(&[&"IDX.LIMIT", &INDEX]), scope, held, rate, weight, pause].concat()
    });
    [each].into_iter().chain(own).collect()
}

fn group_name(group: usize) -> String {
    format!("g{group}")
}

/// Reads the takes of a reply to a claim, or to several in a transaction or script. `None` if it is none.
fn read_takes(reply: &Reply, into: &mut Vec<Take>) -> Option<()> {
    let Reply::Array(rows) = reply else { return None };
    for row in rows {
        match row.items() {
            [Reply::Bulk(job), Reply::Bulk(_), Reply::Array(fields)] => {
                let part = |name: &str| {
                    fields.chunks(2).find(|pair| pair[0] == Reply::Bulk(name.into())).map(|pair| pair[1].bytes())
                };
                into.push(Take::read(job, part)?);
            }
            _ => read_takes(row, into)?,
        }
    }
    Some(())
}

impl Take {
    fn read<'a>(job: &[u8], part: impl Fn(&str) -> Option<&'a [u8]>) -> Option<Take> {
        let group = parse_int(part("group")?.strip_prefix(b"g")?)? as usize;
        Some(Take { taken_ms: parse_int(part("taken")?)?, group, job: job.to_vec(), count: parse_int(part("takes")?)? })
    }
}

fn check_caps(limits: &[Limited], groups: &BTreeMap<Vec<u8>, Counts>) -> Result<(), String> {
    for limit in limits {
        let (held, of) = match limit.group {
            None => (groups.values().map(|counts| counts.held).sum(), "all groups".to_owned()),
            Some(group) => {
                let name = group_name(group);
                (groups.get(name.as_bytes()).map_or(0, |counts| counts.held), format!("the group {name}"))
            }
        };
        if held > limit.held {
            return Err(format!("{held} jobs of {of} of the shared queue are held, and may be {}", limit.held));
        }
    }
    Ok(())
}

/// In any `t` milliseconds there are at most `burst + t * takes / per_ms` takes.
fn check_rate(limit: &Limited, takes: &BTreeSet<Take>) -> Result<(), String> {
    let Some(Rate { takes: rate, per_ms, burst }) = limit.rate else { return Ok(()) };
    let of_group = takes.iter().filter(|take| limit.group.is_none_or(|group| group == take.group));
    // The surplus of a take: how many there were before it, less what the rate has allowed since the beginning.
    let mut lowest: Option<(i64, &Take)> = None;
    for (number, take) in (0..).zip(of_group) {
        let surplus = number * per_ms - take.taken_ms * rate;
        if lowest.is_none_or(|(lowest, _)| surplus < lowest) {
            lowest = Some((surplus, take));
        }
        let (lowest, first) = lowest.expect("it was just set");
        // A thread may look at the clock a while before it takes.
        if surplus - lowest + per_ms > burst * per_ms + CLOCK_SLACK_MS * rate {
            let count = takes.iter().filter(|one| limit.group.is_none_or(|group| group == one.group));
            let count = count.filter(|one| (first.taken_ms..=take.taken_ms).contains(&one.taken_ms)).count();
            return Err(format!(
                "{count} takes in {} ms, from {first:?} to {take:?}: the rate is {rate} in {per_ms} ms, {burst} at once",
                take.taken_ms - first.taken_ms
            ));
        }
    }
    Ok(())
}

/// Reads the queue, and compares what it counts with a look at every job. What has expired may be counted until it is removed.
pub(crate) fn observe(connection: &mut Connection) -> Outcome<Option<QueueFound>> {
    let names = connection.must_run(&["IDX.LIST"])?;
    if !names.items().iter().any(|name| name.bytes() == INDEX.as_bytes()) {
        return Ok(None);
    }
    let wrong = |reply: &Reply| Trouble::Wrong(format!("{} where the shared queue belongs", reply.excerpt()));
    let mut limits = State::default();
    let listed = connection.must_run(&["IDX.LIMIT", INDEX])?;
    grouped::read_limits(&mut limits, INDEX.as_bytes(), &listed).ok_or_else(|| wrong(&listed))?;
    let began = Instant::now();
    loop {
        let state = read_jobs(connection)?;
        let groups = connection.must_run(&["IDX.GROUPS", INDEX])?;
        let groups = grouped::told(&groups).ok_or_else(|| wrong(&groups))?;
        let index = indexes::find(&state, INDEX.as_bytes()).expect("it was just defined");
        let in_index = |fields: &&BTreeMap<Vec<u8>, Field>| {
            let state = fields.get(&b"state"[..]).map(|state| &state.value[..]);
            matches!(state, Some(b"pending" | b"running"))
        };
        // Jobs that are over are neither in the index nor held.
        let counted =
            grouped::count(indexes::covered(&state, 0, &index).filter(|(_, fields)| in_index(fields)), &index);
        match grouped::compare(&groups, &counted) {
            Ok(()) => {
                let jobs = indexes::covered(&state, 0, &index).filter_map(|(job, fields)| {
                    Take::read(job, |name| fields.get(name.as_bytes()).map(|field| &field.value[..]))
                });
                return Ok(Some(QueueFound { groups, limits, takes: jobs.collect() }));
            }
            Err(_) if began.elapsed() < REMOVED_WITHIN => thread::sleep(Duration::from_millis(20)),
            Err(what) => return Err(Trouble::Wrong(format!("the shared queue, {REMOVED_WITHIN:?} long: {what}"))),
        }
    }
}

fn read_jobs(connection: &mut Connection) -> Outcome<State> {
    let mut state = State::default();
    state.define(INDEX.as_bytes(), indexes::definition(&definition_words()));
    for number in 0..JOBS {
        let key = format!("{PREFIX}{number}");
        let reply = connection.must_run(&["HGETALL", &key])?;
        let fields: BTreeMap<Vec<u8>, Field> = reply
            .items()
            .chunks(2)
            .map(|pair| (pair[0].bytes().to_vec(), Field { value: pair[1].bytes().to_vec(), deadline: None }))
            .collect();
        if !fields.is_empty() {
            let entry = Entry { value: Value::Hash(fields), deadline: None };
            state.entries.insert(crate::model::Place::new(0, key.as_bytes()), std::sync::Arc::new(entry));
        }
    }
    Ok(state)
}

/// As the model has definitions: without ONLY.
fn definition_words() -> Command {
    let groups = command(&[&"GROUP", &"group", &"HELD", &"state", &"1", &"running"]);
    [indexes::create(INDEX, PREFIX, "at")[2..].to_vec(), groups].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(taken_ms: i64, count: i64) -> Take {
        Take { taken_ms, group: 0, job: b"shared:job:0".to_vec(), count }
    }

    #[test]
    fn takes_above_a_rate_are_found() {
        let slow = Limited { group: Some(0), held: 2, rate: Some(SLOW), is_paused: false };
        let check =
            |times: &[i64]| check_rate(&slow, &times.iter().zip(1..).map(|(ms, count)| take(*ms, count)).collect());
        assert_eq!(check(&[0, 0, 0, 5_000, 10_000]), Ok(()));
        assert_eq!(check(&[0, 20_000, 20_000, 20_000, 25_000]), Ok(()));
        assert!(check(&[0, 0, 0, 2_000]).is_err());
        assert!(check(&[0, 0, 0, 5_000, 10_000, 12_000]).is_err());
        assert!(check(&[0, 50_000, 50_000, 50_000, 50_000]).is_err(), "nothing is saved up beyond a burst");
        // After a restart that has forgotten the rate.
        assert!(check(&[0, 10, 20, 1_500, 1_510, 1_520]).is_err());
    }

    #[test]
    fn more_than_a_maximum_is_found() {
        let held = |held| Counts { records: held, held, first_score: None };
        let groups = |group: &str, count| BTreeMap::from([(group.as_bytes().to_vec(), held(count))]);
        assert_eq!(check_caps(&limits(0), &groups("g0", 2)), Ok(()));
        assert!(check_caps(&limits(0), &groups("g0", 3)).is_err());
        let of_all = ["g0", "g1", "g2"].map(|group| (group.as_bytes().to_vec(), held(2)));
        let mut of_all = BTreeMap::from(of_all);
        assert_eq!(check_caps(&limits(0), &of_all), Ok(()));
        of_all.insert(b"g2".to_vec(), held(3));
        assert!(check_caps(&limits(0), &of_all).is_err());
    }

    #[test]
    fn a_take_of_a_paused_group_is_found() {
        let queue = SharedQueue { known: Mutex::new(Known { way: Some(0), ..Known::default() }) };
        let reply = |group: &str| {
            let bulk = |text: &str| Reply::Bulk(text.into());
            let fields = ["group", group, "taken", "5", "takes", "1"].map(bulk).to_vec();
            Reply::Array(vec![Reply::Array(vec![bulk("shared:job:3"), bulk("1"), Reply::Array(fields)])])
        };
        assert!(queue.acknowledge(Subject::Claim, &reply("g3")).is_err());
        assert_eq!(queue.acknowledge(Subject::Claim, &reply("g1")), Ok(()));
        assert_eq!(queue.acknowledge(Subject::Claim, &Reply::Array(vec![reply("g1")])), Ok(()), "in a transaction");
        assert!(queue.check(None).is_err(), "the index is gone");
    }
}
