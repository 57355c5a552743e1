//! Snapshots: opaque parts that are published together, atomically; where they are kept ([`SnapshotStore`]), and the files
//! of a data directory ([`DirectorySnapshots`]). Knows the stamp of each part; refuses to know its
//! contents.
//!
//! A snapshot is taken part by part while the journal continues, so each part says up to which sequence it is complete.
//! Snapshot and journal together are consistent once the journal is on disk up to the *last* of those stamps;
//! [`SnapshotWriter::finish`] waits for that before it renames the file.

mod directory;
mod format;
mod info;
mod reader;
mod store;
mod writer;

pub use directory::DirectorySnapshots;
pub use format::Stamp;
pub(crate) use format::{SnapshotName, is_temporary};
pub use info::{SnapshotError, SnapshotInfo};
pub use reader::{SnapshotReadError, SnapshotReader, StoredPart};
pub use store::{ReadSnapshot, SnapshotStore, WriteSnapshot};
pub use writer::SnapshotWriter;
