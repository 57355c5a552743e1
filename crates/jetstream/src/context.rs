//! What all parts of the log in one process share. Decides nothing.

use crate::frame::{LogId, Position};
use crate::lease::Timing;
use crate::snapshots::Objects;
use crate::stream::{Stream, Time};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The log, as one process uses it.
pub(crate) struct Context {
    /// What it is called, for messages.
    pub(crate) name: String,
    pub(crate) stream: Arc<dyn Stream>,
    pub(crate) objects: Arc<dyn Objects>,
    pub(crate) time: Arc<dyn Time>,
    pub(crate) log: LogId,
    pub(crate) partition: u32,
    pub(crate) timing: Timing,
    /// The name of this process among those that use the log.
    pub(crate) member: String,
    /// Where clients reach this process.
    pub(crate) address: Mutex<String>,
    /// The last writer that was heard of: its name and where clients reach it.
    pub(crate) writer: Mutex<String>,
    /// Which member should take the log when it is given up next; empty: any.
    pub(crate) successor: Mutex<String>,
    /// What comes up to here is needed by no snapshot that is kept.
    pub(crate) kept_from: AtomicU64,
}

/// A position up to which nothing is needed.
pub(crate) const NOTHING_KEPT: Position = 0;
