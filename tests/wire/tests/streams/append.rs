//! XADD, XLEN and XSETID.

use wire::check;

#[test]
fn xadd_appends() {
    check(
        r#"
        XADD s 1-1 a 1 => "1-1"
        XADD s 1-2 a 1 b 2 => "1-2"
        XADD s 2 name value => "2-0"
        XADD s 5-* a 1 => "5-0"
        XADD s 5-* a 2 => "5-1"
        XADD s 6-* a 1 => "6-0"
        XLEN s => :6
        > XRANGE s - +
        [["1-1", ["a", "1"]], ["1-2", ["a", "1", "b", "2"]], ["2-0", ["name", "value"]], ["5-0", ["a", "1"]], ["5-1", ["a", "2"]], ["6-0", ["a", "1"]]]
        TYPE s => +stream
        XLEN missing => :0
        XADD s * a 1 => ~"*-*"
        XADD t 0-1 a 1 => "0-1"
        XADD u 0-* a 1 => "0-1"
        ! FLUSHALL
        // Values of all kinds.
        XADD s 1-1 '' '' n 0 m -1 big 9223372036854775807 more 9223372036854775808 lead 007 plus +5 => "1-1"
        XADD s 1-2 bin "\x00\xff" f 1.5 s 12345 t 70000 u 5000000000 v -5000000000 => "1-2"
        XADD s 1-3 12 34 => "1-3"
        > XRANGE s - +
        [["1-1", ["", "", "n", "0", "m", "-1", "big", "9223372036854775807", "more", "9223372036854775808", "lead", "007", "plus", "+5"]], ["1-2", ["bin", "\x00\xff", "f", "1.5", "s", "12345", "t", "70000", "u", "5000000000", "v", "-5000000000"]], ["1-3", ["12", "34"]]]
        > XREVRANGE s + - COUNT 2
        [["1-3", ["12", "34"]], ["1-2", ["bin", "\x00\xff", "f", "1.5", "s", "12345", "t", "70000", "u", "5000000000", "v", "-5000000000"]]]
        "#,
    );
}

#[test]
fn xadd_refuses() {
    check(
        r#"
        // Ids that do not rise.
        XADD s 0-0 a 1 => -ERR The ID specified in XADD must be greater than 0-0
        XADD s 0 a 1 => -ERR The ID specified in XADD must be greater than 0-0
        EXISTS s => :0
        XADD s 5-5 a 1 => "5-5"
        -ERR The ID specified in XADD is equal or smaller than the target stream top item
            XADD s 5-5 a 1
            XADD s 5-4 a 1
            XADD s 4-* a 1
        XADD s 5-* a 1 => "5-6"
        -ERR Invalid stream ID specified as stream command argument
            XADD s x a 1
            XADD s 1-x a 1
            XADD s - a 1
            XADD s + a 1
            XADD s $ a 1
            XADD s 1-1-1 a 1
            XADD s '' a 1
            XADD s 18446744073709551616 a 1
        XADD s 18446744073709551615-18446744073709551614 a 1 => "18446744073709551615-18446744073709551614"
        XADD s 18446744073709551615-* a 1 => "18446744073709551615-18446744073709551615"
        -ERR The stream has exhausted the last possible ID, unable to add more items
            XADD s 18446744073709551615-* a 1
            XADD s * a 1
        XLEN s => :4
        // What C reads as a number.
        XADD n 007-01 a 1 => "7-1"
        XADD n ' 8-+3' a 1 => "8-3"
        ! FLUSHALL
        // Fields without a value.
        -ERR wrong number of arguments for 'xadd' command
            XADD s 1-1 a 1 b
            XADD s MAXLEN 5 1-1 a
            XADD s NOMKSTREAM MAXLEN 5 * a
        EXISTS s => :0
        "#,
    );
}

#[test]
fn xadd_options() {
    check(
        r#"
        XADD s NOMKSTREAM 1-1 a 1 => (nil)
        EXISTS s => :0
        XADD s 1-1 a 1 => "1-1"
        XADD s nomkstream 1-2 a 1 => "1-2"
        XADD s MAXLEN 2 1-3 a 1 => "1-3"
        XRANGE s - + => [["1-2", ["a", "1"]], ["1-3", ["a", "1"]]]
        XADD s MAXLEN = 1 1-4 a 1 => "1-4"
        XLEN s => :1
        XADD s MINID 1-5 1-5 a 1 => "1-5"
        XLEN s => :1
        XADD s MAXLEN 0 1-6 a 1 => "1-6"
        XLEN s => :0
        XADD s MAXLEN -1 1-7 a 1 => -ERR The MAXLEN argument must be >= 0.
        XADD s MAXLEN x 1-7 a 1 => -ERR value is not an integer or out of range
        XADD s MINID x 1-7 a 1 => -ERR Invalid stream ID specified as stream command argument
        > XADD s MAXLEN 5 MINID 3 1-7 a 1
        -ERR syntax error, MAXLEN and MINID options at the same time are not compatible
        XADD s LIMIT 5 1-7 a 1 => -ERR syntax error, LIMIT cannot be used without specifying a trimming strategy
        XADD s LIMIT 0 1-7 a 1 => -ERR syntax error, LIMIT cannot be used without the special ~ option
        XADD s MAXLEN 5 LIMIT 5 1-7 a 1 => -ERR syntax error, LIMIT cannot be used without the special ~ option
        XADD s MAXLEN ~ 5 LIMIT -5 1-7 a 1 => -ERR The LIMIT argument must be >= 0.
        XADD s MAXLEN ~ 5 LIMIT x 1-7 a 1 => -ERR value is not an integer or out of range
        XADD s MAXLEN ~ 5 LIMIT 5 1-7 a 1 => "1-7"
        > XADD s MAXLEN ~ 5 MAXLEN 3 1-8 a 1
        -ERR syntax error, MAXLEN and MINID options at the same time are not compatible
        XLEN s => :1
        "#,
    );
}

#[test]
fn xsetid_sets_the_last_id() {
    check(
        r#"
        XADD s 5-1 a 1 => "5-1"
        XSETID s 5-0 => -ERR The ID specified in XSETID is smaller than the target stream top item
        XSETID s 10 => +OK
        XADD s 9-1 a 1 => -ERR The ID specified in XADD is equal or smaller than the target stream top item
        XADD s 10-* a 1 => "10-1"
        XSETID s 200-1 ENTRIESADDED 7 MAXDELETEDID 100-1 => +OK
        > XINFO STREAM s
        ["length", :2, "radix-tree-keys", :1, "radix-tree-nodes", :2, "last-generated-id", "200-1", "max-deleted-entry-id", "100-1", "entries-added", :7, "recorded-first-entry-id", "5-1", "groups", :0, "first-entry", ["5-1", ["a", "1"]], "last-entry", ["10-1", ["a", "1"]]]
        > XSETID s 200-1 ENTRIESADDED 1
        -ERR The entries_added specified in XSETID is smaller than the target stream length
        XSETID s 200-1 ENTRIESADDED -1 => -ERR entries_added must be positive
        XSETID s 200-1 ENTRIESADDED x => -ERR value is not an integer or out of range
        > XSETID s 200-1 MAXDELETEDID 200-2
        -ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id
        XSETID s 200-1 MAXDELETEDID x => -ERR Invalid stream ID specified as stream command argument
        XSETID s 200-1 OTHER 5 => -ERR syntax error
        XSETID s 200-1 ENTRIESADDED => -ERR syntax error
        XSETID s x => -ERR Invalid stream ID specified as stream command argument
        XSETID missing 1-1 => -ERR no such key
        // Back to the last entry, behind which a deleted one lies.
        DEL s => :1
        XADD s 1-1 a 1 => "1-1"
        XADD s 9-1 a 1 => "9-1"
        XDEL s 9-1 => :1
        // Redis 7.0 lets new entries have ids below a deleted one.
        # needs redis >= 7.2
        -ERR The ID specified in XSETID is smaller than current max_deleted_entry_id
            XSETID s 1-1
            XSETID s 1-1 ENTRIESADDED 5 MAXDELETEDID 1-1
        XSETID s 9-1 MAXDELETEDID 1-1 => +OK
        XSETID s 1-1 => +OK
        XADD s 2-1 a 1 => "2-1"
        XADD s 3-1 a 1 => "3-1"
        XRANGE s - + => [["1-1", ["a", "1"]], ["2-1", ["a", "1"]], ["3-1", ["a", "1"]]]
        XREVRANGE s + - => [["3-1", ["a", "1"]], ["2-1", ["a", "1"]], ["1-1", ["a", "1"]]]
        "#,
    );
}
