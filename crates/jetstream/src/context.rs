//! What all parts of the log in one process share. Decides nothing.

use crate::frame::{Link, LogId, Position};
use crate::lease::Timing;
use crate::mark::Mark;
use crate::objects::Objects;
use crate::stream::{Stream, Time};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

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
    /// The last frame that this process has stored or read, and the furthest.
    pub(crate) seen: Seen,
    /// Snapshots of which a part could not be read. Others are tried first.
    pub(crate) unreadable: Mutex<BTreeSet<String>>,
    /// Messages of others that are passed over.
    pub(crate) skip: BTreeSet<Position>,
}

/// The last frame that was stored or read.
#[derive(Default)]
pub(crate) struct Seen {
    epoch: AtomicU32,
    position: AtomicU64,
    frames: AtomicU64,
    at_ns: AtomicU64,
    /// The furthest that this process has ever stored or read, before it was started again too, with its checksum. The stream
    /// must have it.
    furthest: Mutex<Option<(Position, u32)>>,
}

/// How far this process is, for reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogProgress {
    /// The epoch of the last frame that was stored or read here.
    pub epoch: u32,
    /// Its place in the stream.
    pub position: Position,
    /// How many frames this process has stored and read.
    pub frames: u64,
    /// How long ago that was.
    pub silent: Duration,
}

impl Seen {
    /// Nothing yet, but for what is remembered.
    pub(crate) fn nothing(now_ns: u64, known: Option<Mark>) -> Seen {
        let furthest = Mutex::new(known.map(|known| (known.position, known.crc)));
        Seen { at_ns: AtomicU64::new(now_ns), furthest, ..Seen::default() }
    }

    pub(crate) fn note(&self, link: &Link, now_ns: u64) {
        self.epoch.store(link.epoch.0, Ordering::Relaxed);
        self.position.store(link.position, Ordering::Relaxed);
        {
            let mut furthest = self.furthest.lock();
            if furthest.is_none_or(|(position, _)| position < link.position) {
                *furthest = Some((link.position, link.crc));
            }
        }
        self.frames.fetch_add(1, Ordering::Relaxed);
        self.at_ns.store(now_ns, Ordering::Relaxed);
    }

    pub(crate) fn mark(&self, log: LogId) -> Option<Mark> {
        self.furthest.lock().map(|(position, crc)| Mark { log, position, crc })
    }

    /// The position of the furthest frame; 0 if there is none.
    pub(crate) fn furthest(&self) -> Position {
        self.furthest.lock().map_or(0, |(position, _)| position)
    }

    /// True when a frame was once seen there, and none behind it.
    pub(crate) fn remembers(&self, position: Position) -> bool {
        self.furthest() == position
    }

    /// The checksum of the frame that was once seen there, if it was another.
    pub(crate) fn contradicts(&self, link: &Link) -> Option<u32> {
        let furthest = *self.furthest.lock();
        furthest.filter(|(position, crc)| *position == link.position && *crc != link.crc).map(|(_, crc)| crc)
    }

    pub(crate) fn progress(&self, now_ns: u64) -> LogProgress {
        LogProgress {
            epoch: self.epoch.load(Ordering::Relaxed),
            position: self.position.load(Ordering::Relaxed),
            frames: self.frames.load(Ordering::Relaxed),
            silent: Duration::from_nanos(now_ns.saturating_sub(self.at_ns.load(Ordering::Relaxed))),
        }
    }
}

/// A position up to which nothing is needed.
pub(crate) const NOTHING_KEPT: Position = 0;
