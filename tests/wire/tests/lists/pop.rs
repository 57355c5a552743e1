//! LPOP, RPOP and LMPOP. Those that wait are in `blocking`.

use wire::check;

#[test]
fn pops_from_both_ends() {
    check(
        r#"
        > RPUSH l a b c d e
        :5
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
        > RPUSH l a b c
        :3
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
        > RPUSH l 1 2 3
        :3
        > RPOP l 9223372036854775807
        ["3", "2", "1"]
        "#,
    );
}

#[test]
fn pops_refuse_bad_arguments() {
    check(
        r#"
        > RPUSH l a
        :1
        > LPOP l -1
        -ERR value is out of range, must be positive
        > RPOP l -1
        -ERR value is out of range, must be positive
        > LPOP l x
        -ERR value is out of range, must be positive
        > LPOP l 1.5
        -ERR value is out of range, must be positive
        > LPOP l ""
        -ERR value is out of range, must be positive
        > LPOP l 9223372036854775808
        -ERR value is out of range, must be positive
        > LPOP l 1 2
        -ERR wrong number of arguments for 'lpop' command
        > RPOP l 1 2
        -ERR wrong number of arguments for 'rpop' command
        > LPOP
        -ERR wrong number of arguments for 'lpop' command
        > RPOP
        -ERR wrong number of arguments for 'rpop' command
        > LPOP nosuch x
        -ERR value is out of range, must be positive
        > SET s v
        +OK
        > LPOP s
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > RPOP s
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > LPOP s 1
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > LPOP s 0
        -WRONGTYPE Operation against a key holding the wrong kind of value
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
        > HELLO 3
        *
        > LPOP nosuch
        _
        > LPOP nosuch 1
        _
        > RPOP nosuch 0
        _
        > LMPOP 1 nosuch LEFT
        _
        > LINDEX nosuch 0
        _
        > LPOS nosuch a
        _
        > LPOS nosuch a COUNT 1
        []
        > LMOVE nosuch b LEFT RIGHT
        _
        > LRANGE nosuch 0 -1
        []
        > RPUSH l a b
        :2
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
        > RPUSH a a b c d
        :4
        > RPUSH b x y z
        :3
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

#[test]
fn lmpop_refuses() {
    check(
        r#"
        > LMPOP
        -ERR wrong number of arguments for 'lmpop' command
        > LMPOP 1
        -ERR wrong number of arguments for 'lmpop' command
        > LMPOP 1 a
        -ERR wrong number of arguments for 'lmpop' command
        > LMPOP 0 a LEFT
        -ERR numkeys should be greater than 0
        > LMPOP -1 a LEFT
        -ERR numkeys should be greater than 0
        > LMPOP x a LEFT
        -ERR numkeys should be greater than 0
        > LMPOP 1.5 a LEFT
        -ERR numkeys should be greater than 0
        > LMPOP 2 a LEFT
        -ERR syntax error
        > LMPOP 3 a LEFT
        -ERR syntax error
        > LMPOP 1 a UP
        -ERR syntax error
        > LMPOP 1 a LEFT COUNT
        -ERR syntax error
        > LMPOP 1 a LEFT COUNT 0
        -ERR count should be greater than 0
        > LMPOP 1 a LEFT COUNT -1
        -ERR count should be greater than 0
        > LMPOP 1 a LEFT COUNT x
        -ERR count should be greater than 0
        > LMPOP 1 a LEFT COUNT 1 COUNT 2
        -ERR syntax error
        > LMPOP 1 a LEFT x
        -ERR syntax error
        > LMPOP 1 a LEFT COUNT 1 x
        -ERR syntax error
        > LMPOP 1 a b LEFT
        -ERR syntax error
        > SET s v
        +OK
        > LMPOP 1 s LEFT
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > RPUSH l a
        :1
        > LMPOP 2 s l LEFT
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > LMPOP 2 l s LEFT
        ["l", ["a"]]
        > LMPOP 2 nosuch s LEFT
        -WRONGTYPE Operation against a key holding the wrong kind of value
        "#,
    );
}
