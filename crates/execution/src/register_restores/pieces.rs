//! The pieces of a restore of registers: how they are added to the journal, and how each is applied. Refuses to know
//! blobs and the command.

use crate::commit;
use crate::database_tokens::DatabaseToken;
use crate::engine::Engine;
use crate::error::{CommandError, CommandResult};
use crate::own_changes;
use crate::recorder::Recorder;
use crate::settings::events::Events;
use crate::worker::Worker;
use keyspace::db::Db;
use keyspace::types::register;
use keyspace::types::register::checkpoint::{Saved, version};
use keyspace::types::register::plan::{Step, Steps};
use keyspace::{Cause, DATABASES, Definable, Effect, Entry, Image, Key, Locked, ValueType};

/// True for a register that has not expired.
pub fn is_register(entry: &Entry, now_ms: u64) -> bool {
    ValueType::of(entry).is(&register::TYPE) && !Db::is_expired(entry, now_ms)
}

/// The name of a piece in the journal.
fn piece_name(db: usize, number: u32) -> [u8; 5] {
    let [a, b, c, d] = number.to_be_bytes();
    [db as u8, a, b, c, d]
}

/// Applies a step, if possible: a key of another type that was created since the check stays. True when a register was
/// set. The key is locked.
pub fn take_step(keys: &mut Recorder<'_>, step: Step<'_>) -> bool {
    let (key, now_ms) = (Key::new(step.name()), keys.now_ms());
    let is_expired = |saved: Saved<'_>| saved.deadline.is_some_and(|deadline| deadline <= now_ms);
    let entry = keys.view().entry(key).filter(|entry| !Db::is_expired(entry, now_ms));
    let is_register = entry.is_some_and(|entry| is_register(entry, now_ms));
    let is_taken = entry.is_some() && !is_register || keys.engine().indexes.has_any_of(std::iter::once(key.name));
    let set = match step {
        _ if is_taken => return false,
        Step::Drop(_) => None,
        Step::Set(saved) => Some(saved).filter(|saved| !is_expired(*saved)),
        // Of two values of one version, the existing one stays: clients may have used it.
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

/// The result of applying a piece.
pub enum Piece {
    /// So many registers were set.
    Done(u64),
    /// The piece does not exist any more: the database was emptied.
    Gone,
    /// The locks are not available now.
    Busy,
}

/// Adds a piece to the journal. False when the locks are not available now.
pub fn note_restore_piece(engine: &Engine, worker: &mut Worker, db: usize, number: u32, steps: &[u8]) -> bool {
    note_restore(
        engine,
        worker,
        |_, _| Ok(()),
        Effect::Define { what: Definable::Restore, name: &piece_name(db, number), definition: steps },
    )
    .is_ok_and(|is_noted| is_noted)
}

/// Notes in the journal that all pieces are complete: from now on the restore happens. False when the locks are not
/// available now.
pub fn note_restore_begun(
    engine: &Engine,
    worker: &mut Worker,
    db: usize,
    token: &DatabaseToken,
) -> Result<bool, CommandError> {
    let pass = |engine: &Engine, locked: &Locked<'_>| {
        engine.restrictions.pass_write()?;
        engine.forks.pass_database(db)?;
        token.pass(locked)
    };
    note_restore(engine, worker, pass, Effect::Define { what: Definable::Restore, name: &[db as u8], definition: b"" })
}

/// Removes all pieces of a restore from the journal. False when the locks are not available now.
pub fn forget_restore(engine: &Engine, worker: &mut Worker, db: usize) -> bool {
    let forgotten = Effect::Undefine { what: Definable::Restore, name: &[db as u8] };
    note_restore(engine, worker, |_, _| Ok(()), forgotten).is_ok_and(|is_noted| is_noted)
}

fn note_restore(
    engine: &Engine,
    worker: &mut Worker,
    pass: impl FnOnce(&Engine, &Locked<'_>) -> CommandResult,
    note: Effect<'_>,
) -> Result<bool, CommandError> {
    let Some(mut locked) = engine.keyspace.lock_all_unless_busy() else { return Ok(false) };
    pass(engine, &locked)?;
    let mut keys = own_changes::own_changes(engine, worker, locked.lend(), 0);
    keys.record(&note);
    keys.finish();
    commit::commit(engine, worker, None, &mut locked);
    locked.release_fairly();
    Ok(true)
}

/// Applies a piece in one batch, which also removes the piece; the last one also ends the restore.
pub fn do_restore_piece(engine: &Engine, worker: &mut Worker, db: usize, number: u32, is_last: bool) -> Piece {
    let name = piece_name(db, number);
    let Some(mut locked) = engine.keyspace.lock_all_unless_busy() else { return Piece::Busy };
    let Some(steps) = locked.definitions().restore(&name).cloned() else { return Piece::Gone };
    let mut keys = own_changes::own_changes(engine, worker, locked.lend(), db);
    let set = Steps::of(&steps).filter(|step| take_step(&mut keys, *step)).count() as u64;
    let done = if is_last { &name[..1] } else { &name };
    keys.record(&Effect::Undefine { what: Definable::Restore, name: done });
    let garbage = keys.finish().take_garbage();
    commit::commit(engine, worker, None, &mut locked);
    locked.release_fairly();
    engine.free(garbage);
    Piece::Done(set)
}

/// Applies the remaining pieces of restores, after a start or when a follower is promoted. No restore of this server
/// has begun yet. Returns how many registers were set.
pub fn finish_restores(engine: &Engine, worker: &mut Worker) -> u64 {
    let names: Vec<Vec<u8>> = {
        let locked = engine.keyspace.lock_shard(0);
        locked.definitions().restores().map(<[u8]>::to_vec).collect()
    };
    let mut set = 0;
    for db in 0..DATABASES {
        engine.begin(worker);
        let of_db: Vec<&Vec<u8>> = names.iter().filter(|name| name.first() == Some(&(db as u8))).collect();
        let has_begun = of_db.iter().any(|name| name.len() == 1);
        let numbers = of_db.iter().filter_map(|name| name[1..].try_into().ok()).map(u32::from_be_bytes);
        for number in numbers.filter(|_| has_begun) {
            loop {
                match do_restore_piece(engine, worker, db, number, false) {
                    Piece::Done(some) => break set += some,
                    Piece::Gone => break,
                    // A read-only script may be running for long on a follower.
                    Piece::Busy => {}
                }
            }
        }
        while !of_db.is_empty() && !forget_restore(engine, worker, db) {}
    }
    set
}
