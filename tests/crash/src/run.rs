//! Round after round: start the server, compare it with the ledger, load it, end it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

use wire::{Random, Reply};

use crate::author::Features;
use crate::client::features;
use crate::connection::{Connection, Trouble};
use crate::ledger::{Checked, Ledger};
use crate::model::CLOCK_SLACK_MS;
use crate::moment::{Action, Moment};
use crate::observe::observe;
use crate::request::encode;
use crate::round::{Ending, KillAtStart, Killed, Patience, Round, Stop, TakeOver};
use crate::server::{Launcher, Options, Ping, Remote, Server, Signal};
use crate::workload::NEAR_MS;
use crate::{Failure, Plan};

/// Runs the plan. Its directory is removed if all is well, and kept otherwise.
pub fn run(plan: &Plan) -> Result<(), Failure> {
    // Two tests of one process may have the same seed.
    let kind = if plan.followers { "followers" } else { "alone" };
    let work = std::env::temp_dir().join(format!("holdfast-crash-{}-{}-{kind}", std::process::id(), plan.seed));
    fs::create_dir_all(&work).expect("cannot create a directory to work in");
    // One more than there are clients: the last one owns the ballast.
    let owners = plan.clients + 1;
    let mut run = Run {
        plan,
        launcher: Launcher::new(&plan.server, work.join("server.log")),
        second: Launcher::new(&plan.server, work.join("server.log")),
        running: None,
        ledger: Ledger::new(owners),
        data: work.join("data"),
        features: None,
        totals: Totals::default(),
    };
    for number in 1..=plan.rounds {
        run.round(number).map_err(|what| Failure { seed: plan.seed, round: number, what, dir: work.clone() })?;
    }
    run.finish().map_err(|what| Failure { seed: plan.seed, round: plan.rounds + 1, what, dir: work.clone() })?;
    println!("{}", run.summary());
    // A directory that cannot be removed does no harm.
    let _ = fs::remove_dir_all(work);
    Ok(())
}

struct Run<'a> {
    plan: &'a Plan,
    launcher: Launcher,
    /// Starts the other one of two servers.
    second: Launcher,
    /// The server that has taken over in the last round.
    running: Option<Server>,
    ledger: Ledger,
    data: PathBuf,
    /// Asked of the first server that is up.
    features: Option<Features>,
    totals: Totals,
}

#[derive(Default)]
struct Totals {
    kills: usize,
    take_overs: usize,
    /// Servers that follow the one that has taken over from them, and hold the same.
    demotions: usize,
    stops: usize,
    starts_killed: usize,
    /// Kills that left an unfinished file behind.
    unfinished: usize,
    keys: usize,
    in_flight: usize,
    applied: usize,
}

impl Run<'_> {
    fn round(&mut self, number: usize) -> Result<(), String> {
        let mut random = random_of_round(self.plan.seed, number);
        let round = Round::draw(&mut random, self.plan);
        let options = Options { policy: round.policy, compacts: round.compacts };
        if number == 1 {
            empty_dir(&self.data);
        } else if self.running.is_some() {
            // It goes on with what it has.
        } else if round.fresh {
            // The old data get their last check.
            let server = self.start(&options)?;
            self.check(&server)?;
            drop(server);
            self.ledger.reset();
            empty_dir(&self.data);
        }
        let server = match self.running.take() {
            Some(server) => server,
            None => {
                for when in &round.starts_killed {
                    self.kill_while_starting(&options, *when)?;
                }
                self.start(&options)?
            }
        };
        let follower = match round.ending {
            Ending::TakeOver(_) => {
                let mut follower = self.second.start_follower(&self.data, &options);
                follower.wait_until_it_answers()?;
                Some(follower)
            }
            _ => None,
        };
        let checked = self.check(&server)?;
        println!(
            "round {number}: {} keys are right, of {} requests in flight {} were applied; appendfsync {}; then {:?} \
             after {} ticks",
            checked.keys, checked.in_flight, checked.applied, round.policy, round.ending, round.ticks
        );
        if round.heavy {
            self.fill(&server, &mut random)?;
        }
        if let Some(command) = round.snapshot {
            // The reply does not matter: one may be under way.
            connect(&server)?.run(&[command]).map_err(|trouble| trouble.describe(command))?;
        }
        self.make_queue(&server, &mut random)?;
        self.load(&server, follower.as_ref(), &round, &mut random)?;
        match (round.ending, follower) {
            (Ending::TakeOver(how), Some(follower)) => self.end_take_over(server, follower, how),
            (ending, _) => self.end(server, ending),
        }
    }

    /// What is left to do when a follower has taken over, or not.
    fn end_take_over(&mut self, server: Server, follower: Server, how: TakeOver) -> Result<(), String> {
        match how {
            TakeOver::AfterKill { .. } => {
                self.totals.take_overs += 1;
                was_killed(server.wait_for_end()?)?;
                self.running = Some(follower);
            }
            TakeOver::AfterStop { .. } | TakeOver::Asked | TakeOver::Failover => {
                self.totals.take_overs += 1;
                wait_for_role(&follower, "master", None)?;
                // The old writer follows the new one, and has what it has.
                let position = position_of(&follower)?;
                wait_for_role(&server, "slave", Some(position))?;
                self.check_follower(&server)?;
                self.totals.demotions += 1;
                self.totals.kills += 1;
                self.kill(server)?;
                self.running = Some(follower);
            }
            TakeOver::Interrupted { killed, .. } => {
                // Whoever is left goes, too: the next start finds what they have left.
                for (server, is_killed) in [(server, killed != Killed::Follower), (follower, killed != Killed::Writer)]
                {
                    self.totals.kills += 1;
                    match is_killed {
                        true => was_killed(server.wait_for_end()?)?,
                        false => self.kill(server)?,
                    }
                }
                return Ok(());
            }
            TakeOver::FollowerKilled => {
                self.totals.kills += 1;
                was_killed(follower.wait_for_end()?)?;
                self.running = Some(server);
                return Ok(());
            }
        }
        // The launchers take turns.
        std::mem::swap(&mut self.launcher, &mut self.second);
        Ok(())
    }

    /// Starts that do not live long enough to be of use. They must do no harm either.
    fn kill_while_starting(&mut self, options: &Options, when: KillAtStart) -> Result<(), String> {
        let before = file_names(&self.data);
        let mut server = self.launcher.start(&self.data, options);
        match when {
            KillAtStart::Pings(pings) => {
                for _ in 0..pings {
                    if server.ping()? == Ping::Answered {
                        break;
                    }
                }
            }
            KillAtStart::Files(patience) => patience.wait(&self.data, before),
        }
        self.totals.starts_killed += 1;
        self.kill(server)
    }

    fn kill(&mut self, server: Server) -> Result<(), String> {
        server.signal(Signal::KILL);
        was_killed(server.wait_for_end()?)?;
        self.totals.unfinished += usize::from(file_names(&self.data).iter().any(|name| is_unfinished(name)));
        Ok(())
    }

    fn start(&mut self, options: &Options) -> Result<Server, String> {
        let mut server = self.launcher.start(&self.data, options);
        server.wait_until_it_answers()?;
        if self.features.is_none() {
            let found =
                features(&mut connect(&server)?).map_err(|trouble| trouble.describe("asked for its commands"))?;
            self.features = Some(found);
        }
        Ok(server)
    }

    fn features(&self) -> Features {
        self.features.expect("a server was up")
    }

    fn check(&mut self, server: &Server) -> Result<Checked, String> {
        let world = observe(&mut connect(server)?, self.features());
        let checked = self.ledger.check(world.map_err(|trouble| trouble.describe("asked for all it holds"))?)?;
        self.totals.keys += checked.keys;
        self.totals.in_flight += checked.in_flight;
        self.totals.applied += checked.applied;
        Ok(checked)
    }

    /// As `check`, of a server that has just begun to follow: it may load its data once more.
    fn check_follower(&mut self, server: &Server) -> Result<(), String> {
        const TELLS_WITHIN: Duration = Duration::from_secs(60);
        let began = Instant::now();
        while began.elapsed() < TELLS_WITHIN {
            match observe(&mut connect(server)?, self.features()) {
                Ok(world) => {
                    self.ledger.check(world)?;
                    return Ok(());
                }
                Err(Trouble::Closed | Trouble::ReadOnly) => thread::sleep(Duration::from_millis(50)),
                Err(trouble) => return Err(trouble.describe("asked a follower for all it holds")),
            }
        }
        Err(format!("a follower does not tell what it holds, for {TELLS_WITHIN:?}"))
    }

    /// Writes all of the ballast, or a quarter of it anew.
    fn fill(&mut self, server: &Server, random: &mut Random) -> Result<(), String> {
        let keys = self.plan.ballast_keys;
        let owner = self.ledger.clients.last_mut().expect("the owner of the ballast");
        let (from, to) = match owner.acknowledged.entries.is_empty() {
            true => (0, keys),
            false => {
                let from = random.below(keys);
                (from, (from + keys / 4).min(keys))
            }
        };
        owner.fill(&mut connect(server)?, from, to).map_err(|trouble| trouble.describe("filled with ballast"))
    }

    /// Makes the queue that all clients share, if there is none yet.
    fn make_queue(&mut self, server: &Server, random: &mut Random) -> Result<(), String> {
        let queue = &self.ledger.shared.queue;
        if !self.features().own_commands || queue.is_made() {
            return Ok(());
        }
        queue.make(&mut connect(server)?, random).map_err(|trouble| trouble.describe("made the shared queue"))
    }

    /// All clients at once, until the moment comes.
    fn load(
        &mut self,
        server: &Server,
        follower: Option<&Server>,
        round: &Round,
        random: &mut Random,
    ) -> Result<(), String> {
        let (remote, features, shared) = (server.remote(), self.features(), &self.ledger.shared);
        let action = match (round.ending, follower) {
            (Ending::TakeOver(how), Some(follower)) => take_over(how, remote, follower.remote(), &self.data),
            (ending, _) => action(ending, remote, &self.data),
        };
        let moment = Moment::new(round.ticks, action);
        let (_ballast, clients) = self.ledger.clients.split_last_mut().expect("the owner of the ballast");
        let outcomes: Vec<Result<(), String>> = thread::scope(|scope| {
            let moment = &moment;
            let threads: Vec<_> = clients
                .iter_mut()
                .map(|client| {
                    let random = Random::new(random.next_u64());
                    scope.spawn(move || client.load(remote.address, random, features, shared, moment))
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("a client does not panic")).collect()
        });
        outcomes.into_iter().collect::<Result<(), String>>()?;
        moment.into_trouble().map_or(Ok(()), Err)
    }

    /// What is left to do when the clients are done.
    fn end(&mut self, server: Server, ending: Ending) -> Result<(), String> {
        match ending {
            Ending::Kill { .. } | Ending::KillDuring { .. } | Ending::KillInQuiet | Ending::TakeOver(_) => {}
            Ending::KillDuringFlush { acknowledged, patience } => self.flush(&server, acknowledged, patience)?,
            Ending::Stop { .. } => {
                self.totals.stops += 1;
                return has_stopped(server.wait_for_end()?);
            }
            Ending::StopThenKill { .. } => {
                self.totals.kills += 1;
                let status = server.wait_for_end()?;
                return was_killed(status).or_else(|_| has_stopped(status));
            }
        }
        self.totals.kills += 1;
        self.kill(server)
    }

    fn flush(&mut self, server: &Server, acknowledged: bool, patience: Patience) -> Result<(), String> {
        let mut connection = connect(server)?;
        if acknowledged {
            connection.must_run(&["FLUSHALL"]).map_err(|trouble| trouble.describe("FLUSHALL"))?;
            self.ledger.flush();
            return Ok(());
        }
        let before = file_names(&self.data);
        self.ledger.flushing = true;
        send(&mut connection, "FLUSHALL").map_err(|trouble| trouble.describe("FLUSHALL"))?;
        patience.wait(&self.data, before);
        Ok(())
    }

    /// After the last round: all is right, also once everything that can expire has, and after a stop in peace.
    fn finish(&mut self) -> Result<(), String> {
        let options = Options { policy: "everysec", compacts: true };
        let server = match self.running.take() {
            Some(server) => server,
            None => self.start(&options)?,
        };
        self.check(&server)?;
        thread::sleep(Duration::from_millis(NEAR_MS as u64 + 3 * CLOCK_SLACK_MS as u64));
        self.check(&server)?;
        server.signal(Signal::TERM);
        has_stopped(server.wait_for_end()?)?;
        let server = self.start(&options)?;
        self.check(&server)?;
        Ok(())
    }

    fn summary(&self) -> String {
        let Totals { kills, take_overs, demotions, stops, starts_killed, unfinished, keys, in_flight, applied } =
            self.totals;
        let acknowledged: u64 = self.ledger.clients.iter().map(|client| client.requests_acknowledged).sum();
        format!(
            "{} rounds: {kills} kills under load, {starts_killed} while starting, {unfinished} of which left an \
             unfinished file; {stops} stops; {take_overs} take-overs, {demotions} of them from a server that then followed; {acknowledged} requests were acknowledged and none was lost; {in_flight} were in \
             flight, {applied} of them had been applied; {keys} keys were compared",
            self.plan.rounds
        )
    }
}

/// Rounds must not resemble each other, and seeds and rounds are small numbers next to each other: SplitMix64 spreads
/// them.
fn random_of_round(seed: u64, number: usize) -> Random {
    let mut mixed = seed.wrapping_add((number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    Random::new(mixed ^ (mixed >> 31))
}

/// What the client does that sees the moment come.
fn action(ending: Ending, server: Remote, data: &Path) -> Action<'_> {
    Box::new(move |moment| {
        match ending {
            Ending::Kill { spins } => {
                (0..spins).for_each(|_| std::hint::spin_loop());
                server.signal(Signal::KILL);
            }
            Ending::KillDuring { command, patience } => {
                let before = file_names(data);
                // A connection that outlives the kill, so that the server never sees its client go.
                let mut connection = Connection::open(server.address).map_err(|e| format!("cannot connect: {e}"))?;
                send(&mut connection, command).map_err(|trouble| trouble.describe(command))?;
                patience.wait(data, before);
                server.signal(Signal::KILL);
            }
            Ending::Stop { how: Stop::Sigterm } => server.signal(Signal::TERM),
            Ending::Stop { how: Stop::Shutdown } => shut_down(server, &["SHUTDOWN"])?,
            Ending::Stop { how: Stop::ShutdownNosave } => shut_down(server, &["SHUTDOWN", "NOSAVE"])?,
            Ending::StopThenKill { patience } => {
                let before = file_names(data);
                server.signal(Signal::TERM);
                patience.wait(data, before);
                server.signal(Signal::KILL);
            }
            Ending::KillInQuiet | Ending::KillDuringFlush { .. } => moment.stop_quietly(),
            Ending::TakeOver(_) => return Err("there is no follower".into()),
        }
        Ok(())
    })
}

/// What the client does that sees the moment come, beside a follower.
fn take_over(how: TakeOver, server: Remote, follower: Remote, data: &Path) -> Action<'_> {
    Box::new(move |moment| {
        match how {
            TakeOver::AfterKill { spins } => {
                (0..spins).for_each(|_| std::hint::spin_loop());
                server.signal(Signal::KILL);
                promote(follower)?;
            }
            TakeOver::AfterStop { spins } => {
                (0..spins).for_each(|_| std::hint::spin_loop());
                server.signal(Signal::STOP);
                let promoted = promote(follower);
                server.signal(Signal::CONT);
                promoted?;
            }
            TakeOver::Asked => promote(follower)?,
            TakeOver::Failover => failover(server)?,
            TakeOver::Interrupted { killed, patience } => {
                let before = file_names(data);
                let mut connection = Connection::open(follower.address).map_err(|e| format!("cannot connect: {e}"))?;
                let mut bytes = Vec::new();
                encode(&["REPLICAOF", "NO", "ONE"], &mut bytes);
                connection.send(&bytes).map_err(|trouble| trouble.describe("REPLICAOF"))?;
                patience.wait(data, before);
                if killed != Killed::Follower {
                    server.signal(Signal::KILL);
                }
                if killed != Killed::Writer {
                    follower.signal(Signal::KILL);
                }
                // The writer may go on, or have handed over.
                moment.stop_quietly();
            }
            TakeOver::FollowerKilled => {
                follower.signal(Signal::KILL);
                moment.stop_quietly();
            }
        }
        Ok(())
    })
}

fn promote(follower: Remote) -> Result<(), String> {
    let mut connection = Connection::open(follower.address).map_err(|e| format!("cannot connect: {e}"))?;
    connection.must_run(&["REPLICAOF", "NO", "ONE"]).map_err(|trouble| trouble.describe("REPLICAOF NO ONE"))?;
    Ok(())
}

/// FAILOVER, once the writer knows of its follower.
fn failover(server: Remote) -> Result<(), String> {
    let deadline = Instant::now() + ROLE_DEADLINE;
    loop {
        let mut connection = Connection::open(server.address).map_err(|e| format!("cannot connect: {e}"))?;
        match connection.run(&["FAILOVER"]) {
            Ok(Reply::Simple(_)) => return Ok(()),
            Ok(Reply::Error(text)) if text.starts_with(b"ERR FAILOVER requires") && Instant::now() < deadline => {}
            Ok(other) => return Err(format!("FAILOVER was answered with {other}")),
            Err(trouble) => return Err(trouble.describe("FAILOVER")),
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// How long a change of role may take: only tells a slow server from a stuck one.
const ROLE_DEADLINE: Duration = Duration::from_secs(60);

/// Waits until a server has a role, and has applied a batch.
fn wait_for_role(server: &Server, role: &str, position: Option<i64>) -> Result<(), String> {
    let deadline = Instant::now() + ROLE_DEADLINE;
    loop {
        let found = connect(server).and_then(|mut connection| match connection.run(&["ROLE"]) {
            Ok(Reply::Array(parts)) => Ok(Reply::Array(parts)),
            Ok(other) => Err(other.to_string()),
            Err(trouble) => Err(trouble.describe("ROLE")),
        });
        if let Ok(Reply::Array(parts)) = &found
            && parts[0].text() == role
            && position.is_none_or(|position| parts.get(4).is_some_and(|at| at.integer() >= position))
        {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("it should be {role} at {position:?}, and says {found:?}"));
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// The newest batch of a writer.
fn position_of(server: &Server) -> Result<i64, String> {
    let reply = connect(server)?.run(&["ROLE"]).map_err(|trouble| trouble.describe("ROLE"))?;
    Ok(reply.items()[1].integer())
}

/// SHUTDOWN replies only when it refuses.
fn shut_down(server: Remote, command: &[&str]) -> Result<(), String> {
    let mut connection = Connection::open(server.address).map_err(|e| format!("cannot connect: {e}"))?;
    match connection.run(command) {
        Err(Trouble::Closed) => Ok(()),
        Err(trouble) => Err(trouble.describe("SHUTDOWN")),
        Ok(reply) => Err(format!("SHUTDOWN was answered with {reply}")),
    }
}

impl Patience {
    fn wait(self, dir: &Path, mut before: BTreeSet<PathBuf>) {
        let mut changes = 0;
        for _ in 0..self.looks {
            let now = file_names(dir);
            if now != before {
                changes += 1;
                before = now;
            }
            if changes == self.changes {
                return;
            }
        }
    }
}

fn file_names(dir: &Path) -> BTreeSet<PathBuf> {
    let mut names = BTreeSet::new();
    // A directory may go while it is listed, as may its files.
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            names.extend(file_names(&entry.path()));
        }
        names.insert(entry.path());
    }
    names
}

/// A snapshot that a kill has cut short, by the names that Holdfast and Redis give them.
fn is_unfinished(name: &Path) -> bool {
    let name = name.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".tmp") || name.starts_with("temp-")
}

fn send(connection: &mut Connection, command: &str) -> Result<(), Trouble> {
    let mut bytes = Vec::new();
    encode(&[command], &mut bytes);
    connection.send(&bytes)
}

fn connect(server: &Server) -> Result<Connection, String> {
    server.connect().map_err(|e| format!("cannot connect: {e}"))
}

fn was_killed(status: ExitStatus) -> Result<(), String> {
    match status.signal() {
        Some(9) => Ok(()),
        _ => Err(format!("the server ended by itself before it was killed: {status}")),
    }
}

fn has_stopped(status: ExitStatus) -> Result<(), String> {
    if status.success() { Ok(()) } else { Err(format!("the server was asked to stop and ended with {status}")) }
}

fn empty_dir(dir: &Path) {
    let _ = fs::remove_dir_all(dir);
    fs::create_dir_all(dir).expect("cannot create a data directory");
}
