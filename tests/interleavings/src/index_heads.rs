//! A client that waits for a record and a write that brings one do not miss each other. Knows no records.

#[path = "../../../crates/keyspace/src/index/heads.rs"]
#[allow(dead_code, unreachable_pub, reason = "the models need a part of it, and nothing outside does")]
mod heads;

use heads::{Head, Heads};
use loom::sync::Arc;
use loom::thread;

/// Either the client's last search sees the lowered head, or the writer sees that a client waits.
pub fn a_record_and_a_waiting_client_meet() {
    loom::model(|| {
        let heads = Arc::new(Heads::new(1));
        // Loom orders a SeqCst load after SeqCst stores only if the value before them was stored so, too.
        heads.raise(0, Head::NONE);
        heads.add_waiting();
        heads.remove_waiting();
        let writer = {
            let heads = heads.clone();
            thread::spawn(move || {
                heads.lower(0, Head::new(1.0, b""));
                heads.waiting() > 0
            })
        };
        heads.add_waiting();
        let is_found = heads.iter().any(|head| head.score() == 1.0);
        let is_served = writer.join().unwrap();
        assert!(is_found || is_served, "the client would wait for ever");
    });
}

/// A search that counts a change sees the head that was changed.
pub fn a_head_is_lowered_before_it_is_counted() {
    loom::model(|| {
        let heads = Arc::new(Heads::new(2));
        let writer = {
            let heads = heads.clone();
            thread::spawn(move || heads.lower(1, Head::new(-1.0, b"")))
        };
        let lowered = heads.lowered();
        let scores: Vec<f64> = heads.iter().map(Head::score).collect();
        assert!(lowered == 0 || scores[1] == -1.0);
        writer.join().unwrap();
        assert_eq!(heads.lowered(), 1);
    });
}
