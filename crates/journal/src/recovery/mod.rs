//! What a start reads: the parts of a snapshot, then the batches since. From any source ([`History`]), or from a data
//! directory ([`Recovery`]), which is then opened for writing.

mod epochs;
mod finding;
mod history;
mod opening;
mod reading;
mod repair;

pub use finding::{DirectoryError, Warning};
pub use history::{History, ReadProgress, RecoveryError};
pub(crate) use opening::open_fence;
pub use reading::Recovery;
pub(crate) use reading::{FollowedTo, SegmentEnd, Survey};
pub use repair::{Piece, Repair};
