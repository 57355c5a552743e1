//! The `…LIST` commands: names of keys of one type, some at a time. Refuses to change anything, even to remove expired
//! keys.

use crate::shared::options::{argument, error, limit, once, shown};
use crate::shared::scanning::{ScanCursor, parse_cursor};
use execution::args::{Args, is_word};
use execution::context::ReadCx;
use execution::error::CommandError;
use execution::instants::AtInstant;
use keyspace::db::Db;
use keyspace::shard::Shard;
use keyspace::{Entry, NameHash};
use resp::Reply;

/// The default LIMIT of a step.
const LIMIT_DEFAULT: usize = 1000;
/// The most keys that a step visits, of that type or not.
const LOOKS_MAX: usize = 10_000;

/// Where keys are searched.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Among {
    AllKeys,
    /// Open runs, of which each database has a list.
    OpenRuns,
}

/// The options that all `…LIST` commands have.
#[derive(Default)]
pub(crate) struct ListOptions<'a> {
    prefix: Option<&'a [u8]>,
    cursor: Option<u64>,
    limit: Option<usize>,
}

impl<'a> ListOptions<'a> {
    /// Parses an option, if the word is one.
    pub(crate) fn take(&mut self, word: &[u8], args: &mut Args<'a>) -> Result<bool, CommandError> {
        if is_word(word, "PREFIX") {
            once(&mut self.prefix, argument(args, "the prefix")?, "PREFIX")?;
        } else if is_word(word, "CURSOR") {
            let text = argument(args, "the cursor")?;
            let parsed = parse_cursor(text)
                .ok_or_else(|| error(format!("the cursor {} is none of ours: begin with 0", shown(text))))?;
            once(&mut self.cursor, parsed, "CURSOR")?;
        } else if is_word(word, "LIMIT") {
            once(&mut self.limit, limit(args)?, "LIMIT")?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Replies with a cursor and the names of the matching keys.
    pub(crate) fn reply(&self, cx: &mut ReadCx<'_>, among: Among, wants: impl Fn(&Entry) -> bool) {
        let mut page = Page {
            prefix: self.prefix.unwrap_or_default(),
            wants,
            limit: self.limit.unwrap_or(LIMIT_DEFAULT),
            now_ms: cx.keys.now_ms,
            names: Vec::new(),
            count: 0,
            looks: 0,
        };
        let mut at = ScanCursor::from_number(self.cursor.unwrap_or(0));
        let (shard_count, protocol) = (cx.shard_count(), cx.reply.protocol());
        while at.shard < shard_count && !page.is_full() {
            let add = |names: &mut Vec<u8>, name: &[u8]| Reply::new(names, protocol).bulk(name);
            let next = match (cx.keys.at_instant(), among) {
                (Some(instant), _) => cx.whole_shard(at.shard, |shard| page.fill_at_instant(shard, at, instant, add)),
                (None, Among::AllKeys) => cx.shard(at.shard, |db| page.fill(db, at.position, add)),
                (None, Among::OpenRuns) => cx.shard(at.shard, |db| page.fill_with(db.open_runs(at.position), add)),
            };
            at = match next {
                Some(position) => ScanCursor { position, ..at },
                None => ScanCursor { shard: at.shard + 1, position: 0 },
            };
        }
        cx.reply.array(2);
        // With a limit of 0 the search would not advance: it is over.
        let is_over = at.shard >= shard_count || page.limit == 0;
        cx.reply.bulk_integer(if is_over { 0 } else { at.to_number() });
        cx.reply.array(page.count);
        cx.reply.raw(&page.names);
    }
}

/// The keys that one step has found so far.
struct Page<'a, W> {
    prefix: &'a [u8],
    wants: W,
    limit: usize,
    now_ms: u64,
    /// The names, encoded.
    names: Vec<u8>,
    count: usize,
    looks: usize,
}

impl<W: Fn(&Entry) -> bool> Page<'_, W> {
    fn is_full(&self) -> bool {
        self.count >= self.limit || self.looks >= LOOKS_MAX
    }

    fn is_wanted(&self, entry: &Entry) -> bool {
        entry.name().starts_with(self.prefix) && !Db::is_expired(entry, self.now_ms) && (self.wants)(entry)
    }

    /// Adds the matching keys of one shard, in the order of their positions from `position` on. Returns where to
    /// continue; keys at one position are never split.
    fn fill(&mut self, db: &Db, position: u32, add: impl Fn(&mut Vec<u8>, &[u8])) -> Option<u32> {
        let mut from = position;
        loop {
            let end = db.range_end(from);
            let mut step: Vec<(u32, &Entry)> = Vec::new();
            let mut looks = 0;
            db.visit_range(from, end, |entry| {
                looks += 1;
                if self.is_wanted(entry) {
                    step.push((NameHash::of(entry.name()).position(), entry));
                }
            });
            self.looks += looks - step.len();
            step.sort_unstable_by_key(|(position, _)| *position);
            if let Some(stopped) = self.fill_with(step.into_iter(), &add) {
                return Some(stopped);
            }
            from = end.checked_add(1)?;
            if self.is_full() {
                return Some(from);
            }
        }
    }

    /// Like `fill`, with the cells of a shard as they were at an instant.
    fn fill_at_instant(
        &mut self,
        shard: &Shard,
        at: ScanCursor,
        instant: &AtInstant<'_>,
        add: impl Fn(&mut Vec<u8>, &[u8]),
    ) -> Option<u32> {
        let mut from = at.position;
        loop {
            // The lost instant is an error of the transaction; this reply is dropped.
            let db = shard.db(instant.db()?);
            let end = db.range_end(from);
            let changed = instant.changed_names(at.shard, from, end)?;
            let mut step: Vec<(u32, &[u8])> = Vec::new();
            db.visit_range(from, end, |entry| {
                self.looks += 1;
                if self.is_wanted(entry) && !changed.iter().any(|changed| *changed.name == *entry.name()) {
                    step.push((NameHash::of(entry.name()).position(), entry.name()));
                }
            });
            let past = changed.iter().filter(|changed| changed.was_cell && changed.name.starts_with(self.prefix));
            step.extend(past.map(|changed| (changed.position, &*changed.name)));
            step.sort_unstable();
            let mut last = None;
            for (position, name) in step {
                if self.count >= self.limit && last != Some(position) {
                    return Some(position);
                }
                add(&mut self.names, name);
                self.count += 1;
                last = Some(position);
            }
            from = end.checked_add(1)?;
            if self.is_full() {
                return Some(from);
            }
        }
    }

    /// Like `fill`, for keys that come in the order of their positions.
    fn fill_with<'e>(
        &mut self,
        entries: impl Iterator<Item = (u32, &'e Entry)>,
        add: impl Fn(&mut Vec<u8>, &[u8]),
    ) -> Option<u32> {
        let mut last = None;
        for (position, entry) in entries {
            if self.is_full() && last != Some(position) {
                return Some(position);
            }
            self.looks += 1;
            if self.is_wanted(entry) {
                add(&mut self.names, entry.name());
                self.count += 1;
            }
            last = Some(position);
        }
        None
    }
}
