//! Which entries a trimming removes: whole chunks from the front on, and what has to go of the next one. Knows Redis's rules, which are
//! visible where a trimming is approximate; changes nothing.

use super::Stream;
use super::id::StreamId;

/// What a trimming is to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// So many entries.
    Newest(u64),
    /// Entries of that id and higher ones.
    From(StreamId),
}

/// A trimming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trimming {
    pub keep: Keep,
    /// Remove whole chunks alone.
    pub is_approximate: bool,
    /// The most entries to remove; 0 for no limit.
    pub limit: u64,
}

/// What a trimming comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trimmed {
    /// Entries up to this id are removed.
    pub upto: StreamId,
    /// So many.
    pub count: u64,
}

impl Stream {
    /// What a trimming of the stream as it is would come to; `None` when it would change nothing.
    pub fn trimmed(&self, trimming: &Trimming) -> Option<Trimmed> {
        let Trimming { keep, is_approximate, limit } = *trimming;
        let (mut left, mut upto) = (self.len, None);
        for chunk in self.log.chunks() {
            let entries = chunk.live();
            let removed = self.len - left;
            if keep.is_reached(left) || limit > 0 && removed + entries > limit {
                break;
            }
            let goes = match keep {
                Keep::Newest(count) => left - entries >= count,
                Keep::From(id) => chunk.last() < id,
            };
            if goes {
                left -= entries;
                upto = Some(chunk.last());
                continue;
            }
            if is_approximate {
                break;
            }
            for entry in chunk.first_live_on().filter(|entry| !entry.is_deleted) {
                if keep.is_reached(left) || matches!(keep, Keep::From(id) if entry.id >= id) {
                    break;
                }
                left -= 1;
                upto = Some(entry.id);
            }
            break;
        }
        upto.map(|upto| Trimmed { upto, count: self.len - left })
    }
}

impl Keep {
    /// True when nothing has to go of so many entries.
    fn is_reached(self, left: u64) -> bool {
        matches!(self, Keep::Newest(count) if left <= count)
    }
}
