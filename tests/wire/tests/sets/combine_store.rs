//! SINTERSTORE, SUNIONSTORE, SDIFFSTORE.

use wire::check;

#[test]
fn results_are_stored() {
    check(
        r#"
        > SADD a 1 2 3 x
        :4
        > SADD b 2 3 4 x
        :4
        > SINTERSTORE to a b
        :3
        > SMEMBERS to
        ~["x", "2", "3"]
        > SUNIONSTORE to a b
        :5
        > SMEMBERS to
        ~["x", "1", "2", "3", "4"]
        > SDIFFSTORE to a b
        :1
        > SMEMBERS to
        ["1"]
        > SINTERSTORE to a
        :4
        > SMEMBERS to
        ~["x", "1", "2", "3"]
        > SUNIONSTORE to nosuch b
        :4
        > SMEMBERS to
        ~["x", "2", "3", "4"]
        > SDIFFSTORE to b nosuch a a
        :1
        > SMEMBERS to
        ["4"]
        > SMEMBERS a
        ~["x", "1", "2", "3"]
        > SMEMBERS b
        ~["x", "2", "3", "4"]
        > HELLO 3
        *
        > SINTERSTORE to a b
        :3
        > SUNIONSTORE to a b
        :5
        > SDIFFSTORE to a b
        :1
        > SDIFFSTORE to a a
        :0
        "#,
    );
}

#[test]
fn an_empty_result_deletes_the_destination() {
    check(
        r#"
        > SADD a x
        :1
        > SADD b y
        :1
        > SADD to old
        :1
        > SINTERSTORE to a b
        :0
        > EXISTS to
        :0
        > SADD to old
        :1
        > SINTERSTORE to a nosuch
        :0
        > EXISTS to
        :0
        > SADD to old
        :1
        > SINTERSTORE to nosuch
        :0
        > EXISTS to
        :0
        > SADD to old
        :1
        > SUNIONSTORE to nosuch nosuch2
        :0
        > EXISTS to
        :0
        > SADD to old
        :1
        > SDIFFSTORE to a a
        :0
        > EXISTS to
        :0
        > SADD to old
        :1
        > SDIFFSTORE to nosuch a
        :0
        > EXISTS to
        :0
        // Of any type.
        > SET to text
        +OK
        > SINTERSTORE to a b
        :0
        > EXISTS to
        :0
        > HSET to f v
        :1
        > SUNIONSTORE to nosuch
        :0
        > EXISTS to
        :0
        > ZADD to 1 m
        :1
        > SDIFFSTORE to a a
        :0
        > EXISTS to
        :0
        > SINTERSTORE to a b
        :0
        > DBSIZE
        :2
        "#,
    );
}

#[test]
fn a_destination_of_any_type_is_replaced() {
    check(
        r#"
        > SADD a x y
        :2
        > SET to text
        +OK
        > SINTERSTORE to a
        :2
        > SMEMBERS to
        ~["x", "y"]
        > HSET h f v
        :1
        > SUNIONSTORE h a
        :2
        > SMEMBERS h
        ~["x", "y"]
        > ZADD z 1 m
        :1
        > SDIFFSTORE z a
        :2
        > SMEMBERS z
        ~["x", "y"]
        > TYPE z
        +set
        "#,
    );
}

#[test]
fn the_destination_loses_its_deadline() {
    check(
        r#"
        > SADD a x y
        :2
        > EXPIRE a 1000
        :1
        > SADD to old
        :1
        > EXPIRE to 500
        :1
        > SUNIONSTORE to a
        :2
        > TTL to
        :-1
        > EXPIRE to 500
        :1
        > SINTERSTORE to a
        :2
        > TTL to
        :-1
        > EXPIRE to 500
        :1
        > SDIFFSTORE to a
        :2
        > TTL to
        :-1
        > TTL a
        :990..1000
        > SUNIONSTORE a a
        :2
        > TTL a
        :-1
        "#,
    );
}

#[test]
fn the_destination_may_be_a_source() {
    check(
        r#"
        > SADD a 1 2 x
        :3
        > SADD b 2 3 x
        :3
        > SUNIONSTORE a a b
        :4
        > SMEMBERS a
        ~["x", "1", "2", "3"]
        > SINTERSTORE a a b
        :3
        > SMEMBERS a
        ~["x", "2", "3"]
        > SDIFFSTORE b b a
        :0
        > EXISTS b
        :0
        > SDIFFSTORE a b a
        :0
        > EXISTS a
        :0
        > SADD a 1 2 x
        :3
        > SINTERSTORE a a
        :3
        > SMEMBERS a
        ~["x", "1", "2"]
        > SDIFFSTORE a a a
        :0
        > EXISTS a
        :0
        > SUNIONSTORE a a
        :0
        > EXISTS a
        :0
        "#,
    );
}

/// A source of another type is an error whatever else is there, and the destination stays as it was.
#[test]
fn sources_of_other_types_are_refused() {
    check(
        r#"
        > SADD a x
        :1
        > SADD to old
        :1
        > EXPIRE to 1000
        :1
        > SET str text
        +OK
        > HSET h f v
        :1
        > ZADD z 1 x
        :1
        > SINTERSTORE to str
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SINTERSTORE to a str
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SINTERSTORE to str a
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SINTERSTORE to nosuch str
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SINTERSTORE to h nosuch
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SUNIONSTORE to a str
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SUNIONSTORE to nosuch h
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SUNIONSTORE to z
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SDIFFSTORE to a str
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SDIFFSTORE to nosuch str
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SDIFFSTORE to str a
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SMEMBERS to
        ["old"]
        > TTL to
        :990..1000
        // The destination's own type matters only where it is a source too.
        > SUNIONSTORE str str a
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SINTERSTORE str a str
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > GET str
        "text"
        > SUNIONSTORE str a
        :1
        > SMEMBERS str
        ["x"]
        "#,
    );
}

#[test]
fn wrong_numbers_of_arguments() {
    check(
        r#"
        > SINTERSTORE
        -ERR wrong number of arguments for 'sinterstore' command
        > SINTERSTORE to
        -ERR wrong number of arguments for 'sinterstore' command
        > SUNIONSTORE
        -ERR wrong number of arguments for 'sunionstore' command
        > SUNIONSTORE to
        -ERR wrong number of arguments for 'sunionstore' command
        > SDIFFSTORE
        -ERR wrong number of arguments for 'sdiffstore' command
        > SDIFFSTORE to
        -ERR wrong number of arguments for 'sdiffstore' command
        "#,
    );
}

/// What is stored has the encoding that its members would get if they were added to a new set one by one.
#[test]
fn encodings_of_results() {
    check(
        r#"
        # needs redis >= 7.2
        > SADD table 1 2 x
        :3
        > SADD numbers 2 3
        :2
        > SUNIONSTORE to numbers
        :2
        > OBJECT ENCODING to
        "intset"
        > SUNIONSTORE to numbers table
        :4
        > OBJECT ENCODING to
        "listpack"
        > SINTERSTORE to numbers table
        :1
        > OBJECT ENCODING to
        "intset"
        > SREM table x
        :1
        > OBJECT ENCODING table
        "listpack"
        // Only numbers are left in the listpack: what is made of them is an intset.
        > SUNIONSTORE to table
        :2
        > OBJECT ENCODING to
        "intset"
        > SINTERSTORE to table
        :2
        > OBJECT ENCODING to
        "intset"
        > SDIFFSTORE to table numbers
        :1
        > OBJECT ENCODING to
        "intset"
        > SDIFFSTORE to numbers table
        :1
        > OBJECT ENCODING to
        "intset"
        # config set-max-intset-entries 3
        > SADD four 1 2 3
        :3
        > SADD four 4
        :1
        > OBJECT ENCODING four
        "hashtable"
        > SUNIONSTORE to four
        :4
        > OBJECT ENCODING to
        "hashtable"
        > SINTERSTORE to four table
        :2
        > OBJECT ENCODING to
        "intset"
        > SDIFFSTORE to four table
        :2
        > OBJECT ENCODING to
        "intset"
        > SUNIONSTORE to numbers four
        :4
        > OBJECT ENCODING to
        "hashtable"
        // An intersection is made at once: too many integers for an intset are a listpack.
        > SINTERSTORE to four four
        :4
        > OBJECT ENCODING to
        "listpack"
        "#,
    );
}
