//! What goes wrong in a round, drawn from its seed. Knows what there is to break; breaks nothing.

use std::fmt;
use std::time::Duration;

use wire::Random;

use super::network::{Acks, Passage};

/// One process, by what it is at the moment of the fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    Writer,
    Follower,
    /// The NATS server that leads the stream.
    StreamLeader,
    StreamFollower,
}

/// What is done to processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Blow {
    /// SIGKILL, and a start after the time of the fault.
    Kill,
    /// SIGSTOP, and SIGCONT after the time of the fault.
    Pause,
    /// SIGTERM, and a start at once.
    Restart,
}

/// Which links are affected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Links {
    /// All between one process and the NATS servers; of a NATS server, to Holdfast servers, too.
    Of(Target),
    /// One process and one NATS server.
    ToStreamLeader(Target),
    All,
}

/// How a clock goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Clock {
    /// So many seconds ahead, or behind.
    Step(i64),
    /// Faster by so many hundredths.
    Fast(u32),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Processes {
        targets: Vec<Target>,
        blow: Blow,
    },
    AllNatsGone,
    Partition {
        links: Links,
        passage: Passage,
    },
    /// The cables of processes are pulled: packets are lost, and nobody is told.
    Unplugged {
        targets: Vec<Target>,
    },
    Slow {
        links: Links,
        delay_ms: u64,
    },
    Acknowledgements(Acks),
    Clock {
        target: Target,
        clock: Clock,
    },
    FullDisk,
    /// FAILOVER: the writer hands the log over.
    HandOver,
    /// The stream is purged by hand.
    Purged,
    /// The stream is deleted by hand.
    Deleted,
    /// The files of the stream are damaged on so many NATS servers; they are started again.
    Damaged {
        servers: usize,
    },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    /// When it begins, after the load.
    pub(crate) after: Duration,
    /// How long it lasts.
    pub(crate) lasts: Duration,
}

/// What can be broken here.
#[derive(Clone, Copy)]
pub(crate) struct Means {
    pub(crate) clocks: bool,
    pub(crate) disks: bool,
    pub(crate) cables: bool,
    /// Faults last as long as they would in production: NATS is gone for a minute.
    pub(crate) long: bool,
}

impl Kind {
    /// After these the log is gone, or damaged: the round ends with a look at who notices.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, Kind::Purged | Kind::Deleted | Kind::Damaged { .. })
    }

    /// A name for choosing it by hand.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Kind::Processes { blow: Blow::Kill, .. } => "kill",
            Kind::Processes { blow: Blow::Pause, .. } => "pause",
            Kind::Processes { blow: Blow::Restart, .. } => "restart",
            Kind::AllNatsGone => "all-nats-gone",
            Kind::Partition { .. } | Kind::Unplugged { .. } => "partition",
            Kind::Slow { .. } => "slow",
            Kind::Acknowledgements(_) => "acknowledgements",
            Kind::Clock { .. } => "clock",
            Kind::FullDisk => "full-disk",
            Kind::HandOver => "hand-over",
            Kind::Purged => "purged",
            Kind::Deleted => "deleted",
            Kind::Damaged { .. } => "damaged",
        }
    }
}

impl Fault {
    /// One or two faults, or one that is final. With `only`, of that kind.
    pub(crate) fn draw_some(random: &mut Random, means: Means, only: Option<&str>) -> Vec<Fault> {
        let mut draw = || loop {
            let fault = Fault::draw(random, means);
            if only.is_none_or(|name| name == fault.kind.name()) {
                return fault;
            }
        };
        let first = draw();
        if first.kind.is_final() {
            return vec![first];
        }
        let second = draw();
        let is_alone = random.one_in(2) || second.kind.is_final();
        if is_alone { vec![first] } else { vec![first, second] }
    }

    fn draw(random: &mut Random, means: Means) -> Fault {
        let after = Duration::from_millis(300 + random.below(2000) as u64);
        let kind = loop {
            match Kind::draw(random) {
                Kind::Clock { .. } if !means.clocks => {}
                Kind::FullDisk if !means.disks => {}
                Kind::Unplugged { .. } if !means.cables => {}
                kind => break kind,
            }
        };
        // Half of them end while a lease is still valid, or a NATS server is not missed yet.
        let ms = if random.one_in(2) { 300 + random.below(3200) } else { 3000 + random.below(9000) } as u64;
        let ms = match kind {
            Kind::AllNatsGone if means.long => 60_000,
            Kind::Processes { blow: Blow::Pause, .. } if means.long => 1000 + random.below(19_000) as u64,
            _ => ms,
        };
        Fault { kind, after, lasts: Duration::from_millis(ms) }
    }
}

impl Kind {
    fn draw(random: &mut Random) -> Kind {
        use Target::*;
        const TARGETS: &[Target] = &[Writer, Writer, Follower, StreamLeader, StreamFollower];
        let target = random.pick(TARGETS);
        let links = match random.below(5) {
            0 => Links::All,
            1 => Links::ToStreamLeader(random.pick(&[Writer, Follower, StreamFollower])),
            _ => Links::Of(target),
        };
        match random.below(100) {
            number @ 0..52 => {
                let mut targets = vec![target];
                if random.one_in(3) {
                    let second = random.pick(TARGETS);
                    if second != target {
                        targets.push(second);
                    }
                }
                let blow = random.pick(&[Blow::Kill, Blow::Kill, Blow::Pause, Blow::Pause, Blow::Restart]);
                if number < 40 { Kind::Processes { targets, blow } } else { Kind::Unplugged { targets } }
            }
            52..57 => Kind::AllNatsGone,
            57..69 => Kind::Partition { links, passage: random.pick(&[Passage::Cut, Passage::Silent]) },
            69..75 => Kind::Slow { links, delay_ms: 5 + random.below(200) as u64 },
            75..82 => Kind::Acknowledgements(random.pick(&[Acks::Drop, Acks::Drop, Acks::Repeat])),
            82..88 => {
                let clock = match random.below(3) {
                    0 => Clock::Fast(2 + random.below(100) as u32),
                    1 => Clock::Step(1 + random.below(3600) as i64),
                    _ => Clock::Step(-1 - random.below(3600) as i64),
                };
                Kind::Clock { target: random.pick(&[Writer, Writer, Follower]), clock }
            }
            88..91 => Kind::FullDisk,
            91..94 => Kind::HandOver,
            94 => Kind::Purged,
            95 => Kind::Deleted,
            96..99 => Kind::Damaged { servers: 1 },
            _ => Kind::Damaged { servers: 3 },
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} after {:?} for {:?}", self.kind, self.after, self.lasts)
    }
}
