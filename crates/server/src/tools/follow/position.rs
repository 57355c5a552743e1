//! How far a target is in the history of its source. It is kept in the target, and written in the transaction that brings it
//! there: so no crash of either side, or of this process, applies a command twice or leaves one out.

use crate::tools::link::Reply;
use anyhow::{Context, Result, bail};
use formats::replication::ReplicationId;

/// The key of the target that holds the position: a hash in database 0. It goes with the promotion.
pub(super) const KEY: &[u8] = b"holdfast:import";
/// Sources count with signed numbers.
pub(super) const OFFSET_MAX: u64 = i64::MAX as u64;
/// The key that asks for the promotion.
pub(super) const PROMOTE_KEY: &[u8] = b"holdfast:import:promote";

/// True for the names of both keys. The source may have no key of such a name, in no database: COPY, MOVE and SWAPDB would
/// bring it to ours.
pub(super) fn is_reserved(name: &[u8]) -> bool {
    name == KEY || name == PROMOTE_KEY
}

/// A key of the source has a name that is ours.
#[derive(Debug)]
pub(super) struct Reserved(pub(super) Vec<u8>);

impl std::error::Error for Reserved {}

impl std::fmt::Display for Reserved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the source has or writes a key {}, where the target keeps how far it is: rename or delete that key at the source, and \
             start the same command again, which brings all data once more",
            self.0.escape_ascii()
        )
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// All data is on its way: what is there now is a part.
    Loading,
    /// All commands up to the offset are applied.
    At(At),
    /// All data was copied key by key, as it was while that took place.
    Copied,
}

/// A place in a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub(super) id: ReplicationId,
    pub(super) offset: u64,
    /// The database that is selected there.
    pub(super) db: u64,
}

impl Position {
    /// What HSET is given.
    pub(super) fn fields(&self) -> Vec<(&'static str, String)> {
        match self {
            Position::Loading => vec![("state", "loading".to_owned())],
            Position::Copied => vec![("state", "copied".to_owned())],
            Position::At(at) => vec![
                ("state", "following".to_owned()),
                ("id", at.id.to_string()),
                ("offset", at.offset.to_string()),
                ("db", at.db.to_string()),
            ],
        }
    }

    /// Reads the reply to HGETALL; `None` when there is no such key.
    pub(super) fn read(reply: &Reply) -> Result<Option<Position>> {
        let items = reply.items();
        if items.is_empty() {
            return Ok(None);
        }
        let field = |name: &str| {
            items.chunks(2).find(|pair| pair[0].text().as_deref() == Some(name)).and_then(|pair| pair.get(1)?.text())
        };
        Ok(Some(match field("state").as_deref() {
            Some("loading") => Position::Loading,
            Some("copied") => Position::Copied,
            Some("following") => {
                let at = || {
                    let id = ReplicationId::parse(&field("id")?)?;
                    Some(At {
                        id,
                        offset: field("offset")?.parse().ok().filter(|offset| *offset <= OFFSET_MAX)?,
                        db: field("db")?.parse().ok()?,
                    })
                };
                Position::At(at().context("the position in the target cannot be read")?)
            }
            _ => bail!("the key {} of the target holds no position of ours", String::from_utf8_lossy(KEY)),
        }))
    }
}

/// The source of a position: a position of another source is of no use.
pub(super) fn source_of(reply: &Reply) -> Option<String> {
    let mut pairs = reply.items().chunks(2);
    pairs.find(|pair| pair[0].text().as_deref() == Some("source")).and_then(|pair| pair.get(1)?.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(fields: &[(&str, String)]) -> Reply {
        let text = |text: &str| Reply::Bulk(text.as_bytes().to_vec());
        Reply::Array(fields.iter().flat_map(|(name, value)| [text(name), text(value)]).collect())
    }

    #[test]
    fn a_position_reads_back() {
        let id = ReplicationId::parse(&"a1".repeat(20)).unwrap();
        for position in [Position::Loading, Position::Copied, Position::At(At { id, offset: 7, db: 3 })] {
            assert_eq!(Position::read(&reply(&position.fields())).unwrap(), Some(position));
        }
        assert_eq!(Position::read(&Reply::Array(Vec::new())).unwrap(), None);
        for damaged in
            [vec![("state", "x".to_owned())], vec![("state", "following".to_owned()), ("id", "a".to_owned())]]
        {
            assert!(Position::read(&reply(&damaged)).is_err());
        }
    }
}
