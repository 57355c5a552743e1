//! A thread that sees a watermark of the journal sees what was done before it moved. Knows no files.

#[path = "../../../crates/journal/src/file_log/watermarks.rs"]
#[allow(dead_code, unreachable_pub, reason = "the models need a part of it, and nothing outside does")]
mod watermarks;

use crate::sequence::Sequence;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};
use loom::thread;
use watermarks::Watermarks;

/// The writer, the sync thread and a worker that waits until a batch is durable.
pub fn what_is_durable_was_written() {
    loom::model(|| {
        let marks = Arc::new(Watermarks::new(Sequence::NONE));
        // What the writer did before it moved the mark, as any thread may find it in memory.
        let written = Arc::new(AtomicU64::new(0));
        let writer = {
            let (marks, written) = (marks.clone(), written.clone());
            thread::spawn(move || {
                written.store(1, Relaxed);
                marks.set_written(Sequence(1));
            })
        };
        let sync_thread = {
            let marks = marks.clone();
            thread::spawn(move || marks.set_durable(marks.written()))
        };
        let durable = marks.durable();
        assert!(written.load(Relaxed) >= durable.0, "a reply would go out before its batch is stored");
        assert!(marks.written() >= durable);
        writer.join().unwrap();
        sync_thread.join().unwrap();
    });
}

/// A log that is sound again has its new marks.
pub fn a_log_that_is_accepted_has_its_marks() {
    loom::model(|| {
        let marks = Arc::new(Watermarks::new(Sequence(3)));
        marks.restart(Sequence(7));
        let snapshot_thread = {
            let marks = marks.clone();
            thread::spawn(move || marks.accept(Sequence(9), Sequence(8)))
        };
        if !marks.has_failed() {
            assert_eq!((marks.written(), marks.durable()), (Sequence(9), Sequence(8)));
        }
        snapshot_thread.join().unwrap();
        assert!(!marks.has_failed());
    });
}
