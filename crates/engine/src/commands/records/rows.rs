//! FIELDS, KEYS and WITHTTL: what a command returns of each record that it found. Knows the forms of a row; refuses to
//! know how records are found and in which order they come.

use crate::args::{Args, is_word};
use crate::commands::shared::options::{Names, names, once};
use crate::commands::sorted_sets::reply_score;
use crate::error::CommandError;
use crate::value_reply::ValueReply;
use keyspace::HashRef;
use resp::Reply;

/// The options `FIELDS n field …` or `KEYS`, and `WITHTTL`, of a request.
#[derive(Default)]
pub(super) struct RowOptions<'a> {
    shown: Option<Shown<'a>>,
    with_ttl: Option<bool>,
}

/// What is returned of a record beside its name.
enum Shown<'a> {
    Fields(Names<'a>),
    /// Its name alone.
    Keys,
}

/// A record as a row of a reply.
pub(super) struct Row<'r> {
    pub(super) name: &'r [u8],
    /// Its score, where the command tells scores.
    pub(super) score: Option<f64>,
    pub(super) hash: HashRef<'r>,
    /// When it expires, in unix milliseconds.
    pub(super) deadline_ms: Option<u64>,
}

impl<'a> RowOptions<'a> {
    /// Reads an option if the word is one of these; false when it is another.
    pub(super) fn take(&mut self, word: &[u8], args: &mut Args<'a>) -> Result<bool, CommandError> {
        if is_word(word, "FIELDS") {
            once(&mut self.shown, Shown::Fields(names(args, "FIELDS")?), "FIELDS or KEYS")?;
        } else if is_word(word, "KEYS") {
            once(&mut self.shown, Shown::Keys, "FIELDS or KEYS")?;
        } else if is_word(word, "WITHTTL") {
            once(&mut self.with_ttl, true, "WITHTTL")?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Writes a row: `[key, score, map of fields, ttl]`, without what is not asked for. A key alone is no array.
    pub(super) fn reply(&self, row: &Row<'_>, now_ms: u64, reply: &mut Reply<'_>) {
        let keys_only = matches!(self.shown, Some(Shown::Keys));
        let with_ttl = self.with_ttl.is_some();
        let score = row.score.filter(|_| !keys_only);
        let parts = 1 + usize::from(score.is_some()) + usize::from(!keys_only) + usize::from(with_ttl);
        if parts > 1 {
            reply.array(parts);
        }
        reply.bulk(row.name);
        if let Some(score) = score {
            reply_score(reply, score);
        }
        match &self.shown {
            None => {
                reply.map(row.hash.len());
                for (field, value) in row.hash.iter() {
                    field.reply(reply);
                    value.reply(reply);
                }
            }
            // Fields that the record does not have are left out.
            Some(Shown::Fields(names)) => {
                let found = || names.iter().filter_map(|name| row.hash.get(name).map(|value| (name, value)));
                reply.map(found().count());
                for (name, value) in found() {
                    reply.bulk(name);
                    value.reply(reply);
                }
            }
            Some(Shown::Keys) => {}
        }
        if with_ttl {
            reply.integer(row.deadline_ms.map_or(-1, |deadline| deadline.saturating_sub(now_ms) as i64));
        }
    }
}
