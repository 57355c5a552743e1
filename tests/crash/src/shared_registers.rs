//! Registers that all clients write together, versions repeated and shuffled. What a version puts or adds follows from its number,
//! so that whichever is found can be checked: none that was acknowledged is gone, no version went back, and a sum is that of
//! all versions up to its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use wire::{Random, Reply};

use crate::model::{Entry, Value};
use crate::registers::{Operation, Register, Version, show_version};
use crate::request::{Command, Request, Subject, command};

pub(crate) const PREFIX: &str = "shared:register:";
const CHECKPOINT: &str = "shared:checkpoint";

/// The first are put, the others are ordered sums.
const PUTS: usize = 2;
const REGISTERS: usize = 4;
/// How far versions are shuffled.
const BEHIND: u64 = 8;
const AHEAD: u64 = 16;
/// Rounds of an epoch, in the register that has epochs.
const ROUNDS: u64 = 50;

#[derive(Default)]
pub(crate) struct SharedRegisters {
    known: [Mutex<Known>; REGISTERS],
    /// A snapshot was acknowledged.
    has_checkpoint: Mutex<bool>,
}

/// What clients know of a register.
#[derive(Default)]
struct Known {
    /// The register is at least at this version.
    reached: u64,
    /// No later version was sent.
    sent: u64,
    /// These were acknowledged as waiting for their turn.
    buffered: BTreeSet<u64>,
}

impl SharedRegisters {
    /// A put or an addition, a snapshot of all registers, or a restore.
    pub(crate) fn write(&self, random: &mut Random) -> Request {
        match random.below(12) {
            0 => {
                let position = show_version((0, lock(&self.known[0]).reached));
                let snapshot =
                    command(&[&"REG.SNAPSHOT", &"PREFIX", &PREFIX, &"POSITION", &position, &"STORE", &CHECKPOINT]);
                Request::new(0, snapshot).about(Subject::Checkpoint)
            }
            1 if *lock(&self.has_checkpoint) => {
                Request::new(0, command(&[&"REG.RESTORE", &"FROM", &CHECKPOINT, &"MERGE"])).about(Subject::Merge)
            }
            _ => {
                let number = random.below(REGISTERS);
                let mut known = lock(&self.known[number]);
                let first = known.reached.saturating_sub(BEHIND) + 1;
                let version = first + random.next_u64() % (known.reached + AHEAD - first + 1);
                known.sent = known.sent.max(version);
                Request::new(0, operate(number, version)).about(Subject::Register { number, version })
            }
        }
    }

    /// Notes what a client was told, unless no server may say that.
    pub(crate) fn acknowledge(&self, subject: Subject, reply: &Reply) -> Result<(), String> {
        match (subject, reply) {
            (Subject::Register { number, version }, Reply::Simple(verdict)) => {
                let mut known = lock(&self.known[number]);
                match verdict.as_slice() {
                    b"APPLIED" | b"DUPLICATE" | b"STALE" => known.reached = known.reached.max(version),
                    b"BUFFERED" if number >= PUTS => drop(known.buffered.insert(version)),
                    _ => return Err(format!("version {version} of the shared register {number} was answered {reply}")),
                }
                let reached = known.reached;
                known.buffered.retain(|version| *version > reached);
                Ok(())
            }
            (Subject::Checkpoint, Reply::Integer(_)) => {
                *lock(&self.has_checkpoint) = true;
                Ok(())
            }
            // Versions do not go back, so none is newer in a snapshot than where it was taken from.
            (Subject::Merge, Reply::Array(restored)) if restored.first() == Some(&Reply::Integer(0)) => Ok(()),
            _ => Err(format!("a request for shared registers was answered {}", reply.excerpt())),
        }
    }

    /// Checks the registers and the checkpoint as they were found, and goes on from there.
    pub(crate) fn check(&self, found: &BTreeMap<Vec<u8>, Arc<Entry>>) -> Result<(), String> {
        let none = Register::default();
        let mut versions = Vec::new();
        for (number, known) in self.known.iter().enumerate() {
            let register = match found.get(key(number).as_bytes()).map(|entry| &entry.value) {
                None => &none,
                Some(Value::Register(register)) => register,
                Some(_) => return Err(format!("the shared register {number} is of another type")),
            };
            versions.push(lock(known).check(number, register)?);
        }
        let checkpoint = match found.get(CHECKPOINT.as_bytes()).map(|entry| &entry.value) {
            None => None,
            Some(Value::Checkpoint(checkpoint)) => Some(checkpoint),
            Some(_) => return Err("the shared checkpoint is none".into()),
        };
        let mut has_checkpoint = lock(&self.has_checkpoint);
        if *has_checkpoint && checkpoint.is_none() {
            return Err("the shared checkpoint is gone".into());
        }
        *has_checkpoint = checkpoint.is_some();
        for (number, version) in versions.into_iter().enumerate() {
            let saved = checkpoint.and_then(|checkpoint| checkpoint.registers.get(key(number).as_bytes()));
            if let Some(Value::Register(register)) = saved.map(|entry| &entry.value)
                && let saved = checked_version(number, register)?
                && saved > version
            {
                return Err(format!(
                    "the shared checkpoint has version {saved} of register {number}, which is at {version}"
                ));
            }
        }
        Ok(())
    }

    pub(crate) fn reset(&self) {
        self.known.iter().for_each(|known| *lock(known) = Known::default());
        *lock(&self.has_checkpoint) = false;
    }
}

impl Known {
    /// Returns the version that was found.
    fn check(&mut self, number: usize, register: &Register) -> Result<u64, String> {
        let version = checked_version(number, register)?;
        if !(self.reached..=self.sent).contains(&version) {
            return Err(format!(
                "the shared register {number} is at version {version}; a client was told of {}, and {} was the last to be sent",
                self.reached, self.sent
            ));
        }
        let lost =
            self.buffered.iter().find(|buffered| **buffered > version && !register.buffer.contains_key(buffered));
        if let Some(lost) = lost {
            return Err(format!(
                "the shared register {number} at version {version} has lost version {lost}, which was acknowledged as buffered"
            ));
        }
        let last = register.buffer.last_key_value().map_or(version, |(last, _)| *last);
        *self =
            Known { reached: version, sent: self.sent.max(last), buffered: register.buffer.keys().copied().collect() };
        Ok(version)
    }
}

/// The version of a register, 0 if it has none, when all that it has follows from its versions.
fn checked_version(number: usize, register: &Register) -> Result<u64, String> {
    let version = register.version().map_or(0, |(epoch, round)| epoch * ROUNDS + round);
    let is_right = match &register.current {
        None => true,
        Some(current) => {
            let value = match number {
                ..PUTS => put_value(version),
                _ => (1..=version).map(addend).sum::<i64>().to_string().into_bytes(),
            };
            current.version == version_of(number, version) && current.value == value
        }
    };
    let waits_rightly = |(version, operation): (&u64, &Operation)| *operation == Operation::Add(addend(*version));
    match is_right && register.sealed == 0 && register.buffer.iter().all(waits_rightly) {
        true => Ok(version),
        false => Err(format!("the shared register {number} is what no versions come to: {register}")),
    }
}

fn operate(number: usize, version: u64) -> Command {
    let shown = show_version(version_of(number, version));
    match number {
        ..PUTS => command(&[&"REG.PUT", &key(number), &shown, &put_value(version)]),
        _ => command(&[&"REG.INCRBY", &key(number), &shown, &addend(version).to_string(), &"ORDERED"]),
    }
}

/// The second register has epochs.
fn version_of(number: usize, version: u64) -> Version {
    if number == 1 { (version / ROUNDS, version % ROUNDS) } else { (0, version) }
}

/// Short, and now and then too long to be packed.
fn put_value(version: u64) -> Vec<u8> {
    let len = if version.is_multiple_of(40) { 5_000 } else { version as usize * 7 % 90 };
    let mut value = format!("<{version}>").into_bytes();
    value.resize(value.len() + len, version as u8);
    value
}

fn addend(version: u64) -> i64 {
    (version * 37 % 100) as i64 - 30
}

fn key(number: usize) -> String {
    format!("{PREFIX}{number}")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panicked with it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::State;

    /// What a server has after these versions of a register.
    fn found(number: usize, versions: &[u64]) -> BTreeMap<Vec<u8>, Arc<Entry>> {
        let mut state = State::default();
        versions.iter().for_each(|version| drop(state.apply(0, &operate(number, *version), 0)));
        state.entries.into_iter().map(|(place, entry)| (place.key, entry)).collect()
    }

    /// Clients that sent these versions and were told these verdicts.
    fn told(number: usize, verdicts: &[(u64, &str)]) -> SharedRegisters {
        let shared = SharedRegisters::default();
        for (version, verdict) in verdicts {
            lock(&shared.known[number]).sent = *version;
            let subject = Subject::Register { number, version: *version };
            shared.acknowledge(subject, &Reply::Simple((*verdict).into())).expect("a verdict");
        }
        shared
    }

    #[test]
    fn a_put_that_was_acknowledged_is_there_or_a_newer_one() {
        for number in 0..PUTS {
            let shared = || told(number, &[(3, "APPLIED"), (60, "APPLIED")]);
            assert!(shared().check(&found(number, &[60])).is_ok());
            assert!(shared().check(&found(number, &[3])).is_err());
            assert!(shared().check(&found(number, &[61])).is_err());
            assert!(shared().check(&BTreeMap::new()).is_err());
        }
    }

    #[test]
    fn a_sum_is_that_of_its_versions_and_forgets_none_that_waits() {
        let shared = || told(2, &[(1, "APPLIED"), (2, "APPLIED"), (4, "BUFFERED")]);
        assert!(shared().check(&found(2, &[2, 1, 4])).is_ok());
        assert!(shared().check(&found(2, &[2, 1])).is_err());
        assert!(shared().check(&found(2, &[1, 4])).is_err());
        assert!(shared().check(&found(2, &[2, 1, 4, 3])).is_ok());
        let twice = &command(&[&"REG.INCRBY", &key(2), &"3", &"5", &"ORDERED"]);
        let mut state = State::default();
        [1, 2].into_iter().for_each(|version| drop(state.apply(0, &operate(2, version), 0)));
        state.apply(0, twice, 0);
        let wrong = state.entries.into_iter().map(|(place, entry)| (place.key, entry)).collect();
        assert!(told(2, &[(3, "APPLIED")]).check(&wrong).is_err());
    }

    #[test]
    fn a_checkpoint_is_not_newer_than_the_registers_and_does_not_go() {
        let snapshot = command(&[&"REG.SNAPSHOT", &"PREFIX", &PREFIX, &"POSITION", &"1", &"STORE", &CHECKPOINT]);
        let state_of = |before: &[u64], after: u64| {
            let mut state = State::default();
            before.iter().for_each(|version| drop(state.apply(0, &operate(0, *version), 0)));
            state.apply(0, &snapshot, 0);
            state.entries.retain(|place, _| place.key == CHECKPOINT.as_bytes());
            state.apply(0, &operate(0, after), 0);
            state.entries.into_iter().map(|(place, entry)| (place.key, entry)).collect::<BTreeMap<_, _>>()
        };
        let shared = || {
            let shared = told(0, &[(3, "APPLIED")]);
            lock(&shared.known[0]).sent = 9;
            shared
        };
        assert!(shared().check(&state_of(&[5], 9)).is_ok());
        assert!(shared().check(&state_of(&[9], 5)).is_err());
        let shared = shared();
        shared.acknowledge(Subject::Checkpoint, &Reply::Integer(1)).expect("a count");
        assert!(shared.check(&found(0, &[5])).is_err());
        assert!(shared.acknowledge(Subject::Merge, &Reply::Array(vec![Reply::Integer(1), Reply::NilBulk])).is_err());
    }
}
