//! What clients were told, and whether a server that was started again holds to it. Knows what was sent, answered, refused and
//! seen; refuses to know in which states of the journal that was.
//!
//! Every entry has a stamp, the period in which its reply was read. A promise is a period: all that was answered or seen up to its
//! end has to be there.

use std::collections::BTreeMap;

use wire::{Connection, Reply};

/// How many commands or keys are asked for in one pipeline.
const PIPELINE: usize = 500;

/// The keys of one writer in one walk.
#[derive(Clone, Copy)]
pub(super) struct Names {
    pub(super) walk: usize,
    pub(super) writer: usize,
}

impl Names {
    pub(super) fn own(self, number: usize) -> String {
        format!("own:{}:{}:{number}", self.walk, self.writer)
    }

    pub(super) fn hash(self) -> String {
        format!("hash:{}:{}", self.walk, self.writer)
    }

    pub(super) fn counter(self) -> String {
        format!("counter:{}:{}", self.walk, self.writer)
    }

    pub(super) fn register(self) -> String {
        format!("register:{}:{}", self.walk, self.writer)
    }
}

/// What a writer sends. Its number is its place in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Write {
    /// SET of a key that is written once.
    Own,
    /// HSET of a field that is written once.
    Field,
    /// INCR of the writer's counter.
    Count,
    /// SET of the writer's register to the number.
    Register,
}

impl Write {
    pub(super) const ALL: [Write; 4] = [Write::Own, Write::Field, Write::Count, Write::Register];

    pub(super) fn line(self, names: Names, number: usize) -> String {
        match self {
            Write::Own => format!("SET {} {}", names.own(number), value(number)),
            Write::Field => format!("HSET {} {number} {number}", names.hash()),
            Write::Count => format!("INCR {}", names.counter()),
            Write::Register => format!("SET {} {number}", names.register()),
        }
    }
}

fn value(number: usize) -> String {
    format!("{number}:{}", "v".repeat(300))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was done. Of a count, the reply.
    Answered(i64),
    /// -MISCONF, and the connection lived: it was not done.
    Refused,
    /// The connection ended: it may have been done.
    Unknown,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) write: Write,
    pub(super) outcome: Outcome,
    pub(super) period: u64,
}

/// What one writer was told.
pub(super) struct Written {
    pub(super) names: Names,
    pub(super) entries: Vec<Entry>,
}

/// What readers have seen of one writer: the largest, by the period in which it was seen.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) counter: BTreeMap<u64, i64>,
    pub(super) register: BTreeMap<u64, i64>,
    pub(super) fields: BTreeMap<u64, i64>,
}

impl Seen {
    pub(super) fn note(seen: &mut BTreeMap<u64, i64>, period: u64, value: i64) {
        let known = seen.entry(period).or_insert(value);
        *known = (*known).max(value);
    }

    fn up_to(seen: &BTreeMap<u64, i64>, period: Option<u64>) -> i64 {
        period.and_then(|period| seen.range(..=period).map(|(_, value)| *value).max()).unwrap_or(-1)
    }
}

/// All of a walk.
pub(super) struct Ledger {
    pub(super) writers: Vec<Written>,
    /// By writer.
    pub(super) seen: Vec<Seen>,
    /// The end of the promise. `None`: nothing was promised.
    pub(super) promised: Option<u64>,
    /// How the walk went, for whoever reads a failure.
    pub(super) story: String,
}

impl Ledger {
    pub(super) fn count(&self, of: impl Fn(&Entry) -> bool) -> usize {
        self.writers.iter().flat_map(|written| &written.entries).filter(|entry| of(entry)).count()
    }

    /// True when a reply of that period tells of something that has to be kept.
    fn is_promised(&self, period: u64) -> bool {
        self.promised.is_some_and(|promised| period <= promised)
    }

    /// Compares with what a server holds that was started on the same directory.
    pub(super) fn verify(&self, connection: &mut Connection) {
        for (written, seen) in self.writers.iter().zip(&self.seen) {
            self.verify_own(connection, written);
            self.verify_fields(connection, written, seen);
            self.verify_counter(connection, written, seen);
            self.verify_register(connection, written, seen);
        }
    }

    /// One that is written once is there if it was answered, and not if it was refused.
    fn verify_one(&self, number: usize, entry: &Entry, found: Option<&[u8]>, expected: &[u8]) {
        let story = &self.story;
        assert!(found.is_none_or(|found| found == expected), "{number}, {entry:?}: {found:?}\n{story}");
        match entry.outcome {
            Outcome::Answered(_) if self.is_promised(entry.period) => {
                assert!(found.is_some(), "{number} was answered and is gone: {entry:?}\n{story}");
            }
            Outcome::Refused => assert!(found.is_none(), "{number} was refused and is there: {entry:?}\n{story}"),
            Outcome::Answered(_) | Outcome::Unknown => {}
        }
    }

    fn verify_own(&self, connection: &mut Connection, written: &Written) {
        let own: Vec<(usize, &Entry)> = all(written, Write::Own).collect();
        for some in own.chunks(PIPELINE) {
            some.iter().for_each(|(number, _)| connection.queue(&["GET", &written.names.own(*number)]));
            for (number, entry) in some {
                let reply = connection.read();
                let found = (!reply.is_nil()).then(|| reply.bytes());
                self.verify_one(*number, entry, found, value(*number).as_bytes());
            }
        }
    }

    fn verify_fields(&self, connection: &mut Connection, written: &Written, seen: &Seen) {
        let reply = connection.run(&format!("HGETALL {}", written.names.hash()));
        let found: BTreeMap<&[u8], &[u8]> =
            reply.items().chunks(2).map(|pair| (pair[0].bytes(), pair[1].bytes())).collect();
        for (number, entry) in all(written, Write::Field) {
            let text = number.to_string();
            self.verify_one(number, entry, found.get(text.as_bytes()).copied(), text.as_bytes());
        }
        let seen = Seen::up_to(&seen.fields, self.promised);
        assert!(found.len() as i64 >= seen, "{} fields, and {seen} were seen\n{}", found.len(), self.story);
    }

    fn verify_counter(&self, connection: &mut Connection, written: &Written, seen: &Seen) {
        let found = number(&connection.run(&format!("GET {}", written.names.counter()))).unwrap_or(0);
        let counts = || all(written, Write::Count).map(|(_, entry)| entry);
        let answered =
            counts().filter(|entry| self.is_promised(entry.period)).filter_map(|entry| match entry.outcome {
                Outcome::Answered(count) => Some(count),
                _ => None,
            });
        let least = answered.max().unwrap_or(0).max(Seen::up_to(&seen.counter, self.promised));
        let most = counts().filter(|entry| entry.outcome != Outcome::Refused).count() as i64;
        assert!((least..=most).contains(&found), "counter {found} of {least} to {most}\n{}", self.story);
    }

    fn verify_register(&self, connection: &mut Connection, written: &Written, seen: &Seen) {
        let found = number(&connection.run(&format!("GET {}", written.names.register()))).unwrap_or(-1);
        let answered = all(written, Write::Register)
            .filter(|(_, entry)| matches!(entry.outcome, Outcome::Answered(_)) && self.is_promised(entry.period));
        let least = answered.map(|(number, _)| number as i64).max().unwrap_or(-1);
        let least = least.max(Seen::up_to(&seen.register, self.promised));
        assert!(found >= least, "register {found}, and {least} was told\n{}", self.story);
        if let Some(entry) = usize::try_from(found).ok().and_then(|found| written.entries.get(found)) {
            assert_eq!(entry.write, Write::Register, "register {found}\n{}", self.story);
            assert_ne!(entry.outcome, Outcome::Refused, "register {found} was refused\n{}", self.story);
        }
    }
}

fn all(written: &Written, write: Write) -> impl Iterator<Item = (usize, &Entry)> {
    written.entries.iter().enumerate().filter(move |(_, entry)| entry.write == write)
}

/// The number that a string holds; `None` for one that is absent.
pub(super) fn number(reply: &Reply) -> Option<i64> {
    (!reply.is_nil()).then(|| reply.text().parse().expect("a number"))
}
