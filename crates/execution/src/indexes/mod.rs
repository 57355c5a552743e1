//! Indexes of records: the catalogue (`catalogue`), how indexes are created and dropped (`lifecycle`), and how commands
//! read one (`access`).

pub mod access;
pub mod catalogue;
pub mod definitions;
pub mod lifecycle;
pub mod on_index;

pub use access::{
    expire_for_index, is_ready_for_index, lock_for_index, meets_index, pass_index_rules, run_on_index,
    run_on_index_under,
};
pub use catalogue::{IndexCatalogue, is_index};
pub use definitions::{IndexConflict, IndexFailure, RevivedIndexes, revive_indexes};
pub use definitions::{begin_index, find_same, tidy_groups, tidy_rates};
pub use lifecycle::{backfill_index, drop_index};
pub use on_index::OnIndex;
