//! A client's wait ends exactly once, whichever threads try to end it. Knows nothing of what is waited for.

#[path = "../../../crates/execution/src/clients/wait_state.rs"]
#[allow(unreachable_pub, reason = "it is public in its own crate")]
mod wait_state;

use loom::sync::Arc;
use loom::thread;
use wait_state::{Unblock, WaitState};

fn waiting(number: u64) -> Arc<WaitState> {
    let state = Arc::new(WaitState::default());
    state.begin(number);
    state
}

/// A commit, CLIENT UNBLOCK and the connection's own time-out try to end one wait.
pub fn a_wait_ends_once() {
    loom::model(|| {
        let state = waiting(1);
        let commit = {
            let state = state.clone();
            thread::spawn(move || state.claim(1))
        };
        let other_client = {
            let state = state.clone();
            thread::spawn(move || state.unblock(Unblock::Timeout))
        };
        let ended = state.end();
        let (claimed, unblocked) = (commit.join().unwrap(), other_client.join().unwrap());
        assert_eq!(ended, !claimed, "either a commit serves the client, or its connection goes on without");
        assert!(!(claimed && unblocked));
        assert!(!state.is_waiting());
    });
}

/// A commit that had nothing for the client after all gives the wait back; CLIENT UNBLOCK may come in between.
pub fn a_wait_that_is_given_back_is_not_lost() {
    loom::model(|| {
        let state = waiting(1);
        let commit = {
            let state = state.clone();
            thread::spawn(move || {
                if state.claim(1) {
                    state.give_back(1);
                }
            })
        };
        let unblocked = state.unblock(Unblock::Error);
        commit.join().unwrap();
        assert_eq!(state.is_waiting(), !unblocked);
        assert_eq!(state.take_unblock(), if unblocked { Unblock::Error } else { Unblock::No });
    });
}

/// A commit that is late for one wait does not serve the next.
pub fn a_late_claim_leaves_the_next_wait_alone() {
    loom::model(|| {
        let state = waiting(1);
        let commit = {
            let state = state.clone();
            thread::spawn(move || state.claim(1))
        };
        let ended = state.end();
        if !ended {
            state.acknowledge();
        }
        state.begin(2);
        assert_eq!(commit.join().unwrap(), !ended);
        assert!(state.is_waiting() && state.claim(2));
    });
}
