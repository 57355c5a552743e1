//! Walks over the names of a database: KEYS all at once, SCAN a few at a time. Refuses to change anything, even to
//! remove what has expired.

use super::hash_scan::parse_cursor;
use crate::algorithms::glob::Pattern;
use crate::args::is_word;
use crate::command::{Command, Flags, Keys, at_least, exactly, read};
use crate::context::ReadCx;
use crate::error::{CommandError, CommandResult};
use keyspace::ValueType;
use resp::Reply;

fn keys(cx: &mut ReadCx<'_>) -> CommandResult {
    let selection = Selection::of(cx.args.bytes()?);
    let open = cx.reply.open_array();
    let mut len = 0;
    for (_, shard) in cx.keys.locked().shards() {
        let names = shard.db(cx.keys.db()).iter(cx.keys.now_ms).map(|entry| entry.name());
        for name in names.filter(|name| selection.has(name)) {
            cx.reply.bulk(name);
            len += 1;
        }
    }
    cx.reply.close(open, len);
    Ok(())
}

/// How many keys a step of SCAN looks at unless it is told.
const COUNT_DEFAULT: usize = 10;

fn scan(cx: &mut ReadCx<'_>) -> CommandResult {
    let cursor = parse_cursor(cx.args.bytes()?).ok_or(CommandError::fixed("ERR invalid cursor"))?;
    let mut place = Place::from_cursor(cursor);
    let (mut selection, mut count, mut type_name) = (Selection::All, COUNT_DEFAULT, None);
    while let Some(word) = cx.args.try_next() {
        if is_word(word, "COUNT") {
            count = step_size(cx.args.int()?)?;
        } else if is_word(word, "MATCH") {
            selection = Selection::of(cx.args.bytes()?);
        } else if is_word(word, "TYPE") {
            type_name = Some(cx.args.bytes()?);
        } else if is_word(word, "NOVALUES") {
            return Err(CommandError::fixed("ERR NOVALUES option can only be used in HSCAN"));
        } else {
            return Err(CommandError::Syntax);
        }
    }
    // The cursor comes before the names but is known after them.
    let (mut names, mut len, mut seen) = (Vec::new(), 0, 0);
    let shard_count = cx.engine.keyspace.shard_count();
    while place.shard < shard_count && seen < count {
        let next = cx.shard(place.shard, |db| {
            db.scan(place.position, count - seen, cx.keys.now_ms, |entry| {
                seen += 1;
                if selection.has(entry.name()) && type_name.is_none_or(|name| is_word(name, ValueType::of(entry).name))
                {
                    Reply::new(&mut names, cx.reply.protocol()).bulk(entry.name());
                    len += 1;
                }
            })
        });
        place = match next {
            Some(position) => Place { position, ..place },
            None => Place { shard: place.shard + 1, position: 0 },
        };
    }
    cx.reply.array(2);
    cx.reply.bulk_integer(if place.shard < shard_count { place.to_cursor() } else { 0 });
    cx.reply.array(len);
    cx.reply.raw(&names);
    Ok(())
}

/// Which names a pattern asks for.
pub(super) enum Selection {
    All,
    Matching(Pattern),
}

impl Selection {
    /// `*` alone selects everything; the matcher would leave out the empty name, as Redis's does.
    pub(super) fn of(pattern: &[u8]) -> Selection {
        if pattern == b"*" { Selection::All } else { Selection::Matching(Pattern::new(pattern, false)) }
    }

    pub(super) fn has(&self, name: &[u8]) -> bool {
        match self {
            Selection::All => true,
            Selection::Matching(pattern) => pattern.matches(name),
        }
    }
}

/// The COUNT of a step.
pub(super) fn step_size(count: i64) -> Result<usize, CommandError> {
    usize::try_from(count).ok().filter(|count| *count > 0).ok_or(CommandError::Syntax)
}

/// Where a scan goes on. A key never changes its shard, and its position there survives every growth of the table,
/// so what stays in the database during the whole scan is met exactly once.
///
/// ```text
/// cursor   bits 0..32 position, bits 32.. shard; 0 is the start, and the end
/// ```
///
/// That is far below 2^53, so a client may keep a cursor as a double.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) shard: usize,
    pub(super) position: u32,
}

impl Place {
    pub(super) fn from_cursor(cursor: u64) -> Place {
        Place { shard: (cursor >> 32) as usize, position: cursor as u32 }
    }

    pub(super) fn to_cursor(self) -> i64 {
        (self.shard as i64) << 32 | i64::from(self.position)
    }
}

pub(super) const COMMANDS: &[Command] = &[
    read("keys", exactly(2), Keys::Everything, keys)
        .flag(Flags::DANGEROUS)
        .tips(&["request_policy:all_shards", "nondeterministic_output_order"]),
    read("scan", at_least(2), Keys::Walk, scan).tips(&[
        "nondeterministic_output",
        "request_policy:special",
        "response_policy:special",
    ]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_survives_as_a_cursor() {
        for place in [(0, 1), (1, 0), (511, u32::MAX)].map(|(shard, position)| Place { shard, position }) {
            assert_eq!(Place::from_cursor(place.to_cursor() as u64), place);
            assert!(place.to_cursor() < 1 << 53);
        }
    }
}
