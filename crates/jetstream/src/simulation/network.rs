//! What is on its way between processes and the stream, and when it arrives. Knows delays and losses; refuses to know what a
//! request asks for.

use crate::stream::{Receive, Tick};
use fastrand::Rng;
use std::collections::BTreeMap;
use std::sync::Weak;

/// How often the network errs: in so many of a thousand messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub lost: u16,
    /// It takes up to [`DELAY_NS_MAX`].
    pub delayed: u16,
    /// A request arrives twice.
    pub repeated: u16,
    /// A request is answered with an error, whether or not it was done.
    pub refused: u16,
    /// The delivery of messages begins again, a little before.
    pub followed_again: u16,
}

/// A process ends here: what a thread of it that waits is unwound with.
pub struct Crash;

/// The longest that a message takes, and how long most of them take.
const DELAY_NS_MAX: u64 = 3_000_000_000;
const DELAY_NS: u64 = 3_000_000;
/// How often a process does what is to be done as time passes.
pub(super) const TICK_NS: u64 = 50_000_000;

/// One life of a process: the machine that it runs on, and how many were there before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Process {
    pub(super) machine: usize,
    pub(super) life: u64,
}

/// What happens at some time, in a world `W`.
pub(super) enum Event<W> {
    /// A request arrives at the stream.
    Request(Box<dyn FnOnce(&mut W) + Send>),
    /// An answer arrives at a process, or its wait for one ends.
    Answer(Process, Box<dyn FnOnce() + Send>),
    /// The next message is delivered to a subscription.
    Deliver(Process, u64),
    Tick(Process),
    TickOnce(Process, Weak<dyn Tick>),
}

impl<W> Event<W> {
    /// The process in which it happens, if that is one.
    pub(super) fn within(&self) -> Option<Process> {
        match self {
            Event::Request(..) => None,
            Event::Answer(process, _)
            | Event::Deliver(process, _)
            | Event::Tick(process)
            | Event::TickOnce(process, _) => Some(*process),
        }
    }
}

/// A machine, with the process that runs there.
pub(super) struct Machine {
    pub(super) life: u64,
    pub(super) is_running: bool,
    /// Its clock runs at a million and so many parts per million.
    pub(super) rate_ppm: i64,
    /// By how much its clock and its calendar are ahead.
    pub(super) ahead_ns: u64,
    pub(super) calendar_ms: i64,
    pub(super) stopped_until_ns: u64,
    /// It does not reach the stream, or the object store.
    pub(super) cut_from_ns: u64,
    pub(super) cut_until_ns: u64,
    /// What it sends arrives, and nothing comes back.
    pub(super) deaf_until_ns: u64,
    pub(super) without_objects_until_ns: u64,
    pub(super) ticking: Vec<Weak<dyn Tick>>,
    pub(super) subscriptions: BTreeMap<u64, Subscription>,
}

impl Machine {
    /// Until when nothing that it sends arrives, if that is so.
    pub(super) fn cut_until_ns(&self, now_ns: u64) -> Option<u64> {
        (self.cut_from_ns..self.cut_until_ns).contains(&now_ns).then_some(self.cut_until_ns)
    }

    /// Until when it is sent nothing, if that is so.
    pub(super) fn deaf_until_ns(&self, now_ns: u64) -> Option<u64> {
        let deaf_ns = Some(self.deaf_until_ns).filter(|until_ns| *until_ns > now_ns);
        deaf_ns.max(self.cut_until_ns(now_ns))
    }
}

/// Messages are delivered to a receiver.
pub(super) struct Subscription {
    pub(super) next: u64,
    pub(super) receiver: Weak<dyn Receive>,
    /// There was nothing to deliver: a message that is stored wakes it.
    pub(super) is_idle: bool,
}

/// The network: events, and when they happen.
pub(super) struct Network<W> {
    pub(super) faults: Faults,
    events: BTreeMap<(u64, u64), Event<W>>,
    last_number: u64,
}

impl<W> Network<W> {
    pub(super) fn new() -> Network<W> {
        Network { faults: Faults::default(), events: BTreeMap::new(), last_number: 0 }
    }

    pub(super) fn schedule(&mut self, at_ns: u64, event: Event<W>) {
        self.last_number += 1;
        self.events.insert((at_ns, self.last_number), event);
    }

    /// The next event, if it is not after `until_ns`.
    pub(super) fn next(&mut self, until_ns: u64) -> Option<(u64, Event<W>)> {
        let first = self.events.first_entry().filter(|entry| entry.key().0 <= until_ns)?;
        let ((at_ns, _), event) = first.remove_entry();
        Some((at_ns, event))
    }

    /// How long a message takes; `None` if it is lost.
    pub(super) fn delay_ns(&self, rng: &mut Rng) -> Option<u64> {
        if happens(rng, self.faults.lost) {
            return None;
        }
        let max_ns = if happens(rng, self.faults.delayed) { DELAY_NS_MAX } else { DELAY_NS };
        Some(rng.u64(100_000..max_ns))
    }
}

/// True in so many of a thousand cases.
pub(super) fn happens(rng: &mut Rng, per_mille: u16) -> bool {
    per_mille > 0 && rng.u16(..1000) < per_mille
}
