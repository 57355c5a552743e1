//! How far the journal is, and what that means for replies. Knows what a reply has to wait for; refuses to know what
//! it says.

use engine::persistence::journal_state::JournalState;
use journal::Sequence;

/// How far the journal is, at one instant.
#[derive(Clone, Copy)]
pub(crate) struct JournalProgress {
    pub(super) written: u64,
    pub(super) durable: u64,
    pub(super) state: JournalState,
    /// The journal has failed, or takes nothing more.
    pub(super) failed: bool,
    /// No reply may be sent for now: the lease of this writer has ended, and another may write.
    pub(super) waits: bool,
}

/// What happens to replies that depend on the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyGate {
    /// They are sent.
    Send,
    /// They wait until the journal is further.
    Hold,
    /// They are never sent: the changes that they depend on were not stored. The client gets an error instead.
    Drop,
}

impl JournalProgress {
    /// What happens to replies that depend on changes up to batch `depends_on`; `strict` when those have to be durable.
    #[inline]
    pub(crate) fn gate(self, depends_on: u64, strict: bool) -> ReplyGate {
        match self.state {
            // Nothing is promised, not even to a connection that waits for syncs. IMPORTANT: with `appendfsync always`
            // that is every connection: if it waited here, all clients would wait until the snapshot is written.
            JournalState::Off | JournalState::Starting | JournalState::StartFailed => return ReplyGate::Send,
            // Another writer goes on from what was durable. What is in memory here may never have happened.
            JournalState::Fenced => return ReplyGate::Drop,
            // A change that was made here, and not by the writer, never happened.
            JournalState::Following if depends_on == Sequence::LOST.0 => return ReplyGate::Drop,
            JournalState::Following => return ReplyGate::Send,
            JournalState::Sound | JournalState::Failed | JournalState::Restarting | JournalState::Closing => {}
        }
        match self.waits {
            // Another may have written since the lease ended: not even what is stored may be told.
            true if self.failed => return ReplyGate::Drop,
            true => return ReplyGate::Hold,
            false => {}
        }
        let limit = if strict { self.durable } else { self.written };
        match depends_on <= limit {
            true => ReplyGate::Send,
            false if self.failed => ReplyGate::Drop,
            false => ReplyGate::Hold,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(state: JournalState) -> JournalProgress {
        JournalProgress {
            written: 10,
            durable: 5,
            state,
            failed: matches!(state, JournalState::Failed | JournalState::Restarting),
            waits: false,
        }
    }

    #[test]
    fn replies_wait_for_the_changes_they_depend_on() {
        let sound = progress(JournalState::Sound);
        assert_eq!(sound.gate(10, false), ReplyGate::Send);
        assert_eq!(sound.gate(10, true), ReplyGate::Hold);
        assert_eq!(sound.gate(5, true), ReplyGate::Send);
        assert_eq!(sound.gate(11, false), ReplyGate::Hold);
    }

    #[test]
    fn nothing_is_promised_before_the_journal_has_begun() {
        for state in [JournalState::Off, JournalState::Starting, JournalState::StartFailed] {
            for strict in [false, true] {
                assert_eq!(progress(state).gate(99, strict), ReplyGate::Send, "{state:?}");
            }
        }
    }

    #[test]
    fn after_a_failure_no_reply_depends_on_a_change_that_was_not_stored() {
        for state in [JournalState::Failed, JournalState::Restarting] {
            assert_eq!(progress(state).gate(12, false), ReplyGate::Drop);
            assert_eq!(progress(state).gate(10, false), ReplyGate::Send);
            assert_eq!(progress(state).gate(6, true), ReplyGate::Drop);
            assert_eq!(progress(state).gate(5, true), ReplyGate::Send);
        }
    }

    #[test]
    fn a_follower_answers_but_for_changes_of_its_own() {
        let following = progress(JournalState::Following);
        assert_eq!((following.gate(99, true), following.gate(u64::MAX, false)), (ReplyGate::Send, ReplyGate::Drop));
    }

    #[test]
    fn a_writer_whose_lease_has_ended_holds_every_reply() {
        let waiting = JournalProgress { waits: true, ..progress(JournalState::Sound) };
        assert_eq!((waiting.gate(0, false), waiting.gate(5, true)), (ReplyGate::Hold, ReplyGate::Hold));
        // Regression: when the log was found to be damaged, what was held was sent.
        let failed = JournalProgress { waits: true, ..progress(JournalState::Failed) };
        assert_eq!((failed.gate(0, false), failed.gate(5, true)), (ReplyGate::Drop, ReplyGate::Drop));
        assert_eq!(JournalProgress { waits: true, ..progress(JournalState::Fenced) }.gate(0, false), ReplyGate::Drop);
    }

    #[test]
    fn a_fenced_server_sends_no_reply_at_all() {
        for strict in [false, true] {
            assert_eq!(progress(JournalState::Fenced).gate(0, strict), ReplyGate::Drop);
        }
    }
}
