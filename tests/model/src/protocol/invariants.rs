//! What must hold in every state. Some violations show in a state, and `check` finds them; those that show only when a
//! reply is sent or a frame is read are noted by that step. Changes nothing else.

use super::config::{Config, Mutation};
use super::state::*;
use super::writes::Writes;

/// Flags of `State::violations`.
pub(crate) mod flags {
    pub(crate) const LOST: u16 = 1;
    pub(crate) const REFUSED_APPLIED: u16 = 2;
    /// A reply is older than what clients had seen when it was requested.
    pub(crate) const STALE: u16 = 4;
    pub(crate) const PHANTOM: u16 = 8;
    pub(crate) const TWO_WRITERS: u16 = 16;
    pub(crate) const LATE_REPLY: u16 = 32;
    pub(crate) const NO_PREFIX: u16 = 64;
    pub(crate) const WRITER_STATE: u16 = 128;
    pub(crate) const SNAPSHOT: u16 = 256;
    /// What a kept snapshot needs was purged.
    pub(crate) const PURGED: u16 = 512;
    pub(crate) const READER_STOPPED: u16 = 1024;
    pub(crate) const CHAIN: u16 = 2048;
}

pub(crate) struct Invariant {
    pub(crate) flag: u16,
    pub(crate) name: &'static str,
    pub(crate) holds: fn(&Config, &State) -> bool,
}

pub(crate) const INVARIANTS: [Invariant; 12] = [
    invariant::<{ flags::LOST }>("no acknowledged write is lost"),
    invariant::<{ flags::REFUSED_APPLIED }>("no refused write is applied"),
    invariant::<{ flags::STALE }>("reads and writes of the writer are linearizable"),
    invariant::<{ flags::PHANTOM }>("no read shows what is not in the log"),
    invariant::<{ flags::TWO_WRITERS }>("one writer replies in an epoch"),
    invariant::<{ flags::LATE_REPLY }>("no reply is sent after a later epoch began"),
    invariant::<{ flags::NO_PREFIX }>("followers are prefixes"),
    invariant::<{ flags::WRITER_STATE }>("a writer has all that came before it, and no more"),
    invariant::<{ flags::SNAPSHOT }>("snapshots are prefixes"),
    invariant::<{ flags::PURGED }>("a start finds what it needs"),
    invariant::<{ flags::READER_STOPPED }>("no reader stops at a sound log"),
    invariant::<{ flags::CHAIN }>("the author of a frame knew the frame before it"),
];

const fn invariant<const FLAG: u16>(name: &'static str) -> Invariant {
    Invariant { flag: FLAG, name, holds: |_, state| state.violations & FLAG == 0 }
}

/// The batches that count in the first frames of a log, and the epoch there. A frame of an older epoch than the one
/// before it does not count, nor does a batch whose last piece is missing.
pub(crate) fn history(log: &[Frame], frames: usize) -> (Writes, u8) {
    let (mut writes, mut epoch, mut unfinished) = (Writes::default(), 0, (Writes::default(), 0));
    for frame in log.iter().take(frames) {
        if frame.epoch < epoch {
            continue;
        }
        epoch = frame.epoch;
        match frame.kind {
            Kind::Piece(piece) => unfinished = (frame.writes, piece),
            Kind::LastPiece(piece) if unfinished != (frame.writes, piece - 1) => {}
            _ => {
                unfinished = Default::default();
                writes.extend(frame.writes);
            }
        }
    }
    (writes, epoch)
}

/// Notes the violations that a state shows.
pub(crate) fn check(config: &Config, all: &mut State) {
    let (logged, _) = history(&all.log, all.log.len());
    let mut violations = servers(all, logged) | snapshots(all, logged);
    if all.acknowledged.iter().any(|write| logged.place(write).is_none()) {
        violations |= flags::LOST;
    }
    if all.refused.iter().any(|write| logged.place(write).is_some()) {
        violations |= flags::REFUSED_APPLIED;
    }
    if !is_chained(config, &all.log) {
        violations |= flags::CHAIN;
    }
    all.violations |= violations;
}

fn servers(all: &State, logged: Writes) -> u16 {
    let mut violations = 0;
    for server in all.servers.iter().filter(|server| server.up) {
        let (mut expected, _) = history(&all.log, server.applied.into());
        if server.role == Role::Writer {
            server.pending.iter().for_each(|pending| expected.extend(pending.frame.completes()));
            expected.extend(server.queue);
            violations |= if server.state == expected { 0 } else { flags::WRITER_STATE };
        } else {
            // A snapshot may be ahead of the frame that it continues from, within what is in the log.
            let fits = expected.is_prefix_of(server.state) && server.state.is_prefix_of(logged);
            violations |= if fits { 0 } else { flags::NO_PREFIX };
        }
    }
    violations
}

fn snapshots(all: &State, logged: Writes) -> u16 {
    let mut violations = if all.purged > 0 && all.store.is_empty() { flags::PURGED } else { 0 };
    for kept in &all.store {
        let (needed, _) = history(&all.log, kept.position.into());
        let fits = needed.is_prefix_of(kept.state) && kept.state.is_prefix_of(logged);
        if !fits || usize::from(kept.position) > all.log.len() {
            violations |= flags::SNAPSHOT;
        }
        if kept.position < all.purged {
            violations |= flags::PURGED;
        }
    }
    violations
}

fn is_chained(config: &Config, log: &[Frame]) -> bool {
    let mut last: Option<&Frame> = None;
    for frame in log {
        if let Some(before) = last {
            if config.skip_old_epochs && frame.epoch < before.epoch {
                continue;
            }
            if frame.chain != Some(before.link()) && config.mutation != Mutation::NoNonce {
                return false;
            }
        }
        last = Some(frame);
    }
    true
}
