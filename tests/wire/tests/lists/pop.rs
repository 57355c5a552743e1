//! LPOP, RPOP and LMPOP. Those that wait, and what all refuse, are in `collections`.

use wire::check;

#[test]
fn pops_from_both_ends() {
    check(
        r#"
        ! RPUSH l a b c d e
        > LPOP l
        "a"
        > RPOP l
        "e"
        > LPOP l 2
        ["b", "c"]
        > RPOP l 1
        ["d"]
        > EXISTS l
        :0
        > LPOP l
        (nil)
        > RPOP l
        (nil)
        > LPOP l 1
        (nil array)
        > RPOP l 3
        (nil array)
        ! RPUSH l a b c
        > LPOP l 0
        []
        > RPOP l 0
        []
        > LPOP nosuch 0
        (nil array)
        > RPOP l 10
        ["c", "b", "a"]
        > EXISTS l
        :0
        ! RPUSH l 1 2 3
        > RPOP l 9223372036854775807
        ["3", "2", "1"]
        "#,
    );
}

#[test]
fn pops_refuse_bad_arguments() {
    check(
        r#"
        ! RPUSH l a
        -ERR value is out of range, must be positive
            LPOP l -1
            RPOP l -1
            LPOP l x
            LPOP l 1.5
            LPOP l ""
            LPOP l 9223372036854775808
            LPOP nosuch x
        LPOP l 1 2 => -ERR wrong number of arguments for 'lpop' command
        RPOP l 1 2 => -ERR wrong number of arguments for 'rpop' command
        ! SET s v
        > LPOP s -1
        -ERR value is out of range, must be positive
        > LRANGE l 0 -1
        ["a"]
        "#,
    );
}

#[test]
fn nulls_of_resp3() {
    check(
        r#"
        ! HELLO 3
        > LPOP nosuch
        _
        > LPOP nosuch 1
        _
        > RPOP nosuch 0
        _
        > LMPOP 1 nosuch LEFT
        _
        LINDEX nosuch 0 => _
        LPOS nosuch a => _
        LPOS nosuch a COUNT 1 => []
        > LMOVE nosuch b LEFT RIGHT
        _
        > LRANGE nosuch 0 -1
        []
        ! RPUSH l a b
        > LPOP l 0
        []
        > LPOP l
        "a"
        > LPOP l 5
        ["b"]
        "#,
    );
}

#[test]
fn lmpop() {
    check(
        r#"
        ! RPUSH a a b c d
        ! RPUSH b x y z
        > LMPOP 1 a LEFT
        ["a", ["a"]]
        > LMPOP 1 a RIGHT
        ["a", ["d"]]
        > LMPOP 2 nosuch a LEFT COUNT 1
        ["a", ["b"]]
        > LMPOP 2 nosuch b RIGHT COUNT 2
        ["b", ["z", "y"]]
        > LMPOP 2 a b LEFT COUNT 10
        ["a", ["c"]]
        > EXISTS a
        :0
        > LMPOP 2 a b LEFT COUNT 10
        ["b", ["x"]]
        > LMPOP 2 a b RIGHT
        (nil array)
        > lmpop 1 a left count 1
        (nil array)
        "#,
    );
}
