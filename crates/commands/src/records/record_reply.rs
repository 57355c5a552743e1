//! FIELDS, KEYS and WITHTTL: what a command returns for each record. Knows the forms of a record in a reply; refuses to
//! know how records are found and ordered.

use crate::shared::options::{Names, names, once};
use crate::sorted_sets::reply_score;
use crate::value_reply::ValueReply;
use execution::args::{Args, is_word};
use execution::error::CommandError;
use keyspace::HashRef;
use resp::Reply;

/// The options `FIELDS n field …` or `KEYS`, and `WITHTTL`, of a request.
#[derive(Default)]
pub(super) struct RecordReplyOptions<'a> {
    shown: Option<Shown<'a>>,
    with_ttl: Option<bool>,
}

/// What is returned for a record besides its name.
enum Shown<'a> {
    Fields(Names<'a>),
    /// Its name alone.
    Keys,
}

/// A record that a reply shows.
pub(super) struct RecordReply<'r> {
    pub(super) name: &'r [u8],
    /// Its score, if the command returns scores.
    pub(super) score: Option<f64>,
    pub(super) hash: HashRef<'r>,
    /// When it expires, in unix milliseconds.
    pub(super) deadline_ms: Option<u64>,
}

impl<'a> RecordReplyOptions<'a> {
    /// Parses an option if the word is one of these; false otherwise.
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

    /// Writes a record: `[key, score, map of fields, ttl]`, without the parts that were not requested. A key alone is
    /// not wrapped in an array.
    pub(super) fn reply(&self, record: &RecordReply<'_>, now_ms: u64, reply: &mut Reply<'_>) {
        let keys_only = matches!(self.shown, Some(Shown::Keys));
        let with_ttl = self.with_ttl.is_some();
        let score = record.score.filter(|_| !keys_only);
        let parts = 1 + usize::from(score.is_some()) + usize::from(!keys_only) + usize::from(with_ttl);
        if parts > 1 {
            reply.array(parts);
        }
        reply.bulk(record.name);
        if let Some(score) = score {
            reply_score(reply, score);
        }
        match &self.shown {
            None => {
                reply.map(record.hash.len());
                for (field, value) in record.hash.iter() {
                    field.reply(reply);
                    value.reply(reply);
                }
            }
            // Fields that the record does not have are left out.
            Some(Shown::Fields(names)) => {
                let found = || names.iter().filter_map(|name| record.hash.get(name).map(|value| (name, value)));
                reply.map(found().count());
                for (name, value) in found() {
                    reply.bulk(name);
                    value.reply(reply);
                }
            }
            Some(Shown::Keys) => {}
        }
        if with_ttl {
            reply.integer(record.deadline_ms.map_or(-1, |deadline| deadline.saturating_sub(now_ms) as i64));
        }
    }
}
