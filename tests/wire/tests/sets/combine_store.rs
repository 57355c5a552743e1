//! SINTERSTORE, SUNIONSTORE, SDIFFSTORE.

use wire::check;

#[test]
fn results_are_stored() {
    check(
        r#"
        ! SADD a 1 2 3 x
        ! SADD b 2 3 4 x
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
        SMEMBERS to => ["4"]
        SMEMBERS a => ~["x", "1", "2", "3"]
        SMEMBERS b => ~["x", "2", "3", "4"]
        ! HELLO 3
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
fn the_destination_may_be_a_source() {
    check(
        r#"
        ! SADD a 1 2 x
        ! SADD b 2 3 x
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
        ! SADD a 1 2 x
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
        ! SADD a x
        ! SADD to old
        > EXPIRE to 1000
        :1
        ! SET str text
        ! HSET h f v
        ! ZADD z 1 x
        -WRONGTYPE Operation against a key holding the wrong kind of value
            SINTERSTORE to str
            SINTERSTORE to a str
            SINTERSTORE to str a
            SINTERSTORE to nosuch str
            SINTERSTORE to h nosuch
            SUNIONSTORE to a str
            SUNIONSTORE to nosuch h
            SUNIONSTORE to z
            SDIFFSTORE to a str
            SDIFFSTORE to nosuch str
            SDIFFSTORE to str a
        SMEMBERS to => ["old"]
        TTL to => :990..1000
        // The destination's own type matters only where it is a source too.
        -WRONGTYPE Operation against a key holding the wrong kind of value
            SUNIONSTORE str str a
            SINTERSTORE str a str
        GET str => "text"
        > SUNIONSTORE str a
        :1
        > SMEMBERS str
        ["x"]
        "#,
    );
}

/// What is stored has the encoding that its members would get if they were added to a new set one by one.
#[test]
fn encodings_of_results() {
    check(
        r#"
        # needs redis >= 7.2
        ! SADD table 1 2 x
        ! SADD numbers 2 3
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
        ! SADD four 1 2 3
        ! SADD four 4
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
