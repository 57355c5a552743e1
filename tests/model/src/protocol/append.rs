//! Appends: a frame is sent for a position, arrives or not, is answered or not, is sent again, and is looked for in the
//! log. Knows nothing of what a frame is for, but for what changes when it is acknowledged.

use super::config::{Config, Mutation};
use super::state::*;
use super::writer::next_position;
use super::writes::Writes;

impl Config {
    pub(super) fn append(&self, all: &mut State, at: u8, kind: Kind, writes: Writes, lease: u8) {
        let server = &mut all.servers[usize::from(at)];
        let chain = server.pending.last().map(|pending| pending.frame.link()).or(server.chain);
        let is_epoch = kind == Kind::Epoch;
        let mut frame = Frame {
            epoch: server.epoch + u8::from(is_epoch),
            author: at,
            incarnation: server.incarnation,
            kind,
            first_batch: server.state.len() + server.miscounted + 1,
            writes,
            number: chain.filter(|_| !is_epoch).map_or(0, |chain| chain.number + 1),
            chain,
        };
        frame.first_batch -= server.queue.len() + frame.completes().len();
        let pending = Pending { frame, position: next_position(server), lease, acknowledged: false };
        server.pending.push(pending);
        all.requests.push(self.request(&pending));
    }

    fn request(&self, pending: &Pending) -> Request {
        let is_conditional = pending.frame.kind != Kind::Epoch || self.mutation != Mutation::EpochUnconditional;
        Request { expected: is_conditional.then_some(pending.position - 1), frame: pending.frame }
    }

    pub(super) fn arrive(&self, all: &mut State, at: u8, copy: bool) -> Option<()> {
        let request = all.requests[usize::from(at)];
        let last = all.log.len() as u8;
        let fits = request.expected.is_none_or(|expected| expected == last);
        (last < self.log_max + 2).then_some(())?;
        if copy {
            all.budget.duplicates -= 1;
        } else {
            all.requests.remove(at.into());
        }
        if fits {
            all.log.push(request.frame);
        }
        all.answers.push(Answer { frame: request.frame, at: fits.then_some(last + 1) });
        Some(())
    }

    pub(super) fn answered(&self, all: &mut State, at: u8) -> Option<()> {
        let answer = all.answers.remove(at.into());
        let author = answer.frame.author;
        let server = &mut all.servers[usize::from(author)];
        let found = server.pending.iter().position(|pending| pending.frame == answer.frame)?;
        let Some(position) = answer.at else {
            if self.mutation == Mutation::ConflictMeansRefused {
                all.refused.extend(server.pending[found].frame.writes);
                self.fenced(all, author);
            } else {
                // No verdict: it may be the answer to a second copy of a frame that is in the log. Read the position.
                let _ = self.resolve(all, author);
            }
            return Some(());
        };
        let pending = &mut server.pending[found];
        pending.acknowledged = true;
        match self.mutation {
            Mutation::EpochUnconditional => pending.position = position,
            Mutation::LeaseFromAcknowledgement => pending.lease = self.lease,
            Mutation::CumulativeAcknowledgement => {
                server.pending[..found].iter_mut().for_each(|pending| pending.acknowledged = true);
            }
            _ => {}
        }
        self.settle(server);
        Some(())
    }

    /// Removes acknowledged frames from the front of those in flight, in their order.
    fn settle(&self, server: &mut Server) {
        while let Some(first) = server.pending.first().copied().filter(|pending| pending.acknowledged) {
            server.pending.remove(0);
            server.applied = first.position;
            server.chain = Some(first.frame.link());
            server.lease = server.lease.max(first.lease);
            match first.frame.kind {
                Kind::Epoch => {
                    server.role = Role::Writer;
                    server.epoch = first.frame.epoch;
                    self.drop_unfinished(server);
                }
                Kind::Release => {
                    self.become_follower(server);
                    server.wait = self.wait;
                }
                Kind::Piece(pieces) => server.unfinished = Some(Unfinished { batch: first.frame.writes, pieces }),
                Kind::LastPiece(_) => server.unfinished = None,
                Kind::Data | Kind::Heartbeat => {}
            }
        }
    }

    pub(super) fn resend(&self, all: &mut State, at: u8) -> Option<()> {
        let server = &mut all.servers[usize::from(at)];
        let first = server.pending.first_mut().filter(|pending| !pending.acknowledged)?;
        if self.mutation == Mutation::LeaseFromResend {
            first.lease = self.lease;
        }
        if self.mutation == Mutation::ResendWithMore && first.frame.kind != Kind::Epoch {
            first.frame.writes.extend(std::mem::take(&mut server.queue));
            first.frame.kind = if first.frame.writes.is_empty() { Kind::Heartbeat } else { Kind::Data };
            for reply in &mut server.replies {
                reply.depends_on = reply.depends_on.min(first.position);
            }
        }
        let request = self.request(first);
        // The network holds one copy of each request; `copy` makes a second.
        let is_new = !all.requests.contains(&request);
        if is_new {
            all.requests.push(request);
        }
        (is_new || self.mutation == Mutation::LeaseFromResend).then_some(())
    }

    pub(super) fn resolve(&self, all: &mut State, at: u8) -> Option<()> {
        let server = &mut all.servers[usize::from(at)];
        let first = *server.pending.first()?;
        if first.position <= all.purged {
            // Other writers went on for so long that the position was purged: it is not empty.
            self.fenced(all, at);
            return Some(());
        }
        let Some(found) = all.log.get(usize::from(first.position) - 1).copied() else {
            return self.found_empty(all, at, first);
        };
        if self.is_same(&found, &first.frame) {
            server.pending[0].acknowledged = true;
            self.settle(server);
        } else if self.skip_old_epochs && found.epoch < first.frame.epoch && server.role == Role::Writer {
            // A frame of a writer that was fenced before does not count. Try the next position.
            self.move_by_one(all, at, first.position);
        } else {
            self.fenced(all, at);
        }
        Some(())
    }

    fn move_by_one(&self, all: &mut State, at: u8, position: u8) {
        let server = &mut all.servers[usize::from(at)];
        server.applied += 1;
        for pending in &mut server.pending {
            pending.position += 1;
            pending.acknowledged = false;
            all.requests.push(Request { expected: Some(pending.position - 1), frame: pending.frame });
        }
        for reply in server.replies.iter_mut().filter(|reply| reply.depends_on >= position) {
            reply.depends_on += 1;
        }
    }

    /// An empty position decides nothing: the frame may still arrive.
    fn found_empty(&self, all: &mut State, at: u8, first: Pending) -> Option<()> {
        let is_wrong = self.mutation == Mutation::EmptyMeansFailed && first.frame.kind == Kind::Data;
        is_wrong.then_some(())?;
        let server = &mut all.servers[usize::from(at)];
        server.pending.remove(0);
        all.refused.extend(first.frame.writes);
        server.state = server.state.without(first.frame.writes);
        server.replies.retain(|reply| match reply.operation {
            Operation::Write(write) => first.frame.writes.place(write).is_none(),
            Operation::Read(_) => reply.depends_on < first.position,
        });
        for reply in server.replies.iter_mut().filter(|reply| reply.depends_on > first.position) {
            reply.depends_on -= 1;
        }
        Some(())
    }

    /// Whether the log has, at this position, what was sent for it.
    fn is_same(&self, found: &Frame, sent: &Frame) -> bool {
        let mut found = *found;
        if matches!(self.mutation, Mutation::NoNonce | Mutation::NonceOfServer) {
            found.incarnation = sent.incarnation;
        }
        if self.mutation == Mutation::NoNonce {
            found.author = sent.author;
            found.chain = sent.chain;
        }
        if self.mutation == Mutation::ResendWithMore {
            found.writes = sent.writes;
            found.kind = sent.kind;
        }
        found == *sent
    }
}
