//! XREAD that does not wait.

use wire::check;

#[test]
fn xread_returns_what_is_behind_an_id() {
    check(
        r#"
        XADD a 1-1 f 1 => "1-1"
        XADD a 1-2 f 2 => "1-2"
        XADD b 2-1 f 3 => "2-1"
        XREAD STREAMS a 0 => [["a", [["1-1", ["f", "1"]], ["1-2", ["f", "2"]]]]]
        XREAD STREAMS a 1-1 => [["a", [["1-2", ["f", "2"]]]]]
        XREAD STREAMS a 1-2 => (nil array)
        XREAD STREAMS a b 1-1 0 => [["a", [["1-2", ["f", "2"]]]], ["b", [["2-1", ["f", "3"]]]]]
        XREAD COUNT 1 STREAMS a b 0 0 => [["a", [["1-1", ["f", "1"]]]], ["b", [["2-1", ["f", "3"]]]]]
        XREAD COUNT 0 STREAMS a 0 => [["a", [["1-1", ["f", "1"]], ["1-2", ["f", "2"]]]]]
        XREAD COUNT -1 STREAMS a 0 => [["a", [["1-1", ["f", "1"]], ["1-2", ["f", "2"]]]]]
        XREAD STREAMS a missing 0 0 => [["a", [["1-1", ["f", "1"]], ["1-2", ["f", "2"]]]]]
        XREAD STREAMS missing 0 => (nil array)
        XREAD STREAMS a $ => (nil array)
        XREAD STREAMS a a 0 1-1 => [["a", [["1-1", ["f", "1"]], ["1-2", ["f", "2"]]]], ["a", [["1-2", ["f", "2"]]]]]
        XREAD STREAMS a 18446744073709551615-18446744073709551615 => (nil array)
        HELLO 3 => *
        XREAD STREAMS a b 1-1 0 => {"a" => [["1-2", ["f", "2"]]], "b" => [["2-1", ["f", "3"]]]}
        XREAD STREAMS missing 0 => _
        "#,
    );
}

#[test]
fn xread_refuses() {
    check(
        r#"
        XADD a 1-1 f 1 => "1-1"
        XREAD COUNT x STREAMS a 0 => -ERR value is not an integer or out of range
        XREAD COUNT 1 a 0 => -ERR syntax error
        XREAD BLOCK x STREAMS a 0 => -ERR timeout is not an integer or out of range
        XREAD BLOCK -1 STREAMS a 0 => -ERR timeout is negative
        XREAD OTHER STREAMS a 0 => -ERR syntax error
        XREAD GROUP g c STREAMS a 0 => -ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.
        XREAD NOACK STREAMS a 0 => -ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.
        > XREAD STREAMS a >
        -ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.
        XREAD STREAMS a x => -ERR Invalid stream ID specified as stream command argument
        XREAD STREAMS a - => -ERR Invalid stream ID specified as stream command argument
        SET text 1 => +OK
        XREAD STREAMS a text 0 0 => -WRONGTYPE Operation against a key holding the wrong kind of value
        XREAD BLOCK 5 COUNT => -ERR syntax error
        # needs redis >= 7.4
        > XREAD STREAMS a b 0
        -ERR Unbalanced 'xread' list of streams: for each stream key an ID, '+', or '$' must be specified.
        "#,
    );
}
