//! A follower: loads a snapshot, reads the log, takes over; and what a fenced writer does to become one. Knows nothing
//! of replies.

use super::config::{Config, Mutation};
use super::invariants::flags;
use super::state::*;
use super::writer::next_position;
use super::writes::Writes;

impl Config {
    pub(super) fn apply(&self, all: &mut State, at: u8) -> Option<()> {
        let server = &mut all.servers[usize::from(at)];
        (server.applied >= all.purged).then_some(())?;
        let frame = *all.log.get(usize::from(server.applied))?;
        let is_chained = server.chain.is_none() || frame.chain == server.chain || self.mutation == Mutation::NoNonce;
        let is_old = frame.epoch < server.epoch;
        if (is_old || !is_chained || !continues(server, &frame)) && !self.skip_old_epochs {
            server.halted = true;
            all.violations |= flags::READER_STOPPED;
            return Some(());
        }
        server.applied += 1;
        if !is_old {
            self.apply_frame(server, &frame);
        }
        let counts = frame.kind != Kind::Heartbeat || self.mutation != Mutation::HeartbeatNotCounted;
        match frame.kind {
            Kind::Release => server.wait = 0,
            _ if counts => server.wait = self.wait,
            _ => {}
        }
        Some(())
    }

    fn apply_frame(&self, server: &mut Server, frame: &Frame) {
        server.epoch = frame.epoch;
        server.chain = Some(frame.link());
        match frame.kind {
            Kind::Epoch => self.drop_unfinished(server),
            Kind::Piece(pieces) => {
                server.unfinished = Some(Unfinished { batch: frame.writes, pieces });
                if self.mutation == Mutation::UnfinishedApplied {
                    apply_batches(server, frame);
                }
            }
            Kind::LastPiece(_) => {
                server.unfinished = None;
                apply_batches(server, frame);
            }
            Kind::Data | Kind::Heartbeat | Kind::Release => apply_batches(server, frame),
        }
    }

    /// A new epoch began: the rest of the batch can never come.
    pub(super) fn drop_unfinished(&self, server: &mut Server) {
        if let Some(unfinished) = server.unfinished.take()
            && self.mutation == Mutation::EpochAppliesUnfinished
        {
            server.state.extend(unfinished.batch);
        }
    }

    pub(super) fn take_over(&self, all: &mut State, at: u8) -> Option<()> {
        let server = &mut all.servers[usize::from(at)];
        let has_room = server.epoch < self.epoch_max && next_position(server) <= self.log_max;
        (server.wait == 0 && server.epoch > 0 && has_room).then_some(())?;
        if self.mutation != Mutation::NonceOfProcess {
            (server.incarnation < self.incarnation_max).then_some(())?;
            server.incarnation += 1;
        }
        if server.chain.is_none() {
            server.chain = Some(all.log[usize::from(server.applied) - 1].link());
        }
        if self.mutation == Mutation::EpochCountsUnfinished && server.unfinished.is_some() {
            server.miscounted += 1;
        }
        server.role = Role::Candidate;
        self.append(all, at, Kind::Epoch, Writes::default(), self.lease);
        if self.mutation == Mutation::ServesBeforeEpochAcknowledged {
            let server = &mut all.servers[usize::from(at)];
            server.role = Role::Writer;
            server.epoch += 1;
            server.lease = self.lease;
        }
        Some(())
    }

    /// Another writer has the log.
    pub(super) fn fenced(&self, all: &mut State, at: u8) {
        let newest = all.store.last().copied();
        let server = &mut all.servers[usize::from(at)];
        let was = server.role;
        let acknowledged = server.applied;
        let replies = server.replies.clone();
        self.become_follower(server);
        if was == Role::Writer {
            // What is in memory may never have happened.
            self.load(server, newest);
        } else {
            server.wait = self.wait;
        }
        if self.mutation == Mutation::RepliesSurviveFence {
            server.replies = replies;
        }
        if self.mutation != Mutation::SnapshotSurvivesFence {
            server.snapshot = server.snapshot.take().filter(|(taken, _)| taken.newest <= acknowledged);
        }
    }

    /// Drops all that belongs to a writer, but for its state.
    pub(super) fn become_follower(&self, server: &mut Server) {
        server.role = Role::Follower;
        server.queue = Writes::default();
        server.pending.clear();
        server.replies.clear();
        server.lease = 0;
        server.releasing = false;
        server.leased_at_tick_start = false;
        server.miscounted = 0;
    }

    /// Begins with a snapshot, or with nothing.
    pub(super) fn load(&self, server: &mut Server, snapshot: Option<Snapshot>) {
        server.applied = snapshot.map_or(0, |snapshot| snapshot.position);
        server.epoch = snapshot.map_or(0, |snapshot| snapshot.epoch);
        server.state = snapshot.map_or(Writes::default(), |snapshot| snapshot.state);
        server.chain = None;
        server.unfinished = None;
        server.wait = self.wait;
    }

    pub(super) fn reload(&self, all: &mut State, at: u8) -> Option<()> {
        let newest = *all.store.last()?;
        let server = &mut all.servers[usize::from(at)];
        (server.applied < all.purged && newest.position > server.applied).then_some(())?;
        self.load(server, Some(newest));
        Some(())
    }
}

/// Whether a frame's numbers follow: of its batches, which a snapshot may have already, and of its piece.
fn continues(server: &Server, frame: &Frame) -> bool {
    let has_pieces = server.unfinished.map_or(0, |unfinished| unfinished.pieces);
    let fits = match frame.kind {
        Kind::Epoch => true,
        Kind::Piece(piece) | Kind::LastPiece(piece) => piece == has_pieces + 1,
        Kind::Data | Kind::Heartbeat | Kind::Release => has_pieces == 0,
    };
    fits && frame.first_batch <= server.state.len() + 1
}

/// Applies the batches of a frame but for those that are there already, which a snapshot brought.
fn apply_batches(server: &mut Server, frame: &Frame) {
    let contained = (server.state.len() + 1).saturating_sub(frame.first_batch);
    server.state.extend(frame.writes.iter().skip(contained.into()).collect());
}
