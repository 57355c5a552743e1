//! XDELEX, XACKDEL, and trimming with KEEPREF, DELREF and ACKED: which entries go, and which references to them. As
//! Redis 8.2 documents them.

use wire::check;

/// Two entries that two groups have read.
const TWO_GROUPS: &str = r#"
        # needs redis >= 8.2
        ! XADD s 1-0 f v
        ! XADD s 2-0 f v
        ! XGROUP CREATE s g 0
        ! XGROUP CREATE s h 0
        > XREADGROUP GROUP g c STREAMS s >
        [["s", [["1-0", ["f", "v"]], ["2-0", ["f", "v"]]]]]
        > XREADGROUP GROUP h c STREAMS s >
        [["s", [["1-0", ["f", "v"]], ["2-0", ["f", "v"]]]]]
"#;

#[track_caller]
fn check_with_groups(rest: &str) {
    check(&format!("{TWO_GROUPS}{rest}"));
}

#[test]
fn xdelex_keeps_references() {
    check_with_groups(
        r#"
        XDELEX s IDS 2 1-0 9-9 => [:1, :-1]
        XDELEX s KEEPREF IDS 2 2-0 2-0 => [:1, :-1]
        XLEN s => :0
        XPENDING s g => [:2, "1-0", "2-0", [["c", "2"]]]
        XPENDING s h => [:2, "1-0", "2-0", [["c", "2"]]]
        // What is pending of entries that are gone goes too.
        XDELEX s DELREF IDS 1 1-0 => [:-1]
        XPENDING s g => [:1, "2-0", "2-0", [["c", "1"]]]
        XPENDING s h => [:1, "2-0", "2-0", [["c", "1"]]]
        > XINFO STREAM s
        ["length", :0, "radix-tree-keys", :0, "radix-tree-nodes", :1, "last-generated-id", "2-0", "max-deleted-entry-id", "2-0", ...]
        "#,
    );
}

#[test]
fn xdelex_deletes_references() {
    check_with_groups(
        r#"
        XDELEX s DELREF IDS 2 1-0 2-0 => [:1, :1]
        XLEN s => :0
        XPENDING s g => [:0, (nil), (nil), (nil array)]
        XPENDING s h => [:0, (nil), (nil), (nil array)]
        "#,
    );
}

#[test]
fn xdelex_deletes_what_every_group_has_acknowledged() {
    check_with_groups(
        r#"
        XGROUP CREATE s late 0 => +OK
        XACK s g 1-0 2-0 => :2
        XDELEX s ACKED IDS 2 1-0 2-0 => [:2, :2]
        XACK s h 1-0 2-0 => :2
        // A group has not even read them.
        XDELEX s ACKED IDS 2 1-0 2-0 => [:2, :2]
        XREADGROUP GROUP late c COUNT 1 STREAMS s > => [["s", [["1-0", ["f", "v"]]]]]
        XDELEX s ACKED IDS 2 1-0 2-0 => [:2, :2]
        XACK s late 1-0 => :1
        XDELEX s ACKED IDS 3 1-0 2-0 1-0 => [:1, :2, :-1]
        XGROUP DESTROY s late => :1
        XDELEX s ACKED IDS 1 2-0 => [:1]
        XADD s 3-0 f v => "3-0"
        XGROUP DESTROY s g => :1
        XGROUP DESTROY s h => :1
        // Without a group, no entry is needed.
        XDELEX s ACKED IDS 1 3-0 => [:1]
        "#,
    );
}

#[test]
fn xackdel_acknowledges_and_deletes() {
    check_with_groups(
        r#"
        XACKDEL s g KEEPREF IDS 2 1-0 1-0 => [:1, :-1]
        XLEN s => :1
        XPENDING s g => [:1, "2-0", "2-0", [["c", "1"]]]
        XPENDING s h => [:2, "1-0", "2-0", [["c", "2"]]]
        // It is pending there, though its entry is gone.
        XACKDEL s h IDS 1 1-0 => [:1]
        XACKDEL s g ACKED IDS 2 2-0 9-9 => [:2, :-1]
        XLEN s => :1
        XPENDING s g => [:0, (nil), (nil), (nil array)]
        XACKDEL s h ACKED IDS 1 2-0 => [:1]
        XLEN s => :0
        XACKDEL s h IDS 1 2-0 => [:-1]
        "#,
    );
}

#[test]
fn xackdel_deletes_references() {
    check_with_groups(
        r#"
        XACKDEL s g DELREF IDS 2 1-0 2-0 => [:1, :1]
        XLEN s => :0
        XPENDING s g => [:0, (nil), (nil), (nil array)]
        XPENDING s h => [:0, (nil), (nil), (nil array)]
        XACKDEL s h DELREF IDS 2 1-0 2-0 => [:-1, :-1]
        "#,
    );
}

#[test]
fn what_is_not_there() {
    check(
        r#"
        # needs redis >= 8.2
        XDELEX s IDS 2 1-1 2-2 => [:-1, :-1]
        XACKDEL s g IDS 2 1-1 2-2 => [:-1, :-1]
        XADD s 1-0 f v => "1-0"
        XACKDEL s g IDS 2 1-0 2-2 => [:-1, :-1]
        EXISTS t => :0
        XDELEX t DELREF IDS 1 1-1 => [:-1]
        "#,
    );
}

#[test]
fn what_is_refused() {
    check(
        r#"
        # needs redis >= 8.2
        XADD s 1-0 f v => "1-0"
        XGROUP CREATE s g 0 => +OK
        -ERR Number of IDs must be a positive integer
            XDELEX s IDS abc 1-1
            XDELEX s IDS 0 1-1
            XDELEX s IDS -5 1-1
        XDELEX s IDS 3 1-1 2-2 => -ERR The `numids` parameter must match the number of arguments
        XDELEX s IDS 1 1-1 2-2 => -ERR syntax error
        XDELEX s IDS 1 x => -ERR Invalid stream ID specified as stream command argument
        -ERR syntax error
            XDELEX s KEEPREF DELREF IDS 1 1-1
            XDELEX s ACKED DELREF IDS 1 1-1
            XDELEX s KEEPREF 1 1-0
        XDELEX s IDS 1 1-9 ACKED => [:-1]
        XACKDEL s g IDS abc 1-1 => -ERR Number of IDs must be a positive integer
        XACKDEL s g IDS 3 1-1 2-2 => -ERR The `numids` parameter must match the number of arguments
        -ERR syntax error
            XACKDEL s g IDS 1 1-1 2-2
            XACKDEL s g DELREF ACKED IDS 1 1-1
            XTRIM s MAXLEN 1 KEEPREF ACKED
            XADD s DELREF ACKED MAXLEN 1 * f v
        XTRIM s ACKED LIMIT 0 => -ERR syntax error, XTRIM must be called with a trimming strategy
        XLEN s => :1
        "#,
    );
}

#[test]
fn trimming_passes_over_what_a_group_needs() {
    check(
        r#"
        # needs redis >= 8.2
        # config stream-node-max-entries 2
        XADD s 1-0 f v => "1-0"
        XADD s 2-0 f v => "2-0"
        XADD s 3-0 f v => "3-0"
        XADD s 4-0 f v => "4-0"
        XADD s 5-0 f v => "5-0"
        XGROUP CREATE s g 0 => +OK
        XTRIM s MAXLEN 0 ACKED => :0
        > XREADGROUP GROUP g c STREAMS s >
        [["s", [["1-0", ["f", "v"]], ["2-0", ["f", "v"]], ["3-0", ["f", "v"]], ["4-0", ["f", "v"]], ["5-0", ["f", "v"]]]]]
        XACK s g 1-0 2-0 4-0 => :3
        XTRIM s MINID ~ 6-0 ACKED => :3
        XRANGE s - + => [["3-0", ["f", "v"]], ["5-0", ["f", "v"]]]
        XACK s g 3-0 5-0 => :2
        // The new entry is needed: the group has not read it.
        XADD s ACKED MAXLEN 0 6-0 f v => "6-0"
        XRANGE s - + => [["6-0", ["f", "v"]]]
        "#,
    );
}

#[test]
fn trimming_deletes_references() {
    check_with_groups(
        r#"
        XADD s 3-0 f v => "3-0"
        XREADGROUP GROUP g c STREAMS s > => [["s", [["3-0", ["f", "v"]]]]]
        XTRIM s MAXLEN 2 => :1
        XPENDING s g => [:3, "1-0", "3-0", [["c", "3"]]]
        // What is pending of an entry that was gone before stays.
        XTRIM s DELREF MAXLEN 1 => :1
        XPENDING s g => [:2, "1-0", "3-0", [["c", "2"]]]
        XPENDING s h => [:1, "1-0", "1-0", [["c", "1"]]]
        XADD s MAXLEN 1 DELREF 4-0 f v => "4-0"
        XPENDING s g => [:1, "1-0", "1-0", [["c", "1"]]]
        DEBUG RELOAD => +OK
        XPENDING s g => [:1, "1-0", "1-0", [["c", "1"]]]
        "#,
    );
}
