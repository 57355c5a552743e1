//! What a start reads: the parts of a snapshot, then the batches since. From any source ([`History`]), or from a data
//! directory ([`Recovery`]), which is then opened for writing.

mod finding;
mod history;
mod opening;
mod reading;

pub use finding::{RecoveryError, Warning};
pub use history::{History, Progress};
pub use reading::Recovery;
