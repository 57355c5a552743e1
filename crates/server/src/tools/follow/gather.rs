//! Gathers the commands of a source into transactions for the target. Knows what a source sends beside changes, and where a
//! history may be cut: not within a transaction. Refuses to know connections.

use super::position::{KEY, PROMOTE_KEY};
use super::position::{Reserved, is_reserved};
use crate::tools::import::ImportReport;
use anyhow::{Result, bail};
use engine::command::{CommandRow, Flags, KeyRange, registry};
use resp::{OwnedRequest, Request};

/// Commands and bytes after which a transaction is sent.
const COMMANDS_MAX: usize = 1000;
const BYTES_MAX: usize = 1 << 20;

/// Commands that lead from one place of the history to another.
pub(super) struct Batch {
    /// With SELECTs among them.
    pub(super) commands: Vec<OwnedRequest>,
    /// Where they lead.
    pub(super) offset: u64,
    pub(super) db: u64,
}

pub(super) struct Gatherer {
    /// How many databases the target has.
    databases: u64,
    /// The memory of a transaction that the source may begin without ending it.
    transaction_bytes_max: u64,
    /// Where the history is after all that was taken, and after all that is whole.
    taken: u64,
    offset: u64,
    /// The selected database, in the same way.
    taken_db: u64,
    db: u64,
    commands: Vec<OwnedRequest>,
    bytes: usize,
    /// What is selected at the end of `commands`.
    selected: Option<u64>,
    /// Where `commands` was when a transaction began that has not ended.
    transaction: Option<Begun>,
    /// The source wants to know how far we are.
    pub(super) is_asked_for_offset: bool,
}

#[derive(Clone, Copy)]
struct Begun {
    commands: usize,
    selected: Option<u64>,
}

impl Gatherer {
    /// What the target queues after MULTI is limited, so no transaction of the source can be longer than that.
    pub(super) fn new(offset: u64, db: u64, databases: u64, transaction_bytes_max: u64) -> Gatherer {
        Gatherer {
            databases,
            transaction_bytes_max,
            taken: offset,
            offset,
            taken_db: db,
            db,
            commands: Vec::new(),
            bytes: 0,
            selected: None,
            transaction: None,
            is_asked_for_offset: false,
        }
    }

    /// Takes the next command, which brings the offset `bytes` further.
    pub(super) fn take(&mut self, command: OwnedRequest, bytes: u64, report: &mut ImportReport) -> Result<()> {
        self.taken += bytes;
        let request = command.as_request();
        if is_named(request, b"multi") {
            self.transaction = Some(Begun { commands: self.commands.len(), selected: self.selected });
        } else if is_named(request, b"exec") {
            self.transaction = None;
        } else if is_named(request, b"select") {
            let db = request.iter().nth(1).and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
            let Some(db) = db else { bail!("the source selects no database") };
            self.taken_db = db;
        } else if is_named(request, b"replconf") {
            self.is_asked_for_offset = true;
        } else if !is_named(request, b"ping") {
            self.change(command, report)?;
        }
        if self.transaction.is_some() && self.bytes as u64 > self.transaction_bytes_max {
            bail!(
                "a transaction of the source takes more than {} bytes, which is what the target queues at most: raise its \
                 client-query-buffer-limit, and start the same command again",
                self.transaction_bytes_max
            );
        }
        if self.transaction.is_none() {
            (self.offset, self.db) = (self.taken, self.taken_db);
        }
        Ok(())
    }

    fn change(&mut self, command: OwnedRequest, report: &mut ImportReport) -> Result<()> {
        let request = command.as_request();
        if self.taken_db >= self.databases {
            report.outside(self.taken_db);
            return Ok(());
        }
        if let Some(why) = refusal(request) {
            report.failed(request.arg(0), why);
            return Ok(());
        }
        // In every database: COPY, MOVE and SWAPDB reach from one into another.
        if let Some(name) = keys(request).find(|name| is_reserved(name)) {
            return Err(Reserved(name.to_vec()).into());
        }
        let swapped = swapped(request);
        if let Some(outside) = swapped.and_then(|(one, other)| Some(one.max(other)).filter(|db| *db >= self.databases))
        {
            report.outside(outside);
            return Ok(());
        }
        // What we keep in the first database stays there.
        let other = swapped.and_then(|(one, other)| match (one, other) {
            (0, other) | (other, 0) if other != 0 => Some(other),
            _ => None,
        });
        if other.is_some() {
            self.select(0);
            self.push([&b"DEL"[..], KEY].into_iter().collect());
        }
        self.select(self.taken_db);
        self.push(command);
        if let Some(other) = other {
            self.select(other);
            self.push([&b"MOVE"[..], PROMOTE_KEY, b"0"].into_iter().collect());
        }
        Ok(())
    }

    fn select(&mut self, db: u64) {
        if self.selected != Some(db) {
            self.selected = Some(db);
            self.push([&b"SELECT"[..], db.to_string().as_bytes()].into_iter().collect());
        }
    }

    fn push(&mut self, command: OwnedRequest) {
        self.bytes += memory(&command);
        self.commands.push(command);
    }

    /// True when enough is there for a transaction of the target.
    pub(super) fn is_full(&self) -> bool {
        self.whole() > 0 && (self.commands.len() >= COMMANDS_MAX || self.bytes >= BYTES_MAX)
    }

    /// True when there are commands that can be sent.
    pub(super) fn has_changes(&self) -> bool {
        self.whole() > 0
    }

    /// Where the history is after all that is whole.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    fn whole(&self) -> usize {
        self.transaction.map_or(self.commands.len(), |begun| begun.commands)
    }

    /// Takes out all that is whole, perhaps nothing but a later offset.
    pub(super) fn batch(&mut self) -> Batch {
        let whole = self.whole();
        let rest = self.commands.split_off(whole);
        let commands = std::mem::replace(&mut self.commands, rest);
        self.bytes = self.commands.iter().map(memory).sum();
        match &mut self.transaction {
            None => self.selected = None,
            Some(begun) => {
                // What follows is sent on its own, where nothing is selected yet.
                if let Some(db) = begun.selected.take()
                    && !self.commands.is_empty()
                {
                    let select: OwnedRequest = [&b"SELECT"[..], db.to_string().as_bytes()].into_iter().collect();
                    self.commands.insert(0, select);
                } else if self.commands.is_empty() {
                    self.selected = None;
                }
                begun.commands = 0;
            }
        }
        Batch { commands, offset: self.offset, db: self.db }
    }
}

/// About what a command takes, however short its arguments are.
fn memory(command: &OwnedRequest) -> usize {
    const COMMAND_BYTES: usize = 64;
    const ARGUMENT_BYTES: usize = 16;
    COMMAND_BYTES + command.as_request().iter().map(|word| word.len() + ARGUMENT_BYTES).sum::<usize>()
}

/// The keys of a command, as far as its arguments say them.
fn keys<'a>(request: Request<'a>) -> impl Iterator<Item = &'a [u8]> {
    let ranges = row(request).map(|row| row.found_keys(request).ranges).unwrap_or_default();
    ranges.into_iter().flat_map(KeyRange::positions).filter_map(move |at| request.iter().nth(at))
}

/// The databases of a SWAPDB.
fn swapped(request: Request<'_>) -> Option<(u64, u64)> {
    let mut words = request.iter();
    let is_swap = words.next()?.eq_ignore_ascii_case(b"swapdb");
    let mut number = || std::str::from_utf8(words.next()?).ok()?.parse::<u64>().ok();
    is_swap.then_some((number()?, number()?))
}

pub(super) fn is_named(request: Request<'_>, name: &[u8]) -> bool {
    request.arg(0).eq_ignore_ascii_case(name)
}

fn row(request: Request<'_>) -> Option<&'static CommandRow> {
    let row = registry().find(request.arg(0))?;
    let name = request.iter().nth(1).unwrap_or_default();
    Some(row.subcommand(name).unwrap_or(row))
}

/// Why a command of the source is not for the target: no source needs to say these.
fn refusal(request: Request<'_>) -> Option<&'static str> {
    const ABOUT_THE_SERVER: Flags = Flags::ADMIN.union(Flags::NO_AUTH);
    match row(request) {
        None => Some("unknown command"),
        Some(row) if row.command.flags.has(ABOUT_THE_SERVER) => Some("not a command that changes keys"),
        Some(row) => (!row.accepts(request.len())).then_some("wrong number of arguments"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 1 << 20;

    fn gather(gatherer: &mut Gatherer, lines: &[&str]) -> ImportReport {
        let mut report = ImportReport::default();
        for line in lines {
            let command: OwnedRequest = line.split(' ').map(str::as_bytes).collect();
            gatherer.take(command, 10, &mut report).unwrap();
        }
        report
    }

    fn lines(batch: &Batch) -> Vec<String> {
        let words = |command: &OwnedRequest| {
            command
                .as_request()
                .iter()
                .map(|word| String::from_utf8_lossy(word).into_owned())
                .collect::<Vec<_>>()
                .join(" ")
        };
        batch.commands.iter().map(words).collect()
    }

    #[test]
    fn what_changes_nothing_only_moves_the_offset() {
        let mut gatherer = Gatherer::new(100, 0, 16, BYTES);
        gather(&mut gatherer, &["PING", "REPLCONF GETACK *", "SELECT 3"]);
        assert!(gatherer.is_asked_for_offset && !gatherer.has_changes());
        let batch = gatherer.batch();
        assert_eq!((batch.offset, batch.db, lines(&batch).len()), (130, 3, 0));
        gather(&mut gatherer, &["SET a 1"]);
        let batch = gatherer.batch();
        assert_eq!(lines(&batch), ["SELECT 3", "SET a 1"], "each transaction selects for itself");
        gather(&mut gatherer, &["SET a 1"]);
        assert_eq!(lines(&gatherer.batch()), ["SELECT 3", "SET a 1"]);
    }

    #[test]
    fn a_transaction_of_the_source_is_not_cut() {
        let mut gatherer = Gatherer::new(0, 0, 16, BYTES);
        gather(&mut gatherer, &["SELECT 2", "SET a 1", "MULTI", "SET b 1", "SELECT 4"]);
        let batch = gatherer.batch();
        assert_eq!((lines(&batch), batch.offset, batch.db), (vec!["SELECT 2".into(), "SET a 1".into()], 20, 2));
        assert!(!gatherer.has_changes());
        gather(&mut gatherer, &["INCR c"]);
        assert!(!gatherer.has_changes());
        gather(&mut gatherer, &["EXEC"]);
        let batch = gatherer.batch();
        assert_eq!(lines(&batch), ["SELECT 2", "SET b 1", "SELECT 4", "INCR c"]);
        assert_eq!((batch.offset, batch.db), (70, 4));
        // A transaction that has only begun when what precedes it is taken.
        gather(&mut gatherer, &["INCR d", "MULTI"]);
        assert_eq!(lines(&gatherer.batch()), ["SELECT 4", "INCR d"]);
        gather(&mut gatherer, &["INCR e", "EXEC"]);
        assert_eq!(lines(&gatherer.batch()), ["SELECT 4", "INCR e"]);
    }

    #[test]
    fn what_is_not_taken_is_counted() {
        let mut gatherer = Gatherer::new(0, 0, 16, BYTES);
        let report = gather(
            &mut gatherer,
            &[
                "JSON.SET a $ 1",
                "SHUTDOWN NOW",
                "ACL SETUSER x",
                "GET",
                "SELECT 16",
                "SET a 1",
                "SELECT 0",
                "PUBLISH a b",
            ],
        );
        assert_eq!(lines(&gatherer.batch()), ["SELECT 0", "PUBLISH a b"]);
        assert!(report.has_left_something_out());
        let text = report.to_string();
        for word in ["JSON.SET", "SHUTDOWN", "ACL", "GET", "databases that do not exist here, the first of them 16"] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }

    #[test]
    fn the_position_stays_where_it_is() {
        let mut gatherer = Gatherer::new(0, 5, 16, BYTES);
        gather(&mut gatherer, &["SWAPDB 2 3", "SWAPDB 1 0"]);
        let expected = [
            "SELECT 5",
            "SWAPDB 2 3",
            "SELECT 0",
            "DEL holdfast:import",
            "SELECT 5",
            "SWAPDB 1 0",
            "SELECT 1",
            "MOVE holdfast:import:promote 0",
        ];
        assert_eq!(lines(&gatherer.batch()), expected);
        let report = gather(&mut gatherer, &["SWAPDB 0 20"]);
        assert!(!gatherer.has_changes() && report.to_string().contains("the first of them 20"));
    }

    #[test]
    fn no_command_reaches_the_position() {
        let lines = [
            "DEL a holdfast:import",
            "SET holdfast:import:promote 1",
            "RENAME a holdfast:import",
            "COPY a holdfast:import DB 0",
            "COPY holdfast:import a",
            "MOVE holdfast:import 0",
            "SORT a STORE holdfast:import",
            "GEORADIUS a 1 1 1 m STORE holdfast:import",
            "ZUNIONSTORE a 2 b holdfast:import",
            "EVAL x 1 holdfast:import",
            "XREADGROUP GROUP g c STREAMS holdfast:import >",
        ];
        for line in lines {
            for db in [0, 5] {
                let mut gatherer = Gatherer::new(0, db, 16, BYTES);
                let command: OwnedRequest = line.split(' ').map(str::as_bytes).collect();
                let error = gatherer.take(command, 1, &mut ImportReport::default()).expect_err(line);
                assert!(error.is::<Reserved>() && error.to_string().contains("holdfast:import"), "{line}: {error}");
            }
        }
        let mut gatherer = Gatherer::new(0, 0, 16, BYTES);
        let report = gather(&mut gatherer, &["SET a holdfast:import", "FLUSHALL", "FLUSHDB"]);
        assert!(!report.has_left_something_out() && gatherer.batch().commands.len() == 4);
    }

    #[test]
    fn a_transaction_without_an_end_is_refused() {
        let mut gatherer = Gatherer::new(0, 0, 16, 10_000);
        gather(&mut gatherer, &["MULTI"]);
        let taken = (0..1000).take_while(|_| {
            let command: OwnedRequest = [&b"INCR"[..], b"a"].into_iter().collect();
            gatherer.take(command, 1, &mut ImportReport::default()).is_ok()
        });
        assert_eq!(taken.count(), 97);
    }

    #[test]
    fn a_full_batch_is_sent() {
        let mut gatherer = Gatherer::new(0, 0, 16, BYTES);
        gather(&mut gatherer, &vec!["INCR a"; COMMANDS_MAX - 2]);
        assert!(!gatherer.is_full());
        gather(&mut gatherer, &["INCR a"]);
        assert!(gatherer.is_full());
        gather(&mut gatherer, &["MULTI", "INCR b"]);
        assert_eq!(gatherer.batch().commands.len(), COMMANDS_MAX);
        assert!(!gatherer.is_full() && !gatherer.has_changes());
    }
}
