//! Tokens of databases: a command in slices uses one to check that its database was not replaced between two slices.
//! Knows how many tokens each database has; refuses to know what the commands do.
//!
//! A command that works in slices takes a token of its database in its first slice and checks it in every other, under
//! the locks of the slice. While there is a token, SWAPDB of the database is refused. FLUSHDB and FLUSHALL are
//! executed, and end the command at its next slice; so does a SWAPDB that a follower gets from its leader. Dropping a
//! token releases it, however its command ends.

use crate::error::{CommandError, CommandResult};
use keyspace::{DATABASES, Effect, Locked, Touches};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

/// The token counts and states of all databases.
#[derive(Default)]
pub struct Databases([Database; DATABASES]);

#[derive(Default)]
struct Database {
    /// How many tokens of it exist.
    tokens: AtomicUsize,
    /// How often it was emptied or swapped. Changed while everything is locked.
    changes: AtomicU64,
}

/// The state of a database between two changes of it as a whole (FLUSHDB, SWAPDB).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseState(u64);

/// Lets a command in slices check that its database is still the same in the next slice.
pub struct DatabaseToken {
    databases: Arc<Databases>,
    db: usize,
    state: DatabaseState,
}

impl Databases {
    /// Takes a token of a database. IMPORTANT: under a lock of its keys, the same lock under which the command has read
    /// them: no SWAPDB may come between the read and the token.
    pub fn take_token(self: &Arc<Self>, locked: &Locked<'_>, db: usize) -> DatabaseToken {
        let state = self.state(locked, db);
        self.0[db].tokens.fetch_add(1, SeqCst);
        DatabaseToken { databases: self.clone(), db, state }
    }

    /// The state of a database, some of whose keys are locked. For a command that may end before it needs a token.
    #[inline]
    pub fn state(&self, locked: &Locked<'_>, db: usize) -> DatabaseState {
        debug_assert!(locked.shards().next().is_some(), "a database can change that is not locked");
        DatabaseState(self.0[db].changes.load(SeqCst))
    }

    /// Refuses to swap databases in which commands work in slices. Everything is locked.
    pub fn pass_swap(&self, a: usize, b: usize) -> CommandResult {
        match [a, b].iter().any(|db| self.0[*db].tokens.load(SeqCst) > 0) {
            true => Err(CommandError::fixed(
                "BUSY a command works in slices in one of these databases: try again when it has ended",
            )),
            false => Ok(()),
        }
    }

    /// Notes an effect on whole databases. Everything is locked.
    #[cold]
    pub fn note(&self, db: usize, effect: &Effect<'_>) {
        let note = |db: usize| {
            self.0[db].changes.fetch_add(1, SeqCst);
        };
        match effect.touches(db) {
            Touches::Emptied(dbs) => dbs.for_each(note),
            Touches::Swapped(a, b) => [a, b].into_iter().for_each(note),
            Touches::Keys(_) | Touches::Definition(_) => {}
        }
    }

    /// The number of tokens of all databases.
    #[cfg(test)]
    fn tokens(&self) -> usize {
        self.0.iter().map(|database| database.tokens.load(SeqCst)).sum()
    }
}

impl DatabaseToken {
    /// Refuses to continue in a database that was replaced. IMPORTANT: call it under the locks of the slice.
    pub fn pass(&self, locked: &Locked<'_>) -> CommandResult {
        match self.databases.state(locked, self.db) == self.state {
            true => Ok(()),
            false => Err(changed()),
        }
    }
}

/// The error for a command whose database was replaced since its first slice.
pub fn changed() -> CommandError {
    CommandError::fixed("ERR the database was emptied or exchanged while the command worked: send it again")
}

/// The token of a command that mostly needs none, because it usually ends in its first slice.
#[derive(Default)]
pub struct LazyToken {
    state: Option<DatabaseState>,
    token: Option<DatabaseToken>,
}

impl LazyToken {
    /// Refuses to continue in a database that was replaced since the first call.
    #[inline]
    pub fn pass(&mut self, databases: &Databases, locked: &Locked<'_>, db: usize) -> CommandResult {
        let state = databases.state(locked, db);
        match *self.state.get_or_insert(state) == state {
            true => Ok(()),
            false => Err(changed()),
        }
    }

    /// Takes the token, if it is not taken yet. `pass` has just succeeded under the same locks.
    pub fn take(&mut self, databases: &Arc<Databases>, locked: &Locked<'_>, db: usize) {
        let token = self.token.get_or_insert_with(|| databases.take_token(locked, db));
        self.state.get_or_insert(token.state);
    }

    /// The token for the next slice, if it was taken.
    pub fn into_token(self) -> Option<DatabaseToken> {
        self.token
    }
}

impl From<DatabaseToken> for LazyToken {
    fn from(token: DatabaseToken) -> LazyToken {
        LazyToken { state: Some(token.state), token: Some(token) }
    }
}

impl Drop for DatabaseToken {
    fn drop(&mut self) {
        self.databases.0[self.db].tokens.fetch_sub(1, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyspace::Keyspace;

    #[test]
    fn a_token_keeps_its_database_from_being_swapped_until_it_is_dropped() {
        let (databases, keyspace) = (Arc::new(Databases::default()), Keyspace::new(4));
        let locked = keyspace.lock_all();
        let tokens = [databases.take_token(&locked, 3), databases.take_token(&locked, 3)];
        assert!(databases.pass_swap(3, 4).is_err() && databases.pass_swap(0, 3).is_err());
        assert!(databases.pass_swap(0, 4).is_ok());
        let [one, other] = tokens;
        drop(one);
        assert!(databases.pass_swap(3, 4).is_err());
        drop(other);
        assert!(databases.pass_swap(3, 4).is_ok());
        assert_eq!(databases.tokens(), 0);
    }

    #[test]
    fn a_token_is_invalid_after_its_database_is_emptied_or_swapped() {
        let (databases, keyspace) = (Arc::new(Databases::default()), Keyspace::new(4));
        let locked = keyspace.lock_all();
        for (effect, ends) in [
            (Effect::FlushDb, &[2][..]),
            (Effect::FlushAll, &[1, 2, 3]),
            (Effect::SwapDb { a: 1, b: 3 }, &[1, 3]),
            (Effect::Delete { key: keyspace::Key::new(b"k"), cause: keyspace::Cause::Deleted }, &[]),
        ] {
            let tokens = [1, 2, 3].map(|db| databases.take_token(&locked, db));
            databases.note(2, &effect);
            let ended: Vec<usize> =
                tokens.iter().filter(|token| token.pass(&locked).is_err()).map(|token| token.db).collect();
            assert_eq!(ended, ends);
            assert!(databases.take_token(&locked, 2).pass(&locked).is_ok());
        }
    }
}
