//! Which entries a trim removes: whole chunks from the front, and entries of the next one. Follows Redis's rules, which
//! are visible where a trim is approximate; changes nothing. With ACKED it passes over entries that a group still needs.

use super::Stream;
use super::id::StreamId;

/// What a trim keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The newest entries, this many.
    Newest(u64),
    /// Entries with this id or a higher one.
    From(StreamId),
}

/// What becomes of references to an entry, in the pending entries of groups, when it is removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum References {
    /// They stay.
    #[default]
    Keep,
    /// They are removed too.
    Delete,
    /// Only an entry that every group has read and acknowledged is removed.
    Acknowledged,
}

/// A trimming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trimming {
    pub keep: Keep,
    /// Remove only whole chunks.
    pub is_approximate: bool,
    /// The most entries to remove; 0 for no limit.
    pub limit: u64,
    pub references: References,
}

/// The result of a trim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trimmed {
    /// Entries up to this id are removed.
    pub upto: StreamId,
    /// The number of removed entries.
    pub count: u64,
}

impl Stream {
    /// Computes a trim of the stream; `None` when it would change nothing.
    pub fn trimmed(&self, trimming: &Trimming) -> Option<Trimmed> {
        let Trimming { keep, is_approximate, limit, .. } = *trimming;
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

    /// The entries that a trim of acknowledged entries removes, in order. An entry that a group still needs counts among
    /// those that are left.
    pub fn trimmed_acknowledged(&self, trimming: &Trimming) -> Vec<StreamId> {
        let Trimming { keep, is_approximate, limit, .. } = *trimming;
        let (mut left, mut looked_at, mut removed) = (self.len, 0, Vec::new());
        // Behind it some group needs every entry, however many there are.
        let read_by_all = self.groups.values().map(|group| group.last).min();
        for chunk in self.log.chunks() {
            let entries = chunk.live();
            if keep.is_reached(left) || limit > 0 && looked_at + entries > limit {
                break;
            }
            let is_within = match keep {
                Keep::Newest(count) => left - entries >= count,
                Keep::From(id) => chunk.last() < id,
            };
            if is_approximate && !is_within {
                break;
            }
            for entry in chunk.first_live_on().filter(|entry| !entry.is_deleted) {
                if keep.is_reached(left) || matches!(keep, Keep::From(id) if entry.id >= id) {
                    return removed;
                }
                if read_by_all.is_some_and(|last| last < entry.id) {
                    return removed;
                }
                looked_at += 1;
                if !self.is_referenced(entry.id) {
                    left -= 1;
                    removed.push(entry.id);
                }
            }
        }
        removed
    }
}

impl Keep {
    /// True when `left` entries are few enough.
    fn is_reached(self, left: u64) -> bool {
        matches!(self, Keep::Newest(count) if left <= count)
    }
}
