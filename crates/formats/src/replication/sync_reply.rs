//! The reply to PSYNC. Knows its words; refuses to know what follows from them.

use std::fmt;

/// The id of a history of commands, 40 characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicationId(String);

const ID_CHARS: usize = 40;

impl ReplicationId {
    /// `None` for what is no id.
    pub fn parse(text: &str) -> Option<ReplicationId> {
        let is_id = text.len() == ID_CHARS && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_id.then(|| ReplicationId(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ReplicationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a source says to PSYNC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyncReply {
    /// All data comes, then what happens after this offset.
    Full { id: ReplicationId, offset: u64 },
    /// Commands come from the offset that was asked for. The history may have another id now.
    Continue { id: Option<ReplicationId> },
    /// Not now: it loads its data, or has lost its own source.
    NotNow(String),
    /// Never: the command is unknown, or the user may not use it.
    Refused(String),
}

impl SyncReply {
    pub(super) fn parse(line: &str) -> Option<SyncReply> {
        if let Some(why) = line.strip_prefix('-') {
            let passes = ["NOMASTERLINK", "LOADING", "MASTERDOWN", "TRYAGAIN"].iter().any(|word| why.starts_with(word));
            return Some(if passes { SyncReply::NotNow(why.to_owned()) } else { SyncReply::Refused(why.to_owned()) });
        }
        let mut words = line.split_ascii_whitespace();
        match (words.next()?, words.next(), words.next()) {
            ("+FULLRESYNC", Some(id), Some(offset)) => {
                Some(SyncReply::Full { id: ReplicationId::parse(id)?, offset: offset.parse().ok()? })
            }
            ("+CONTINUE", None, None) => Some(SyncReply::Continue { id: None }),
            ("+CONTINUE", Some(id), None) => Some(SyncReply::Continue { id: Some(ReplicationId::parse(id)?) }),
            _ => None,
        }
    }
}
