//! What a round does, drawn from the seed before it begins: on which data it starts, and how and when it ends.

use wire::Random;

use crate::Plan;

pub(crate) struct Round {
    /// Begin with an empty directory.
    pub(crate) fresh: bool,
    /// Starts that are killed before a client connects.
    pub(crate) starts_killed: Vec<KillAtStart>,
    /// When writes are synced: a value of `appendfsync`.
    pub(crate) policy: &'static str,
    /// The server writes a snapshot by itself when the journal has grown long.
    pub(crate) compacts: bool,
    /// Make sure that there is much data before the load begins.
    pub(crate) heavy: bool,
    /// A snapshot that begins before the load does and is left to end.
    pub(crate) snapshot: Option<&'static str>,
    /// The round ends when so many batches and replies have passed.
    pub(crate) ticks: u64,
    pub(crate) ending: Ending,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum KillAtStart {
    /// After so many PINGs, or the first that is answered.
    Pings(usize),
    Files(Patience),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending {
    /// SIGKILL under load, after so many turns of an empty loop: between the server's steps for a reply and the next.
    Kill { spins: u64 },
    /// SIGKILL under load, after this command was sent and `patience` ran out.
    KillDuring { command: &'static str, patience: Patience },
    /// A stop that lets the server finish, under load.
    Stop { how: Stop },
    /// The same, and then SIGKILL before it is done.
    StopThenKill { patience: Patience },
    /// SIGKILL while nothing is in flight.
    KillInQuiet,
    /// FLUSHALL while nothing else is in flight, then SIGKILL, before or after its reply.
    KillDuringFlush { acknowledged: bool, patience: Patience },
    /// A follower takes over, or is about to.
    TakeOver(TakeOver),
}

/// How a follower comes to write, under load.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TakeOver {
    /// The writer is killed, after so many turns of an empty loop.
    AfterKill { spins: u64 },
    /// The writer is stopped (SIGSTOP), and goes on when the follower writes.
    AfterStop { spins: u64 },
    /// REPLICAOF NO ONE on the follower; the writer hands over.
    Asked,
    /// FAILOVER on the writer.
    Failover,
    /// The same as `Asked`, and then these are killed before it is done, perhaps.
    Interrupted { killed: Killed, patience: Patience },
    /// Not at all: the follower is killed.
    FollowerKilled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Killed {
    Writer,
    Follower,
    Both,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Stop {
    Sigterm,
    Shutdown,
    ShutdownNosave,
}

/// How long to wait, without a clock: until a file has come or gone in the data directory so many times, but for no
/// more than so many looks at it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub(crate) changes: usize,
    pub(crate) looks: usize,
}

pub(crate) const SNAPSHOT_COMMANDS: &[&str] = &["BGSAVE", "BGREWRITEAOF", "SAVE"];

impl Round {
    pub(crate) fn draw(random: &mut Random, plan: &Plan) -> Round {
        let takes_over = plan.followers && !random.one_in(6);
        let ending = if takes_over { Ending::TakeOver(TakeOver::draw(random)) } else { Ending::draw(random) };
        let starts_killed = if random.one_in(4) { 1 + random.below(3) } else { 0 };
        Round {
            fresh: random.one_in(15),
            starts_killed: (0..starts_killed).map(|_| KillAtStart::draw(random)).collect(),
            policy: plan.draw_policy(random),
            compacts: !random.one_in(3),
            heavy: matches!(ending, Ending::KillDuring { .. }) || random.one_in(6),
            snapshot: random.one_in(4).then(|| random.pick(SNAPSHOT_COMMANDS)),
            // Early ends as well as late ones.
            ticks: 1 + if random.one_in(2) {
                random.next_u64() % plan.ticks_max
            } else {
                below_log(random, plan.ticks_max)
            },
            ending,
        }
    }
}

impl Ending {
    fn draw(random: &mut Random) -> Ending {
        const STOPS: &[Stop] = &[Stop::Sigterm, Stop::Sigterm, Stop::Shutdown, Stop::ShutdownNosave];
        match random.below(20) {
            0..8 => Ending::Kill { spins: below_log(random, 500_000) },
            8..14 => Ending::KillDuring { command: random.pick(SNAPSHOT_COMMANDS), patience: Patience::draw(random) },
            14..16 => Ending::Stop { how: random.pick(STOPS) },
            16..18 => Ending::StopThenKill { patience: Patience::draw(random) },
            18 => Ending::KillInQuiet,
            _ => Ending::KillDuringFlush { acknowledged: random.one_in(2), patience: Patience::draw(random) },
        }
    }
}

impl TakeOver {
    fn draw(random: &mut Random) -> TakeOver {
        const KILLED: &[Killed] = &[Killed::Writer, Killed::Follower, Killed::Both];
        match random.below(12) {
            0..3 => TakeOver::AfterKill { spins: below_log(random, 500_000) },
            3..6 => TakeOver::AfterStop { spins: below_log(random, 500_000) },
            6..8 => TakeOver::Asked,
            8 => TakeOver::Failover,
            9..11 => TakeOver::Interrupted { killed: random.pick(KILLED), patience: Patience::draw(random) },
            _ => TakeOver::FollowerKilled,
        }
    }
}

impl KillAtStart {
    fn draw(random: &mut Random) -> KillAtStart {
        match random.below(2) {
            0 => KillAtStart::Pings(below_log(random, 3_000) as usize),
            _ => KillAtStart::Files(Patience::draw(random)),
        }
    }
}

impl Patience {
    /// Half of them wait for a file to come or go, the others may run out before.
    fn draw(random: &mut Random) -> Patience {
        const LOOKS_MAX: u64 = 5_000;
        let looks = if random.one_in(2) { LOOKS_MAX } else { below_log(random, LOOKS_MAX) };
        Patience { changes: 1 + random.below(6), looks: looks as usize }
    }
}

/// Small and large numbers alike, up to `end`: the exponent is drawn first.
fn below_log(random: &mut Random, end: u64) -> u64 {
    let exponent = random.below(end.ilog2() as usize + 1);
    (random.next_u64() % (2 << exponent)).min(end)
}
