//! HFIND: records under a prefix that pass filters, a few at a time. Refuses to change anything, even to remove expired
//! keys.

use super::filters::{Filter, Filters, pass, scores_in};
use super::rows::{Row, RowOptions};
use crate::args::is_word;
use crate::commands::shared::options::{argument, error, limit, once, shown, unknown_option};
use crate::commands::shared::scanning::{Place, parse_cursor};
use crate::error::CommandResult;
use crate::execution::context::ReadCx;
use keyspace::Entry;
use keyspace::db::Db;
use keyspace::storage::table::NameHash;
use keyspace::types::sorted_set::ScoreRange;
use keyspace::{HashRef, Value};
use resp::Reply;

/// The default LIMIT of a step.
const LIMIT_DEFAULT: usize = 1000;
/// The most keys that a step visits, matching or not.
const LOOKS_MAX: usize = 10_000;
/// Records of one shard that are looked up through an index under one lock.
const INDEXED_MAX: usize = 20_000;

pub(super) fn hfind(cx: &mut ReadCx<'_>) -> CommandResult {
    let prefix = argument(&mut cx.args, "the prefix")?;
    let (mut cursor, mut limit_asked, mut rows) = (None, None, RowOptions::default());
    let mut filters = Filters::new();
    while let Some(word) = cx.args.try_next() {
        if is_word(word, "FILTER") {
            filters.push(Filter::take(&mut cx.args)?);
        } else if is_word(word, "CURSOR") {
            let text = argument(&mut cx.args, "the cursor")?;
            let parsed =
                parse_cursor(text).ok_or_else(|| error(format!("the cursor {} is none of ours", shown(text))))?;
            once(&mut cursor, parsed, "CURSOR")?;
        } else if is_word(word, "LIMIT") {
            once(&mut limit_asked, limit(&mut cx.args)?, "LIMIT")?;
        } else if !rows.take(word, &mut cx.args)? {
            return Err(unknown_option(word));
        }
    }
    let search = Search { prefix, filters, limit: limit_asked.unwrap_or(LIMIT_DEFAULT), rows };
    let mut place = Place::from_cursor(cursor.unwrap_or(0));
    // The cursor precedes the records in the reply but is known after them.
    let mut found = FoundRecords { bytes: Vec::new(), count: 0, looks: 0 };
    let shard_count = cx.shard_count();
    let (now_ms, protocol) = (cx.keys.now_ms, cx.reply.protocol());
    while place.shard < shard_count && found.count < search.limit && found.looks < LOOKS_MAX {
        let next = cx.shard_with_current_indexes(place.shard, |db| {
            let show = |found: &mut FoundRecords, entry: &Entry, hash: HashRef<'_>| {
                let row = Row { name: entry.name(), score: None, hash, deadline_ms: entry.deadline() };
                search.rows.reply(&row, now_ms, &mut Reply::new(&mut found.bytes, protocol));
                found.count += 1;
            };
            match search.index_of(db) {
                Some((index, scores)) => search.by_index(db, index, &scores, place.position, now_ms, &mut found, show),
                None => search.by_walking(db, place.position, now_ms, &mut found, show),
            }
        });
        place = match next {
            Some(position) => Place { position, ..place },
            None => Place { shard: place.shard + 1, position: 0 },
        };
    }
    cx.reply.array(2);
    // A search for nothing is at its end: it would not come any further.
    let is_over = place.shard >= shard_count || search.limit == 0;
    cx.reply.bulk_integer(if is_over { 0 } else { place.to_cursor() });
    cx.reply.array(found.count);
    cx.reply.raw(&found.bytes);
    Ok(())
}

/// What is looked for.
struct Search<'a> {
    prefix: &'a [u8],
    filters: Filters<'a>,
    limit: usize,
    rows: RowOptions<'a>,
}

/// The records found so far, encoded.
struct FoundRecords {
    bytes: Vec<u8>,
    count: usize,
    looks: usize,
}

impl Search<'_> {
    /// An index that has every matching record of a database in one shard, and the range of scores.
    fn index_of(&self, db: &Db) -> Option<(usize, ScoreRange)> {
        let indexes = db.indexes().iter().enumerate().filter(|(_, index)| index.is_built());
        let mut usable = indexes.filter_map(|(at, index)| {
            let definition = &index.definition;
            let scores = scores_in(definition, self.prefix, &self.filters)?;
            // With expired fields that are not removed yet, a record may match the index's condition without being in
            // the index.
            let exact = definition.condition.is_none() || db.with_field_deadlines() == 0;
            let few = || {
                let part = db.part(at)?;
                let start = part.partition_point(|item| scores.is_above(item.0));
                let end = part.partition_point(|item| scores.reaches(item.0));
                Some(end.saturating_sub(start))
            };
            (exact && db.part_has_all(at) && few().unwrap_or(0) <= INDEXED_MAX).then_some((at, scores))
        });
        usable.next()
    }

    /// The hash of an entry that is wanted.
    fn wanted<'e>(&self, db: &'e Db, entry: &'e Entry, now_ms: u64) -> Option<HashRef<'e>> {
        if !entry.name().starts_with(self.prefix) || Db::is_expired(entry, now_ms) {
            return None;
        }
        match db.value(entry, now_ms) {
            Value::Hash(hash) if pass(&self.filters, hash) => Some(hash),
            _ => None,
        }
    }

    /// Visits every key from a position on. Returns where to continue; `None` at the end.
    fn by_walking(
        &self,
        db: &Db,
        position: u32,
        now_ms: u64,
        found: &mut FoundRecords,
        show: impl Fn(&mut FoundRecords, &Entry, HashRef<'_>),
    ) -> Option<u32> {
        let mut from = position;
        loop {
            // Visit one whole step of the table; records beyond the limit are left for the next call.
            let mut step: Vec<(u32, &Entry)> = Vec::new();
            let end = db.range_end(from);
            db.visit_range(from, end, |entry| step.push((NameHash::of(entry.name()).position(), entry)));
            found.looks += step.len();
            step.sort_unstable_by_key(|(position, _)| *position);
            if let Some(stopped) = self.show_all(db, &step, now_ms, found, &show) {
                return Some(stopped);
            }
            from = end.checked_add(1)?;
            if found.count >= self.limit || found.looks >= LOOKS_MAX {
                return Some(from);
            }
        }
    }

    /// Visits the records of an index between two scores, in the order of their positions.
    #[allow(clippy::too_many_arguments, reason = "one look's whole context")]
    fn by_index(
        &self,
        db: &Db,
        index: usize,
        scores: &ScoreRange,
        position: u32,
        now_ms: u64,
        found: &mut FoundRecords,
        show: impl Fn(&mut FoundRecords, &Entry, HashRef<'_>),
    ) -> Option<u32> {
        let part = db.part(index)?;
        let start = part.partition_point(|item| scores.is_above(item.0));
        let end = part.partition_point(|item| scores.reaches(item.0)).max(start);
        let records = part.range(start..end).map(|item| (NameHash::from_raw(item.1).position(), item));
        let mut records: Vec<_> = records.filter(|(at, _)| *at >= position).collect();
        records.sort_unstable_by_key(|(at, _)| *at);
        found.looks += records.len() / 8;
        let entries: Vec<(u32, &Entry)> =
            records.iter().filter_map(|(at, item)| db.indexed(*item).map(|entry| (*at, entry))).collect();
        self.show_all(db, &entries, now_ms, found, &show)
    }

    /// Appends the records that match, as long as there is room. Returns where to continue if there was not; keys at
    /// one position are never split.
    fn show_all(
        &self,
        db: &Db,
        entries: &[(u32, &Entry)],
        now_ms: u64,
        found: &mut FoundRecords,
        show: &impl Fn(&mut FoundRecords, &Entry, HashRef<'_>),
    ) -> Option<u32> {
        let mut last = None;
        for (position, entry) in entries {
            if found.count >= self.limit && last != Some(*position) {
                return Some(*position);
            }
            if let Some(hash) = self.wanted(db, entry, now_ms) {
                show(found, entry, hash);
            }
            last = Some(*position);
        }
        None
    }
}
