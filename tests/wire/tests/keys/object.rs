//! OBJECT, DUMP, RESTORE.

use wire::{Session, check};

#[test]
fn object_encoding_of_strings_and_hashes() {
    check(
        r#"
        SET a 1234 => +OK
        OBJECT ENCODING a => "int"
        SET a hello => +OK
        OBJECT ENCODING a => "embstr"
        SET a "a string that is longer than forty-four bytes" => +OK
        OBJECT ENCODING a => "raw"
        SET a "a string of exactly forty-four bytes is emb." => +OK
        OBJECT ENCODING a => "embstr"
        SET a "" => +OK
        OBJECT ENCODING a => "embstr"
        SET a 9223372036854775807 => +OK
        OBJECT ENCODING a => "int"
        SET a 9223372036854775808 => +OK
        OBJECT ENCODING a => "embstr"
        SET a -9223372036854775808 => +OK
        OBJECT ENCODING a => "int"
        SET a 01 => +OK
        OBJECT ENCODING a => "embstr"
        SET a " 1" => +OK
        OBJECT ENCODING a => "embstr"
        SET a 1.5 => +OK
        OBJECT ENCODING a => "embstr"
        SET a 10 => +OK
        INCR a => :11
        OBJECT ENCODING a => "int"
        INCRBYFLOAT a 1 => "12"
        APPEND a 5 => :3
        OBJECT ENCODING a => "raw"
        SET a 1 => +OK
        SETRANGE a 0 2 => :1
        OBJECT ENCODING a => "raw"
        ! FLUSHALL
        // A hash whose value is long stays a hashtable.
        HSET h f v => :1
        OBJECT ENCODING h => "listpack"
        HSET h f "a value that is longer than sixty-four bytes, which is where small ends" => :0
        OBJECT ENCODING h => "hashtable"
        HSET h f short => :0
        OBJECT ENCODING h => "hashtable"
        ! FLUSHALL
        // By the number of fields.
        # config hash-max-listpack-entries 3
        HSET h a 1 b 2 c 3 => :3
        OBJECT ENCODING h => "listpack"
        HSET h d 4 => :1
        OBJECT ENCODING h => "hashtable"
        HDEL h a b c => :3
        OBJECT ENCODING h => "hashtable"
        ! FLUSHALL
        // By the size of names and values.
        # config hash-max-listpack-value 4
        HSET h a 1234 => :1
        OBJECT ENCODING h => "listpack"
        HSET h abcde 1 => :1
        OBJECT ENCODING h => "hashtable"
        HSET g a 12345 => :1
        OBJECT ENCODING g => "hashtable"
        "#,
    );
}

#[test]
fn object_refcount_idletime_freq() {
    check(
        r#"
        SET a hello => +OK
        OBJECT REFCOUNT a => :1
        OBJECT IDLETIME a => :0..10
        > OBJECT FREQ a
        -ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.
        HSET h f v => :1
        OBJECT REFCOUNT h => :1
        OBJECT IDLETIME h => :0..10
        ! FLUSHALL
        // Small numbers are shared.
        MSET zero 0 small 9999 large 10000 negative -1 text 01 => +OK
        OBJECT REFCOUNT zero => :2147483647
        OBJECT REFCOUNT small => :2147483647
        OBJECT REFCOUNT large => :1
        OBJECT REFCOUNT negative => :1
        OBJECT REFCOUNT text => :1
        INCR zero => :1
        OBJECT REFCOUNT zero => :2147483647
        ! FLUSHALL
        // Of nothing.
        OBJECT ENCODING nosuch => (nil)
        OBJECT REFCOUNT nosuch => (nil)
        OBJECT IDLETIME nosuch => (nil)
        OBJECT FREQ nosuch => (nil)
        HELLO 3 => {"server" => *, ...}
        OBJECT ENCODING nosuch => _
        "#,
    );
}

#[test]
fn looking_at_a_key_is_no_use_of_it() {
    let session = Session::start();
    let mut connection = session.connect();
    connection.run("SET a hello");
    let dump = connection.run("DUMP a").bytes().to_vec();
    let restore = |connection: &mut wire::Connection| {
        let restored = connection.run_with("RESTORE b 0", &[&dump, b"REPLACE", b"IDLETIME", b"1000"]);
        assert_eq!(restored.to_string(), "+OK");
    };
    restore(&mut connection);
    session.check(
        r#"
        > OBJECT IDLETIME b
        :1000..1010
        > EXISTS b
        :1
        > TYPE b
        +string
        > TTL b
        :-1
        > OBJECT ENCODING b
        "embstr"
        > OBJECT IDLETIME b
        :1000..1010
        > TOUCH b
        :1
        > OBJECT IDLETIME b
        :0..10
        "#,
    );
    restore(&mut connection);
    session.check(
        r#"
        > GET b
        "hello"
        > OBJECT IDLETIME b
        :0..10
        "#,
    );
}

#[test]
fn object_refuses_bad_arguments() {
    check(
        r#"
        OBJECT NOSUCH a => -ERR unknown subcommand 'NOSUCH'. Try OBJECT HELP.
        OBJECT ENCODING => -ERR wrong number of arguments for 'object|encoding' command
        OBJECT ENCODING a b => -ERR wrong number of arguments for 'object|encoding' command
        OBJECT REFCOUNT => -ERR wrong number of arguments for 'object|refcount' command
        OBJECT HELP x => -ERR wrong number of arguments for 'object|help' command
        "#,
    );
}

#[test]
fn object_help() {
    check(
        r#"
        > OBJECT HELP
        [+"OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
         +"ENCODING <key>",
         +"    Return the kind of internal representation used in order to store the value",
         +"    associated with a <key>.",
         +"FREQ <key>",
         +"    Return the access frequency index of the <key>. The returned integer is",
         +"    proportional to the logarithm of the recent access frequency of the key.",
         +"IDLETIME <key>",
         +"    Return the idle time of the <key>, that is the approximated number of",
         +"    seconds elapsed since the last access to the key.",
         +"REFCOUNT <key>",
         +"    Return the number of references of the value associated with the specified",
         +"    <key>.",
         +HELP,
         +"    Print this help." | +"    Prints this help."]
        > object help
        [+"OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", ...]
        "#,
    );
}

#[test]
fn restore_refuses_what_is_no_dump() {
    check(
        r#"
        -ERR DUMP payload version or checksum are wrong
            RESTORE a 0 ""
            RESTORE a 0 nonsense
            RESTORE a 0 "\x00\x03foo\x0b\x00\x00\x00\x00\x00\x00\x00\x00\x00"
        EXISTS a => :0
        RESTORE a -1 x => -ERR Invalid TTL value, must be >= 0
        RESTORE a abc x => -ERR value is not an integer or out of range
        -ERR syntax error
            RESTORE a 0 x NOSUCH
            RESTORE a 0 x REPLACE NOSUCH
            RESTORE a 0 x IDLETIME
        RESTORE a 0 x IDLETIME -1 => -ERR Invalid IDLETIME value, must be >= 0
        RESTORE a 0 x IDLETIME abc => -ERR value is not an integer or out of range
        RESTORE a 0 x FREQ 256 => -ERR Invalid FREQ value, must be >= 0 and <= 255
        RESTORE a 0 x FREQ -1 => -ERR Invalid FREQ value, must be >= 0 and <= 255
        RESTORE a 0 x FREQ abc => -ERR value is not an integer or out of range
        RESTORE a 0 x IDLETIME 1 FREQ 1 => -ERR syntax error
        SET b 1 => +OK
        RESTORE b 0 nonsense => -BUSYKEY Target key name already exists.
        RESTORE b 0 nonsense REPLACE => -ERR DUMP payload version or checksum are wrong
        GET b => "1"
        DUMP nosuch => (nil)
        "#,
    );
}

#[test]
fn dump_and_restore_make_a_copy() {
    let session = Session::start();
    let mut connection = session.connect();
    session.check(
        r#"
        > SET text "hello \x00\xff world"
        +OK
        > SET number 12345
        +OK
        > SET empty ""
        +OK
        > HSET small a 1 b "\x00" "" x
        :3
        "#,
    );
    let long = "0123456789".repeat(10_000);
    connection.run_args(&["SET", "long", &long]);
    for i in 0..1000 {
        connection.run(&format!("HSET large field{i} {i}"));
    }
    for key in ["text", "number", "empty", "long"] {
        let dump = connection.run_args(&["DUMP", key]);
        let restored = connection.run_with("RESTORE copy 0", &[dump.bytes(), b"REPLACE"]);
        assert_eq!(restored.to_string(), "+OK");
        assert_eq!(connection.run("GET copy"), connection.run_args(&["GET", key]), "{key}");
        assert_eq!(connection.run("TTL copy").integer(), -1);
    }
    for key in ["small", "large"] {
        let dump = connection.run_args(&["DUMP", key]);
        let restored = connection.run_with("RESTORE copy 0", &[dump.bytes(), b"REPLACE"]);
        assert_eq!(restored.to_string(), "+OK");
        assert_eq!(connection.run("HLEN copy"), connection.run_args(&["HLEN", key]));
        let fields = connection.run_args(&["HKEYS", key]);
        for field in fields.items() {
            let [original, copy] =
                [key, "copy"].map(|name| connection.run_with("HGET", &[name.as_bytes(), field.bytes()]));
            assert_eq!(original, copy, "{key} {field}");
        }
    }
}

#[test]
fn restore_sets_the_deadline() {
    let session = Session::start();
    let mut connection = session.connect();
    connection.run("SET a hello EXAT 33177117420");
    let dump = connection.run("DUMP a").bytes().to_vec();
    let mut restore = |ttl: &str, options: &[&str]| {
        let mut args: Vec<&[u8]> = vec![b"RESTORE", b"b", ttl.as_bytes(), &dump];
        args.extend(options.iter().map(|option| option.as_bytes()));
        connection.run_args(&args).to_string()
    };

    // The dump does not carry the deadline.
    assert_eq!(restore("0", &[]), "+OK");
    session.check("> TTL b\n:-1");
    assert_eq!(restore("0", &[]), "-BUSYKEY Target key name already exists.");
    assert_eq!(restore("100000", &["REPLACE"]), "+OK");
    session.check("> PTTL b\n:90000..100000");
    assert_eq!(restore("33177117420123", &["REPLACE", "ABSTTL"]), "+OK");
    session.check("> PEXPIRETIME b\n:33177117420123");
    assert_eq!(restore("0", &["replace", "absttl", "IDLETIME", "1000"]), "+OK");
    session.check("> TTL b\n:-1");
    assert_eq!(restore("0", &["REPLACE", "FREQ", "100"]), "+OK");
    assert_eq!(restore("-1", &["REPLACE"]), "-ERR Invalid TTL value, must be >= 0");
    session.check("> GET b\n\"hello\"");
    // A deadline in the past: nothing is stored, and what was there goes.
    assert_eq!(restore("1", &["REPLACE", "ABSTTL"]), "+OK");
    session.check("> EXISTS b\n:0");
}

#[test]
fn restore_refuses_a_damaged_dump() {
    let session = Session::start();
    let mut connection = session.connect();
    connection.run("HSET h a 1 b 2");
    let dump = connection.run("DUMP h").bytes().to_vec();
    for at in 0..dump.len() {
        let mut damaged = dump.clone();
        damaged[at] ^= 0x40;
        let reply = connection.run_with("RESTORE copy 0", &[&damaged]);
        assert_eq!(reply.to_string(), "-ERR DUMP payload version or checksum are wrong", "byte {at} damaged");
    }
    for len in 0..dump.len() {
        let reply = connection.run_with("RESTORE copy 0", &[&dump[..len]]);
        assert_eq!(reply.to_string(), "-ERR DUMP payload version or checksum are wrong", "cut to {len} bytes");
    }
    assert_eq!(connection.run("EXISTS copy").integer(), 0);
}

#[test]
fn dump_and_restore_keep_deadlines_of_fields() {
    let session = Session::start();
    if !session.has_redis("7.4") {
        return;
    }
    let mut connection = session.connect();
    session.check(
        r#"
        > HSET small a 1 b 2
        :2
        > HPEXPIREAT small 33177117420123 FIELDS 1 b
        [:1]
        > HSET large a "a value that is longer than sixty-four bytes, which is where small ends" b 2
        :2
        > HPEXPIREAT large 33177117420123 FIELDS 1 b
        [:1]
        "#,
    );
    for (key, encoding) in [("small", "listpackex"), ("large", "hashtable")] {
        let dump = connection.run_args(&["DUMP", key]);
        let restored = connection.run_with("RESTORE copy 0", &[dump.bytes(), b"REPLACE"]);
        assert_eq!(restored.to_string(), "+OK");
        session.check(&format!(
            r#"
            > HPEXPIRETIME copy FIELDS 2 a b
            [:-1, :33177117420123]
            > HGET copy b
            "2"
            > HLEN copy
            :2
            > OBJECT ENCODING copy
            "{encoding}"
            "#
        ));
    }
}

#[test]
fn restore_leaves_fields_out_whose_time_has_come() {
    let session = Session::start();
    if !session.has_redis("7.4") {
        return;
    }
    let mut connection = session.connect();
    connection.run("HSET h a 1 b 2");
    connection.run("HPEXPIRE h 20 FIELDS 1 b");
    let dump = connection.run("DUMP h").bytes().to_vec();
    session.check(
        r#"
        # eventually
        > HLEN h
        :1
        "#,
    );
    connection.run_with("RESTORE copy 0", &[&dump]);
    session.check(
        r#"
        > HGETALL copy
        ["a", "1"]
        "#,
    );
}

#[test]
fn restore_names_the_type_it_cannot_keep() {
    check(
        r#"
        # holdfast only
        SET a 1 => +OK
        > RESTORE a 0 "\x07\x00\x0a\x00\xf2\x07\x8a\x0c\xd0\x0c\xef\x01" REPLACE
        -ERR RESTORE cannot keep values of type module: not supported
        GET a => "1"
        "#,
    );
}

#[test]
fn how_often_a_key_is_used_is_counted_under_an_lfu_policy() {
    check(
        r#"
        # config maxmemory-policy allkeys-lfu
        SET k v => +OK
        OBJECT FREQ k => :5
        GET k => "v"
        OBJECT FREQ k => :6
        OBJECT FREQ nosuch => (nil)
        OBJECT IDLETIME nosuch => (nil)
        > OBJECT IDLETIME k
        -ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.
        RESTORE r 0 "\x00\xc0\n\n\x00n\x9fWE\x0e\xaec\xbb" FREQ 77 => +OK
        OBJECT FREQ r => :77
        "#,
    );
}
