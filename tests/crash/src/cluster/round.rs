//! One round: load, faults, and whether all is as it must be afterwards.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use wire::{Random, Reply};

use super::Plan;
use super::appends::Appends;
use super::fault::{Blow, Clock, Fault, Kind, Links, Means, Target};
use super::hosts::Hosts;
use super::members::{Addresses, Members, Role};
use super::nats::{Nats, SERVERS, STREAM};
use super::network::{Acks, Network, Party, Passage};
use super::pace::Pace;
use super::process::{Leash, Signal};
use super::waiters::Waiters;
use super::witness::Witness;
use crate::author::Features;
use crate::client::features;
use crate::connection::{Connection, Outcome};
use crate::ledger::Ledger;
use crate::model::{CLOCK_SLACK_MS, set_clock_error};
use crate::observe::observe;
use crate::workload::NEAR_MS;

/// Only tells a slow cluster from a stuck one.
const HEALS_WITHIN: Duration = Duration::from_secs(240);
const STARTS_WITHIN: Duration = Duration::from_secs(120);
/// How long servers may take to notice that their log is gone.
const NOTICES_WITHIN: Duration = Duration::from_secs(150);
/// How long the load goes on when all is well again.
const LOAD_AFTER: Duration = Duration::from_millis(1000);
/// Further than any clock is set wrong.
const CLOCK_ERROR_MS: i64 = 3_700_000;
/// How long clients are left to write before they are held back, and from then until something breaks.
const STILL_FOR: Duration = Duration::from_millis(500);
/// So many clients append to lists.
const APPENDERS: usize = 2;

pub(super) struct Cluster {
    pub(super) dir: PathBuf,
    // In this order: processes end before what they use.
    machines: Mutex<Machines>,
    addresses: Addresses,
    features: Features,
    ledger: Ledger,
    witness: Witness,
}

struct Machines {
    members: Members,
    nats: Nats,
    network: Network,
    hosts: Hosts,
    /// What servers did by themselves.
    notes: Vec<String>,
}

/// How a round ended that found nothing wrong.
pub(super) enum Verdict {
    Whole(String),
    /// The log was damaged, and the servers have said so and stopped.
    Refused(String),
}

pub(super) fn draw(random: &mut Random, plan: &Plan) -> Vec<Fault> {
    let means = Means { clocks: plan.faketime.is_some(), disks: is_root(), cables: plan.cables, long: plan.long };
    Fault::draw_some(random, means, plan.only.as_deref())
}

/// After these faults a cluster is not used again.
pub(super) fn spoils(faults: &[Fault]) -> bool {
    faults.iter().any(|fault| fault.kind.is_final()) || has_clocks(faults)
}

pub(super) fn has_clocks(faults: &[Fault]) -> bool {
    faults.iter().any(|fault| matches!(fault.kind, Kind::Clock { .. }))
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

impl Cluster {
    pub(super) fn start(plan: &Plan, faketime: Option<&Path>, count: usize, dir: &Path) -> Result<Cluster, String> {
        set_clock_error(0);
        fs::create_dir_all(dir).expect("cannot create a directory to work in");
        let leash = Leash::new();
        let mut hosts = Hosts::new(plan.cables)?;
        let mut network = Network::new(hosts.gateway());
        let mut nats = Nats::new(&plan.nats, dir, &mut hosts, &mut network, &leash)?;
        nats.heal();
        nats.wait_until_ready(STARTS_WITHIN)?;
        let places = (0..count).map(|number| hosts.add(Party::Holdfast(number))).collect::<Result<_, String>>()?;
        let mut members = Members::new(&plan.server, faketime, places, dir, &nats, &mut network, &leash);
        (0..count).for_each(|number| members.start(number));
        let addresses = members.addresses();
        let machines = Machines { members, nats, network, hosts, notes: Vec::new() };
        let cluster = Cluster {
            dir: dir.into(),
            machines: Mutex::new(machines),
            features: first_features(&addresses)?,
            addresses,
            ledger: Ledger::new(plan.clients),
            witness: Witness::default(),
        };
        Ok(cluster)
    }

    /// Runs the faults under load, and checks.
    pub(super) fn round(&mut self, seed: u64, faults: &[Fault], random: &mut Random) -> Result<Verdict, String> {
        if has_clocks(faults) {
            set_clock_error(CLOCK_ERROR_MS);
        }
        let all: Vec<usize> = (0..self.addresses.0.len()).collect();
        let writer = self.wait_until_agreed(&all)?;
        let waiters =
            Waiters::begin(&self.addresses, writer).map_err(|trouble| trouble.describe("clients that wait"))?;
        let started_before = self.lock().members.starts(writer);
        let appends = Appends::new(seed);
        let pace = Pace::default();
        let verdict = self.load_and_break(faults, &appends, &pace, random)?;
        if let Some(verdict) = verdict {
            return Ok(verdict);
        }
        let writer = self.wait_until_agreed(&all)?;
        let is_running = self.lock().members.starts(writer) == started_before;
        let waited = waiters.end(&self.addresses, writer, is_running)?;
        // Followers are a little behind the writer's time: what expires soon is left to expire.
        thread::sleep(Duration::from_millis(NEAR_MS as u64 + 2 * CLOCK_SLACK_MS as u64));
        self.wait_until_agreed(&all)?;
        let checked = self.check_all(&all, &appends)?;
        let mut notes = std::mem::take(&mut self.lock().notes);
        notes.insert(0, format!("{checked}; {waited}"));
        Ok(Verdict::Whole(notes.join("; ")))
    }

    fn lock(&self) -> MutexGuard<'_, Machines> {
        self.machines.lock().expect("no thread panicked with it")
    }

    /// Waits until one server writes, and the others have what it has. Starts those that have ended meanwhile.
    fn wait_until_agreed(&self, running: &[usize]) -> Result<usize, String> {
        let deadline = Instant::now() + HEALS_WITHIN;
        loop {
            self.lock().supervise()?;
            match self.addresses.wait_until_agreed(running, Duration::from_secs(3)) {
                Ok(writer) => return Ok(writer),
                Err(what) if Instant::now() > deadline => {
                    return Err(format!("{what}, {HEALS_WITHIN:?} after all was well"));
                }
                Err(_) => {}
            }
        }
    }

    /// All clients at once, while things break.
    fn load_and_break(
        &mut self,
        faults: &[Fault],
        appends: &Appends,
        pace: &Pace,
        random: &mut Random,
    ) -> Result<Option<Verdict>, String> {
        let Cluster { machines, addresses, features, ledger, witness, .. } = self;
        let Ledger { clients, shared, .. } = ledger;
        let (addresses, features, witness, shared, machines) =
            (&*addresses, *features, &*witness, &*shared, &*machines);
        // In some rounds nothing is written when a fault begins: a server that has nothing to write might answer reads that it
        // must not answer.
        let is_still = random.one_in(2) && !spoils(faults);
        let breaker = Breaker { machines, addresses, witness };
        let mut seeds = std::iter::repeat_with(|| random.next_u64());
        thread::scope(|scope| {
            let mut threads = Vec::new();
            for client in clients.iter_mut() {
                let random = Random::new(seeds.next().expect("there are more"));
                threads.push(scope.spawn(move || client.load_cluster(addresses, random, features, shared, pace)));
            }
            for server in 0..addresses.0.len() {
                threads.push(scope.spawn(move || witness.read(addresses, server, pace)));
                threads.push(scope.spawn(move || match is_still {
                    true => witness.add_with_care(addresses, server, pace),
                    false => witness.add(addresses, server, pace),
                }));
            }
            for _ in 0..APPENDERS {
                let random = Random::new(seeds.next().expect("there are more"));
                threads.push(scope.spawn(move || appends.load(addresses, random, pace)));
            }
            let mut random = Random::new(seeds.next().expect("there are more"));
            let last = match faults {
                [Fault { kind, after, .. }] if kind.is_final() => {
                    thread::sleep(*after);
                    breaker.break_log(kind, &mut random).map(Some)
                }
                faults => breaker.break_and_heal(faults, is_still.then_some(pace)).map(|()| None),
            };
            let is_well = matches!(last, Ok(None));
            pace.hold(false);
            pace.end();
            if !is_well {
                // Clients that wait for a server are let go.
                let mut machines = lock(machines);
                (0..addresses.0.len()).for_each(|number| machines.members.kill(number));
            }
            let outcomes: Vec<Result<(), String>> =
                threads.into_iter().map(|thread| thread.join().expect("a client does not panic")).collect();
            // What a client saw says more than that something took too long.
            outcomes.into_iter().collect::<Result<(), String>>()?;
            last
        })
        .and_then(|last| match last {
            None => Ok(None),
            Some(what) => self.judge(what, faults, appends).map(Some),
        })
    }

    /// The log is damaged or gone, and all servers are ended. Starts them again: all is there, or they refuse and say why.
    fn judge(&mut self, seen: String, faults: &[Fault], appends: &Appends) -> Result<Verdict, String> {
        let all: Vec<usize> = (0..self.addresses.0.len()).collect();
        let all_are_damaged = matches!(faults, [Fault { kind: Kind::Damaged { servers: SERVERS }, .. }]);
        let before: Vec<usize> = all.iter().map(|number| self.lock().members.output(*number).len()).collect();
        all.iter().for_each(|number| self.lock().members.start(*number));
        let deadline = Instant::now() + NOTICES_WITHIN;
        let mut ended = vec![false; all.len()];
        while Instant::now() < deadline && !ended.iter().all(|ended| *ended) {
            for number in &all {
                if !ended[*number] && self.lock().members.ended(*number).is_some() {
                    ended[*number] = true;
                }
            }
            let running: Vec<usize> = all.iter().copied().filter(|number| !ended[*number]).collect();
            if !running.is_empty()
                && let Ok(_) = self.addresses.wait_until_agreed(&running, Duration::from_secs(2))
            {
                let checked = self.check_all(&running, appends)?;
                return Ok(Verdict::Whole(format!(
                    "{seen}; after a start of all, {} of {} servers run: {checked}",
                    running.len(),
                    all.len()
                )));
            }
        }
        let mut reasons = Vec::new();
        for number in &all {
            let output = self.lock().members.output(*number);
            let said = output.get(before[*number]..).unwrap_or_default();
            match (ended[*number], complaint(said)) {
                (true, Some(reason)) => reasons.push(format!("server {number}: {reason}")),
                (true, None) => return Err(format!("{seen}; server {number} ended and did not say why: {said}")),
                // NATS itself does not get over the damage. Holdfast cannot tell that from an election, so it waits.
                (false, _) if all_are_damaged && waits_for_leader(said) => {
                    reasons.push(format!("server {number} serves nothing: the stream has no leader"));
                }
                (false, reason) => {
                    let role = self.addresses.role(*number);
                    return Err(format!(
                        "{seen}; server {number} neither serves nor ends: it is {role:?}, and said {reason:?}"
                    ));
                }
            }
        }
        Ok(Verdict::Refused(format!("{seen}; started again, {}", reasons.join("; "))))
    }

    /// Compares all servers with what clients know, and with each other.
    fn check_all(&mut self, running: &[usize], appends: &Appends) -> Result<String, String> {
        let (mut keys, mut transactions) = (0, 0);
        for number in running {
            let on = |what: String| format!("on server {number}: {what}");
            let world = self.retry(*number, observe)?;
            keys = self.ledger.check(world).map_err(on)?.keys;
            let mut connection = self.addresses.connect(*number).map_err(|trouble| trouble.describe("a check"))?;
            self.witness.check(&mut connection).map_err(on)?;
            transactions = appends.check(&mut connection).map_err(on)?;
        }
        self.compare_digests(running)?;
        if let Some(writer) = self.addresses.writer() {
            let removed = self.addresses.connect(writer).and_then(|mut connection| appends.remove(&mut connection));
            removed.map_err(|trouble| trouble.describe("removing lists"))?;
        }
        let acknowledged: u64 = self.ledger.clients.iter().map(|client| client.requests_acknowledged).sum();
        let Witness { acknowledgements, reads, .. } = &self.witness;
        Ok(format!(
            "{keys} keys are right on {} servers; {acknowledged} requests, {} increments and {} reads of the writer so far, {transactions} \
             transactions",
            running.len(),
            acknowledgements.load(Ordering::SeqCst),
            reads.load(Ordering::SeqCst)
        ))
    }

    /// Reads from a server that may load its data once more.
    fn retry<T>(&self, number: usize, read: impl Fn(&mut Connection, Features) -> Outcome<T>) -> Result<T, String> {
        let deadline = Instant::now() + STARTS_WITHIN;
        loop {
            let found = self.addresses.connect(number).and_then(|mut connection| read(&mut connection, self.features));
            match found {
                Ok(found) => return Ok(found),
                Err(trouble) if Instant::now() > deadline => {
                    return Err(trouble.describe(&format!("server {number} was asked for all it holds")));
                }
                Err(_) => thread::sleep(Duration::from_millis(100)),
            }
        }
    }

    /// All servers hold the same, once what expires has expired.
    fn compare_digests(&self, running: &[usize]) -> Result<(), String> {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let digests: Vec<Option<Reply>> = running
                .iter()
                .map(|number| self.addresses.connect(*number).and_then(|mut c| c.must_run(&["DEBUG", "DIGEST"])).ok())
                .collect();
            if digests.iter().all(|digest| digest.is_some() && *digest == digests[0]) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("the servers {running:?} hold different data: {digests:?}"));
            }
            thread::sleep(Duration::from_millis(200));
        }
    }
}

fn first_features(addresses: &Addresses) -> Result<Features, String> {
    let deadline = Instant::now() + STARTS_WITHIN;
    loop {
        if let Some(writer) = addresses.writer()
            && let Ok(found) = addresses.connect(writer).and_then(|mut connection| features(&mut connection))
        {
            return Ok(found);
        }
        if Instant::now() > deadline {
            return Err(format!("no server writes {STARTS_WITHIN:?} after the start"));
        }
        thread::sleep(Duration::from_millis(100));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panicked with it")
}

/// What a server said when it refused to go on.
fn complaint(output: &str) -> Option<String> {
    const WORDS: &[&str] = &["damaged", "must not be used", "deleted", "lost", "purged", "cannot be opened"];
    let is_complaint = |line: &&str| WORDS.iter().any(|word| line.contains(word));
    let line = output.lines().rev().find(|line| is_complaint(line))?;
    Some(line.chars().take(300).collect())
}

/// Whether a server waits for NATS to get a leader for the stream, and says so.
fn waits_for_leader(output: &str) -> bool {
    output.contains("the stream has no leader")
}

impl Machines {
    /// Starts servers that have ended by themselves: a start is refused while NATS cannot be reached, say.
    fn supervise(&mut self) -> Result<(), String> {
        for number in 0..self.members.count() {
            let Some(status) = self.members.ended(number) else {
                self.members.start(number);
                continue;
            };
            let output = self.members.output(number);
            let tail = output.get(output.len().saturating_sub(1500)..).unwrap_or(&output);
            let last = tail.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
            let last: String = last.chars().take(240).collect();
            if tail.contains("this server stops") || tail.contains("panicked") {
                return Err(format!("server {number} ended by itself ({status}): {last}"));
            }
            self.notes.push(format!("server {number} ended by itself ({status}): {last}"));
            self.members.kill(number);
            thread::sleep(Duration::from_millis(500));
            self.members.start(number);
        }
        Ok(())
    }
}

/// Breaks things, and mends them.
struct Breaker<'a> {
    machines: &'a Mutex<Machines>,
    addresses: &'a Addresses,
    witness: &'a Witness,
}

/// A process that was chosen.
type Victim = Party;

impl Breaker<'_> {
    fn break_and_heal(&self, faults: &[Fault], still: Option<&Pace>) -> Result<(), String> {
        if let Some(pace) = still {
            lock(self.machines).notes.push("nothing was written when it began".into());
            thread::sleep(STILL_FOR);
            pace.hold(true);
            pace.avoid(self.addresses.writer());
            thread::sleep(STILL_FOR);
        }
        thread::scope(|scope| {
            let broken: Vec<_> = faults.iter().map(|fault| scope.spawn(move || self.run(fault))).collect();
            if let Some(pace) = still {
                // Until another server writes, or all faults are over.
                while broken.iter().any(|fault| !fault.is_finished()) && self.addresses.writer_for(pace).is_none() {
                    thread::sleep(Duration::from_millis(20));
                }
                pace.hold(false);
            }
            broken.into_iter().try_for_each(|fault| fault.join().expect("a fault does not panic"))
        })?;
        if let Some(pace) = still {
            thread::sleep(STILL_FOR);
            pace.avoid(None);
        }
        {
            let mut machines = lock(self.machines);
            machines.hosts.heal()?;
            machines.network.heal();
            machines.nats.heal();
            (0..machines.members.count()).for_each(|number| machines.members.signal(number, Signal::CONT));
            let changed = machines.network.acks_changed();
            if changed > 0 {
                machines.notes.push(format!("{changed} acknowledgements were dropped or repeated so far"));
            }
        }
        // Somebody writes again.
        let (before, began) = (self.witness.acknowledgements.load(Ordering::SeqCst), Instant::now());
        while self.witness.acknowledgements.load(Ordering::SeqCst) < before + 3 {
            if began.elapsed() > HEALS_WITHIN {
                let roles: Vec<Option<Role>> =
                    (0..self.addresses.0.len()).map(|one| self.addresses.role(one)).collect();
                return Err(format!(
                    "nothing is acknowledged {HEALS_WITHIN:?} after all was well; the servers are {roles:?}"
                ));
            }
            lock(self.machines).supervise()?;
            thread::sleep(Duration::from_millis(100));
        }
        lock(self.machines).notes.push(format!("wrote again after {} ms", began.elapsed().as_millis()));
        thread::sleep(LOAD_AFTER);
        Ok(())
    }

    fn run(&self, fault: &Fault) -> Result<(), String> {
        thread::sleep(fault.after);
        match &fault.kind {
            Kind::Processes { targets, blow } => {
                let victims = self.find_all(targets);
                victims.iter().try_for_each(|victim| self.strike(*victim, *blow))?;
                if *blow != Blow::Restart {
                    thread::sleep(fault.lasts);
                }
                victims.iter().for_each(|victim| self.mend(*victim));
            }
            Kind::AllNatsGone => {
                (0..SERVERS).for_each(|number| lock(self.machines).nats.kill(number));
                thread::sleep(fault.lasts);
                (0..SERVERS).for_each(|number| lock(self.machines).nats.start(number));
            }
            Kind::Partition { links, passage } => {
                let chosen = self.choose(*links);
                lock(self.machines).network.set_passage(&*chosen, *passage);
                thread::sleep(fault.lasts);
                lock(self.machines).network.set_passage(&*chosen, Passage::Open);
            }
            Kind::Unplugged { targets } => {
                let victims = self.find_all(targets);
                let plug = |is_plugged| {
                    victims.iter().try_for_each(|victim| lock(self.machines).hosts.set_plugged(*victim, is_plugged))
                };
                plug(false)?;
                thread::sleep(fault.lasts);
                plug(true)?;
            }
            Kind::Slow { links, delay_ms } => {
                let chosen = self.choose(*links);
                lock(self.machines).network.set_delay(&*chosen, Duration::from_millis(*delay_ms));
                thread::sleep(fault.lasts);
                lock(self.machines).network.set_delay(&*chosen, Duration::ZERO);
            }
            Kind::Acknowledgements(acks) => {
                let all = |_, _| true;
                lock(self.machines).network.set_acks(&all, *acks);
                thread::sleep(fault.lasts);
                lock(self.machines).network.set_acks(&all, Acks::Pass);
            }
            Kind::Clock { target, clock } => {
                let Party::Holdfast(number) = self.find(*target) else { return Ok(()) };
                let text = match clock {
                    Clock::Step(seconds) => format!("{seconds:+}"),
                    Clock::Fast(hundredths) => format!("+0 x{}.{:02}", 1 + hundredths / 100, hundredths % 100),
                };
                lock(self.machines).members.set_clock(number, &text);
                thread::sleep(fault.lasts);
                // Not at once: the time of a log goes on by a lease at most with each frame.
                if let Some(ahead_ms) = self.addresses.clock_ahead_ms(number) {
                    lock(self.machines).notes.push(format!("server {number} was {ahead_ms} ms ahead"));
                }
                lock(self.machines).members.set_clock(number, "+0");
            }
            Kind::FullDisk => {
                let full = SERVERS - 1;
                if !lock(self.machines).nats.servers[full].has_small_disk() {
                    return Ok(());
                }
                lock(self.machines).nats.servers[full].fill_disk();
                thread::sleep(fault.lasts);
                // Room alone does not bring it back.
                lock(self.machines).nats.kill(full);
                lock(self.machines).nats.heal();
            }
            Kind::HandOver => {
                if let Party::Holdfast(number) = self.find(Target::Writer)
                    && let Ok(mut connection) = self.addresses.connect(number)
                {
                    let said = connection.run(&["FAILOVER"]).map_or("nothing".into(), |reply| reply.to_string());
                    lock(self.machines).notes.push(format!("FAILOVER was answered with {said}"));
                }
            }
            Kind::Purged | Kind::Deleted | Kind::Damaged { .. } => return Err("it ends a round".into()),
        }
        Ok(())
    }

    fn find_all(&self, targets: &[Target]) -> Vec<Victim> {
        let mut victims: Vec<Victim> = Vec::new();
        for target in targets {
            let victim = self.find(*target);
            if !victims.contains(&victim) {
                victims.push(victim);
            }
        }
        victims
    }

    fn find(&self, target: Target) -> Victim {
        let members = self.addresses.0.len();
        let writer = || self.addresses.writer().unwrap_or(0);
        let leader = || lock(self.machines).nats.leader().unwrap_or(0);
        match target {
            Target::Writer => Party::Holdfast(writer()),
            Target::Follower => Party::Holdfast((writer() + 1) % members),
            Target::StreamLeader => Party::Nats(leader()),
            Target::StreamFollower => Party::Nats((leader() + 1) % SERVERS),
        }
    }

    fn choose(&self, links: Links) -> Box<dyn Fn(Party, Party) -> bool> {
        match links {
            Links::All => Box::new(|_, _| true),
            Links::Of(target) => {
                let victim = self.find(target);
                Box::new(move |from, _| from == victim)
            }
            Links::ToStreamLeader(target) => {
                let (victim, leader) = (self.find(target), self.find(Target::StreamLeader));
                Box::new(move |from, to| from == victim && to == leader)
            }
        }
    }

    fn strike(&self, victim: Victim, blow: Blow) -> Result<(), String> {
        let mut machines = lock(self.machines);
        match (victim, blow) {
            (Party::Holdfast(number), Blow::Kill) => machines.members.kill(number),
            (Party::Holdfast(number), Blow::Pause) => machines.members.signal(number, Signal::STOP),
            (Party::Holdfast(number), Blow::Restart) => machines.members.stop(number)?,
            (Party::Nats(number), Blow::Kill) => machines.nats.kill(number),
            (Party::Nats(number), Blow::Pause) => machines.nats.signal(number, Signal::STOP),
            (Party::Nats(number), Blow::Restart) => machines.nats.stop(number),
        }
        Ok(())
    }

    fn mend(&self, victim: Victim) {
        let mut machines = lock(self.machines);
        match victim {
            Party::Holdfast(number) => {
                machines.members.signal(number, Signal::CONT);
                machines.members.start(number);
            }
            Party::Nats(number) => {
                machines.nats.signal(number, Signal::CONT);
                machines.nats.start(number);
            }
        }
    }

    /// Breaks the log itself. Returns what the servers did; an error if they did what they must not do.
    fn break_log(&self, kind: &Kind, random: &mut Random) -> Result<String, String> {
        match kind {
            Kind::Purged => {
                let answer = lock(self.machines).nats.ask(&format!("STREAM.PURGE.{STREAM}"), "");
                let answer = answer.map_err(|e| format!("the stream could not be purged: {e}"))?;
                thread::sleep(Duration::from_secs(5));
                Ok(format!("purged ({answer}); {}", self.states()))
            }
            Kind::Deleted => {
                let answer = lock(self.machines).nats.ask(&format!("STREAM.DELETE.{STREAM}"), "");
                let answer = answer.map_err(|e| format!("the stream could not be deleted: {e}"))?;
                let began = Instant::now();
                let members = self.addresses.0.len();
                // None of them may go on as if nothing had happened.
                while began.elapsed() < NOTICES_WITHIN {
                    let mut machines = lock(self.machines);
                    if (0..members).all(|number| machines.members.ended(number).is_some()) {
                        break;
                    }
                    drop(machines);
                    thread::sleep(Duration::from_millis(200));
                }
                for number in 0..members {
                    let mut machines = lock(self.machines);
                    let (ended, said) = (machines.members.ended(number), complaint(&machines.members.output(number)));
                    drop(machines);
                    if ended.is_none() || said.is_none() {
                        return Err(format!(
                            "the stream was deleted {NOTICES_WITHIN:?} ago; server {number} has ended: {ended:?}, is {:?} and said: {said:?}",
                            self.addresses.role(number)
                        ));
                    }
                }
                Ok(format!("deleted ({answer}); {}", self.states()))
            }
            Kind::Damaged { servers } => {
                let first = random.below(SERVERS);
                let victims: Vec<usize> = (0..*servers).map(|place| (first + place) % SERVERS).collect();
                let mut flipped = 0;
                // A server that ends by itself has less in its own log, from which NATS could mend the stream.
                let ends_itself = random.one_in(2);
                victims.iter().for_each(|number| match ends_itself {
                    true => lock(self.machines).nats.stop(*number),
                    false => lock(self.machines).nats.kill(*number),
                });
                for number in &victims {
                    flipped += lock(self.machines).nats.damage(*number, random);
                }
                victims.iter().for_each(|number| lock(self.machines).nats.start(*number));
                thread::sleep(Duration::from_secs(4));
                // Let another lead, perhaps one that was damaged.
                let leader = lock(self.machines).nats.leader();
                if let Some(leader) = leader {
                    lock(self.machines).nats.kill(leader);
                    thread::sleep(Duration::from_secs(6));
                    lock(self.machines).nats.start(leader);
                }
                thread::sleep(Duration::from_secs(8));
                let how = if ends_itself { "stopped" } else { "killed" };
                Ok(format!("{flipped} bits were flipped on {victims:?}, which had been {how}; {}", self.states()))
            }
            _ => Err("it does not end a round".into()),
        }
    }

    /// What the servers are, and what those said that have ended.
    fn states(&self) -> String {
        let mut states = Vec::new();
        for number in 0..self.addresses.0.len() {
            let mut machines = lock(self.machines);
            let (ended, said) = (machines.members.ended(number), complaint(&machines.members.output(number)));
            drop(machines);
            states.push(match ended {
                None => format!("server {number} is {:?}", self.addresses.role(number)),
                Some(_) => format!("server {number} ended: {}", said.unwrap_or("nothing was said".into())),
            });
        }
        states.join(", ")
    }
}
