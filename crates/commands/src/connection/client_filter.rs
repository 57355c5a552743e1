//! Which clients CLIENT LIST and CLIENT KILL are about: the filters of Redis 7.4 and of Valkey 9. Knows facts about
//! clients; refuses to know what is done with those that pass.

use super::client_line::{Purpose, flags, shown, shown_user};
use execution::args::{Args, is_word};
use execution::clients::ClientHandle;
use execution::engine::Engine;
use execution::error::CommandError;
use keyspace::DATABASES;
use numbers::parse_i64;
use std::mem::discriminant;
use std::sync::atomic::Ordering::Relaxed;

/// All filters of a request. A client passes if it passes each.
pub(super) struct Filter<'a> {
    tests: Vec<Test<'a>>,
    /// Whether the caller itself is left out, if SKIPME says so.
    pub(super) skip_me: Option<bool>,
}

/// One filter; `NOT-` before its word turns it around.
struct Test<'a> {
    fact: Fact<'a>,
    is_negated: bool,
}

/// What is true of a client.
enum Fact<'a> {
    Ids(Vec<u64>),
    Purpose(Purpose),
    User(&'a [u8]),
    Address(&'a [u8]),
    LocalAddress(&'a [u8]),
    Ip(&'a [u8]),
    Name(&'a [u8]),
    Library(&'a [u8]),
    LibraryVersion(&'a [u8]),
    /// It has all of these flags.
    Flags(&'a [u8]),
    Database(usize),
    /// It has been idle for so many seconds.
    Idle(u64),
    /// It has been connected for so many seconds.
    Age(u64),
}

/// The filters that have a value of their own, and whether `NOT-` may come before them.
const WORDS: [(&str, bool); 13] = [
    ("ID", true),
    ("TYPE", true),
    ("USER", true),
    ("ADDR", true),
    ("LADDR", true),
    ("IP", true),
    ("NAME", true),
    ("LIB-NAME", true),
    ("LIB-VER", true),
    ("FLAGS", true),
    ("DB", true),
    ("IDLE", false),
    ("MAXAGE", false),
];

/// The flags of clients, in any version of Redis or Valkey.
const FLAGS: &[u8] = b"ABIMNOPRSTUbcdeirtux";

/// The filter's word without `NOT-`, and whether that was there.
fn word_of(option: &[u8]) -> Option<(&'static str, bool)> {
    let found = |word: &[u8]| WORDS.iter().find(|(known, _)| is_word(word, known));
    if let Some((word, _)) = found(option) {
        return Some((word, false));
    }
    let (not, rest) = option.split_at_checked(4)?;
    let (word, _) = found(rest).filter(|(_, may_be_negated)| *may_be_negated && is_word(not, "NOT-"))?;
    Some((word, true))
}

/// True for a word that begins a filter.
pub(super) fn is_filter(word: &[u8]) -> bool {
    is_word(word, "SKIPME") || word_of(word).is_some()
}

impl<'a> Filter<'a> {
    /// Reads filters up to the end. Of two of a kind, the last counts.
    pub(super) fn parse(engine: &Engine, args: &mut Args<'a>) -> Result<Filter<'a>, CommandError> {
        let mut filter = Filter { tests: Vec::new(), skip_me: None };
        while let Some(option) = args.try_next() {
            let value = args.bytes()?;
            if is_word(option, "SKIPME") {
                filter.skip_me = Some(yes_or_no(value)?);
                continue;
            }
            let (word, is_negated) = word_of(option).ok_or(CommandError::Syntax)?;
            let fact = Fact::parse(engine, word, is_negated, value, args)?;
            let is_other =
                |test: &Test<'_>| (discriminant(&test.fact), test.is_negated) != (discriminant(&fact), is_negated);
            filter.tests.retain(is_other);
            filter.tests.push(Test { fact, is_negated });
        }
        Ok(filter)
    }

    pub(super) fn passes(&self, engine: &Engine, handle: &ClientHandle, now_ms: u64) -> bool {
        self.tests.iter().all(|test| test.fact.is_true_of(engine, handle, now_ms) != test.is_negated)
    }
}

impl<'a> Fact<'a> {
    fn parse(
        engine: &Engine,
        word: &str,
        is_negated: bool,
        value: &'a [u8],
        args: &mut Args<'a>,
    ) -> Result<Fact<'a>, CommandError> {
        Ok(match word {
            "ID" => Fact::Ids(ids(value, args)?),
            "TYPE" => Fact::Purpose(Purpose::parse(value)?),
            "USER" if engine.acl.find(value).is_none() => {
                return Err(CommandError::said(format!("ERR No such user '{}'", shown(value))));
            }
            "USER" => Fact::User(value),
            "ADDR" => Fact::Address(value),
            "LADDR" => Fact::LocalAddress(value),
            "IP" => Fact::Ip(value),
            "NAME" => Fact::Name(value),
            "LIB-NAME" => Fact::Library(value),
            "LIB-VER" => Fact::LibraryVersion(value),
            "FLAGS" if !value.iter().all(|flag| FLAGS.contains(flag)) => {
                let filter = if is_negated { "NOT-FLAGS" } else { "provided" };
                let flags = shown(value);
                return Err(CommandError::said(format!("ERR Unknown flags found in the {filter} filter: {flags}")));
            }
            "FLAGS" => Fact::Flags(value),
            "DB" => Fact::Database(database(if is_negated { "NOT-DB" } else { "DB" }, value)?),
            "IDLE" => Fact::Idle(seconds("idle", value)?),
            _ => Fact::Age(seconds("maxage", value)?),
        })
    }

    fn is_true_of(&self, engine: &Engine, handle: &ClientHandle, now_ms: u64) -> bool {
        // A client without a name has none, not an empty one.
        let is_label = |label: &[u8], given: &[u8]| !label.is_empty() && label == given;
        match self {
            Fact::Ids(ids) => ids.contains(&handle.id),
            Fact::Purpose(purpose) => Purpose::of(handle) == *purpose,
            Fact::User(user) => shown_user(&handle.labels()).as_bytes() == *user,
            Fact::Address(address) => handle.address.as_bytes() == *address,
            Fact::LocalAddress(address) => handle.local_address.as_bytes() == *address,
            Fact::Ip(ip) => ip_of(&handle.address).as_bytes() == *ip,
            Fact::Name(name) => is_label(&handle.labels().name, name),
            Fact::Library(library) => is_label(&handle.labels().library, library),
            Fact::LibraryVersion(version) => is_label(&handle.labels().library_version, version),
            Fact::Flags(wanted) => {
                let has = flags(handle, engine.tracking.of(handle.id).as_deref());
                wanted.iter().all(|flag| has.as_bytes().contains(flag))
            }
            Fact::Database(number) => handle.db.load(Relaxed) as usize == *number,
            Fact::Idle(seconds) => handle.idle_s(engine.clock.monotonic_ns()) >= *seconds,
            Fact::Age(seconds) => now_ms.saturating_sub(handle.created_ms) / 1000 >= *seconds,
        }
    }
}

/// An id, and those that follow it.
fn ids(first: &[u8], args: &mut Args<'_>) -> Result<Vec<u64>, CommandError> {
    let positive = |text| positive(text).ok_or(CommandError::fixed("ERR client-id should be greater than 0"));
    let mut ids = vec![positive(first)?];
    while let Some(next) = args.peek().filter(|next| parse_i64(next).is_some()) {
        ids.push(positive(next)?);
        args.bytes()?;
    }
    Ok(ids)
}

/// The address without its port, and without the brackets of IPv6.
fn ip_of(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

fn positive(text: &[u8]) -> Option<u64> {
    parse_i64(text).filter(|number| *number > 0).map(|number| number as u64)
}

fn seconds(what: &str, text: &[u8]) -> Result<u64, CommandError> {
    if parse_i64(text).is_none() {
        return Err(CommandError::said(format!("ERR {what} is not an integer or out of range")));
    }
    positive(text).ok_or_else(|| CommandError::said(format!("ERR {what} should be greater than 0")))
}

fn database(what: &str, text: &[u8]) -> Result<usize, CommandError> {
    let number = parse_i64(text);
    let number = number.ok_or_else(|| CommandError::said(format!("ERR {what} is not an integer or out of range")))?;
    usize::try_from(number)
        .ok()
        .filter(|number| *number < DATABASES)
        .ok_or_else(|| CommandError::said(format!("ERR {what} number should be between 0 and {}", DATABASES - 1)))
}

fn yes_or_no(word: &[u8]) -> Result<bool, CommandError> {
    match is_word(word, "YES") {
        true => Ok(true),
        false if is_word(word, "NO") => Ok(false),
        false => Err(CommandError::Syntax),
    }
}
