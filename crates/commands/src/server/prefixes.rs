//! MEMORY PREFIXES: keys and their memory by the beginnings of their names. Walks a database in slices, one shard at a time. Knows the
//! arguments and the reply; refuses to know what takes memory in a value.

use crate::shared::options::{argument, error, limit, number, once, shown, unknown_option};
use crate::shared::scanning::ScanCursor;
use execution::args::{Args, is_word};
use execution::command::{Access, Searched};
use execution::conditions;
use execution::context::ScriptCx;
use execution::database_tokens::DatabaseToken;
use execution::engine::Engine;
use execution::error::{CommandError, CommandResult};
use execution::slices::TimeSlice;
use keyspace::footprint;
use memchr::memmem;
use numbers::parse_i64;
use resp::{Reply, Request};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Segments of a prefix.
const DEPTH_DEFAULT: usize = 1;
const DEPTH_MAX: i64 = 16;
/// What ends a segment.
const SEPARATOR_DEFAULT: &[u8] = b":";
const SEPARATOR_BYTES_MAX: usize = 16;
/// The default LIMIT of the reply.
const LIMIT_DEFAULT: usize = 100;
/// Prefixes that are told apart during the walk, and bytes of one. Those that are beyond are counted together.
const PREFIXES_MAX: usize = 4096;
const PREFIX_BYTES_MAX: usize = 256;
/// Elements of a large value that are measured, as by MEMORY USAGE.
const SAMPLES: usize = 5;
/// Keys visited between two looks at the clock.
const KEYS_PER_LOOK: usize = 64;

/// MEMORY PREFIXES [depth] [PREFIX prefix] [SEPARATOR text] [LIMIT count]
pub(super) fn prefixes(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let wanted = Wanted::take(&mut cx.args)?;
    let (mut progress, mut token) = match cx.client.resume::<Progress>() {
        Some((progress, token)) => (progress, Some(token)),
        None => (Progress::default(), None),
    };
    let time = TimeSlice::begin(cx.engine);
    while progress.at.shard < cx.engine.keyspace.shard_count() {
        let outcome = step(cx, &wanted, &mut progress, &mut token);
        if outcome.is_ok() && time.is_over() && cx.client.is_gone {
            return Err(error("the client has closed its connection".to_owned()));
        }
        if outcome == Err(CommandError::AwaitsScript) || outcome.is_ok() && time.is_over() {
            cx.leave(progress, token);
            return outcome;
        }
        outcome?;
    }
    progress.sizes.send(wanted.limit, &mut cx.reply);
    Ok(())
}

/// What a request searches, for access control: the keys of its prefix, or all.
pub(super) fn searched(_: &Engine, request: Request<'_>) -> Vec<Searched> {
    let begin = if request.len() > 2 && parse_i64(request.arg(2)).is_some() { 3 } else { 2 };
    // Exactly as the arguments are parsed: a value that looks like an option is none.
    let options = (begin..request.len().saturating_sub(1)).step_by(2);
    let named = options.filter(|at| is_word(request.arg(*at), "PREFIX")).map(|at| request.arg(at + 1).to_vec());
    let mut prefixes: Vec<Vec<u8>> = named.collect();
    if prefixes.is_empty() {
        prefixes.push(Vec::new());
    }
    prefixes.into_iter().map(|prefix| Searched::Prefix { prefix, access: Access::Read }).collect()
}

/// What a request asks for.
struct Wanted<'a> {
    depth: usize,
    prefix: &'a [u8],
    separator: &'a [u8],
    limit: usize,
}

impl<'a> Wanted<'a> {
    fn take(args: &mut Args<'a>) -> Result<Wanted<'a>, CommandError> {
        let depth = match args.peek().and_then(parse_i64) {
            Some(_) => number(args, "the depth", 1, DEPTH_MAX)? as usize,
            None => DEPTH_DEFAULT,
        };
        let (mut prefix, mut separator, mut count) = (None, None, None);
        while let Some(word) = args.try_next() {
            if is_word(word, "PREFIX") {
                once(&mut prefix, argument(args, "the prefix")?, "PREFIX")?;
            } else if is_word(word, "SEPARATOR") {
                once(&mut separator, argument(args, "the separator")?, "SEPARATOR")?;
            } else if is_word(word, "LIMIT") {
                once(&mut count, limit(args)?, "LIMIT")?;
            } else {
                return Err(unknown_option(args));
            }
        }
        let separator = separator.unwrap_or(SEPARATOR_DEFAULT);
        if !(1..=SEPARATOR_BYTES_MAX).contains(&separator.len()) {
            return Err(error(format!(
                "the separator must have 1 to {SEPARATOR_BYTES_MAX} bytes, not {}",
                shown(separator)
            )));
        }
        let prefix = prefix.unwrap_or_default();
        Ok(Wanted { depth, prefix, separator, limit: count.unwrap_or(LIMIT_DEFAULT) })
    }

    /// The prefix under which a name is counted: as many segments as are asked for, or as it has. `None` for one that is not asked for.
    fn prefix_of<'n>(&self, name: &'n [u8]) -> Option<&'n [u8]> {
        let rest = name.strip_prefix(self.prefix)?;
        let ends = memmem::find_iter(rest, self.separator).map(|at| self.prefix.len() + at + self.separator.len());
        let fitting = ends.take(self.depth).take_while(|end| *end <= PREFIX_BYTES_MAX.max(self.prefix.len()));
        Some(&name[..fitting.last().unwrap_or(self.prefix.len())])
    }
}

/// How far the walk is.
struct Progress {
    at: ScanCursor,
    sizes: Sizes,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress { at: ScanCursor { shard: 0, position: 0 }, sizes: Sizes::default() }
    }
}

/// Visits some keys of one shard under its lock.
fn step(
    cx: &mut ScriptCx<'_, '_>,
    wanted: &Wanted<'_>,
    progress: &mut Progress,
    token: &mut Option<DatabaseToken>,
) -> CommandResult {
    let (engine, db, now_ms, at) = (cx.engine, cx.client.db, cx.worker.now_ms, progress.at);
    let locked = engine.keyspace.lock_shard_unless_busy(at.shard).ok_or_else(|| conditions::busy(engine))?;
    match token {
        Some(token) => token.pass(&locked)?,
        None => *token = Some(engine.databases.take_token(&locked, db)),
    }
    cx.client.depends_on = cx.client.depends_on.max(locked.changed_by());
    let (_, shard) = locked.shards().next().expect("the shard was just locked");
    let next = shard.db(db).scan(at.position, KEYS_PER_LOOK, now_ms, |entry| {
        if let Some(prefix) = wanted.prefix_of(entry.name()) {
            progress.sizes.add(prefix, footprint::bytes_of(entry, SAMPLES) as u64);
        }
    });
    progress.at = match next {
        Some(position) => ScanCursor { position, ..at },
        None => ScanCursor { shard: at.shard + 1, position: 0 },
    };
    Ok(())
}

/// Keys, and bytes that they take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Size {
    keys: u64,
    bytes: u64,
}

impl Size {
    fn add(&mut self, other: Size) {
        self.keys += other.keys;
        self.bytes += other.bytes;
    }
}

/// The sizes of prefixes, of a bounded number.
#[derive(Default)]
struct Sizes {
    by_prefix: BTreeMap<Box<[u8]>, Size>,
    /// Those of prefixes that found no place.
    other: Size,
}

impl Sizes {
    fn add(&mut self, prefix: &[u8], bytes: u64) {
        let size = Size { keys: 1, bytes };
        if let Some(known) = self.by_prefix.get_mut(prefix) {
            known.add(size);
            return;
        }
        if self.by_prefix.len() >= PREFIXES_MAX {
            self.keep_largest(PREFIXES_MAX / 2);
        }
        self.by_prefix.insert(prefix.into(), size);
    }

    /// Counts all but so many prefixes as others. A prefix that is met again begins anew.
    fn keep_largest(&mut self, count: usize) {
        for (place, (prefix, size)) in self.take_largest_first().into_iter().enumerate() {
            match place < count {
                true => drop(self.by_prefix.insert(prefix, size)),
                false => self.other.add(size),
            }
        }
    }

    fn take_largest_first(&mut self) -> Vec<(Box<[u8]>, Size)> {
        let mut all: Vec<_> = std::mem::take(&mut self.by_prefix).into_iter().collect();
        all.sort_by_key(|(_, size)| Reverse((size.bytes, size.keys)));
        all
    }

    /// Replies with the largest prefixes first, at most so many.
    fn send(mut self, limit: usize, reply: &mut Reply<'_>) {
        self.keep_largest(limit);
        let mut total = self.other;
        self.by_prefix.values().for_each(|size| total.add(*size));
        reply.map(4);
        reply.bulk(b"keys");
        reply.integer(total.keys as i64);
        reply.bulk(b"bytes");
        reply.integer(total.bytes as i64);
        reply.bulk(b"prefixes");
        reply.array(self.by_prefix.len());
        for (prefix, size) in self.take_largest_first() {
            reply.array(3);
            reply.bulk(&prefix);
            reply.integer(size.keys as i64);
            reply.integer(size.bytes as i64);
        }
        reply.bulk(b"other");
        reply.array(2);
        reply.integer(self.other.keys as i64);
        reply.integer(self.other.bytes as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(depth: usize, prefix: &'static str, separator: &'static str) -> Wanted<'static> {
        Wanted { depth, prefix: prefix.as_bytes(), separator: separator.as_bytes(), limit: LIMIT_DEFAULT }
    }

    #[test]
    fn a_name_is_counted_under_its_first_segments() {
        let long = "x".repeat(PREFIX_BYTES_MAX);
        for (depth, prefix, separator, name, expected) in [
            (1, "", ":", "job:mail:7", Some("job:")),
            (2, "", ":", "job:mail:7", Some("job:mail:")),
            (3, "", ":", "job:mail:7", Some("job:mail:")),
            (1, "", ":", "plain", Some("")),
            (1, "", ":", "", Some("")),
            (1, "", ":", ":", Some(":")),
            (2, "", ":", "::a", Some("::")),
            (1, "job:", ":", "job:mail:7", Some("job:mail:")),
            (1, "job:", ":", "job:7", Some("job:")),
            (1, "job:", ":", "jobs:7", None),
            (1, "jo", ":", "job:7", Some("job:")),
            (1, "", "::", "a:b::c", Some("a:b::")),
            (2, "", "/", "dev/x:1/y", Some("dev/x:1/")),
            (1, "", ":", &format!("{long}:a"), Some("")),
            (2, "", ":", &format!("a:{long}:b"), Some("a:")),
        ] {
            let found = wanted(depth, prefix, separator).prefix_of(name.as_bytes()).map(<[u8]>::to_vec);
            assert_eq!(found, expected.map(|expected| expected.as_bytes().to_vec()), "{depth} {prefix} {name}");
        }
    }

    /// However many prefixes there are, their number is bounded, no key is lost, and a large one is found though it comes late.
    #[test]
    fn many_prefixes_are_counted_together() {
        let mut sizes = Sizes::default();
        for number in 0..50_000u64 {
            sizes.add(format!("{number}:").as_bytes(), 10);
            assert!(sizes.by_prefix.len() <= PREFIXES_MAX);
        }
        for _ in 0..1000 {
            sizes.add(b"late:", 1000);
        }
        let known = sizes.by_prefix.values().fold(sizes.other, |mut sum, size| {
            sum.add(*size);
            sum
        });
        assert_eq!(known, Size { keys: 51_000, bytes: 1_500_000 });
        sizes.keep_largest(1);
        assert_eq!(sizes.by_prefix.get(b"late:".as_slice()), Some(&Size { keys: 1000, bytes: 1_000_000 }));
        assert_eq!(sizes.other, Size { keys: 50_000, bytes: 500_000 });
    }
}
