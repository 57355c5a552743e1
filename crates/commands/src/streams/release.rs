//! XNACK: a consumer releases entries that it cannot process, so that others claim them at once. Knows what becomes of
//! the number of deliveries; refuses to know in which order entries are claimed (`keyspace::types::stream`).

use super::groups::no_key_or_group;
use super::references::take_ids;
use execution::args::{Args, is_word};
use execution::context::WriteCx;
use execution::error::{CommandError, CommandResult};
use keyspace::Effect;
use keyspace::types::stream::{Change, DELIVERIES_MAX, Delivery, Stream, StreamId};
use std::collections::BTreeMap;

/// Why entries are released.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The last delivery does not count.
    Silent,
    /// The consumer has failed.
    Fail,
    /// No consumer can process the entry.
    Fatal,
}

/// The arguments behind the group.
struct Asked {
    mode: Mode,
    ids: Vec<StreamId>,
    /// The number of deliveries, whatever the mode says.
    deliveries: Option<u64>,
    /// Entries that are not pending become so.
    force: bool,
}

impl Asked {
    fn take(args: &mut Args<'_>) -> Result<Asked, CommandError> {
        const NO_MODE: CommandError = CommandError::fixed("ERR mode must be SILENT, FAIL, or FATAL");
        const NO_NUMBER: CommandError = CommandError::fixed("ERR numids must be a positive integer");
        const TOO_FEW: CommandError = CommandError::fixed("ERR number of IDs doesn't match numids");
        const NO_IDS: CommandError = CommandError::fixed("ERR syntax error, expected IDS keyword");
        const NEGATIVE: CommandError = CommandError::fixed("ERR Invalid RETRYCOUNT value, must be >= 0");
        let word = args.bytes()?;
        let modes = [("SILENT", Mode::Silent), ("FAIL", Mode::Fail), ("FATAL", Mode::Fatal)];
        let mode = modes.into_iter().find(|(name, _)| is_word(word, name)).ok_or(NO_MODE)?.1;
        let (mut ids, mut deliveries, mut force) = (None, None, false);
        while let Some(word) = args.try_next() {
            if is_word(word, "FORCE") {
                force = true;
            } else if is_word(word, "RETRYCOUNT") && !args.is_empty() {
                deliveries = Some(u64::try_from(args.int()?).map_err(|_| NEGATIVE)?);
            } else if ids.is_none() && is_word(word, "IDS") && !args.is_empty() {
                ids = Some(take_ids(args, NO_NUMBER, TOO_FEW)?);
            } else {
                let word = String::from_utf8_lossy(word);
                return Err(CommandError::said(format!("ERR Unrecognized XNACK option '{word}'")));
            }
        }
        Ok(Asked { mode, ids: ids.ok_or(NO_IDS)?, deliveries, force })
    }

    /// The number of deliveries of an entry that had so many.
    fn deliveries_after(&self, before: u64) -> u64 {
        self.deliveries.unwrap_or(match self.mode {
            Mode::Silent => before.saturating_sub(1),
            Mode::Fail => before,
            Mode::Fatal => DELIVERIES_MAX,
        })
    }
}

pub(super) fn xnack(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, group) = (cx.args.key()?, cx.args.bytes()?);
    let asked = Asked::take(&mut cx.args)?;
    let found = cx.keys.to_change::<&Stream>(key)?.and_then(|stream| Some((stream, stream.group(group)?)));
    let (stream, at) = found.ok_or_else(|| no_key_or_group(key, group))?;
    // An id that is given twice is released twice, and ends where it was given last.
    let mut released: BTreeMap<StreamId, (usize, u64)> = BTreeMap::new();
    let mut count = 0;
    for (turn, id) in asked.ids.iter().enumerate() {
        let before = match (released.get(id), at.get(*id)) {
            (Some((_, deliveries)), _) => *deliveries,
            (None, Some(pending)) => pending.deliveries(),
            (None, None) if asked.force && stream.get(*id).is_some() => 0,
            (None, None) => continue,
        };
        released.insert(*id, (turn, asked.deliveries_after(before)));
        count += 1;
    }
    let mut in_turn: Vec<(usize, Delivery)> = released
        .into_iter()
        .map(|(id, (turn, deliveries))| (turn, Delivery { id, delivered_ms: 0, deliveries }))
        .collect();
    in_turn.sort_unstable_by_key(|(turn, _)| *turn);
    let deliveries: Vec<Delivery> = in_turn.into_iter().map(|(_, delivery)| delivery).collect();
    if !deliveries.is_empty() {
        cx.keys.record(&Effect::change(key, Change::Release { group, deliveries: &deliveries }));
    }
    cx.reply.integer(count);
    Ok(())
}
