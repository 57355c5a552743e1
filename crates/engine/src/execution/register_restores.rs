//! Restores of registers in slices: which are under way, what the journal has of them, and how a step is made true. Knows
//! steps; refuses to know blobs and how a restore is asked for.
//!
//! More registers than one batch should have are restored in two passes. First the journal takes all that is to be done, cut into
//! pieces, as definitions (`Definable::Restore`), and then the note that all of it is there. From then on the restore will take
//! place, whatever happens: each piece is done in one batch, which also removes it. After a start, and when a follower takes the
//! leader's place, the pieces that are left are done ([`Engine::finish_restores`]); pieces without the note are removed.
//!
//! A register is changed once, in the batch of its piece, and never again: what clients write to it afterwards stays, also when the
//! rest is done after a crash.

use crate::error::{CommandError, CommandResult};
use crate::execution::engine::Engine;
use crate::execution::recorder::Recorder;
use crate::execution::worker::Worker;
use crate::settings::events::Events;
use keyspace::db::Db;
use keyspace::types::register;
use keyspace::types::register::checkpoint::{Saved, version};
use keyspace::types::register::plan::{Step, Steps};
use keyspace::{Cause, DATABASES, Definable, Effect, Entry, Image, Key, Touches, ValueType};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::SeqCst};

/// The restores in slices that are under way, one a database.
#[derive(Default)]
pub(crate) struct Restores {
    count: AtomicUsize,
    states: [AtomicU8; DATABASES],
}

const NONE: u8 = 0;
const UNDER_WAY: u8 = 1;
/// The database was emptied since, and what the journal had of the restore is gone.
const EMPTIED: u8 = 2;

impl Restores {
    /// True when there is one.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.count.load(SeqCst) > 0
    }

    /// Begins one. Refused while there is another in that database.
    pub(crate) fn begin(&self, db: usize) -> CommandResult {
        self.states[db].compare_exchange(NONE, UNDER_WAY, SeqCst, SeqCst).map_err(|_| busy())?;
        self.count.fetch_add(1, SeqCst);
        Ok(())
    }

    pub(crate) fn end(&self, db: usize) {
        self.states[db].store(NONE, SeqCst);
        self.count.fetch_sub(1, SeqCst);
    }

    /// True when the database was emptied since its restore began. Exact for a thread that has locked everything.
    pub(crate) fn is_emptied(&self, db: usize) -> bool {
        self.states[db].load(SeqCst) == EMPTIED
    }

    /// Refuses what cannot be done in a database while registers are restored there.
    pub(crate) fn pass_database(&self, db: usize) -> CommandResult {
        if self.states[db].load(SeqCst) == NONE { Ok(()) } else { Err(busy()) }
    }

    /// The databases whose restores an effect ends. They are noted.
    #[cold]
    pub(crate) fn ended_by(&self, db: usize, effect: &Effect<'_>) -> Vec<u8> {
        let Touches::Emptied(dbs) = effect.touches(db) else { return Vec::new() };
        let is_ended = |db: &usize| self.states[*db].compare_exchange(UNDER_WAY, EMPTIED, SeqCst, SeqCst).is_ok();
        dbs.filter(is_ended).map(|db| db as u8).collect()
    }
}

fn busy() -> CommandError {
    CommandError::fixed("BUSY a REG.RESTORE is under way in this database: try again when it has ended")
}

/// True for a register that has not expired.
pub(crate) fn is_register(entry: &Entry, now_ms: u64) -> bool {
    ValueType::of(entry).is(&register::TYPE) && !Db::is_expired(entry, now_ms)
}

/// The name of a piece in the journal.
fn piece_name(db: usize, number: u32) -> [u8; 5] {
    let [a, b, c, d] = number.to_be_bytes();
    [db as u8, a, b, c, d]
}

/// Makes a step true, as far as it can be: a key of another type that was made since everything was checked stays. True when a
/// register was set. The key is locked.
pub(crate) fn take_step(keys: &mut Recorder<'_>, step: Step<'_>) -> bool {
    let (key, now_ms) = (Key::new(step.name()), keys.now_ms);
    let is_expired = |saved: Saved<'_>| saved.deadline.is_some_and(|deadline| deadline <= now_ms);
    let entry = keys.entry(key).filter(|entry| !Db::is_expired(entry, now_ms));
    let is_register = entry.is_some_and(|entry| is_register(entry, now_ms));
    let is_taken = entry.is_some() && !is_register || keys.engine.any_is_index(std::iter::once(key.name));
    let set = match step {
        _ if is_taken => return false,
        Step::Drop(_) => None,
        Step::Set(saved) => Some(saved).filter(|saved| !is_expired(*saved)),
        // Of two of one version, the one that is there stays: it may have been put to use.
        Step::Merge(saved) => {
            let is_newer = entry.is_none_or(|entry| saved.version > version(entry));
            match is_newer && !is_expired(saved) {
                true => Some(saved),
                false => return false,
            }
        }
    };
    match set {
        Some(saved) => {
            let value = Image { value_type: &register::TYPE, bytes: saved.image };
            keys.record(&Effect::Put { key, value, deadline: saved.deadline });
        }
        None if is_register => {
            keys.record(&Effect::Delete { key, cause: Cause::Deleted });
        }
        None => return false,
    }
    keys.notify(Events::MODULE, "reg.restore", key);
    set.is_some()
}

/// What has become of a piece.
pub(crate) enum Piece {
    /// So many registers were set.
    Done(u64),
    /// There is none: the database was emptied.
    Gone,
    /// The locks cannot be had now.
    Busy,
}

impl Engine {
    /// Gives the journal a piece of what is to be done. False when the locks cannot be had now.
    pub(crate) fn note_restore_piece(&self, worker: &mut Worker, db: usize, number: u32, steps: &[u8]) -> bool {
        self.note_restore(
            worker,
            |_| Ok(()),
            Effect::Define { what: Definable::Restore, name: &piece_name(db, number), definition: steps },
        )
        .is_ok_and(|is_noted| is_noted)
    }

    /// All pieces are noted: from now on the restore takes place. False when the locks cannot be had now.
    pub(crate) fn note_restore_begun(&self, worker: &mut Worker, db: usize) -> Result<bool, CommandError> {
        let pass = |engine: &Engine| {
            engine.pass_write_restrictions()?;
            engine.forks.pass_database(db)?;
            if engine.restores.is_emptied(db) { Err(emptied()) } else { Ok(()) }
        };
        self.note_restore(worker, pass, Effect::Define { what: Definable::Restore, name: &[db as u8], definition: b"" })
    }

    /// Nothing of a restore is to be done any more. False when the locks cannot be had now.
    pub(crate) fn forget_restore(&self, worker: &mut Worker, db: usize) -> bool {
        let forgotten = Effect::Undefine { what: Definable::Restore, name: &[db as u8] };
        self.note_restore(worker, |_| Ok(()), forgotten).is_ok_and(|is_noted| is_noted)
    }

    fn note_restore(
        &self,
        worker: &mut Worker,
        pass: impl FnOnce(&Engine) -> CommandResult,
        note: Effect<'_>,
    ) -> Result<bool, CommandError> {
        let Some(mut locked) = self.keyspace.lock_all_unless_busy() else { return Ok(false) };
        pass(self)?;
        let mut keys = self.own_changes(worker, locked.lend(), 0);
        keys.record(&note);
        keys.finish();
        self.commit(worker, None, &mut locked);
        locked.release_fairly();
        Ok(true)
    }

    /// Does a piece, in one batch, which also says that it is done; after the last one that all is.
    pub(crate) fn do_restore_piece(&self, worker: &mut Worker, db: usize, number: u32, is_last: bool) -> Piece {
        let name = piece_name(db, number);
        let Some(mut locked) = self.keyspace.lock_all_unless_busy() else { return Piece::Busy };
        let Some(steps) = locked.definitions().restore(&name).cloned() else { return Piece::Gone };
        let mut keys = self.own_changes(worker, locked.lend(), db);
        let set = Steps::of(&steps).filter(|step| take_step(&mut keys, *step)).count() as u64;
        let done = if is_last { &name[..1] } else { &name };
        keys.record(&Effect::Undefine { what: Definable::Restore, name: done });
        let garbage = keys.finish().take_garbage();
        self.commit(worker, None, &mut locked);
        locked.release_fairly();
        self.free(garbage);
        Piece::Done(set)
    }

    /// After a start, or when a follower takes its leader's place: does what restores have left to be done. No restore of this
    /// server has begun yet. Returns how many registers were set.
    pub fn finish_restores(&self, worker: &mut Worker) -> u64 {
        let names: Vec<Vec<u8>> = {
            let locked = self.keyspace.lock_shard(0);
            locked.definitions().restores().map(<[u8]>::to_vec).collect()
        };
        let mut set = 0;
        for db in 0..DATABASES {
            self.begin(worker);
            let of_db: Vec<&Vec<u8>> = names.iter().filter(|name| name.first() == Some(&(db as u8))).collect();
            let has_begun = of_db.iter().any(|name| name.len() == 1);
            let numbers = of_db.iter().filter_map(|name| name[1..].try_into().ok()).map(u32::from_be_bytes);
            for number in numbers.filter(|_| has_begun) {
                loop {
                    match self.do_restore_piece(worker, db, number, false) {
                        Piece::Done(some) => break set += some,
                        Piece::Gone => break,
                        // A script that only reads may be running for long on a follower.
                        Piece::Busy => {}
                    }
                }
            }
            while !of_db.is_empty() && !self.forget_restore(worker, db) {}
        }
        set
    }
}

pub(crate) fn emptied() -> CommandError {
    CommandError::fixed("ERR the database was emptied during the restore")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_restore_a_database_and_emptying_ends_it() {
        let restores = Restores::default();
        assert!(!restores.any());
        restores.begin(3).unwrap();
        assert!(restores.any() && restores.begin(3).is_err() && restores.pass_database(3).is_err());
        restores.begin(4).unwrap();
        assert!(restores.ended_by(5, &Effect::FlushDb).is_empty());
        assert_eq!(restores.ended_by(4, &Effect::FlushDb), [4]);
        assert_eq!(restores.ended_by(0, &Effect::FlushAll), [3]);
        assert!(restores.is_emptied(3) && restores.is_emptied(4) && restores.begin(4).is_err());
        restores.end(3);
        restores.end(4);
        assert!(!restores.any() && restores.begin(4).is_ok());
    }
}
