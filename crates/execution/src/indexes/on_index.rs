//! How a command reads indexes under its locks: not at all, at once, in slices, or on copies.

use crate::engine::Engine;
use crate::instants::AtInstant;
use crate::slices::TimeSlice;
use crate::view::{StandIns, View};
use keyspace::shard::Shard;

/// The most elements that a command without slices visits while everything is locked: about as long as a slice.
const WALK_MAX: usize = 512;

/// How a command may read indexes under its locks.
#[derive(Clone, Copy)]
pub enum OnIndex<'a> {
    /// None of its keys is an index.
    No,
    /// None of its keys is an index, and no other command shares its locks.
    NoneAlone,
    /// In a transaction or script, which keeps its locks anyway: everything is read at once.
    AtOnce,
    /// In slices: what does not fit into this slice is done in the next.
    InSlices(TimeSlice<'a>),
    /// On copies of the indexes, with only the locks of its keys.
    OnCopies(&'a Shard),
    /// None of its keys is an index, and its cells are those of an instant.
    NoneAtInstant(&'a AtInstant<'a>),
}

impl<'a> OnIndex<'a> {
    pub fn slice(self) -> Option<TimeSlice<'a>> {
        match self {
            OnIndex::InSlices(slice) => Some(slice),
            OnIndex::No | OnIndex::NoneAlone | OnIndex::AtOnce | OnIndex::OnCopies(_) | OnIndex::NoneAtInstant(_) => {
                None
            }
        }
    }

    /// Sets up a view so that it shows the command's keys in this way.
    #[inline]
    pub fn set_up(self, view: &mut View<'a>, engine: &Engine) {
        match self {
            OnIndex::No | OnIndex::NoneAlone => {}
            OnIndex::AtOnce => view.reads_index = true,
            OnIndex::InSlices(_) => {
                view.reads_index = true;
                if engine.background_tasks.is_served() {
                    view.walk_max = WALK_MAX;
                }
            }
            OnIndex::OnCopies(copies) => view.stand_ins = Some(StandIns::Indexes(copies)),
            OnIndex::NoneAtInstant(instant) => {
                view.stand_ins = Some(StandIns::Cells(instant));
                view.touch = false;
            }
        }
    }
}
