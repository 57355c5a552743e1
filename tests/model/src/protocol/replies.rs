//! Replies: the check before one is sent, and what a client learns from it. Knows nothing of how a request was
//! executed.

use super::config::{Config, Mutation, Reads};
use super::invariants::{self, flags};
use super::state::*;

impl Config {
    pub(super) fn check_reply(&self, all: &mut State, at: u8, reply: u8) -> Option<()> {
        let server = &mut all.servers[usize::from(at)];
        let candidate = server.replies[usize::from(reply)];
        let is_ours = server.role == Role::Writer && candidate.epoch == server.epoch;
        (is_ours || self.mutation == Mutation::RepliesSurviveFence).then_some(())?;
        (candidate.depends_on <= server.applied && self.may_reply(server)).then_some(())?;
        server.replies.remove(reply.into());
        if self.pause_before_send {
            server.checked_replies.push(candidate);
        } else {
            self.deliver(all, at, candidate);
        }
        Some(())
    }

    fn may_reply(&self, server: &Server) -> bool {
        match (self.reads, self.mutation) {
            (Reads::Confirmed | Reads::ConfirmedByEarlier, _) => true,
            (_, Mutation::NoLeaseCheck | Mutation::CheckWhenReceived) => true,
            (_, Mutation::RepliesSurviveFence) if server.role != Role::Writer => true,
            (_, Mutation::CheckAtStartOfTick) => server.leased_at_tick_start,
            _ => server.lease > 0,
        }
    }

    /// A client receives its reply.
    pub(super) fn deliver(&self, all: &mut State, at: u8, reply: Reply) {
        let (logged, newest_epoch) = invariants::history(&all.log, all.log.len());
        // Writers are told apart by their take-over, not only by their server.
        let replier = (reply.epoch, at, reply.incarnation);
        if all.repliers.iter().any(|other| other.0 == replier.0 && *other != replier) {
            all.violations |= flags::TWO_WRITERS;
        }
        all.repliers.push(replier);
        all.repliers.sort_unstable();
        all.repliers.dedup();
        let seen = match reply.operation {
            Operation::Write(write) => {
                all.acknowledged.push(write);
                let place = logged.place(write);
                all.violations |= match place {
                    None => flags::LOST,
                    // It comes after all that clients had seen when it was requested.
                    Some(place) if place <= reply.floor => flags::STALE,
                    Some(_) => 0,
                };
                place.unwrap_or(u8::MAX)
            }
            Operation::Read(state) => {
                all.violations |= if state.is_prefix_of(logged) { 0 } else { flags::PHANTOM };
                all.violations |= if state.len() < reply.floor { flags::STALE } else { 0 };
                state.len()
            }
        };
        all.observed = all.observed.max(seen);
        if newest_epoch > reply.epoch {
            all.violations |= flags::LATE_REPLY;
        }
    }
}
