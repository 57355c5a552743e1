//! The states of the journal, and what each of them means for writes, reads, waits and shutdown. Knows what is
//! promised; refuses to know files.
//!
//! ```text
//!             CONFIG SET appendonly yes          its snapshot is durable
//!     Off  ------------------------------->  Starting  ------------------->  Sound
//!      ^                                        |  ^                         |  ^
//!      | CONFIG SET appendonly no               |  | tried again             |  | its snapshot is durable
//!      | (from every state but Closing)         v  |             a write or  |  |
//!                                           StartFailed          sync fails  v  |
//!                                                                Failed --> Restarting
//!                                                   CONFIG SET appendonly yes, a snapshot
//!     Closing: the server stops (from Sound, Failed and Restarting).
//!     Fenced: another writer has taken the journal over (from every state).
//!     Following: another process writes the journal. A follower's first state; a fenced server's next one, once what
//!     it held was dropped; that of a writer that has handed over. A promotion makes it Sound, or Off.
//! ```
//!
//! ```text
//! state           write                read                   WAITAOF (1)  aof_enabled  stop
//! Off             answered (2)         anything               refused      0            as `save` says
//! Starting        as Off (3)           anything               refused      0            waits until Sound (4)
//! StartFailed     -MISCONF             anything               refused      0            tries a snapshot (5)
//! Sound           once persisted       persisted changes      yes          1            writes, syncs, marks the end
//! Sound, no room  -MISCONF (6)         as Sound               yes          1            as Sound
//! Failed          -MISCONF             persisted changes (7)  -MISCONF (8) 1            exit code 1 (9)
//! Restarting      as Failed            as Failed              as Failed    1            as Failed
//! Closing         once persisted       persisted changes      as persisted 1
//! Fenced          -FENCED (10)         -FENCED (10)           as a read    no reply     exit code 1
//! Following       -READONLY            applied batches (11)   refused      0            at once
//!
//! (1) and CLIENT DURABILITY always
//! (2) only snapshots persist it
//! (3) `appendonly yes` has no effect yet, and its client still waits
//! (4) with NOSAVE as Off
//! (5) refused when that fails, unless forced; exit code 1 without a snapshot
//! (6) at the gate, before anything changes
//! (7) -MISCONF for newer changes
//! (8) except WAITAOF of a client whose writes are durable
//! (9) all changes that were acknowledged are persisted
//! (10) and the connection ends
//! (11) of which a power failure may take the last, as it may on the writer
//! ```
//!
//! *Persisted* means written or durable, as the client's policy says (`appendfsync`, CLIENT DURABILITY). Where nothing
//! is promised, the policy has no effect: even with `appendfsync always` clients are answered at once.
//!
//! INFO is answered in every state but Fenced. A client that waits in WAITAOF when the journal is turned off gets an
//! error. CONFIG SET appendonly yes is answered +OK in Sound alone, and with the reason in StartFailed and Failed.
//!
//! `tests/wire/tests/persistence/states` tests each row but the last, and walks through all of them under load;
//! `tests/wire/tests/persistence/fenced.rs` tests Fenced.

/// The state of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum JournalState {
    /// There is no journal.
    Off,
    /// It was turned on, and its first snapshot is being written.
    Starting,
    /// Its first snapshot could not be written.
    StartFailed,
    /// It works.
    Sound,
    /// A write or a sync has failed.
    Failed,
    /// It has failed, and the snapshot with which it restarts is being written.
    Restarting,
    /// The server is stopping.
    Closing,
    /// A writer of a later epoch has taken the journal over: changes in memory may not be part of its history.
    Fenced,
    /// Another process writes the journal, and this one reads it.
    Following,
}

impl JournalState {
    pub const ALL: [JournalState; 9] = [
        JournalState::Off,
        JournalState::Starting,
        JournalState::StartFailed,
        JournalState::Sound,
        JournalState::Failed,
        JournalState::Restarting,
        JournalState::Closing,
        JournalState::Fenced,
        JournalState::Following,
    ];

    /// The state of that number.
    pub fn of(number: u8) -> JournalState {
        JournalState::ALL[usize::from(number)]
    }

    /// True when a reply promises that the changes it depends on are persisted.
    #[inline]
    pub fn promises_durability(self) -> bool {
        !matches!(
            self,
            JournalState::Off | JournalState::Starting | JournalState::StartFailed | JournalState::Following
        )
    }

    /// True when changes that are not persisted must not be read.
    #[inline]
    pub fn hides_unpersisted(self) -> bool {
        matches!(self, JournalState::Failed | JournalState::Restarting | JournalState::Fenced)
    }

    /// As INFO shows it.
    pub fn name(self) -> &'static str {
        match self {
            JournalState::Off => "off",
            JournalState::Starting => "starting",
            JournalState::StartFailed => "start-failed",
            JournalState::Sound => "sound",
            JournalState::Failed => "failed",
            JournalState::Restarting => "restarting",
            JournalState::Closing => "closing",
            JournalState::Fenced => "fenced",
            JournalState::Following => "following",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_their_numbers() {
        for state in JournalState::ALL {
            assert_eq!(JournalState::of(state as u8), state);
        }
    }
}
