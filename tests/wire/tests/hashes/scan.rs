//! What only HSCAN does. What all scans have in common is in `collections`.

use wire::check;

#[test]
fn hscan_novalues() {
    check(
        r#"
        # needs redis >= 7.4
        ! HSET h a 1 b 2
        HSCAN h 0 NOVALUES => ["0", ~["a", "b"]]
        HSCAN h 0 MATCH a NOVALUES => ["0", ["a"]]
        HSCAN h 0 NOVALUES COUNT 10 MATCH b => ["0", ["b"]]
        HSCAN h 0 novalues => ["0", ~["a", "b"]]
        HSCAN nosuch 0 NOVALUES => ["0", []]
        SCAN 0 NOVALUES => -ERR NOVALUES option can only be used in HSCAN
        "#,
    );
}

#[test]
fn a_cursor_may_begin_with_a_space() {
    check(
        r#"
        # needs redis >= 8.0
        ! HSET h a 1
        HSCAN h " 0" => ["0", ["a", "1"]]
        "#,
    );
}
