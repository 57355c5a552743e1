//! Operations in any order and any number of times, and random commands compared with a plain model.

use crate::start;
use std::collections::BTreeMap;
use wire::{Connection, Random};

#[derive(Clone, Debug, PartialEq)]
enum Operation {
    Put(String),
    Add(i64),
}

impl Operation {
    fn random(random: &mut Random) -> Operation {
        match random.below(4) {
            0 => Operation::Put(random.below(1_000).to_string()),
            1 => Operation::Put(format!("v{}", "x".repeat(random.pick(&[0, 30, 5_000])))),
            _ => Operation::Add(random.below(2_000) as i64 - 1_000),
        }
    }

    fn line(&self, key: &str, version: &str, ordered: bool) -> String {
        let ordered = if ordered { " ORDERED" } else { "" };
        match self {
            Operation::Put(value) => format!("REG.PUT {key} {version} {value}{ordered}"),
            Operation::Add(number) => format!("REG.INCRBY {key} {version} {number}{ordered}"),
        }
    }
}

/// Shuffles, and repeats about a third.
fn shuffled<T: Clone>(items: &[T], random: &mut Random) -> Vec<T> {
    let mut all = items.to_vec();
    for _ in 0..items.len() / 3 {
        all.push(items[random.below(items.len())].clone());
    }
    for at in (1..all.len()).rev() {
        all.swap(at, random.below(at + 1));
    }
    all
}

fn send(connection: &mut Connection, lines: &[String]) -> Vec<String> {
    connection.pipeline(lines).iter().map(ToString::to_string).collect()
}

#[test]
fn puts_in_any_order_have_one_result() {
    let Some(session) = start() else { return };
    let (mut connection, mut random) = (session.connect(), Random::from_env());
    for round in 0..60 {
        let key = format!("r{round}");
        let versions: Vec<String> = (0..random.below(40) + 1)
            .map(|number| if random.one_in(3) { format!("{}.{number}", random.below(4)) } else { number.to_string() })
            .collect();
        let newest = versions.iter().map(|text| parsed(text)).max().expect("there is one");
        let lines: Vec<String> =
            versions.iter().map(|version| format!("REG.PUT {key} {version} v{}", show(parsed(version)))).collect();
        let replies = send(&mut connection, &shuffled(&lines, &mut random));
        assert!(replies.iter().all(|reply| ["+APPLIED", "+STALE", "+DUPLICATE"].contains(&&**reply)), "{replies:?}");
        let expected = format!("[\"v{0}\", \"{0}\"]", show(newest));
        assert_eq!(connection.run(&format!("REG.GET {key}")).to_string(), expected);
    }
}

#[test]
fn ordered_operations_come_to_what_they_do_in_order() {
    let Some(session) = start() else { return };
    let (mut connection, mut random) = (session.connect(), Random::from_env());
    for round in 0..40 {
        let (key, count) = (format!("r{round}"), random.below(300) + 1);
        // Additions to numbers alone, so that each can be applied.
        let mut operations: Vec<Operation> = Vec::new();
        for _ in 0..count {
            operations.push(match random.one_in(4) {
                true => Operation::Put(random.below(1_000).to_string()),
                false => Operation::Add(random.below(2_000) as i64 - 1_000),
            });
        }
        let sum = operations.iter().fold(0, |sum, operation| match operation {
            Operation::Put(value) => value.parse().expect("it is a number"),
            Operation::Add(number) => sum + number,
        });
        let lines: Vec<String> = (1..)
            .zip(&operations)
            .map(|(version, operation)| operation.line(&key, &format!("{version}"), true))
            .collect();
        let replies = send(&mut connection, &shuffled(&lines, &mut random));
        let allowed = ["+APPLIED", "+BUFFERED", "+STALE", "+DUPLICATE"];
        assert!(replies.iter().all(|reply| allowed.contains(&&**reply)), "{replies:?}");
        assert_eq!(connection.run(&format!("REG.GET {key}")).to_string(), format!("[\"{sum}\", \"{count}\"]"));
        // Nothing of it can be done again.
        let again = send(&mut connection, &lines);
        assert!(again.iter().all(|reply| reply == "+STALE" || reply == "+DUPLICATE"), "{again:?}");
        assert_eq!(connection.run(&format!("REG.GET {key}")).to_string(), format!("[\"{sum}\", \"{count}\"]"));
    }
}

type Version = (u64, u64);

fn parsed(text: &str) -> Version {
    match text.split_once('.') {
        Some((epoch, round)) => (epoch.parse().expect("a number"), round.parse().expect("a number")),
        None => (0, text.parse().expect("a number")),
    }
}

fn show((epoch, round): Version) -> String {
    if epoch == 0 { round.to_string() } else { format!("{epoch}.{round}") }
}

/// A register: the newest operation with its value, the lowest version of epoch 0 that is open, and what waits.
#[derive(Clone, Default)]
struct Model {
    current: Option<(Version, Operation, String)>,
    closed_below: u64,
    waiting: BTreeMap<u64, Operation>,
}

impl Model {
    fn value(&self) -> Option<&str> {
        self.current.as_ref().map(|(_, _, value)| &**value)
    }

    /// True when it could be applied.
    fn apply(&mut self, version: Version, operation: &Operation) -> bool {
        let value = match operation {
            Operation::Put(value) => value.clone(),
            Operation::Add(number) => match self.value().unwrap_or("0").parse::<i64>() {
                Ok(before) => (before + number).to_string(),
                Err(_) => return false,
            },
        };
        self.current = Some((version, operation.clone(), value));
        self.closed_below = if version.0 > 0 { u64::MAX } else { self.closed_below.max(version.1 + 1) };
        self.waiting.retain(|waiting, _| *waiting >= self.closed_below);
        true
    }

    fn go_on(&mut self) -> usize {
        let mut applied = 0;
        while let Some(operation) = self.waiting.get(&self.closed_below).cloned() {
            if !self.apply((0, self.closed_below), &operation) {
                break;
            }
            applied += 1;
        }
        applied
    }

    fn change(&mut self, version: Version, operation: &Operation, ordered: bool) -> &'static str {
        let next = self.closed_below.max(1);
        match &self.current {
            Some((current, by, _)) if *current == version => {
                return if by == operation { "+DUPLICATE" } else { "+MISMATCH" };
            }
            Some((current, ..)) if version < *current => return "+STALE",
            _ if version.0 == 0 && version.1 < self.closed_below => return "+STALE",
            _ => {}
        }
        let waiting = self.waiting.get(&version.1).filter(|_| version.0 == 0);
        if waiting.is_some_and(|waiting| waiting != operation) {
            return "+MISMATCH";
        }
        if ordered && version.1 != next {
            self.waiting.insert(version.1, operation.clone());
            return "+BUFFERED";
        }
        if !self.apply(version, operation) {
            return "-ERR the value of the register is not a whole number of 64 bits";
        }
        self.go_on();
        "+APPLIED"
    }

    fn seal(&mut self, below: u64) -> Result<usize, u64> {
        if below <= self.closed_below.max(1) {
            return Ok(0);
        }
        let (mut sealed, mut applied) = (self.clone(), 0);
        for (version, operation) in self.waiting.range(..below) {
            if !sealed.apply((0, *version), operation) {
                return Err(*version);
            }
            applied += 1;
        }
        sealed.closed_below = sealed.closed_below.max(below);
        sealed.waiting.retain(|waiting, _| *waiting >= below);
        applied += sealed.go_on();
        *self = sealed;
        Ok(applied)
    }
}

#[test]
fn random_commands_agree_with_a_model() {
    let Some(session) = start() else { return };
    let (mut connection, mut random) = (session.connect(), Random::from_env());
    let mut models: BTreeMap<usize, Model> = BTreeMap::new();
    for _ in 0..20_000 {
        let name = random.below(8);
        let key = format!("r{name}");
        let near = models.get(&name).map_or(1, |model| model.closed_below.min(1 << 20)) as usize;
        let round = (near + random.below(8)).saturating_sub(2) as u64;
        match random.below(100) {
            0 => {
                connection.run(&format!("DEL {key}"));
                models.remove(&name);
            }
            1..10 => {
                let below = round.max(1);
                let model = models.entry(name).or_default();
                let reply = connection.run(&format!("REG.SEAL {key} {below}")).to_string();
                match model.seal(below) {
                    Ok(applied) => assert_eq!(reply, format!(":{applied}")),
                    Err(version) => {
                        let text = format!("-ERR the buffered REG.INCRBY of version {version} cannot be applied");
                        assert!(reply.starts_with(&text), "{reply}");
                    }
                }
            }
            step => {
                let (ordered, operation) = (step >= 40, Operation::random(&mut random));
                let version = match ordered {
                    true => (0, round.max(1)),
                    false => (if random.one_in(40) { random.below(3) as u64 } else { 0 }, round),
                };
                let reply = connection.run(&operation.line(&key, &show(version), ordered)).to_string();
                assert_eq!(reply, models.entry(name).or_default().change(version, &operation, ordered));
            }
        }
        let model = models.get(&name).cloned().unwrap_or_default();
        let expected = match &model.current {
            Some((version, _, value)) => format!("[\"{value}\", \"{}\"]", show(*version)),
            None => "(nil)".to_owned(),
        };
        assert_eq!(connection.run(&format!("REG.GET {key}")).to_string(), expected);
    }
}
