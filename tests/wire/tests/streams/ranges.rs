//! XRANGE and XREVRANGE.

use wire::check;

#[test]
fn ranges_of_ids() {
    check(
        r#"
        XADD s 1-1 a 1 => "1-1"
        XADD s 1-2 a 2 => "1-2"
        XADD s 2-1 a 3 => "2-1"
        XADD s 3-1 a 4 => "3-1"
        XRANGE s - + => [["1-1", ["a", "1"]], ["1-2", ["a", "2"]], ["2-1", ["a", "3"]], ["3-1", ["a", "4"]]]
        XRANGE s 1 1 => [["1-1", ["a", "1"]], ["1-2", ["a", "2"]]]
        XRANGE s 1-2 2 => [["1-2", ["a", "2"]], ["2-1", ["a", "3"]]]
        XRANGE s (1-1 (3-1 => [["1-2", ["a", "2"]], ["2-1", ["a", "3"]]]
        XRANGE s (1 + => [["1-1", ["a", "1"]], ["1-2", ["a", "2"]], ["2-1", ["a", "3"]], ["3-1", ["a", "4"]]]
        XRANGE s - (2 => [["1-1", ["a", "1"]], ["1-2", ["a", "2"]], ["2-1", ["a", "3"]]]
        XRANGE s 3 1 => []
        XRANGE s 4 + => []
        XREVRANGE s + - => [["3-1", ["a", "4"]], ["2-1", ["a", "3"]], ["1-2", ["a", "2"]], ["1-1", ["a", "1"]]]
        XREVRANGE s 2 1-2 => [["2-1", ["a", "3"]], ["1-2", ["a", "2"]]]
        XREVRANGE s (3-1 (1-1 => [["2-1", ["a", "3"]], ["1-2", ["a", "2"]]]
        XREVRANGE s - + => []
        XRANGE s - + COUNT 2 => [["1-1", ["a", "1"]], ["1-2", ["a", "2"]]]
        XREVRANGE s + - COUNT 1 => [["3-1", ["a", "4"]]]
        XRANGE s - + COUNT 0 => (nil array)
        XRANGE s - + COUNT -5 => (nil array)
        XRANGE s - + COUNT 1 COUNT 3 => [["1-1", ["a", "1"]], ["1-2", ["a", "2"]], ["2-1", ["a", "3"]]]
        XRANGE missing - + => []
        XRANGE missing - + COUNT 0 => []
        ! FLUSHALL
        // Over deleted entries.
        XADD s 1-1 a 1 => "1-1"
        XADD s 1-2 a 2 => "1-2"
        XADD s 1-3 b 3 => "1-3"
        XADD s 1-4 a 4 => "1-4"
        XDEL s 1-1 1-3 => :2
        XRANGE s - + => [["1-2", ["a", "2"]], ["1-4", ["a", "4"]]]
        XREVRANGE s + - => [["1-4", ["a", "4"]], ["1-2", ["a", "2"]]]
        XDEL s 1-4 => :1
        XREVRANGE s + - COUNT 1 => [["1-2", ["a", "2"]]]
        XDEL s 1-2 => :1
        XRANGE s - + => []
        XLEN s => :0
        EXISTS s => :1
        ! FLUSHALL
        // What is no range.
        XADD s 1-1 a 1 => "1-1"
        -ERR Invalid stream ID specified as stream command argument
            XRANGE s x +
            XRANGE s - x
            XRANGE s ( +
            XRANGE s (- +
            XRANGE s - (+
        XRANGE s (18446744073709551615-18446744073709551615 + => -ERR invalid start ID for the interval
        XRANGE s - (0-0 => -ERR invalid end ID for the interval
        XRANGE s - + COUNT => -ERR syntax error
        XRANGE s - + COUNT x => -ERR value is not an integer or out of range
        XRANGE s - + LIMIT 5 => -ERR syntax error
        XRANGE s - + 5 => -ERR syntax error
        SET text 1 => +OK
        XRANGE text x + => -ERR Invalid stream ID specified as stream command argument
        "#,
    );
}
