//! A place in memory, as one process uses it: who has the right to write, and what goes wrong. Knows nothing of the marks
//! of a writer.

use std::path::PathBuf;
use std::sync::{Arc, Weak};

use super::faults::{Chance, Faults};
use super::follower::MemoryReading;
use super::state::{Shared, Ticking, away, unreachable};
use crate::place::{Claim, LogPlace, Reading};
use crate::recovery::RecoveryError;
use crate::sequence::Sequence;
use crate::storage::LockError;

/// A place in memory, as one process of a simulation uses it. When the last clone of it is dropped, the process has
/// ended, and loses the right to write.
#[derive(Clone)]
pub struct MemoryPlace {
    pub(super) shared: Arc<Shared>,
    member: Arc<Member>,
}

/// A process that uses the place.
struct Member {
    number: u64,
    shared: Arc<Shared>,
}

impl Drop for Member {
    fn drop(&mut self) {
        self.shared.state.lock().release(self.number);
    }
}

impl Default for MemoryPlace {
    fn default() -> MemoryPlace {
        MemoryPlace::new()
    }
}

impl MemoryPlace {
    /// An empty place where nothing goes wrong, used by one process.
    pub fn new() -> MemoryPlace {
        MemoryPlace::of(Arc::default())
    }

    fn of(shared: Arc<Shared>) -> MemoryPlace {
        let number = {
            let mut state = shared.state.lock();
            state.last_member += 1;
            state.last_member
        };
        MemoryPlace { member: Arc::new(Member { number, shared: shared.clone() }), shared }
    }

    /// The same place for another process.
    pub fn join(&self) -> MemoryPlace {
        MemoryPlace::of(self.shared.clone())
    }

    /// From now on things go wrong, by seed.
    pub fn set_faults(&self, seed: u64, faults: Faults) {
        self.shared.state.lock().chance = Chance::new(seed, faults);
    }

    /// The place cannot be reached until [`MemoryPlace::come_back`]: what is sent is neither stored nor answered.
    pub fn vanish(&self) {
        self.shared.state.lock().is_away = true;
    }

    pub fn come_back(&self) {
        self.shared.state.lock().is_away = false;
        self.tick();
    }

    /// Time passes: delayed acknowledgements come, and writers send again what was not acknowledged.
    pub fn tick(&self) {
        let writers: Vec<Arc<dyn Ticking>> = {
            let mut state = self.shared.state.lock();
            state.ticks += 1;
            state.writers.retain(|writer| writer.strong_count() > 0);
            state.writers.iter().filter_map(Weak::upgrade).collect()
        };
        writers.iter().for_each(|writer| writer.tick());
    }

    /// The last batch that is stored.
    pub fn reached(&self) -> Sequence {
        self.shared.state.lock().reached
    }

    fn check_reachable(&self) -> Result<(), RecoveryError> {
        match self.shared.state.lock().is_away {
            true => Err(away().into()),
            false => Ok(()),
        }
    }
}

impl LogPlace for MemoryPlace {
    fn name(&self) -> String {
        "memory:".to_owned()
    }

    fn acquire(&self, claim: Claim) -> Result<(), LockError> {
        let mut state = self.shared.state.lock();
        let path = || PathBuf::from("memory:");
        if state.is_away {
            return Err(LockError::Io { path: path(), source: unreachable() });
        }
        match state.holder.filter(|holder| claim == Claim::IfFree && *holder != self.member.number) {
            Some(holder) => Err(LockError::InUse { path: path(), holder: holder.to_string() }),
            None => {
                state.holder = Some(self.member.number);
                Ok(())
            }
        }
    }

    fn release(&self) {
        self.shared.state.lock().release(self.member.number);
    }

    fn read(&self) -> Result<Box<dyn Reading>, RecoveryError> {
        self.check_reachable()?;
        Ok(Box::new(MemoryReading::new(&self.shared)?))
    }

    fn read_live(&self) -> Result<Box<dyn Reading>, RecoveryError> {
        self.read()
    }
}
