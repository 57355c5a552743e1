//! HFIND: records under a prefix that pass filters, a few at a time. Refuses to change anything, even to remove expired
//! keys.

use super::filters::{Filter, Filters, pass, scores_in};
use super::record_reply::{RecordReply, RecordReplyOptions};
use crate::shared::options::{argument, error, limit, once, shown, unknown_option};
use crate::shared::scanning::{ScanCursor, parse_cursor};
use execution::args::is_word;
use execution::context::ReadCx;
use execution::error::CommandResult;
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
    let (mut cursor, mut limit_asked, mut reply_options) = (None, None, RecordReplyOptions::default());
    let mut filters = Filters::new();
    while let Some(word) = cx.args.try_next() {
        if is_word(word, "FILTER") {
            filters.push(Filter::take(&mut cx.args)?);
        } else if is_word(word, "CURSOR") {
            let text = argument(&mut cx.args, "the cursor")?;
            let parsed = parse_cursor(text)
                .ok_or_else(|| error(format!("the cursor {} is none of ours: begin with 0", shown(text))))?;
            once(&mut cursor, parsed, "CURSOR")?;
        } else if is_word(word, "LIMIT") {
            once(&mut limit_asked, limit(&mut cx.args)?, "LIMIT")?;
        } else if !reply_options.take(word, &mut cx.args)? {
            return Err(unknown_option(&cx.args));
        }
    }
    let search = Search { prefix, filters, limit: limit_asked.unwrap_or(LIMIT_DEFAULT), reply_options };
    let mut at = ScanCursor::from_number(cursor.unwrap_or(0));
    // The cursor precedes the records in the reply but is known after them.
    let mut found = FoundRecords { bytes: Vec::new(), count: 0, looks: 0 };
    let shard_count = cx.shard_count();
    let (now_ms, protocol) = (cx.keys.now_ms, cx.reply.protocol());
    while at.shard < shard_count && found.count < search.limit && found.looks < LOOKS_MAX {
        let next = cx.shard_with_current_indexes(at.shard, |db| {
            let show = |found: &mut FoundRecords, entry: &Entry, hash: HashRef<'_>| {
                let record = RecordReply { name: entry.name(), score: None, hash, deadline_ms: entry.deadline() };
                search.reply_options.reply(&record, now_ms, &mut Reply::new(&mut found.bytes, protocol));
                found.count += 1;
            };
            let step = ShardStep { db, position: at.position, now_ms };
            match search.index_of(db) {
                Some((index, scores)) => search.by_index(step, index, &scores, &mut found, show),
                None => search.by_walking(step, &mut found, show),
            }
        });
        at = match next {
            Some(position) => ScanCursor { position, ..at },
            None => ScanCursor { shard: at.shard + 1, position: 0 },
        };
    }
    cx.reply.array(2);
    // With a limit of 0 the search would not advance: it is over.
    let is_over = at.shard >= shard_count || search.limit == 0;
    cx.reply.bulk_integer(if is_over { 0 } else { at.to_number() });
    cx.reply.array(found.count);
    cx.reply.raw(&found.bytes);
    Ok(())
}

/// The parsed request.
struct Search<'a> {
    prefix: &'a [u8],
    filters: Filters<'a>,
    limit: usize,
    reply_options: RecordReplyOptions<'a>,
}

/// The records found so far, encoded.
struct FoundRecords {
    bytes: Vec<u8>,
    count: usize,
    looks: usize,
}

/// A step of the search in one shard: from a position of its table on.
#[derive(Clone, Copy)]
struct ShardStep<'d> {
    db: &'d Db,
    position: u32,
    now_ms: u64,
}

impl ShardStep<'_> {
    /// The hash of an entry that matches the search.
    fn matching<'e>(&'e self, search: &Search<'_>, entry: &'e Entry) -> Option<HashRef<'e>> {
        if !entry.name().starts_with(search.prefix) || Db::is_expired(entry, self.now_ms) {
            return None;
        }
        match self.db.value(entry, self.now_ms) {
            Value::Hash(hash) if pass(&search.filters, hash) => Some(hash),
            _ => None,
        }
    }
}

impl Search<'_> {
    /// An index that contains every matching record of a database in one shard, and the range of scores.
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

    /// Visits every key from the step's position on. Returns where to continue; `None` at the end.
    fn by_walking(
        &self,
        step: ShardStep<'_>,
        found: &mut FoundRecords,
        show: impl Fn(&mut FoundRecords, &Entry, HashRef<'_>),
    ) -> Option<u32> {
        let (db, mut from) = (step.db, step.position);
        loop {
            // Visit one whole range of the table; records beyond the limit are left for the next call.
            let mut entries: Vec<(u32, &Entry)> = Vec::new();
            let end = db.range_end(from);
            db.visit_range(from, end, |entry| entries.push((NameHash::of(entry.name()).position(), entry)));
            found.looks += entries.len();
            entries.sort_unstable_by_key(|(position, _)| *position);
            if let Some(stopped) = self.show_all(step, &entries, found, &show) {
                return Some(stopped);
            }
            from = end.checked_add(1)?;
            if found.count >= self.limit || found.looks >= LOOKS_MAX {
                return Some(from);
            }
        }
    }

    /// Visits the records of an index between two scores, in the order of their positions.
    fn by_index(
        &self,
        step: ShardStep<'_>,
        index: usize,
        scores: &ScoreRange,
        found: &mut FoundRecords,
        show: impl Fn(&mut FoundRecords, &Entry, HashRef<'_>),
    ) -> Option<u32> {
        let part = step.db.part(index)?;
        let start = part.partition_point(|item| scores.is_above(item.0));
        let end = part.partition_point(|item| scores.reaches(item.0)).max(start);
        let records = part.range(start..end).map(|item| (NameHash::from_raw(item.1).position(), item));
        let mut records: Vec<_> = records.filter(|(at, _)| *at >= step.position).collect();
        records.sort_unstable_by_key(|(at, _)| *at);
        found.looks += records.len() / 8;
        let entries: Vec<(u32, &Entry)> =
            records.iter().filter_map(|(at, item)| step.db.indexed(*item).map(|entry| (*at, entry))).collect();
        self.show_all(step, &entries, found, &show)
    }

    /// Appends the records that match, as long as there is room. Returns where to continue if there was not; keys at
    /// one position are never split.
    fn show_all(
        &self,
        step: ShardStep<'_>,
        entries: &[(u32, &Entry)],
        found: &mut FoundRecords,
        show: &impl Fn(&mut FoundRecords, &Entry, HashRef<'_>),
    ) -> Option<u32> {
        let mut last = None;
        for (position, entry) in entries {
            if found.count >= self.limit && last != Some(*position) {
                return Some(*position);
            }
            if let Some(hash) = step.matching(self, entry) {
                show(found, entry, hash);
            }
            last = Some(*position);
        }
        None
    }
}
