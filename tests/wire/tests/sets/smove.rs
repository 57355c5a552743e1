//! SMOVE.

use wire::check;

#[test]
fn a_member_moves() {
    check(
        r#"
        ! SADD from a b c
        ! SADD to x
        > SMOVE from to a
        :1
        > SMEMBERS from
        ~["b", "c"]
        > SMEMBERS to
        ~["a", "x"]
        > SMOVE from to nosuch
        :0
        > SMEMBERS to
        ~["a", "x"]
        // The destination is made.
        > SMOVE from new b
        :1
        > SMEMBERS new
        ["b"]
        // The last member takes the source away.
        > SMOVE from new c
        :1
        EXISTS from => :0
        SMEMBERS new => ~["b", "c"]
        :0
            SMOVE from new c
            SMOVE nosuch new a
            SMOVE nosuch nosuch2 a
        DBSIZE => :2
        ! HELLO 3
        > SMOVE new to b
        :1
        > SMOVE new to b
        :0
        "#,
    );
}

#[test]
fn a_member_that_is_in_both_leaves_the_source() {
    check(
        r#"
        ! SADD from a b
        ! SADD to a
        > SMOVE from to a
        :1
        > SMEMBERS from
        ["b"]
        > SMEMBERS to
        ["a"]
        ! SADD to b
        > SMOVE from to b
        :1
        > EXISTS from
        :0
        > SMEMBERS to
        ~["a", "b"]
        "#,
    );
}

#[test]
fn source_and_destination_may_be_the_same() {
    check(
        r#"
        ! SADD s a
        > EXPIRE s 1000
        :1
        > SMOVE s s a
        :1
        > SMOVE s s nosuch
        :0
        > SMEMBERS s
        ["a"]
        > TTL s
        :990..1000
        > SMOVE nosuch nosuch a
        :0
        > EXISTS nosuch
        :0
        "#,
    );
}

#[test]
fn types_of_source_and_destination() {
    check(
        r#"
        ! SADD s a
        ! SET str x
        ! HSET h f v
        -WRONGTYPE Operation against a key holding the wrong kind of value
            SMOVE str s a
            SMOVE s str a
            SMOVE s h a
        // The type of the destination counts even if there is nothing to move,
        > SMOVE s str nosuch
        -WRONGTYPE Operation against a key holding the wrong kind of value
        // but it is not checked when there is no source.
        > SMOVE nosuch str a
        :0
        -WRONGTYPE Operation against a key holding the wrong kind of value
            SMOVE str nosuch a
            SMOVE str str a
            SMOVE str h a
        SMEMBERS s => ["a"]
        GET str => "x"
        "#,
    );
}

#[test]
fn deadlines_stay_with_their_keys() {
    check(
        r#"
        ! SADD from a b
        > EXPIRE from 1000
        :1
        ! SADD to x
        > SMOVE from to a
        :1
        > TTL from
        :990..1000
        > TTL to
        :-1
        > EXPIRE to 500
        :1
        > SMOVE from to b
        :1
        > TTL to
        :490..500
        > EXISTS from
        :0
        > SMOVE to new a
        :1
        > TTL new
        :-1
        "#,
    );
}

#[test]
fn encodings_change_as_members_move() {
    check(
        r#"
        # needs redis >= 7.2
        ! SADD numbers 1 2
        ! SADD words a b 7
        > SMOVE words numbers a
        :1
        > OBJECT ENCODING numbers
        "listpack"
        > SMOVE numbers new 1
        :1
        > OBJECT ENCODING new
        "intset"
        > SMOVE words new 7
        :1
        > OBJECT ENCODING new
        "intset"
        > SMEMBERS new
        ~["1", "7"]
        > SMOVE words other b
        :1
        > OBJECT ENCODING other
        "listpack"
        > EXISTS words
        :0
        # config set-max-intset-entries 2
        ! SADD small 5 6
        > SMOVE new small 7
        :1
        > OBJECT ENCODING small
        "hashtable"
        > SMEMBERS small
        ~["5", "6", "7"]
        "#,
    );
}
