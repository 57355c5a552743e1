//! DELEX, DELIFEQ, DIGEST, and SET with IFDEQ and IFDNE: what is done while a string, or its digest, is a given one. Redis
//! 8.4 has all but DELIFEQ, which Valkey 9.0 has.

use crate::has_command;
use wire::{Session, check};

#[test]
fn digest_is_xxh3() {
    check(
        r#"
        # needs redis >= 8.4
        DIGEST nosuch => (nil)
        > MSET a "" b hello c 123 d v8 e v8lf0c11xh8ymlqztfd3eeq16kfn4sspw7fqmnuuq3k3t75em5wdizgcdw7uc26nnf961u2jkfzkjytls2kwlj7626sd
        +OK
        DIGEST a => "2d06800538d394c2"
        DIGEST b => "9555e8555c62dcfd"
        // A number that is kept as one.
        DIGEST c => "404a763b3f4c8c9a"
        // Zeros in front are shown.
        DIGEST d => "0cc76dbb41381419"
        DIGEST e => "00006c38adf31777"
        "#,
    );
}

#[test]
fn delex_compares_strings_or_digests() {
    check(
        r#"
        // Without a condition it is DEL.
        # needs redis >= 8.4
        DELEX a => :0
        SET a hello => +OK
        DELEX a => :1
        EXISTS a => :0
        RPUSH a x => :1
        DELEX a => :1
        SET a 1 PX 1 => +OK
        # sleep 5ms
        DELEX a => :0
        ! FLUSHALL
        // By the string.
        SET a hello EX 100 => +OK
        DELEX a IFEQ other => :0
        DELEX a IFNE hello => :0
        GET a => "hello"
        DELEX a ifeq hello => :1
        SET a hello => +OK
        DELEX a IfNe other => :1
        EXISTS a => :0
        // Numbers are compared as the bytes they are written with.
        SET a 123 => +OK
        DELEX a IFEQ 0123 => :0
        DELEX a IFEQ 123 => :1
        ! FLUSHALL
        // By its digest.
        SET a hello => +OK
        DELEX a IFDEQ 0000000000000000 => :0
        DELEX a IFDNE 9555e8555c62dcfd => :0
        DELEX a IFDNE 9555E8555C62DCFD => :0
        DELEX a IFDEQ 9555E8555c62dcfd => :1
        SET a hello => +OK
        // Only the length is checked.
        DELEX a IFDEQ zzzzzzzzzzzzzzzz => :0
        -ERR must be exactly 16 hexadecimal characters
            DELEX a IFDEQ 555e8555c62dcfd
            DELEX a IFDNE 09555e8555c62dcfd
            DELEX a IFDNE ""
        DELEX a IFDNE zzzzzzzzzzzzzzzz => :1
        "#,
    );
}

#[test]
fn delex_refuses() {
    check(
        r#"
        # needs redis >= 8.4
        // Without the key, the condition is not looked at; with another type, whatever it is.
        DELEX nosuch IFEQ a => :0
        DELEX nosuch IFDEQ short => :0
        DELEX nosuch NOSUCH a => :0
        RPUSH l a => :1
        DELEX l IFEQ a => -ERR Key should be of string type if conditions are specified
        DELEX l NOSUCH a => -ERR Key should be of string type if conditions are specified
        SET a hello => +OK
        DELEX a NOSUCH hello => -ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE
        -ERR wrong number of arguments for 'delex' command
            DELEX a IFEQ
            DELEX a IFEQ hello more
            DELEX nosuch IFEQ
        EXISTS a l => :2
        "#,
    );
}

#[test]
fn a_watched_key_is_changed_by_what_is_deleted_alone() {
    check(
        r#"
        # needs redis >= 8.4
        SET a hello => +OK
        WATCH a => +OK
        2> DELEX a IFEQ other => :0
        MULTI => +OK
        DELEX a IFEQ hello => +QUEUED
        DIGEST a => +QUEUED
        EXEC => [:1, (nil)]
        SET a hello => +OK
        WATCH a => +OK
        2> DELEX a IFDNE 0000000000000000 => :1
        MULTI => +OK
        EXEC => (nil array)
        SET a hello => +OK
        EVAL "return redis.call('DELEX', KEYS[1], 'IFDEQ', redis.call('DIGEST', KEYS[1]))" 1 a => :1
        "#,
    );
}

#[test]
fn set_compares_digests() {
    check(
        r#"
        # needs redis >= 8.4
        SET a 1 IFDEQ 0000000000000000 => (nil)
        EXISTS a => :0
        SET a hello IFDNE 0000000000000000 => +OK
        SET a world IFDEQ 0000000000000000 => (nil)
        SET a world IFDNE 9555e8555c62dcfd => (nil)
        SET a world IFDEQ 9555E8555C62DCFD EX 100 GET => "hello"
        GET a => "world"
        TTL a => :99..100
        SET a x IFDNE 0000000000000000 KEEPTTL => +OK
        TTL a => :99..100
        SET a x IFDEQ 123 => -ERR must be exactly 16 hexadecimal characters
        -ERR syntax error
            SET a x IFDEQ 9555e8555c62dcfd NX
            SET a x IFEQ x IFDEQ 9555e8555c62dcfd
            SET a x IFDEQ
        "#,
    );
}

#[test]
fn delifeq() {
    let session = Session::start();
    if !has_command(&session, "delifeq") {
        return;
    }
    session.check(
        r#"
        > DELIFEQ a hello
        :0
        > SET a hello
        +OK
        > DELIFEQ a other
        :0
        > DELIFEQ a hello
        :1
        > EXISTS a
        :0
        > RPUSH l a
        :1
        > DELIFEQ l a
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > DELIFEQ l
        -ERR wrong number of arguments for 'delifeq' command
        > DELIFEQ l a b
        -ERR wrong number of arguments for 'delifeq' command
        > COMMAND GETKEYSANDFLAGS DELIFEQ a b
        [["a", [+RM, +delete]]]
        "#,
    );
}
