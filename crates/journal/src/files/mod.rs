//! The bytes of the journal's files: frames, segments, the file `MARKS`, and the ids that they carry.

pub(crate) mod checksums;
mod directory_id;
mod epoch_id;
pub(crate) mod frame;
pub(crate) mod marks;
pub(crate) mod segment;

pub use directory_id::DirectoryId;
pub use epoch_id::EpochId;
pub(crate) use epoch_id::WriterIdentity;
