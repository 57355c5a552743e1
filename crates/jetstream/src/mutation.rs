//! Rules of the protocol that a test can break, to see that its checks notice it. A server keeps all of them: there the
//! question is a constant. Refuses to know what a rule is good for.

/// A rule that is broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(not(any(test, feature = "simulation")), allow(dead_code, unreachable_pub, reason = "a server breaks none"))]
pub enum Mutation {
    /// The lease counts from the answer.
    LeaseFromAnswer,
    /// The lease counts from the last time that a frame was sent.
    LeaseFromResend,
    /// A batch counts when its first piece is stored.
    FirstPieceCounts,
    /// A follower takes the log over at its end, whether or not it has applied all of it.
    EpochBehindUnapplied,
    /// A frame that is found at its position is taken for the own one if its epoch is.
    ComparedByEpoch,
    /// A snapshot counts before the batches that it contains are stored.
    SnapshotBeforeBatches,
    /// A writer that was fenced keeps what it has in memory.
    FencedKeepsState,
}

#[cfg(any(test, feature = "simulation"))]
thread_local! {
    static BROKEN: std::cell::Cell<Option<Mutation>> = const { std::cell::Cell::new(None) };
}

/// Breaks a rule on this thread, and no other rule.
#[cfg(any(test, feature = "simulation"))]
pub fn break_rule(mutation: Option<Mutation>) {
    BROKEN.set(mutation);
}

/// True when this rule is broken.
#[cfg(any(test, feature = "simulation"))]
pub fn is_broken(mutation: Mutation) -> bool {
    BROKEN.get() == Some(mutation)
}

#[cfg(not(any(test, feature = "simulation")))]
pub(crate) const fn is_broken(_: Mutation) -> bool {
    false
}
