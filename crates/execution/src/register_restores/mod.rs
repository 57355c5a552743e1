//! Restores of registers in slices: which are in progress, what the journal contains of them, and how a step is
//! applied. Knows steps; refuses to know blobs and the command.
//!
//! A restore that is too large for one batch takes two passes. First all steps go to the journal, cut into pieces, as
//! definitions (`Definable::Restore`), followed by a note that they are complete. From then on the restore will happen,
//! even after a crash: each piece is applied in one batch, which also removes the piece. After a start, and when a
//! follower is promoted, the remaining pieces are applied (`pieces::finish_restores`); pieces without the note are
//! removed.
//!
//! A register is changed once, in the batch of its piece. Later writes of clients stay, even when the remaining pieces
//! are applied after a crash.

pub mod pieces;

pub use pieces::finish_restores;
pub use pieces::{
    Piece, do_restore_piece, forget_restore, is_register, note_restore_begun, note_restore_piece, take_step,
};

use crate::error::{CommandError, CommandResult};
use keyspace::{DATABASES, Effect, Touches};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::SeqCst};

/// The restores in progress, at most one for each database.
#[derive(Default)]
pub struct Restores {
    count: AtomicUsize,
    states: [AtomicU8; DATABASES],
}

const NONE: u8 = 0;
const UNDER_WAY: u8 = 1;
/// The database was emptied since, and with it the pieces in the journal.
const EMPTIED: u8 = 2;

impl Restores {
    /// True when a restore is in progress.
    #[inline]
    pub fn any(&self) -> bool {
        self.count.load(SeqCst) > 0
    }

    /// Begins a restore. Refused while another is in progress in that database.
    pub fn begin(&self, db: usize) -> CommandResult {
        self.states[db].compare_exchange(NONE, UNDER_WAY, SeqCst, SeqCst).map_err(|_| busy())?;
        self.count.fetch_add(1, SeqCst);
        Ok(())
    }

    pub fn end(&self, db: usize) {
        self.states[db].store(NONE, SeqCst);
        self.count.fetch_sub(1, SeqCst);
    }

    /// Refuses commands about a whole database while registers are restored there.
    pub fn pass_database(&self, db: usize) -> CommandResult {
        if self.states[db].load(SeqCst) == NONE { Ok(()) } else { Err(busy()) }
    }

    /// Marks the restores that an effect cancels as ended. Returns their databases.
    #[cold]
    pub fn ended_by(&self, db: usize, effect: &Effect<'_>) -> Vec<u8> {
        let Touches::Emptied(dbs) = effect.touches(db) else { return Vec::new() };
        let is_ended = |db: &usize| self.states[*db].compare_exchange(UNDER_WAY, EMPTIED, SeqCst, SeqCst).is_ok();
        dbs.filter(is_ended).map(|db| db as u8).collect()
    }
}

fn busy() -> CommandError {
    CommandError::fixed("BUSY a REG.RESTORE is under way in this database: try again when it has ended")
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
        assert!(restores.ended_by(0, &Effect::FlushAll).is_empty(), "each ends once");
        assert!(restores.begin(3).is_err() && restores.begin(4).is_err());
        restores.end(3);
        restores.end(4);
        assert!(!restores.any() && restores.begin(4).is_ok());
    }
}
