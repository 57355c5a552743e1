//! A script that is killed has not written, and one that has written goes on. Knows no scripts.

#[path = "../../../crates/execution/src/scripts/kill_state.rs"]
mod kill_state;

use kill_state::KillState;
use loom::sync::Arc;
use loom::thread;

/// Two clients kill a script that is about to write.
pub fn a_killed_script_does_not_write() {
    loom::model(|| {
        let state = Arc::new(KillState::new(false));
        let kill = || {
            let state = state.clone();
            thread::spawn(move || state.kill())
        };
        let (one, other) = (kill(), kill());
        let writes = state.note_written();
        let (killed, killed_again) = (one.join().unwrap(), other.join().unwrap());
        assert_eq!((killed, killed_again), (!writes, !writes), "both clients are told the same");
        assert_eq!((state.has_written(), state.is_killed()), (writes, !writes));
    });
}
