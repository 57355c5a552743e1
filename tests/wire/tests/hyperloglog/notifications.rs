//! Keyspace notifications of HyperLogLogs, and what caching clients are told.

use wire::{check, check_events};

#[test]
fn events() {
    check_events(
        r#"
        PFADD h => new h, pfadd h
        PFADD h =>
        PFADD h a b => pfadd h
        PFADD h a b =>
        PFCOUNT h =>
        PFCOUNT h =>
        PFCOUNT none => keymiss none
        PFMERGE d h => keymiss d, new d, pfadd d
        PFMERGE d => pfadd d
        PFDEBUG TODENSE d =>
        PFADD d c => pfadd d
        "#,
    );
}

#[test]
fn a_count_that_is_kept_makes_cached_replies_stale() {
    check(
        r#"
        PFADD h a b c => :1
        2> HELLO 3 => *
        2! CLIENT TRACKING on
        2> GET h => *
        2> GET h => *
        PFCOUNT h => :3
        2< push["invalidate", ["h"]]
        2> PFCOUNT h => :3
        PFCOUNT h => :3
        PFADD h d => :1
        2< push["invalidate", ["h"]]
        "#,
    );
}
