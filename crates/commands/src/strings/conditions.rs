//! What a string must be for SET and DELEX to act, and the commands that are about nothing else: DELEX, DELIFEQ and
//! DIGEST. Knows strings; refuses to know what is written if a condition holds.

use algorithms::content_digest::{DIGEST_CHARS, content_digest};
use execution::args::is_word;
use execution::context::{ReadCx, WriteCx};
use execution::error::{CommandError, CommandResult};
use execution::settings::events::Events;
use keyspace::{Cause, Effect, Key, Scalar, StringRef};

/// When SET may write, and DELEX may delete.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition<'a> {
    Always,
    Absent,
    Present,
    Content(Comparison<'a>),
}

/// A comparison with the string that is there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Comparison<'a> {
    by: By,
    operand: &'a [u8],
}

/// How strings are compared, by the option's word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// IFEQ: the string there equals the operand.
    Equal,
    /// IFNE: there is no string, or it differs.
    Different,
    /// IFDEQ: the digest of the string there, as DIGEST returns it, equals the operand.
    EqualDigest,
    /// IFDNE: there is no string, or its digest differs.
    DifferentDigest,
}

impl By {
    fn of_word(word: &[u8]) -> Option<By> {
        const WORDS: [(&str, By); 4] =
            [("IFEQ", By::Equal), ("IFNE", By::Different), ("IFDEQ", By::EqualDigest), ("IFDNE", By::DifferentDigest)];
        WORDS.iter().find(|(name, _)| is_word(word, name)).map(|(_, by)| *by)
    }
}

impl<'a> Condition<'a> {
    /// The condition after another word of SET's options; `None` if the word is none, or does not go with what was
    /// before.
    pub(super) fn with(
        self,
        word: &[u8],
        operand: impl FnOnce() -> Result<&'a [u8], CommandError>,
    ) -> Result<Option<Condition<'a>>, CommandError> {
        match (self, By::of_word(word)) {
            (Condition::Always, Some(by)) => Ok(Some(Condition::Content(Comparison { by, operand: operand()? }))),
            (_, Some(_)) => Ok(None),
            (_, None) => Ok(self.with_existence(word)),
        }
    }

    /// As [`with`](Condition::with), for NX and XX alone.
    pub(super) fn with_existence(self, word: &[u8]) -> Option<Condition<'a>> {
        match self {
            Condition::Always | Condition::Absent if is_word(word, "NX") => Some(Condition::Absent),
            Condition::Always | Condition::Present if is_word(word, "XX") => Some(Condition::Present),
            _ => None,
        }
    }

    /// Whether the condition holds for the string at a key; `exists` says whether the key has a value of any type.
    pub(super) fn holds(self, cx: &WriteCx<'_>, key: Key<'_>, exists: bool) -> Result<bool, CommandError> {
        match self {
            Condition::Always => Ok(true),
            Condition::Absent => Ok(!exists),
            Condition::Present => Ok(exists),
            Condition::Content(comparison) => comparison.holds(cx.keys.view().typed::<StringRef>(key)?),
        }
    }
}

impl Comparison<'_> {
    fn holds(self, found: Option<Scalar<'_>>) -> Result<bool, CommandError> {
        let Some(found) = found else { return Ok(matches!(self.by, By::Different | By::DifferentDigest)) };
        Ok(match self.by {
            By::Equal => self.is_operand(found),
            By::Different => !self.is_operand(found),
            By::EqualDigest => self.is_digest_of(found)?,
            By::DifferentDigest => !self.is_digest_of(found)?,
        })
    }

    fn is_operand(self, found: Scalar<'_>) -> bool {
        found.with_bytes(|found| found == self.operand)
    }

    /// Only the length is checked: what is not hexadecimal is no digest of anything.
    fn is_digest_of(self, found: Scalar<'_>) -> Result<bool, CommandError> {
        if self.operand.len() != DIGEST_CHARS {
            return Err(CommandError::fixed("ERR must be exactly 16 hexadecimal characters"));
        }
        Ok(found.with_bytes(content_digest).eq_ignore_ascii_case(self.operand))
    }
}

/// DELEX: deletes a key of any type, or a string if a condition holds.
pub(super) fn delex(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let condition = match cx.args.left() {
        0 => None,
        2 => Some((cx.args.bytes()?, cx.args.bytes()?)),
        _ => return Err(CommandError::WrongArity("delex".into())),
    };
    let exists = cx.keys.view().exists(key);
    // As in Redis: without the key, the condition is not looked at.
    let Some((word, operand)) = condition.filter(|_| exists) else {
        delete(cx, key, exists);
        return Ok(());
    };
    let Ok(found) = cx.keys.view().typed::<StringRef>(key) else {
        return Err(CommandError::fixed("ERR Key should be of string type if conditions are specified"));
    };
    let by = By::of_word(word).ok_or(CommandError::fixed("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE"))?;
    let may_delete = Comparison { by, operand }.holds(found)?;
    delete(cx, key, may_delete);
    Ok(())
}

/// DELIFEQ, of Valkey: deletes a string that equals the given one.
pub(super) fn delifeq(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, operand) = (cx.args.key()?, cx.args.bytes()?);
    let found = cx.keys.view().typed::<StringRef>(key)?;
    let may_delete = Comparison { by: By::Equal, operand }.holds(found)?;
    delete(cx, key, may_delete);
    Ok(())
}

fn delete(cx: &mut WriteCx<'_>, key: Key<'_>, may_delete: bool) {
    if may_delete {
        cx.keys.record(&Effect::Delete { key, cause: Cause::Deleted });
        cx.keys.notify(Events::GENERIC, "del", key);
    }
    cx.reply.integer(i64::from(may_delete));
}

/// DIGEST: what IFDEQ and IFDNE compare with.
pub(super) fn digest(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let found = cx.keys.typed::<StringRef>(key)?;
    cx.keys.looked_up(key, found.is_some());
    match found {
        Some(string) => cx.reply.bulk(&string.with_bytes(content_digest)),
        None => cx.reply.null(),
    }
    Ok(())
}
