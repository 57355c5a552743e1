//! A claim beside very many due jobs that may not be taken: of groups whose cap is reached, whose rate is used up, or that are
//! paused. The same claim from an index without them is what it is compared with. Knows nothing of how a server finds the
//! groups that may give.

use anyhow::{Result, ensure};

use super::costs::{PERSISTENCE, beside_plain};
use super::jobs::{ANOTHER, Claims, GROUPED, Kind, TENANTS};
use crate::load::{KEYS, Loader, numbered};
use crate::servers::{Connection, Server, ServerSpec, simple};
use crate::workloads::OwnFigures;
use crate::workloads::in_turns::in_turns;

/// Beside so many jobs of a few large groups, and of many groups of ten.
pub(crate) fn blocked(subject: &ServerSpec, jobs: u64) -> Result<Vec<OwnFigures>> {
    let mut lines = beside(subject, jobs, LARGE_GROUPS, |obstacle| match obstacle {
        Obstacle::Rate => "beside large groups, rate used up",
        Obstacle::Cap => "beside large groups, cap reached",
        Obstacle::Pause => "beside large groups, paused",
    })?;
    let small = beside(subject, jobs, jobs / SMALL_GROUP, |obstacle| match obstacle {
        Obstacle::Rate => "beside groups of ten, rate used up",
        Obstacle::Cap => "beside groups of ten, cap reached",
        Obstacle::Pause => "beside groups of ten, paused",
    })?;
    lines.extend(small);
    Ok(lines)
}

const LARGE_GROUPS: u64 = 10;
/// Jobs in a small group.
const SMALL_GROUP: u64 = 10;

#[derive(Clone, Copy)]
enum Obstacle {
    Rate,
    Cap,
    Pause,
}

impl Obstacle {
    /// What keeps each group back of which one job was taken, unless it has limits of its own.
    fn limits(self) -> &'static [&'static str] {
        match self {
            Obstacle::Rate => &["EACH", "RATE", "1", "3600000"],
            Obstacle::Cap => &["EACH", "HELD", "1"],
            Obstacle::Pause => &["EACH", "PAUSE", "yes"],
        }
    }
}

fn beside(
    subject: &ServerSpec,
    jobs: u64,
    groups: u64,
    about: fn(Obstacle) -> &'static str,
) -> Result<Vec<OwnFigures>> {
    let server = Server::start(subject, PERSISTENCE)?;
    let mut control = server.connect()?;
    GROUPED.create(&mut control)?;
    ANOTHER.create(&mut control)?;
    // One more in each group, which is taken: it uses the rate up, and is held.
    GROUPED.load(&server, Kind::Blocked, jobs + groups, groups)?;
    GROUPED.limit(&mut control, Obstacle::Rate.limits())?;
    let taken = GROUPED.take_all(&mut control)?;
    ensure!(taken == groups, "{groups} groups that may give one job each gave {taken}");
    for index in [GROUPED, ANOTHER] {
        index.load(&server, Kind::Open, KEYS, TENANTS)?;
        let mut loader = Loader::new(&server)?;
        for tenant in 0..TENANTS {
            let tenant = numbered(&Kind::Open.tenant(), tenant);
            #[rustfmt::skip]
            let request = ["IDX.LIMIT", index.name, "GROUP", &tenant, "HELD", "NONE", "RATE", "NONE", "PAUSE", "no"];
            loader.send(&request, simple("OK"))?;
        }
        loader.finish()?;
    }
    let (mut among, mut alone) = (Claims::new(GROUPED), Claims::new(ANOTHER));
    let mut lines = Vec::new();
    for obstacle in [Obstacle::Rate, Obstacle::Cap, Obstacle::Pause] {
        keep_back(&mut control, obstacle)?;
        for (pipeline, requests) in [(1, 30_000), (16, 60_000)] {
            let turns = in_turns(&server, pipeline, requests, &mut among, &mut alone)?;
            lines.push(OwnFigures::new(about(obstacle), Some(pipeline), beside_plain(&turns)));
        }
    }
    GROUPED.ensure_records(&mut control, jobs + groups + KEYS)?;
    Ok(lines)
}

/// Gives both indexes this obstacle and takes the others away. No claim is made meanwhile.
fn keep_back(control: &mut Connection, obstacle: Obstacle) -> Result<()> {
    for index in [GROUPED, ANOTHER] {
        index.limit(control, &["EACH", "RESET"])?;
        index.limit(control, obstacle.limits())?;
    }
    Ok(())
}
