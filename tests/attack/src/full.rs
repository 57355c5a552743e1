//! The whole command table beyond `maxmemory`: whatever is sent, the data does not grow. Knows a few commands by name: those
//! that would change the limit, hide growth, or may grow the data in Redis too.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use wire::{Random, Reply};

use crate::author::{Author, Request};
use crate::session::{Attack, is_counted, mix};
use crate::state::{Info, State};
use crate::table::Row;
use crate::talk::{REPLY_DEADLINE, Talk, Trouble, encode};
use crate::vocabulary::fill;

/// Requests that are not sent here, by the words that they begin with.
const UNSENT: &[(&str, &str)] = &[
    ("CONFIG SET", "would change the limit"),
    ("CONFIG RESETSTAT", "would hide growth"),
    ("DEBUG", "does what no limit forbids"),
    ("FLUSHALL", "would hide growth"),
    ("FLUSHDB", "would hide growth"),
    ("FUNCTION FLUSH", "would hide growth"),
    ("SCRIPT FLUSH", "would hide growth"),
    ("CLIENT PAUSE", "takes time"),
];

/// Commands that may make a key, as in Redis.
const MAKES_KEYS: &[(&str, &str)] = &[("SMOVE", "its destination may be new; a member is removed for it")];

const REQUESTS_PER_ROW: usize = 10;
/// Rows after which memory is compared and the data filled in again.
const ROWS_PER_GROUP: usize = 10;
/// What the server may need for itself meanwhile: buffers of the journal, tables that double, statistics.
const GROWTH_BYTES_MAX: i64 = 512 << 10;
/// How long memory may take to come down: values are freed and buffers written by other threads.
const SETTLED_MAX: Duration = Duration::from_secs(5);

const SESSIONS: usize = 12;
/// More than one kept reply of this size is more than may be added.
const BIG_BYTES: usize = 1_000_000;

impl Attack<'_> {
    /// Row after row in a random order, until the time is over. Uses the first place in the record.
    pub(crate) fn run_full(&self, until: Instant) {
        if let Err(what) = self.full(until) {
            self.record.fail(format!("beyond maxmemory: {what}"));
        }
    }

    fn full(&self, until: Instant) -> Result<(), String> {
        let mut watch = self.watch()?;
        let limit = setting(&mut watch, "maxmemory")?;
        let policy = setting(&mut watch, "maxmemory-policy")?;
        watch.must(&["CONFIG", "SET", "maxmemory-policy", "noeviction"])?;
        let mut random = Random::new(mix(self.seed, 5_000_000, 0));
        let mut rows: Vec<_> = (0..self.table.rows.len()).filter(|row| is_sent(&self.table.rows[*row])).collect();
        for at in (1..rows.len()).rev() {
            rows.swap(at, random.below(at + 1));
        }
        for (number, group) in rows.chunks(ROWS_PER_GROUP).enumerate() {
            if Instant::now() > until || self.record.is_stopped() {
                break;
            }
            let random = Random::new(mix(self.seed, 5_000_000, 1 + number as u64));
            self.group(number as u64, group, random)?;
        }
        let mut watch = self.watch()?;
        watch.must(&["CONFIG", "SET", "maxmemory", &limit, "maxmemory-policy", &policy]).map(drop)
    }

    fn watch(&self) -> Result<Talk, String> {
        Talk::open(self.address, &self.record.stop).map_err(|error| format!("cannot connect: {error}"))
    }

    /// Fills the server, sets the limit below what it holds, sends some rows, and compares.
    fn group(&self, number: u64, rows: &[usize], random: Random) -> Result<(), String> {
        let mut author = Author::new(self.table, self.vocabulary, self.avoid, random);
        author.is_expansive = true;
        self.prepare()?;
        let before = self.settled(None)?;
        for row in rows {
            let (made, data) = (self.made()?, before.describe());
            if let Err(trouble) = self.send_row(number, *row, &mut author) {
                match trouble {
                    Trouble::Wrong(what) => return Err(what),
                    Trouble::Stopped => return Ok(()),
                    // CLIENT KILL, QUIT.
                    Trouble::Closed => {}
                }
            }
            let title = self.table.rows[*row].title();
            let is_excused = MAKES_KEYS.iter().any(|(name, _)| *name == title);
            let now = self.made()?;
            if !is_excused && let Some(what) = now.exceeds(&made) {
                return Err(format!("{title} has made {what}; {data}"));
            }
        }
        let after = self.settled(Some(&before))?;
        match after.exceeds(&before) {
            false => Ok(()),
            true => {
                let titles: Vec<_> = rows.iter().map(|row| self.table.rows[*row].title()).collect();
                let (before, after) = (before.describe(), after.describe());
                Err(format!("memory grew: {before}, then {after}, by some of {}", titles.join(", ")))
            }
        }
    }

    fn prepare(&self) -> Result<(), String> {
        let mut watch = self.watch()?;
        watch.must(&["CONFIG", "SET", "maxmemory", "0"])?;
        watch.must(&["FLUSHALL"])?;
        fill(&mut watch)?;
        watch.must(&[b"SET".as_slice(), b"full:big", &vec![b'b'; BIG_BYTES]])?;
        if self.knows("SESSION.OPEN") {
            // Another part may have set hooks that fail.
            watch.must(&["SESSION.HOOK", "CREATED", "NONE"])?;
            watch.must(&["SESSION.HOOK", "EXPIRED", "NONE"])?;
            for session in 0..SESSIONS {
                watch.must(&["SESSION.OPEN", "ID", &format!("full:sess:{session}"), "TTL", "600000"])?;
            }
        }
        watch.must(&["CONFIG", "SET", "maxmemory", "1"]).map(drop)
    }

    fn send_row(&self, number: u64, row: usize, author: &mut Author<'_>) -> Result<(), Trouble> {
        let mut talk = Talk::open(self.address, &self.record.stop).map_err(|_| Trouble::Closed)?;
        talk.learn_id()?;
        for _ in 0..REQUESTS_PER_ROW {
            let Some(request) = author.request_for(row) else { continue };
            let requests = self.form(request, author);
            requests.iter().for_each(|args| self.record.sent(0, number, args));
            talk.send(&encode(&requests))?;
            for _ in &requests {
                let reply = loop {
                    match talk.read()? {
                        Reply::Push(_) => {}
                        reply => break reply,
                    }
                };
                self.record.received(0, &reply);
            }
        }
        Ok(())
    }

    fn form(&self, request: Request, author: &mut Author<'_>) -> Vec<Vec<Vec<u8>>> {
        let words = |line: &str| line.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
        let before = |mut first: Vec<Vec<u8>>, args: Vec<Vec<u8>>| {
            first.extend(args);
            vec![first]
        };
        match author.random.below(10) {
            0..3 if self.knows("SESSION.CALL") => {
                let (session, id) = (author.random.below(SESSIONS), author.random.next_u64() >> 12);
                before(words(&format!("SESSION.CALL full:sess:{session} {id} LOW 0")), request.args)
            }
            3 => vec![words("MULTI"), request.args, words("EXEC")],
            4 => {
                let script = vec![b"EVAL".to_vec(), b"return redis.call(unpack(ARGV))".to_vec(), b"0".to_vec()];
                before(script, request.args)
            }
            _ => vec![request.args],
        }
    }

    fn made(&self) -> Result<Made, String> {
        let mut watch = self.watch()?;
        let info = Info::read(&mut watch)?;
        let state = State::names(&mut watch)?;
        Ok(Made { keys: info.keys(), definitions: state.into_iter().collect() })
    }

    /// What the data takes, once it is steady or no more than before.
    fn settled(&self, before: Option<&Memory>) -> Result<Memory, String> {
        let (mut watch, began) = (self.watch()?, Instant::now());
        let mut memory = Memory::read(&mut watch)?;
        loop {
            thread::sleep(Duration::from_millis(10));
            let next = Memory::read(&mut watch)?;
            let is_enough = match before {
                Some(before) => !next.exceeds(before),
                None => (next.data - memory.data).abs() < GROWTH_BYTES_MAX / 16,
            };
            if is_enough || began.elapsed() > SETTLED_MAX.min(REPLY_DEADLINE) {
                return Ok(next);
            }
            memory = next;
        }
    }
}

fn is_sent(row: &Row) -> bool {
    let title = row.title();
    is_counted(row) && !UNSENT.iter().any(|(name, _)| title == *name || title.starts_with(&format!("{name} ")))
}

pub(crate) fn setting(talk: &mut Talk, name: &str) -> Result<String, String> {
    let reply = talk.must(&["CONFIG", "GET", name])?;
    match &reply {
        Reply::Array(parts) if parts.len() == 2 => Ok(crate::table::text(&parts[1])),
        other => Err(format!("CONFIG GET {name} was answered with {}", other.excerpt())),
    }
}

/// What there is that has a name.
struct Made {
    keys: u64,
    definitions: BTreeSet<String>,
}

impl Made {
    fn exceeds(&self, before: &Made) -> Option<String> {
        if self.keys > before.keys {
            return Some(format!("{} keys", self.keys - before.keys));
        }
        self.definitions.difference(&before.definitions).next().cloned()
    }
}

struct Memory {
    used: i64,
    /// Without what clients, scripts and functions take.
    data: i64,
}

impl Memory {
    fn read(talk: &mut Talk) -> Result<Memory, String> {
        let info = Info::read(talk)?;
        let used = info.bytes("used_memory");
        // The Lua states are part of it in one version and not in another; each has its own figure.
        let others = ["mem_clients_normal", "used_memory_lua", "used_memory_scripts", "mem_aof_buffer"];
        Ok(Memory { used, data: used - others.iter().map(|name| info.bytes(name)).sum::<i64>() })
    }

    /// Whether more was added than the server needs for itself. What others take may be told late, so that their share seems to
    /// become data, or data theirs.
    fn exceeds(&self, before: &Memory) -> bool {
        self.data - before.data > GROWTH_BYTES_MAX && self.used - before.used > GROWTH_BYTES_MAX
    }

    fn describe(&self) -> String {
        format!("{} bytes used, {} of them by data", self.used, self.data)
    }
}
