//! Indexes of every sort, which `random` compares with a look at all keys, and what they say of records that have expired.

use crate::support::{Condition, Definition, check};

const STATE_DONE: Condition = Condition { only: false, field: "state", values: &["done", "failed"] };
const STATE_NEW: Condition = Condition { only: true, field: "state", values: &["new", "7"] };

/// One of each sort. The stamping ones have names of their own, as their records are never what was written.
pub(crate) const INDEXES: &[Definition] = &[
    Definition { name: "all", prefixes: &[""], field: "n", condition: None, stamp: false },
    Definition { name: "jobs", prefixes: &["j:"], field: "n", condition: None, stamp: false },
    Definition { name: "two", prefixes: &["j:1", "k:"], field: "m", condition: None, stamp: false },
    Definition { name: "open", prefixes: &["j:"], field: "n", condition: Some(STATE_DONE), stamp: false },
    Definition { name: "new", prefixes: &["j:", "k:"], field: "n", condition: Some(STATE_NEW), stamp: false },
    Definition { name: "stamped", prefixes: &["s:"], field: "at", condition: Some(STATE_DONE), stamp: true },
];

/// At once: the very next command sees it, though nobody has removed anything.
#[test]
fn what_has_expired_has_left() {
    for (command, reply) in [
        ("ZRANGE open 0 -1", r#"["j:3"]"#),
        ("ZRANGE done 0 -1", "[]"),
        ("IDX.RANGE open 0 9 KEYS", r#"["j:3"]"#),
        ("SWEEP open BEFORE 9 SET 1 n 4", r#"[["j:3", "requeued"]]"#),
        // It may find what has come into an index by an expiry later.
        ("CLAIM 1 open SET 1 n 4 COUNT 9 KEYS", r#"["j:3"] | []"#),
        ("HFIND j: FILTER n ge 0 KEYS", r#"["0", ["j:3"]]"#),
        ("ZCARD open", ":1"),
        ("IDX.INFO open", r#"[*, *, *, *, *, *, *, *, *, *, "entries", :1, ...]"#),
        ("ZSCORE open j:1", "(nil)"),
        ("MULTI\n+OK\n> ZRANK open j:3\n+QUEUED\n> EXEC", "[:0]"),
        ("EVAL \"return redis.call('ZRANGE', KEYS[1], 0, -1)\" 1 open", r#"["j:3"]"#),
        ("EVAL_RO \"return redis.call('ZRANGE', KEYS[1], 0, -1)\" 1 open", r#"["j:3"]"#),
    ] {
        check(&format!(
            r#"
            ! DEBUG SET-ACTIVE-EXPIRE 0
            ! IDX.CREATE open PREFIX 1 j: FIELD n EXCLUDE state 1 done
            ! IDX.CREATE done PREFIX 1 j: FIELD n ONLY state 1 done
            ! HSET j:1 n 1
            ! HSET j:2 n 2 x 1
            ! HSET j:3 n 3 state done
            ! PEXPIRE j:1 1
            ! HPEXPIRE j:2 1 FIELDS 1 n
            ! HPEXPIRE j:3 1 FIELDS 1 state
            # sleep 5ms
            > {command}
            {reply}
            "#
        ));
    }
}
