//! Operations in any order and any number of times, and random commands compared with a plain model.

use std::collections::BTreeMap;
use wire::Random;
use wire::own::{run_all, start, steps};

#[derive(Clone, Debug, PartialEq)]
enum Operation {
    Put(String),
    Add(i64),
}

impl Operation {
    /// Few different ones, so that the same comes again.
    fn random(random: &mut Random) -> Operation {
        match random.below(5) {
            0 => Operation::Put(format!("v{}", "x".repeat(random.pick(&[0, 30, 5_000])))),
            _ => Operation::of_numbers(random, 4),
        }
    }

    /// Sets or adds numbers below so many, so that each can be applied after any other.
    fn of_numbers(random: &mut Random, below: usize) -> Operation {
        match random.one_in(4) {
            true => Operation::Put(random.below(below).to_string()),
            false => Operation::Add(random.below(2 * below) as i64 - below as i64),
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

type Version = (u64, u64);

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

/// Operations in any order, each once or twice, come to what they do in order: by themselves where versions are plain, with a seal where
/// they have a dot. Without ORDERED the newest of them wins.
#[test]
fn ordered_operations_come_to_what_they_do_in_order() {
    let Some(session) = start() else { return };
    let (mut connection, mut random) = (session.connect(), Random::from_env());
    for round in 0..30 {
        let (key, order) = (format!("r{round}"), [Some(Order::Plain), Some(Order::Dotted), None][round % 3]);
        let mut operations = BTreeMap::new();
        for number in 1..=random.below(200) as u64 + 1 {
            let version = if order == Some(Order::Plain) { (0, number) } else { (random.below(3) as u64, number / 2) };
            let operation = match order {
                Some(_) => Operation::of_numbers(&mut random, 1_000),
                None => Operation::Put(format!("v{}", show(version))),
            };
            operations.insert(version, operation);
        }
        let line = |(version, operation): (&Version, &Operation)| match order {
            Some(order) => operation.line(&key, &order.write(*version), true),
            None => operation.line(&key, &show(*version), false),
        };
        let lines: Vec<String> = operations.iter().map(line).collect();
        let replies = run_all(&mut connection, shuffled(&lines, &mut random));
        let allowed: &[&str] = match order {
            Some(Order::Plain) => &["+APPLIED", "+BUFFERED", "+STALE", "+DUPLICATE"],
            Some(Order::Dotted) => &["+BUFFERED"],
            None => &["+APPLIED", "+STALE", "+DUPLICATE"],
        };
        assert!(replies.iter().all(|reply| allowed.contains(&&*reply.to_string())), "{order:?}: {replies:?}");
        if order == Some(Order::Dotted) {
            assert!(connection.run(&format!("REG.GET {key}")).is_nil());
            assert_eq!(connection.run(&format!("REG.SEAL {key} 3.0")).integer(), operations.len() as i64);
        }
        let (last, newest) = operations.last_key_value().expect("there is one");
        let value = match (order, newest) {
            (None, Operation::Put(value)) => value.clone(),
            _ => sum(operations.values()).to_string(),
        };
        let expected = format!("[\"{value}\", \"{}\"]", show(*last));
        assert_eq!(connection.run(&format!("REG.GET {key}")).to_string(), expected, "{order:?}");
        // Nothing of it can be done again.
        let again = run_all(&mut connection, lines);
        assert!(again.iter().all(|reply| ["+STALE", "+DUPLICATE"].contains(&&*reply.to_string())), "{again:?}");
        assert_eq!(connection.run(&format!("REG.GET {key}")).to_string(), expected, "{order:?}");
    }
}

/// What operations on numbers come to, one after the other.
fn sum<'a>(operations: impl Iterator<Item = &'a Operation>) -> i64 {
    operations.fold(0, |sum, operation| match operation {
        Operation::Put(value) => value.parse().expect("it is a number"),
        Operation::Add(number) => sum + number,
    })
}

#[test]
fn random_commands_agree_with_a_model() {
    let Some(session) = start() else { return };
    let (mut connection, mut random) = (session.connect(), Random::from_env());
    let mut models: BTreeMap<usize, Model> = BTreeMap::new();
    for _ in 0..steps(5_000) {
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
