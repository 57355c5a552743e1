//! SADD, SREM, SCARD, SISMEMBER, SMISMEMBER, SMEMBERS.

use wire::check;

#[test]
fn members_are_added_once() {
    check(
        r#"
        > SADD s a
        :1
        > SADD s a
        :0
        > SADD s a b c
        :2
        > SADD s b b d d d
        :1
        > SCARD s
        :4
        > SMEMBERS s
        ~["a", "b", "c", "d"]
        > SADD s A " a" "a "
        :3
        > SCARD s
        :7
        > TYPE s
        +set
        > sadd s e
        :1
        "#,
    );
}

#[test]
fn members_are_removed() {
    check(
        r#"
        > SADD s a b c d
        :4
        > SREM s a
        :1
        > SREM s a
        :0
        > SREM s nosuch b
        :1
        > SREM s c c c
        :1
        > SMEMBERS s
        ["d"]
        > EXISTS s
        :1
        > SREM s d
        :1
        // A set without members is no key.
        > EXISTS s
        :0
        > TYPE s
        +none
        > SREM s d
        :0
        > SREM nosuch a b
        :0
        > DBSIZE
        :0
        > SADD s a b
        :2
        // Members named after the last one is removed do no harm.
        > SREM s b a b nosuch
        :2
        > EXISTS s
        :0
        > SADD n 1 2 3
        :3
        > SREM n 2 x 99999999999999999999 3 4
        :2
        > SMEMBERS n
        ["1"]
        > SREM n 1
        :1
        > EXISTS n
        :0
        "#,
    );
}

#[test]
fn membership() {
    check(
        r#"
        > SADD s a b 1
        :3
        SISMEMBER s a => :1
        SISMEMBER s nosuch => :0
        SISMEMBER s 1 => :1
        SISMEMBER s "" => :0
        SISMEMBER nosuch a => :0
        SMISMEMBER s a => [:1]
        SMISMEMBER s nosuch => [:0]
        SMISMEMBER s a nosuch b a 1 A => [:1, :0, :1, :1, :1, :0]
        SMISMEMBER nosuch a b => [:0, :0]
        > SADD n 1 2
        :2
        SISMEMBER n 1 => :1
        SISMEMBER n 3 => :0
        SISMEMBER n x => :0
        SMISMEMBER n 1 x 2 3 "" => [:1, :0, :1, :0, :0]
        SCARD s => :3
        SCARD nosuch => :0
        SMEMBERS nosuch => []
        EXISTS nosuch => :0
        "#,
    );
}

#[test]
fn in_resp3_members_are_a_set() {
    check(
        r#"
        ! HELLO 3
        > SADD s a
        :1
        > SADD s a b
        :1
        > SMEMBERS s
        set["a", "b"]
        > SADD n 1 2
        :2
        SMEMBERS n => set["1", "2"]
        SMEMBERS nosuch => set[]
        SISMEMBER s a => :1
        SISMEMBER s nosuch => :0
        SMISMEMBER s a nosuch => [:1, :0]
        SMISMEMBER nosuch a => [:0]
        SCARD s => :2
        > SREM s a
        :1
        "#,
    );
}

/// The exact bytes of an empty set and of one member, in both protocols.
#[test]
fn bytes_of_replies() {
    check(
        r#"
        > SADD s a
        :1
        >> "SMEMBERS nosuch\r\n"
        << "*0\r\n"
        >> "SMEMBERS s\r\n"
        << "*1\r\n$1\r\na\r\n"
        >> "SINTER s nosuch\r\n"
        << "*0\r\n"
        ! HELLO 3
        >> "SMEMBERS nosuch\r\n"
        << "~0\r\n"
        >> "SMEMBERS s\r\n"
        << "~1\r\n$1\r\na\r\n"
        >> "SINTER s nosuch\r\n"
        << "~0\r\n"
        >> "SDIFF s s\r\n"
        << "~0\r\n"
        >> "SUNION nosuch\r\n"
        << "~0\r\n"
        >> "SRANDMEMBER s 1\r\n"
        << "*1\r\n$1\r\na\r\n"
        >> "SRANDMEMBER nosuch 1\r\n"
        << "*0\r\n"
        >> "SPOP nosuch 1\r\n"
        << "~0\r\n"
        >> "SPOP s 1\r\n"
        << "~1\r\n$1\r\na\r\n"
        "#,
    );
}
