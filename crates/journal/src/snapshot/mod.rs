//! Snapshots: files of opaque parts that count all at once or not at all. Knows what part is stamped with what
//! sequence; refuses to know what is in it.
//!
//! A snapshot is taken part by part while the journal goes on, so each part says up to which sequence it is complete.
//! What a snapshot and the journal say together is only consistent once the journal is on disk up to the *last* of
//! those stamps; [`SnapshotWriter::finish`] waits for that before it gives the file its name.

mod format;
mod info;
mod reader;
mod store;
mod writer;

pub use format::Stamp;
pub(crate) use format::{SnapshotName, is_temporary};
pub use info::{SnapshotError, SnapshotInfo};
pub use reader::{Part, SnapshotReadError, SnapshotReader};
pub use store::SnapshotStore;
pub use writer::SnapshotWriter;
