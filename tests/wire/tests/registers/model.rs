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

/// The version that follows; none of the tests reaches the last round.
fn after((epoch, round): Version) -> Version {
    (epoch, round + 1)
}

/// How ordered versions are written: plain ones are taken one by one, dotted ones wait for a seal.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Plain,
    Dotted,
}

impl Order {
    fn write(self, (epoch, round): Version) -> String {
        match self {
            Order::Plain => round.to_string(),
            Order::Dotted => format!("{epoch}.{round}"),
        }
    }
}

/// A register: the newest operation with its value, how it takes ordered versions, what is sealed, and what waits.
#[derive(Clone, Default)]
struct Model {
    current: Option<(Version, Operation, String)>,
    order: Option<Order>,
    sealed: Version,
    waiting: BTreeMap<Version, Operation>,
}

const OTHER_ORDER: &str = "-ERR the register takes";

impl Model {
    fn value(&self) -> Option<&str> {
        self.current.as_ref().map(|(_, _, value)| &**value)
    }

    /// The lowest version that is not closed.
    fn open_from(&self) -> Version {
        let least = if self.order == Some(Order::Dotted) { (0, 0) } else { (0, 1) };
        let next = self.current.as_ref().map_or((0, 0), |(version, ..)| after(*version));
        self.sealed.max(next).max(if self.current.is_none() && self.sealed == (0, 0) { least } else { (0, 0) })
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
        self.waiting.retain(|waiting, _| *waiting > version);
        true
    }

    /// Applies what waits without a gap, where versions are taken one by one.
    fn go_on(&mut self) -> usize {
        let mut applied = 0;
        while self.order == Some(Order::Plain)
            && let next = self.open_from()
            && let Some(operation) = self.waiting.get(&next).cloned()
            && self.apply(next, &operation)
        {
            applied += 1;
        }
        applied
    }

    fn change(&mut self, version: Version, operation: &Operation, ordered: Option<Order>) -> &'static str {
        if ordered.is_some() && self.order.is_some() && ordered != self.order {
            return OTHER_ORDER;
        }
        match &self.current {
            Some((current, by, _)) if *current == version => {
                return if by == operation { "+DUPLICATE" } else { "+MISMATCH" };
            }
            Some((current, ..)) if version < *current => return "+STALE",
            _ if version < self.sealed => return "+STALE",
            _ => {}
        }
        if self.waiting.get(&version).is_some_and(|waiting| waiting != operation) {
            return "+MISMATCH";
        }
        if ordered == Some(Order::Dotted) || ordered == Some(Order::Plain) && version != self.open_from() {
            self.order = ordered;
            self.waiting.insert(version, operation.clone());
            return "+BUFFERED";
        }
        if !self.apply(version, operation) {
            return "-ERR the value of the register is not a whole number of 64 bits: REG.PUT a number first";
        }
        self.order = self.order.or(ordered);
        self.go_on();
        "+APPLIED"
    }

    fn seal(&mut self, below: Version, written: Order) -> Result<usize, String> {
        if self.order.is_some_and(|order| order != written) {
            return Err(OTHER_ORDER.into());
        }
        if below <= self.open_from() {
            return Ok(0);
        }
        let (mut sealed, mut applied) = (self.clone(), 0);
        for (version, operation) in self.waiting.range(..below) {
            if !sealed.apply(*version, operation) {
                return Err(format!("-ERR the buffered REG.INCRBY of version {} cannot be applied", show(*version)));
            }
            applied += 1;
        }
        sealed.sealed = below;
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
        let (epoch, near) = models.get(&name).map_or((0, 1), Model::open_from);
        let round = (near as usize + random.below(8)).saturating_sub(2) as u64;
        // Half of the keys are dotted, and some requests are of the other kind.
        let written = if (name % 2 == 0) ^ random.one_in(20) { Order::Plain } else { Order::Dotted };
        let version = match written {
            Order::Plain => (0, round.max(1)),
            Order::Dotted => (epoch + u64::from(random.one_in(10)), if random.one_in(10) { 0 } else { round }),
        };
        match random.below(100) {
            0 => {
                connection.run(&format!("DEL {key}"));
                models.remove(&name);
            }
            1 => {
                // Whatever it has comes back whole.
                let payload = connection.run(&format!("DUMP {key}"));
                if !payload.is_nil() {
                    connection.run(&format!("DEL {key}"));
                    assert_eq!(connection.run_with(&format!("RESTORE {key} 0"), &[payload.bytes()]).to_string(), "+OK");
                }
            }
            2 => {
                let blob = connection.run("REG.SNAPSHOT PREFIX r");
                connection.run("FLUSHALL");
                assert!(!connection.run_with("REG.RESTORE", &[blob.bytes()]).is_error());
            }
            3..13 => {
                let model = models.entry(name).or_default();
                let reply = connection.run(&format!("REG.SEAL {key} {}", written.write(version))).to_string();
                match model.seal(version, written) {
                    Ok(applied) => assert_eq!(reply, format!(":{applied}")),
                    Err(text) => assert!(reply.starts_with(&text), "{reply}"),
                }
            }
            step => {
                let (is_ordered, operation) = (step >= 40, Operation::random(&mut random));
                let (version, written, ordered) = match is_ordered {
                    true => (version, written.write(version), Some(written)),
                    false => {
                        let version = (if random.one_in(40) { epoch + random.below(3) as u64 } else { epoch }, round);
                        (version, show(version), None)
                    }
                };
                let reply = connection.run(&operation.line(&key, &written, is_ordered)).to_string();
                let expected = models.entry(name).or_default().change(version, &operation, ordered);
                assert!(reply.starts_with(expected), "{reply}, not {expected}");
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

/// Operations of several epochs in any order, each once or twice, and then one seal: as if they had come in order.
#[test]
fn dotted_operations_come_to_what_they_do_in_order() {
    let Some(session) = start() else { return };
    let (mut connection, mut random) = (session.connect(), Random::from_env());
    for round in 0..40 {
        let (key, mut operations) = (format!("r{round}"), BTreeMap::new());
        for _ in 0..random.below(200) + 1 {
            let version = (random.below(3) as u64, random.below(100) as u64);
            let operation = match random.one_in(4) {
                true => Operation::Put(random.below(1_000).to_string()),
                false => Operation::Add(random.below(2_000) as i64 - 1_000),
            };
            operations.insert(version, operation);
        }
        let sum = operations.values().fold(0, |sum, operation| match operation {
            Operation::Put(value) => value.parse().expect("it is a number"),
            Operation::Add(number) => sum + number,
        });
        let lines: Vec<String> = operations
            .iter()
            .map(|(version, operation)| operation.line(&key, &Order::Dotted.write(*version), true))
            .collect();
        let replies = send(&mut connection, &shuffled(&lines, &mut random));
        assert!(replies.iter().all(|reply| reply == "+BUFFERED"), "{replies:?}");
        assert!(connection.run(&format!("REG.GET {key}")).is_nil());
        assert_eq!(connection.run(&format!("REG.SEAL {key} 3.0")).integer(), operations.len() as i64);
        let last = *operations.keys().next_back().expect("there is one");
        assert_eq!(connection.run(&format!("REG.GET {key}")).to_string(), format!("[\"{sum}\", \"{}\"]", show(last)));
        let again = send(&mut connection, &lines);
        assert!(again.iter().all(|reply| reply == "+STALE" || reply == "+DUPLICATE"), "{again:?}");
    }
}
