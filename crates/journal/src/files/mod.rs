//! The bytes of the journal's files: frames, segments, the file `MARKS`, and the id that all of them carry.

mod directory_id;
pub(crate) mod frame;
pub(crate) mod marks;
pub(crate) mod segment;

pub use directory_id::DirectoryId;
