//! One client of the load: sends batches, and writes into its ledger what was acknowledged and what is in flight.

use std::cell::Cell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use wire::{Random, Reply};

use crate::author::{Author, Features, Owner};
use crate::cluster::{Addresses, Pace};
use crate::connection::{Connection, Outcome, Trouble, accepted};
use crate::event_runs::without_times;
use crate::ledger;
use crate::model::State;
use crate::moment::Moment;
use crate::observe::observe_owned;
use crate::request::{Request, command};
use crate::round::SNAPSHOT_COMMANDS;
use crate::scripts::SCRIPTS;
use crate::shared::Shared;
use crate::workload::{Expected, Workload};

/// How often a client looks for the writer of a cluster.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// How long a client waits for a reply before it asks whether another server writes.
const ASK_OTHERS_EVERY: Duration = Duration::from_millis(500);
/// Only tells a slow cluster from a stuck one.
const STUCK_AFTER: Duration = Duration::from_secs(150);

pub(crate) struct Client {
    pub(crate) owner: Owner,
    /// What the server must hold: every acknowledged request applied.
    pub(crate) acknowledged: State,
    /// Sent and not acknowledged, in order: any first part of it may have been applied.
    pub(crate) in_flight: VecDeque<Request>,
    pub(crate) requests_acknowledged: u64,
    /// Requests about shared keys of which it is not known whether they were applied, since the last check.
    pub(crate) unknown: Vec<Request>,
    sequence: u64,
}

impl Client {
    pub(crate) fn new(number: usize) -> Client {
        Client {
            owner: Owner { number },
            acknowledged: State::default(),
            in_flight: VecDeque::new(),
            requests_acknowledged: 0,
            unknown: Vec::new(),
            sequence: 0,
        }
    }

    /// Sends random requests until the moment comes at which the server dies, or all clients stop.
    pub(crate) fn load(
        &mut self,
        address: SocketAddr,
        mut random: Random,
        features: Features,
        shared: &Shared,
        moment: &Moment<'_>,
    ) -> Result<(), String> {
        let Ok(mut connection) = Connection::open(address) else {
            return self.may_be_gone(moment, Trouble::Closed);
        };
        if let Err(trouble) = load_scripts(&mut connection) {
            return self.may_be_gone(moment, trouble);
        }
        if features.own_commands && random.one_in(2) {
            let policy = random.pick(&["always", "everysec", "no"]);
            if let Err(trouble) = connection.must_run(&["CLIENT", "DURABILITY", policy]) {
                return self.may_be_gone(moment, trouble);
            }
        }
        let author = Author { owner: self.owner, random, features, sequence: self.sequence };
        let mut workload = Workload { author, shared };
        while !moment.is_quiet() {
            let batch = workload.batch(&self.acknowledged);
            self.sequence = workload.author.sequence;
            if let Err(trouble) = self.run(&mut connection, batch, shared, || moment.tick(), |_| Ok(())) {
                return self.may_be_gone(moment, trouble);
            }
        }
        Ok(())
    }

    /// Writes keys `from..to` of the kind `ballast`, which make snapshots and starts take longer.
    pub(crate) fn fill(&mut self, connection: &mut Connection, from: usize, to: usize) -> Outcome<()> {
        const KEYS_A_REQUEST: usize = 20;
        const REQUESTS_A_BATCH: usize = 50;
        self.sequence += 1;
        let mark = format!("<fill {}>", self.sequence);
        let numbers: Vec<usize> = (from..to).collect();
        let requests: Vec<Request> = numbers
            .chunks(KEYS_A_REQUEST)
            .map(|numbers| match numbers[0] / KEYS_A_REQUEST % 2 {
                0 => {
                    let pairs = numbers.iter().flat_map(|n| [self.owner.key("ballast", *n), format!("{mark}{n}")]);
                    ["MSET".to_string()].into_iter().chain(pairs).map(String::into_bytes).collect()
                }
                _ => {
                    let key = self.owner.key("ballasthash", numbers[0]);
                    let pairs = numbers.iter().flat_map(|n| [format!("field{}", n - numbers[0]), format!("{mark}{n}")]);
                    ["HSET".to_string(), key].into_iter().chain(pairs).map(String::into_bytes).collect()
                }
            })
            .map(|command| Request::new(0, command))
            .collect();
        for batch in requests.chunks(REQUESTS_A_BATCH) {
            let batch = batch.iter().map(|request| (request.clone(), None)).collect();
            self.run(connection, batch, &Shared::new(), || {}, |_| Ok(()))?;
        }
        Ok(())
    }

    /// Sends random requests to whichever server writes, until it is over. After each loss of a connection it finds out what
    /// became of the requests in flight, and goes on.
    pub(crate) fn load_cluster(
        &mut self,
        addresses: &Addresses,
        random: Random,
        features: Features,
        shared: &Shared,
        pace: &Pace,
    ) -> Result<(), String> {
        let author = Author { owner: self.owner, random, features, sequence: self.sequence };
        let mut workload = Workload { author, shared };
        while pace.may_write() {
            let Some(writer) = addresses.writer_for(pace) else {
                thread::sleep(LOOK_AGAIN);
                continue;
            };
            match self.load_writer(addresses, writer, features, &mut workload, pace) {
                Ok(()) | Err(Trouble::Closed) => {}
                Err(Trouble::ReadOnly) => drop(self.in_flight.pop_front()),
                Err(Trouble::Wrong(what)) => {
                    return Err(format!("{what}: client {} of server {writer}", self.owner.number));
                }
            }
            thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    fn load_writer(
        &mut self,
        addresses: &Addresses,
        writer: usize,
        features: Features,
        workload: &mut Workload<'_>,
        pace: &Pace,
    ) -> Outcome<()> {
        let mut connection = addresses.connect(writer)?;
        // While it does not answer, another server may take over. It alone decides what became of a request then.
        let began = Cell::new(Instant::now());
        let wait = |connection: &mut Connection| loop {
            if connection.is_readable(ASK_OTHERS_EVERY) {
                began.set(Instant::now());
                return Ok(());
            }
            if addresses.other_writes(writer) {
                return Err(Trouble::Closed);
            }
            if began.get().elapsed() > STUCK_AFTER {
                return Err(Trouble::Wrong(format!(
                    "a request has no reply after {STUCK_AFTER:?}, and no other server writes"
                )));
            }
        };
        connection.send_command(&["PING"])?;
        wait(&mut connection)?;
        accepted(connection.read()?, || "PING".into())?;
        if !self.in_flight.is_empty() {
            let world = observe_owned(&mut connection, features, self.owner)?;
            ledger::settle(self, world).map_err(Trouble::Wrong)?;
        }
        load_scripts(&mut connection)?;
        while pace.may_write() {
            let batch = workload.batch(&self.acknowledged);
            self.sequence = workload.author.sequence;
            began.set(Instant::now());
            self.run(&mut connection, batch, workload.shared, || {}, wait)?;
        }
        Ok(())
    }

    /// Sends a batch in one write, then reads its replies; ticks after the write and after each reply, and waits for each.
    fn run(
        &mut self,
        connection: &mut Connection,
        batch: Vec<Expected>,
        shared: &Shared,
        tick: impl Fn(),
        wait: impl Fn(&mut Connection) -> Outcome<()>,
    ) -> Outcome<()> {
        let mut bytes = Vec::new();
        let replies: Vec<(usize, Option<Reply>)> = batch
            .iter()
            .map(|(request, expected)| (connection.encode(request, &mut bytes), expected.clone()))
            .collect();
        // IMPORTANT: before the first byte goes out; the server may run a part of what it gets.
        self.in_flight = batch.into_iter().map(|(request, _)| request).collect();
        connection.send(&bytes)?;
        tick();
        for (replies_before, expected) in replies {
            let mut read = || {
                wait(connection)?;
                accepted(connection.read()?, || self.in_flight[0].to_string())
            };
            let before = (0..replies_before).map(|_| read()).collect::<Outcome<Vec<_>>>()?;
            let last = read()?;
            let request = self.in_flight.pop_front().expect("one for each reply");
            let reply = request.reply(before, last);
            if expected.as_ref().is_some_and(|expected| without_times(expected) != without_times(&reply)) {
                let expected = expected.expect("it is there").excerpt();
                return Err(Trouble::Wrong(format!(
                    "client {}: {request} was answered with {}, and must be answered with {expected}",
                    self.owner.number,
                    reply.excerpt()
                )));
            }
            request.settle(&mut self.acknowledged, &reply);
            shared.acknowledge(request.subject, &reply).map_err(Trouble::Wrong)?;
            self.requests_acknowledged += 1;
            tick();
        }
        Ok(())
    }

    fn may_be_gone(&mut self, moment: &Moment<'_>, trouble: Trouble) -> Result<(), String> {
        match trouble {
            Trouble::Closed if moment.has_come() => Ok(()),
            Trouble::ReadOnly if moment.has_come() => {
                // It has refused this request. A later one it may have accepted, if it got the log back.
                self.in_flight.pop_front();
                Ok(())
            }
            trouble => Err(trouble.describe(&format!("client {} under load", self.owner.number))),
        }
    }
}

/// Asks which of the commands that not every server has are there.
pub(crate) fn features(connection: &mut Connection) -> Outcome<Features> {
    let mut has = |name: &str| -> Outcome<bool> {
        let reply = connection.must_run(&command(&[&"COMMAND", &"INFO", &name]))?;
        Ok(matches!(&reply, Reply::Array(items) if matches!(items.as_slice(), [Reply::Array(_)])))
    };
    let (field_deadlines, field_options, transactions) = (has("HPEXPIREAT")?, has("HSETEX")?, has("MULTI")?);
    let (functions, own_commands) = (has("FCALL")?, has("HCAS")?);
    let (forks, registers) = (has("CELL.FORK")?, has("REG.PUT")?);
    for name in SNAPSHOT_COMMANDS {
        if !has(name)? {
            return Err(Trouble::Wrong(format!("the server has no {name}")));
        }
    }
    Ok(Features { field_deadlines, field_options, transactions, functions, own_commands, forks, registers })
}

/// A server that was started again has forgotten what EVALSHA may call.
fn load_scripts(connection: &mut Connection) -> Outcome<()> {
    for (source, digest) in SCRIPTS {
        let reply = connection.must_run(&["SCRIPT", "LOAD", source])?;
        if reply != Reply::Bulk(digest.into()) {
            return Err(Trouble::Wrong(format!("SCRIPT LOAD said {reply}, and the digest is {digest}")));
        }
    }
    Ok(())
}
