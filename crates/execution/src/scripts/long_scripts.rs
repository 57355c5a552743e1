//! Scripts that have run for longer than a millisecond: which there are, how one is killed, and which clients wait for
//! their locks. Knows nothing of Lua, nor of the thread on which a script runs.

use super::kill_state::KillState;
use crate::clients::ClientHandle;
use locks::{Mutex, rank};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

/// After this time a script is long: it leaves the thread that serves clients, and no thread waits for its locks.
pub const LONG_NS: u64 = 1_000_000;

/// The long scripts that are running, and the clients that wait for them.
#[derive(Default)]
pub struct LongScripts {
    running: Mutex<Vec<Arc<LongScript>>, { rank::SCRIPT_RUNNING }>,
    count: AtomicUsize,
    /// Clients that wait for a lock of a long script, by their number.
    parked: Mutex<BTreeMap<u64, Arc<ClientHandle>>, { rank::PARKED_CLIENTS }>,
}

/// A long script or function.
pub struct LongScript {
    pub kind: ProgramKind,
    /// The digest of a script, the name of a function.
    pub name: Vec<u8>,
    /// The request that runs it.
    pub command: Vec<Vec<u8>>,
    pub began_ns: u64,
    /// The shards that it has locked.
    pub shards: Vec<usize>,
    /// Its changes are private until it ends, and can be rolled back.
    pub is_private: bool,
    state: KillState,
    /// It has run for `busy-reply-threshold`.
    is_busy: AtomicBool,
}

/// What FUNCTION STATS shows about the running function.
pub struct RunningFunction {
    pub name: Vec<u8>,
    pub command: Vec<Vec<u8>>,
    pub took_ms: u64,
}

/// Script or function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramKind {
    Script,
    Function,
}

/// Why a script or function cannot be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unkillable {
    NotRunning,
    HasWritten,
    /// SCRIPT KILL was sent while a function runs, or FUNCTION KILL while a script runs.
    IsOther,
}

impl LongScript {
    pub fn new(
        kind: ProgramKind,
        name: Vec<u8>,
        command: Vec<Vec<u8>>,
        began_ns: u64,
        shards: Vec<usize>,
        is_private: bool,
        has_written: bool,
    ) -> LongScript {
        let state = KillState::new(has_written && !is_private);
        LongScript { kind, name, command, began_ns, shards, is_private, state, is_busy: AtomicBool::new(false) }
    }

    /// Notes that it is about to write. False when it was killed before, and must not write.
    pub fn note_written(&self) -> bool {
        self.is_private || self.state.note_written()
    }

    pub fn is_killed(&self) -> bool {
        self.state.is_killed()
    }

    /// Kills it. False when it has written, and continues.
    fn kill(&self) -> bool {
        self.state.kill()
    }

    /// Notes that it has run for `busy-reply-threshold`. False when that was noted before.
    pub fn begin_busy(&self) -> bool {
        !self.is_busy.swap(true, Relaxed)
    }
}

impl LongScripts {
    /// True while a long script runs.
    #[inline]
    pub fn any(&self) -> bool {
        self.count.load(SeqCst) > 0
    }

    /// Adds a long script.
    pub fn begin(&self, script: LongScript) -> Arc<LongScript> {
        let script = Arc::new(script);
        let mut running = self.running.lock();
        running.push(script.clone());
        self.count.store(running.len(), SeqCst);
        script
    }

    /// Removes a long script that has ended and released its locks. True when no busy one is left.
    pub fn end(&self, ended: &Arc<LongScript>) -> bool {
        let mut running = self.running.lock();
        running.retain(|script| !Arc::ptr_eq(script, ended));
        self.count.store(running.len(), SeqCst);
        !running.iter().any(|script| script.is_busy.load(Relaxed))
    }

    /// Kills the long scripts of that kind that have not written, at their next step.
    pub fn kill(&self, kind: ProgramKind) -> Result<(), Unkillable> {
        let running = self.running.lock();
        let of_kind = || running.iter().filter(|script| script.kind == kind);
        // All of them: the client that sends this wants to be served.
        let killed = of_kind().filter(|script| script.kill()).count();
        match (killed, running.is_empty(), of_kind().next().is_some()) {
            (1.., ..) => Ok(()),
            (0, true, _) => Err(Unkillable::NotRunning),
            (0, false, true) => Err(Unkillable::HasWritten),
            // As in Redis: for scripts that have all written, either command gets that error.
            (0, false, false) if running.iter().all(|script| script.state.has_written()) => Err(Unkillable::HasWritten),
            (0, false, false) => Err(Unkillable::IsOther),
        }
    }

    /// The kind of the long script that runs, if one runs.
    pub fn kind(&self) -> Option<ProgramKind> {
        self.running.lock().first().map(|script| script.kind)
    }

    /// The long function that runs, if one runs.
    pub fn running_function(&self, now_ns: u64) -> Option<RunningFunction> {
        let running = self.running.lock();
        let function = running.iter().find(|script| script.kind == ProgramKind::Function)?;
        Some(RunningFunction {
            name: function.name.clone(),
            command: function.command.clone(),
            took_ms: now_ns.saturating_sub(function.began_ns) / 1_000_000,
        })
    }

    /// Adds a client whose request needs a lock that a long script holds. It is woken to retry when a script ends or
    /// becomes busy.
    pub fn park(&self, handle: &Arc<ClientHandle>) {
        let mut parked = self.parked.lock();
        // IMPORTANT: under the lock. A script that ends later finds this client.
        if !self.any() {
            return handle.wake();
        }
        parked.insert(handle.id, handle.clone());
    }

    /// Removes a client that has disconnected.
    pub fn forget(&self, id: u64) {
        self.parked.lock().remove(&id);
    }

    /// Wakes all parked clients, which retry.
    pub fn wake_parked(&self) {
        for handle in std::mem::take(&mut *self.parked.lock()).values() {
            handle.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(kind: ProgramKind, has_written: bool) -> LongScript {
        LongScript::new(kind, b"name".to_vec(), vec![b"EVAL".to_vec()], 0, vec![1], false, has_written)
    }

    #[test]
    fn a_script_that_has_written_continues_and_a_killed_one_does_not_write() {
        let scripts = LongScripts::default();
        assert_eq!(scripts.kill(ProgramKind::Script), Err(Unkillable::NotRunning));
        let reading = scripts.begin(script(ProgramKind::Script, false));
        assert_eq!(scripts.kill(ProgramKind::Function), Err(Unkillable::IsOther));
        assert_eq!(scripts.kill(ProgramKind::Script), Ok(()));
        assert_eq!(scripts.kill(ProgramKind::Script), Ok(()), "killed once more");
        assert!(reading.is_killed() && !reading.note_written());
        let writing = scripts.begin(script(ProgramKind::Script, false));
        assert!(scripts.end(&reading) && writing.note_written());
        assert_eq!(scripts.kill(ProgramKind::Script), Err(Unkillable::HasWritten));
        assert_eq!(scripts.kill(ProgramKind::Function), Err(Unkillable::HasWritten));
        assert!(!writing.is_killed() && writing.note_written());
    }

    #[test]
    fn of_several_scripts_the_killable_ones_are_killed() {
        let scripts = LongScripts::default();
        let written = scripts.begin(script(ProgramKind::Script, true));
        let reading = scripts.begin(script(ProgramKind::Script, false));
        assert_eq!(scripts.kill(ProgramKind::Script), Ok(()));
        assert!(reading.is_killed() && !written.is_killed());
    }

    #[test]
    fn the_server_is_busy_until_the_last_busy_script_has_ended() {
        let scripts = LongScripts::default();
        let one = scripts.begin(script(ProgramKind::Script, false));
        let other = scripts.begin(script(ProgramKind::Function, false));
        assert!(one.begin_busy() && !one.begin_busy() && other.begin_busy());
        assert!(!scripts.end(&other) && scripts.any());
        assert!(scripts.end(&one) && !scripts.any());
    }
}
