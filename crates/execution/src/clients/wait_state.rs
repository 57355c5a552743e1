//! The state of a client's wait, which ensures that a wait ends exactly once. Knows numbers and states; refuses to know
//! what is waited for.

use crate::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// How a client's wait was ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unblock {
    No,
    Timeout,
    Error,
    /// The server has become a follower.
    Demotion,
    /// The user of the client has lost rights.
    LostRight,
}

/// The state of a client's wait: its number and one of the states below. A thread that ends a wait changes this state
/// first, in one atomic step, so exactly one thread ends it.
#[derive(Default)]
pub struct WaitState(AtomicU64);

/// The client does not wait.
const IDLE: u64 = 0;
const WAITING: u64 = 1;
/// A commit runs its command on its behalf, or has run it.
const CLAIMED: u64 = 2;
/// CLIENT UNBLOCK has ended the wait, as a timeout or with an error; the connection has not noticed yet.
const UNBLOCKED: u64 = 3;
const UNBLOCKED_BY_ERROR: u64 = 4;
/// The server has become a follower.
const UNBLOCKED_BY_DEMOTION: u64 = 5;
/// The client's user has lost rights.
const UNBLOCKED_BY_LOST_RIGHT: u64 = 6;
const STATE_BITS: u32 = 3;

impl WaitState {
    /// Begins a wait. The number is 0 when no commit can serve it.
    pub fn begin(&self, number: u64) {
        self.0.store(number << STATE_BITS | WAITING, SeqCst);
    }

    /// True while the client waits.
    pub fn is_waiting(&self) -> bool {
        state_of(self.0.load(SeqCst)) == WAITING
    }

    /// Claims the wait of that number, to serve it. False when it has ended.
    pub fn claim(&self, number: u64) -> bool {
        self.step(number << STATE_BITS | WAITING, CLAIMED)
    }

    /// Returns the claim: there was nothing for the client.
    pub fn give_back(&self, number: u64) {
        self.step(number << STATE_BITS | CLAIMED, WAITING);
    }

    /// Ends the wait. False when a commit is serving it, or has served it.
    pub fn end(&self) -> bool {
        let mut now = self.0.load(SeqCst);
        while state_of(now) != CLAIMED {
            match self.0.compare_exchange(now, IDLE, SeqCst, SeqCst) {
                Ok(_) => return true,
                Err(other) => now = other,
            }
        }
        false
    }

    /// Notes that the client has received what it was served.
    pub fn acknowledge(&self) {
        self.0.store(IDLE, SeqCst);
    }

    /// Ends a wait that no commit has claimed; false when there is none.
    pub fn unblock(&self, how: Unblock) -> bool {
        let state = match how {
            Unblock::Error => UNBLOCKED_BY_ERROR,
            Unblock::Demotion => UNBLOCKED_BY_DEMOTION,
            Unblock::LostRight => UNBLOCKED_BY_LOST_RIGHT,
            Unblock::Timeout | Unblock::No => UNBLOCKED,
        };
        let now = self.0.load(SeqCst);
        // Only waits that a commit can serve depend on who writes.
        if how == Unblock::Demotion && now >> STATE_BITS == 0 {
            return false;
        }
        // If the state changes in between, the wait has just ended.
        state_of(now) == WAITING && self.step(now, state)
    }

    /// How the wait was ended since the last call.
    pub fn take_unblock(&self) -> Unblock {
        let now = self.0.load(SeqCst);
        let how = match state_of(now) {
            UNBLOCKED => Unblock::Timeout,
            UNBLOCKED_BY_ERROR => Unblock::Error,
            UNBLOCKED_BY_DEMOTION => Unblock::Demotion,
            UNBLOCKED_BY_LOST_RIGHT => Unblock::LostRight,
            _ => return Unblock::No,
        };
        self.step(now, IDLE);
        how
    }

    fn step(&self, from: u64, state: u64) -> bool {
        let to = from >> STATE_BITS << STATE_BITS | state;
        self.0.compare_exchange(from, to, SeqCst, SeqCst).is_ok()
    }
}

fn state_of(word: u64) -> u64 {
    word & ((1 << STATE_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_thread_ends_a_wait() {
        let state = WaitState::default();
        assert!(!state.claim(1) && !state.unblock(Unblock::Timeout) && !state.is_waiting());
        state.begin(1);
        assert!(!state.claim(2), "that is another wait");
        assert!(state.claim(1) && !state.is_waiting());
        assert!(!state.claim(1) && !state.end() && !state.unblock(Unblock::Error));
        state.give_back(1);
        assert!(state.is_waiting() && state.end());
        assert!(!state.claim(1));
        state.begin(3);
        assert!(state.unblock(Unblock::Error) && !state.claim(3) && !state.unblock(Unblock::Timeout));
        assert_eq!((state.take_unblock(), state.take_unblock()), (Unblock::Error, Unblock::No));
    }

    #[test]
    fn an_unblock_does_not_end_the_next_wait() {
        let state = WaitState::default();
        state.begin(1);
        assert!(state.unblock(Unblock::Timeout));
        state.begin(2);
        assert_eq!(state.take_unblock(), Unblock::No);
        assert!(!state.claim(1) && state.claim(2));
    }
}
