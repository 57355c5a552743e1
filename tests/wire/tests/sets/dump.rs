//! DUMP and RESTORE of sets: payloads as Redis writes them, newer ones, damaged ones.

use wire::{Product, Session, check};

#[test]
fn restore_takes_what_redis_7_0_has_written() {
    check(
        r#"
        # needs redis >= 7.2
        // An intset of 16, of 32 and of 64 bits; the last one is compressed.
        > RESTORE short 0 "\x0b\x10\x02\x00\x00\x00\x04\x00\x00\x00\xfd\xff\x01\x00\x02\x00\xff\x7f\n\x00A\xcd\xd8b\xde\xb8\xce\xe6"
        +OK
        > OBJECT ENCODING short
        "intset"
        > SMEMBERS short
        ["-3", "1", "2", "32767"]
        > RESTORE middle 0 "\x0b\x18\x04\x00\x00\x00\x04\x00\x00\x00\x90\xee\xfe\xff\x01\x00\x00\x00\x02\x00\x00\x00p\x11\x01\x00\n\x00\xf8]\x9dZ\x94\x94\x9e`"
        +OK
        > OBJECT ENCODING middle
        "intset"
        > SMEMBERS middle
        ["-70000", "1", "2", "70000"]
        > RESTORE long 0 "\x0b\xc3\x1c(\x04\b\x00\x00\x00\x04 \x03\xa0\x00\x01\x80\xff\xa0\x00\x04\x00\xf2\x05*\x01 \x14\x80\x0e\x01\xff\x7f\n\x00\xca-\xdd\x9d\x86r\xcc\x05"
        +OK
        > OBJECT ENCODING long
        "intset"
        > SMEMBERS long
        ["-9223372036854775808", "-1", "5000000000", "9223372036854775807"]
        ! SADD long 5
        > SREM middle 70000
        :1
        // Wider than its members need, as it is after the widest has gone.
        > RESTORE wide 0 "\x0b\x18\b\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\n\x00\xdc\xe1\xc3y2e\xa8\xf5"
        +OK
        > SMEMBERS wide
        ["1", "2"]
        > OBJECT ENCODING wide
        "intset"
        // A table, with an empty member.
        > RESTORE table 0 "\x02\x04\x01a\x00\x01\x00\x01b\n\x00Pb\xb3\xc2~\xd6\xcb\xb3"
        +OK
        > OBJECT ENCODING table
        "listpack"
        > SMEMBERS table
        ~["", "\x00", "a", "b"]
        // Members that are numbers, in the payload's own encodings of 8, 16 and 32 bits and as text.
        > RESTORE numbers 0 "\x02\x06\xc18\xff\xc2p\x11\x01\x00\x01x\x0201\xc0\x01\n5000000000\n\x00\x10\xb3\x9e\xc8\xef\x16\x16\xd4"
        +OK
        OBJECT ENCODING numbers => "listpack"
        SMEMBERS numbers => ~["x", "1", "01", "-200", "70000", "5000000000"]
        SISMEMBER numbers 70000 => :1
        // A compressed member.
        > RESTORE compressed 0 "\x02\x01\xc3\x12@Z\n01234567890\xe0D\t\x0189\n\x00\xf6M;WB3\x89\xc1"
        +OK
        > OBJECT ENCODING compressed
        "hashtable"
        > SMEMBERS compressed
        ["012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"]
        "#,
    );
}

/// The encoding of a key depends on its members and the limit, unless the payload is a listpack.
#[test]
fn restore_chooses_the_encoding() {
    check(
        r#"
        # needs redis >= 7.2
        // A table that has only integers left.
        > RESTORE s 0 "\x02\x02\xc0\x01\xc0\x02\n\x00\x808\xbc\xf4\x1bR}\xc9"
        +OK
        > OBJECT ENCODING s
        "intset"
        > SMEMBERS s
        ~["1", "2"]
        > DEL s
        :1
        # config set-max-intset-entries 3
        // An intset of four.
        > RESTORE s 0 "\x0b\x10\x02\x00\x00\x00\x04\x00\x00\x00\xfd\xff\x01\x00\x02\x00\xff\x7f\n\x00A\xcd\xd8b\xde\xb8\xce\xe6"
        +OK
        > OBJECT ENCODING s
        "hashtable"
        > SMEMBERS s
        ~["1", "2", "-3", "32767"]
        // A table of integers, as many as the limit, and one more.
        # config set-max-intset-entries 2
        > RESTORE s 0 "\x02\x02\xc0\x01\xc0\x02\n\x00\x808\xbc\xf4\x1bR}\xc9" REPLACE
        +OK
        > OBJECT ENCODING s
        "intset"
        # config set-max-intset-entries 1
        > RESTORE s 0 "\x02\x02\xc0\x01\xc0\x02\n\x00\x808\xbc\xf4\x1bR}\xc9" REPLACE
        +OK
        > OBJECT ENCODING s
        "hashtable"
        > SMEMBERS s
        ~["1", "2"]
        "#,
    );
}

/// Since Redis 7.2 small sets are listpacks, with a type of their own (20).
#[test]
fn restore_takes_what_redis_7_2_has_written() {
    check(
        r#"
        # needs redis >= 7.2
        > RESTORE s 0 "\x14\x0f\x0f\x00\x00\x00\x03\x00\x81a\x02\x81b\x02\x05\x01\xff\x0b\x00V\xcfD/\xf9\x11\x1e\xb0"
        +OK
        > SMEMBERS s
        ~["a", "b", "5"]
        > OBJECT ENCODING s
        "listpack"
        ! SADD s c 6
        > SMEMBERS s
        ~["a", "b", "c", "5", "6"]
        // Integers of every width, an empty member; compressed.
        > RESTORE mixed 0 "\x14\xc3,;\x1d;\x00\x00\x00\t\x00\x81a\x02\x81b\x02\x01\x01\x16\x01\xde\xd4\x02\xf2p\x11\x01\x04\xf4\x00\xf2\x05*\x01@\x1c\x03\x80\x01\x94x\xe0\n\x00\x01\x15\xff\x0b\x00\x98J\xc4\xc3C\x06\xae\x94"
        +OK
        > SMEMBERS mixed
        ~["a", "b", "1", "22", "-300", "70000", "5000000000", "", "xxxxxxxxxxxxxxxxxxxx"]
        > RESTORE repeated 0 "\x14\xc3@PA3\r3\x01\x00\x00\x0c\x00\x97member-\xe0\x05\x06\x0200\x18\xe0\x0e\x18\x001\xe0\x0f\x18\x002\xe0\x0f\x18\x003\xe0\x0f\x18\x004\xe0\x0f\x18\x005\xe0\x0f\x18\x006\xe0\x0f\x18\x007\xe0\x0f\x18\x008\xe0\x0f\x18\x009\xe0\x0e\x18\x001\xe0\x0f\xf9\x0311\x18\xff\x0b\x00u9\xdf[\"*\xcd\x9a"
        +OK
        > SCARD repeated
        :12
        > SMISMEMBER repeated member-member-member-00 member-member-member-11 member-member-member-12
        [:1, :1, :0]
        // Only integers, and only an empty member.
        > RESTORE numbers 0 "\x14\r\r\x00\x00\x00\x03\x00\x01\x01\x02\x01\x03\x01\xff\x0b\x00\xa8\xbd5\xb9\xa3h\xbaK"
        +OK
        > SMEMBERS numbers
        ~["1", "2", "3"]
        > OBJECT ENCODING numbers
        "listpack"
        > COPY numbers copied
        :1
        > OBJECT ENCODING copied
        "listpack"
        // More members than the setting allows.
        # config set-max-listpack-entries 2
        > RESTORE numbers 0 "\x14\r\r\x00\x00\x00\x03\x00\x01\x01\x02\x01\x03\x01\xff\x0b\x00\xa8\xbd5\xb9\xa3h\xbaK" REPLACE
        +OK
        > OBJECT ENCODING numbers
        "hashtable"
        # config set-max-listpack-entries 128
        // Longer members than the setting allows: they are not looked at.
        # config set-max-listpack-value 1
        > RESTORE long 0 "\x14\xc3@PA3\r3\x01\x00\x00\x0c\x00\x97member-\xe0\x05\x06\x0200\x18\xe0\x0e\x18\x001\xe0\x0f\x18\x002\xe0\x0f\x18\x003\xe0\x0f\x18\x004\xe0\x0f\x18\x005\xe0\x0f\x18\x006\xe0\x0f\x18\x007\xe0\x0f\x18\x008\xe0\x0f\x18\x009\xe0\x0e\x18\x001\xe0\x0f\xf9\x0311\x18\xff\x0b\x00u9\xdf[\"*\xcd\x9a"
        +OK
        > OBJECT ENCODING long
        "listpack"
        # config set-max-listpack-value 64
        > RESTORE empty 0 "\x14\t\t\x00\x00\x00\x01\x00\x80\x01\xff\x0b\x00U\xe9\xe1/\x16 %\x9a"
        +OK
        > SMEMBERS empty
        [""]
        // Damaged: a member twice, also as integer and as text; no member; a wrong count, a wrong length, no end.
        # config sanitize-dump-payload yes
        -ERR Bad data format
            RESTORE bad 0 "\x14\x10\x10\x00\x00\x00\x03\x00\x81a\x02\x81b\x02\x81a\x02\xff\x0b\x00Q\x8f\x19P\xdc\xc3\x90]"
            RESTORE bad 0 "\x14\x0c\x0c\x00\x00\x00\x02\x00\x01\x01\x811\x02\xff\x0b\x00\x8d\xba\x84\xa01h=\x15"
            RESTORE bad 0 "\x14\a\a\x00\x00\x00\x00\x00\xff\x0b\x00+xG]\rl\x144"
            RESTORE bad 0 "\x14\r\r\x00\x00\x00\x05\x00\x81a\x02\x81b\x02\xff\x0b\x008.\xcbh.\xa6\xcb\xb2"
            RESTORE bad 0 "\x14\r \x00\x00\x00\x02\x00\x81a\x02\x81b\x02\xff\x0b\x00\x10\xb9\xa9\x0b&\xc5\xb7a"
            RESTORE bad 0 "\x14\r\r\x00\x00\x00\x02\x00\x81a\x02\x81b\x02\x01\x0b\x00 \a\x93&\x1d\xaaZm"
        EXISTS bad => :0
        "#,
    );
}

#[test]
fn restore_refuses_malformed_sets() {
    check(
        r#"
        # config sanitize-dump-payload yes
        // Intsets: without members, not in order, with a member twice.
        -ERR Bad data format
            RESTORE s 0 "\x0b\b\x02\x00\x00\x00\x00\x00\x00\x00\n\x00ZC;\x1d\x95\xdb\x8d9"
            RESTORE s 0 "\x0b\x0e\x02\x00\x00\x00\x03\x00\x00\x00\x03\x00\x01\x00\x02\x00\n\x00\xbc\xcf@\x11\xec\x14h\xe8"
            RESTORE s 0 "\x0b\x0e\x02\x00\x00\x00\x03\x00\x00\x00\x01\x00\x01\x00\x02\x00\n\x004G\x9e\x83\xc7\x14R\x98"
        // Of 24 bits; of more and of fewer members than it says; without a whole header.
        -ERR Bad data format
            RESTORE s 0 "\x0b\x0b\x03\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\n\x00\xc6\xcf\x8eo Z_\x1e"
            RESTORE s 0 "\x0b\x0c\x02\x00\x00\x00\x03\x00\x00\x00\x01\x00\x02\x00\n\x00\xa3?\xb9Z;\x19\xba\x81"
            RESTORE s 0 "\x0b\x0c\x02\x00\x00\x00\x01\x00\x00\x00\x01\x00\x02\x00\n\x00P!,\xd5w\xdb\xd6\xf5"
            RESTORE s 0 "\x0b\x04\x02\x00\x00\x00\n\x00\xba\x7f<\xa2D\t\xab4"
        // Tables: without members; with a member twice, also as integer and as text; with fewer than it says.
        -ERR Bad data format
            RESTORE s 0 "\x02\x00\n\x00:\xce9\x00\x9b\x899\xe8"
            RESTORE s 0 "\x02\x02\x01a\x01a\n\x00W\xbev/\xc2\xd6R:"
            RESTORE s 0 "\x02\x02\x011\x011\n\x00\tj\xb9\xe6\x10eY\xbc"
            RESTORE s 0 "\x02\x02\xc0\x01\x011\n\x00\xc7E\xac\x06\xc3\xf8D\xab"
            RESTORE s 0 "\x02\x03\x01a\x01b\n\x00\x0c\x8b#\xc6\r^\x94o"
        EXISTS s => :0
        "#,
    );
}

/// The form that Redis 7.0 and all tools know: an intset in order, a table as a list of members.
#[test]
fn payloads_are_those_of_redis_7_0() {
    let session = Session::start();
    if session.product() != Product::Holdfast && session.has_redis("7.2") {
        return wire::skip(&format!(
            "{} dumps small sets as listpacks, which Redis 7.0 does not restore",
            session.product()
        ));
    }
    session.check(
        r#"
        > SADD short 2 32767 -3 1
        :4
        > DUMP short
        "\x0b\x10\x02\x00\x00\x00\x04\x00\x00\x00\xfd\xff\x01\x00\x02\x00\xff\x7f\n\x00A\xcd\xd8b\xde\xb8\xce\xe6"
        > SADD long 1
        :1
        > DUMP long
        ~"\x0b\n\x02\x00\x00\x00\x01\x00\x00\x00\x01\x00\n\x00*"
        > SADD long 70000
        :1
        > DUMP long
        ~"\x0b\x10\x04\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00p\x11\x01\x00\n\x00*"
        > SADD table a
        :1
        > DUMP table
        "\x02\x01\x01a\n\x00b\x96\xe9~D\xd2\x1am"
        > DUMP nosuch
        (nil)
        "#,
    );
}
