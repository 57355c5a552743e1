//! A writer: executes requests in memory, sends what waits, hands over. Knows nothing of what becomes of a frame.

use super::config::{Config, Mutation, Reads};
use super::state::*;
use super::writes::Writes;

impl Config {
    pub(super) fn write(&self, all: &mut State, at: u8) -> Option<()> {
        let server = &mut all.servers[usize::from(at)];
        (all.next_write <= self.writes && !server.releasing).then_some(())?;
        let write = all.next_write;
        all.next_write += 1;
        server.state.push(write);
        server.queue.push(write);
        let depends_on = self.newest_change(server);
        push_reply(server, Operation::Write(write), depends_on, all.observed);
        Some(())
    }

    pub(super) fn read(&self, all: &mut State, at: u8) -> Option<()> {
        let server = &mut all.servers[usize::from(at)];
        (!server.releasing || self.mutation == Mutation::HandoverKeepsLease).then_some(())?;
        if self.mutation == Mutation::CheckWhenReceived && server.lease == 0 {
            return None;
        }
        all.budget.reads = all.budget.reads.checked_sub(1)?;
        let newest = self.newest_change(server);
        let depends_on = match self.reads {
            _ if self.mutation == Mutation::ReplyBeforeAcknowledged => 0,
            Reads::Lease => newest,
            Reads::Confirmed => newest.max(next_position(server)),
            Reads::ConfirmedByEarlier => {
                newest.max(server.pending.first().map_or(next_position(server), |pending| pending.position))
            }
        };
        push_reply(server, Operation::Read(server.state), depends_on, all.observed);
        Some(())
    }

    pub(super) fn send_frame(&self, all: &mut State, at: u8) -> Option<()> {
        let server = &mut all.servers[usize::from(at)];
        let can_send = server.pending.len() < self.pipeline.into() && next_position(server) <= self.log_max;
        (can_send && !server.releasing).then_some(())?;
        if server.queue.is_empty() && server.pending.iter().any(|pending| pending.frame.kind == Kind::Heartbeat) {
            return None;
        }
        let (kind, writes) = self.next_frame(server);
        if !matches!(kind, Kind::Piece(_)) {
            server.queue = server.queue.without(writes);
        }
        self.append(all, at, kind, writes, self.lease);
        Some(())
    }

    /// A batch in pieces stays in the queue until its last piece is sent, and no other frame is sent between.
    fn next_frame(&self, server: &Server) -> (Kind, Writes) {
        let Some(first) = server.queue.iter().next() else {
            return (Kind::Heartbeat, Writes::default());
        };
        if first == self.large_write {
            let piece = pieces_sent(server) + 1;
            let kind = if piece < self.pieces { Kind::Piece(piece) } else { Kind::LastPiece(piece) };
            return (kind, Writes::of(first));
        }
        (Kind::Data, server.queue.iter().take_while(|write| *write != self.large_write).collect())
    }

    pub(super) fn hand_over(&self, all: &mut State, at: u8) -> Option<()> {
        let server = &mut all.servers[usize::from(at)];
        let is_idle = server.pending.is_empty() && server.queue.is_empty() && server.replies.is_empty();
        (is_idle && !server.releasing && next_position(server) <= self.log_max).then_some(())?;
        all.budget.handovers = all.budget.handovers.checked_sub(1)?;
        server.releasing = true;
        // IMPORTANT: give the lease up before the frame is sent, not when it is acknowledged.
        if self.mutation != Mutation::HandoverKeepsLease {
            server.lease = 0;
        }
        self.append(all, at, Kind::Release, Writes::default(), 0);
        Some(())
    }

    /// The position of the frame with which the newest change in memory counts.
    pub(super) fn newest_change(&self, server: &Server) -> u8 {
        let Some(newest) = server.queue.iter().last() else {
            let newest = server.pending.iter().rfind(|pending| !pending.frame.writes.is_empty());
            return newest.map_or(server.applied, |pending| pending.position);
        };
        // Batches that follow each other share a frame, unless one of them is large.
        let (mut frames, mut shares) = (0, false);
        for write in server.queue.iter() {
            let is_large = write == self.large_write;
            frames += if is_large { self.pieces } else { u8::from(!shares) };
            shares = !is_large;
        }
        if newest == self.large_write && self.mutation == Mutation::AcknowledgedAtFirstPiece {
            frames -= self.pieces - 1;
        }
        next_position(server) + frames - 1 - pieces_sent(server)
    }
}

/// The position of the next frame that is sent.
pub(super) fn next_position(server: &Server) -> u8 {
    server.applied + server.pending.len() as u8 + 1
}

/// How many pieces of the first batch of the queue were sent.
fn pieces_sent(server: &Server) -> u8 {
    let acknowledged = server.unfinished.map_or(0, |unfinished| unfinished.pieces);
    server.pending.iter().fold(acknowledged, |sent, pending| match pending.frame.kind {
        Kind::Piece(piece) => piece,
        Kind::LastPiece(_) => 0,
        _ => sent,
    })
}

fn push_reply(server: &mut Server, operation: Operation, depends_on: u8, floor: u8) {
    let (epoch, incarnation) = (server.epoch, server.incarnation);
    server.replies.push(Reply { operation, depends_on, epoch, incarnation, floor });
}
