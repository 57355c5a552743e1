//! Which connections run between two polls of the sockets, so that a client that sends without pause does not delay
//! others. Knows how long turns took; refuses to know what was done in them.
//!
//! A connection whose last turn was short runs as soon as its socket is ready. A connection that has more to do than
//! fits into a turn, or whose last turn was long, waits in a queue: between two polls of the sockets the queue gets
//! [`ROUND_NS`], and at least one turn. So a request of another client waits for about one round, however many such
//! connections there are.
//!
//! Rejected: a connection that wakes its own task. The runtime would poll it many times before it polls the sockets
//! again.

use super::local::with_local;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

/// How long a connection executes requests before others run: about as long as two full reads of the shortest requests
/// take. With a quarter of that, replies are sent in so many small pieces that a PING costs a seventh more CPU.
pub(super) const TURN_NS: u64 = 1_000_000;
/// The total time of the long turns between two polls of the sockets, not counting the last of them: one whole turn, or
/// one slice of a command.
const ROUND_NS: u64 = 250_000;
/// After a turn of at least this length, the connection's next turn comes from the queue while others wait there.
const LONG_TURN_NS: u64 = 50_000;
/// The least cost of a turn, however little was done in it, so that a round ends.
const TURN_COST_MIN_NS: u64 = 1_000;
/// The cost of a byte of output, since sending is not part of a turn: two gigabytes a second.
const BYTES_SENT_PER_NS: u64 = 2;

/// Whether a connection may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Turn {
    /// Runs when its socket is ready.
    #[default]
    Free,
    /// Its last turn was long, or had to end early: it waits in the queue while others do.
    FreeAfterLong,
    /// Waits in the queue. It does nothing meanwhile.
    Queued,
    /// Was taken from the queue, and runs next.
    Granted,
}

/// The long turns of a worker's connections.
pub(super) struct Turns {
    /// Connections that wait for a turn, by their key at the worker. Closed ones are skipped.
    queue: VecDeque<usize>,
    /// How long the long turns since the last poll of the sockets took.
    used_ns: u64,
    /// The task that grants turns.
    task: Waker,
}

impl Turns {
    pub(super) fn new() -> Turns {
        Turns { queue: VecDeque::new(), used_ns: 0, task: Waker::noop().clone() }
    }

    /// True when a connection whose last turn was long has to queue.
    #[inline]
    pub(super) fn are_wanted(&self) -> bool {
        self.used_ns >= ROUND_NS || !self.queue.is_empty()
    }

    /// Queues a connection for its next turn.
    pub(super) fn queue(&mut self, connection: usize) {
        self.queue.push_back(connection);
        self.task.wake_by_ref();
    }

    /// Notes the cost of a turn, and whether the connection has more to do. True when its next turn may have to wait.
    #[inline]
    pub(super) fn note(&mut self, cost_ns: u64, has_more: bool) -> bool {
        if cost_ns < LONG_TURN_NS && !has_more {
            return false;
        }
        self.used_ns += cost_ns.max(TURN_COST_MIN_NS);
        self.task.wake_by_ref();
        true
    }

    /// Begins a round: the sockets have been polled.
    pub(super) fn begin_round(&mut self) {
        self.used_ns = 0;
    }

    /// The next connection of the queue, unless the round is over.
    pub(super) fn next(&mut self) -> Option<usize> {
        if self.used_ns < ROUND_NS { self.queue.pop_front() } else { None }
    }

    /// Ready when there is a reason to poll the sockets and continue with the queue.
    pub(super) fn poll_wanted(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.used_ns > 0 || !self.queue.is_empty() {
            return Poll::Ready(());
        }
        if !self.task.will_wake(cx.waker()) {
            self.task = cx.waker().clone();
        }
        Poll::Pending
    }
}

/// The cost of a turn of this duration with so many bytes of output.
#[inline]
pub(super) fn cost_ns(took_ns: u64, output_bytes: usize) -> u64 {
    took_ns + output_bytes as u64 / BYTES_SENT_PER_NS
}

/// Runs the task that grants turns: a round after each poll of the sockets.
pub(super) async fn grant_turns() {
    loop {
        poll_fn(|cx| with_local(|local| local.turns.poll_wanted(cx))).await;
        // IMPORTANT: it continues once the runtime has polled for I/O, after the connections that were found ready.
        tokio::task::yield_now().await;
        with_local(|local| local.turns.begin_round());
        while with_local(|local| local.grant_turn()) {
            run_others().await;
        }
    }
}

/// Lets the ready tasks run, without polling the sockets.
async fn run_others() {
    let mut is_woken = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut is_woken, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_ends_when_its_time_is_used_up_and_goes_on_where_it_ended() {
        let mut turns = Turns::new();
        (0..5).for_each(|connection| turns.queue(connection));
        let mut rounds = Vec::new();
        while turns.are_wanted() {
            turns.begin_round();
            let mut round = Vec::new();
            while let Some(connection) = turns.next() {
                turns.note(ROUND_NS / 2, false);
                round.push(connection);
            }
            rounds.push(round);
            if rounds.len() > 5 {
                break;
            }
        }
        assert_eq!(rounds[..3], [vec![0, 1], vec![2, 3], vec![4]]);
    }

    #[test]
    fn a_turn_that_exceeds_a_round_is_the_only_one_in_it() {
        let mut turns = Turns::new();
        turns.queue(1);
        turns.queue(2);
        turns.begin_round();
        assert_eq!(turns.next(), Some(1));
        assert!(turns.note(10 * ROUND_NS, false));
        assert_eq!(turns.next(), None, "the sockets come first");
        turns.begin_round();
        assert_eq!(turns.next(), Some(2));
    }

    #[test]
    fn a_connection_that_always_has_more_to_do_does_not_keep_a_round_going() {
        let mut turns = Turns::new();
        turns.queue(1);
        turns.begin_round();
        let mut count = 0;
        while let Some(connection) = turns.next() {
            assert!(turns.note(0, true));
            turns.queue(connection);
            count += 1;
            assert!(count < 10_000, "the round goes on for ever");
        }
        assert!(turns.are_wanted(), "it goes on in the next round");
    }

    #[test]
    fn short_turns_use_up_nothing() {
        let mut turns = Turns::new();
        (0..1000).for_each(|_| assert!(!turns.note(LONG_TURN_NS - 1, false)));
        assert!(!turns.are_wanted());
        assert!(turns.note(cost_ns(1_000, 1024 * 1024), false), "a reply of a megabyte takes long to send");
    }
}
