//! CLIENT PAUSE: commands wait until a deadline or UNPAUSE. Knows which clients wait, including those that wait for
//! data to be loaded. The time is passed in, in milliseconds of the monotonic clock: changes of the wall clock do not
//! affect a pause.

use crate::clients::ClientHandle;
use locks::{Mutex, rank};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Which commands wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseMode {
    Writes,
    All,
}

#[derive(Default)]
struct State {
    mode: Option<PauseMode>,
    /// By the client's id: a client that retries counts once.
    waiting: BTreeMap<u64, Arc<ClientHandle>>,
}

/// The pause in force, if any.
#[derive(Default)]
pub struct Pause {
    /// 0 when there is no pause. Read before every command, so it is kept outside the lock.
    until_ms: AtomicU64,
    state: Mutex<State, { rank::PAUSE }>,
}

impl Pause {
    /// Begins a pause, or makes the one in force longer or stricter, never shorter or laxer.
    pub fn begin(&self, now_ms: u64, until_ms: u64, mode: PauseMode) {
        if until_ms <= now_ms {
            return;
        }
        let mut state = self.state.lock();
        let in_force = state.mode.filter(|_| self.is_on(now_ms));
        state.mode = Some(if in_force == Some(PauseMode::All) { PauseMode::All } else { mode });
        self.until_ms.fetch_max(until_ms, Relaxed);
    }

    /// Ends the pause and wakes all waiting clients.
    pub fn end(&self) {
        self.end_under(&mut self.state.lock());
    }

    fn end_under(&self, state: &mut State) {
        state.mode = None;
        self.until_ms.store(0, Relaxed);
        wake_all(state);
    }

    /// Returns until when a command waits; `None` when it need not wait.
    #[inline]
    pub fn holds(&self, may_write: impl FnOnce() -> bool, now_ms: u64) -> Option<u64> {
        if self.until_ms.load(Relaxed) == 0 { None } else { self.holds_now(may_write(), now_ms) }
    }

    fn holds_now(&self, may_write: bool, now_ms: u64) -> Option<u64> {
        let mut state = self.state.lock();
        // Read again under the lock: the pause may have ended meanwhile, or another one begun.
        let until_ms = self.until_ms.load(Relaxed);
        if until_ms <= now_ms {
            self.end_under(&mut state);
            return None;
        }
        let held = state.mode == Some(PauseMode::All) || state.mode == Some(PauseMode::Writes) && may_write;
        held.then_some(until_ms)
    }

    /// Adds a waiting client, to be woken by [`Pause::end`].
    pub fn wait(&self, handle: &Arc<ClientHandle>) {
        let mut state = self.state.lock();
        if state.mode.is_none() {
            // The pause ended after this client had decided to wait: without this, it would not be woken.
            return handle.wake();
        }
        handle.paused.store(true, Relaxed);
        state.waiting.insert(handle.id, handle.clone());
    }

    /// Adds a client that waits for something other than the end of a pause, to be woken by [`Pause::wake_held`] or
    /// [`Pause::end`].
    pub fn hold(&self, handle: &Arc<ClientHandle>) {
        handle.paused.store(true, Relaxed);
        self.state.lock().waiting.insert(handle.id, handle.clone());
    }

    /// Wakes all waiting clients. Those that a pause delays wait again.
    pub fn wake_held(&self) {
        wake_all(&mut self.state.lock());
    }

    /// Removes a client that waits no longer, or has disconnected.
    pub fn forget(&self, handle: &ClientHandle) {
        self.state.lock().waiting.remove(&handle.id);
        handle.paused.store(false, Relaxed);
    }

    /// True when a pause has begun whose end was not noticed yet.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.until_ms.load(Relaxed) > 0
    }

    /// True while commands (at least writes) wait; the active expiry cycle then rests, as in Redis.
    pub fn is_on(&self, now_ms: u64) -> bool {
        self.until_ms.load(Relaxed) > now_ms
    }
}

fn wake_all(state: &mut State) {
    for waiting in std::mem::take(&mut state.waiting).values() {
        waiting.paused.store(false, Relaxed);
        waiting.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_never_gets_shorter_or_laxer() {
        let pause = Pause::default();
        pause.begin(0, 200, PauseMode::All);
        pause.begin(10, 30, PauseMode::Writes);
        assert_eq!((pause.holds(|| false, 50), pause.holds(|| true, 50)), (Some(200), Some(200)));
        assert_eq!(pause.holds(|| true, 200), None);
    }

    #[test]
    fn a_pause_that_is_over_leaves_nothing_behind() {
        let pause = Pause::default();
        pause.begin(0, 100, PauseMode::All);
        pause.begin(150, 300, PauseMode::Writes);
        assert_eq!((pause.holds(|| false, 200), pause.holds(|| true, 200)), (None, Some(300)));
        pause.end();
        assert_eq!(pause.holds(|| true, 200), None);
        pause.begin(200, 0, PauseMode::All);
        assert_eq!(pause.holds(|| true, 200), None);
    }
}
