//! XCFGSET, and the options IDMP and IDMPAUTO of XADD: an entry that a producer sends again is not added again. Knows the
//! options, and the id of an entry that has none; refuses to know for how long ids are kept
//! (`keyspace::types::stream::Idempotency`).

use super::stamp_ms;
use execution::args::{Args, is_word};
use execution::context::WriteCx;
use execution::error::{CommandError, CommandResult};
use keyspace::types::stream::{Change, Field, Remembered, Retention, Stream, StreamId};
use keyspace::{Effect, Key};
use sha2::{Digest, Sha256};
use smallvec::SmallVec;
use std::borrow::Cow;

/// How a producer says which entry it adds.
#[derive(Clone, Copy)]
pub(super) enum Given<'a> {
    /// By an id.
    Id { producer: &'a [u8], id: &'a [u8] },
    /// By its fields.
    Fields { producer: &'a [u8] },
}

impl<'a> Given<'a> {
    /// Takes what follows the word IDMP or IDMPAUTO; `None` for another word.
    pub(super) fn take(word: &[u8], args: &mut Args<'a>) -> Result<Option<Given<'a>>, CommandError> {
        const NO_PRODUCER: CommandError = CommandError::fixed("ERR IDMP requires a non-empty producer ID");
        const NO_ID: CommandError = CommandError::fixed("ERR IDMP requires a non-empty idempotent ID");
        const AUTO_NO_PRODUCER: CommandError = CommandError::fixed("ERR IDMPAUTO requires a non-empty producer ID");
        if is_word(word, "IDMP") && args.left() >= 2 {
            let (producer, id) = (args.bytes()?, args.bytes()?);
            if producer.is_empty() {
                return Err(NO_PRODUCER);
            }
            return if id.is_empty() { Err(NO_ID) } else { Ok(Some(Given::Id { producer, id })) };
        }
        if is_word(word, "IDMPAUTO") && !args.is_empty() {
            let producer = args.bytes()?;
            return if producer.is_empty() { Err(AUTO_NO_PRODUCER) } else { Ok(Some(Given::Fields { producer })) };
        }
        Ok(None)
    }

    /// The producer and the id of an entry with these fields.
    pub(super) fn resolve(self, fields: &[Field<'_>]) -> (&'a [u8], Cow<'a, [u8]>) {
        match self {
            Given::Id { producer, id } => (producer, Cow::Borrowed(id)),
            Given::Fields { producer } => (producer, Cow::Owned(id_of_fields(fields))),
        }
    }
}

/// An id that fields have in every order: 16 bytes of the SHA-256 of the sorted pairs.
fn id_of_fields(fields: &[Field<'_>]) -> Vec<u8> {
    const ID_BYTES: usize = 16;
    let mut sorted: SmallVec<[Field<'_>; 8]> = SmallVec::from_slice(fields);
    sorted.sort_unstable();
    let mut hasher = Sha256::new();
    for text in sorted.iter().flat_map(|(name, value)| [name, value]) {
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text);
    }
    hasher.finalize()[..ID_BYTES].to_vec()
}

/// The entry that a producer has added before with this id. That it is asked for again is counted.
pub(super) fn find_added(
    cx: &mut WriteCx<'_>,
    key: Key<'_>,
    producer: &[u8],
    id: &[u8],
) -> Result<Option<StreamId>, CommandError> {
    let now_ms = stamp_ms(cx);
    let ids = cx.keys.view().typed::<&Stream>(key)?.and_then(Stream::idempotency);
    let found = ids.and_then(|ids| ids.find(producer, id, now_ms));
    if found.is_some() {
        cx.keys.record(&Effect::change(key, Change::Duplicate));
    }
    Ok(found)
}

/// Remembers with which id a producer has added an entry.
pub(super) fn remember(
    cx: &mut WriteCx<'_>,
    key: Key<'_>,
    producer: &[u8],
    id: &[u8],
    entry: StreamId,
) -> CommandResult {
    let at_ms = stamp_ms(cx);
    if cx.keys.view().typed::<&Stream>(key)?.is_some_and(|stream| stream.idempotency().is_none()) {
        let retention = default_retention(cx);
        cx.keys.record(&Effect::change(key, Change::Configure { retention }));
    }
    cx.keys.record(&Effect::change(key, Change::Remember { remembered: Remembered { producer, id, entry, at_ms } }));
    Ok(())
}

fn default_retention(cx: &WriteCx<'_>) -> Retention {
    Retention {
        duration_ms: cx.settings.stream_idmp_duration().saturating_mul(1000),
        ids_max: cx.settings.stream_idmp_maxsize(),
    }
}

pub(super) fn xcfgset(cx: &mut WriteCx<'_>) -> CommandResult {
    const NOTHING: CommandError = CommandError::fixed("ERR At least one parameter must be specified");
    const BAD_DURATION: CommandError = CommandError::fixed("ERR IDMP-DURATION must be between 1 and 86400 seconds");
    const BAD_MAX: CommandError = CommandError::fixed("ERR IDMP-MAXSIZE must be between 1 and 10000 entries");
    let within = |number: i64, max: u64| u64::try_from(number).ok().filter(|number| (1..=max).contains(number));
    let key = cx.args.key()?;
    let (mut duration_s, mut ids_max) = (None, None);
    if cx.args.is_empty() {
        return Err(NOTHING);
    }
    while let Some(word) = cx.args.try_next() {
        if is_word(word, "IDMP-DURATION") && !cx.args.is_empty() {
            duration_s = Some(within(cx.args.int()?, 86_400).ok_or(BAD_DURATION)?);
        } else if is_word(word, "IDMP-MAXSIZE") && !cx.args.is_empty() {
            ids_max = Some(within(cx.args.int()?, 10_000).ok_or(BAD_MAX)?);
        } else {
            return Err(CommandError::Syntax);
        }
    }
    let stream = cx.keys.to_change::<&Stream>(key)?.ok_or(CommandError::NoSuchKey)?;
    let before = stream.idempotency().map(|ids| ids.retention);
    let mut retention = before.unwrap_or_else(|| default_retention(cx));
    retention.duration_ms = duration_s.map_or(retention.duration_ms, |seconds| seconds * 1000);
    retention.ids_max = ids_max.unwrap_or(retention.ids_max);
    if before != Some(retention) {
        cx.keys.record(&Effect::change(key, Change::Configure { retention }));
    }
    cx.reply.ok();
    Ok(())
}
