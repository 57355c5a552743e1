//! MSETEX. Redis has it since 8.4, Valkey since 9.1.

use crate::has_command;
use wire::{Session, check};

/// Runs a transcript where there is the command.
#[track_caller]
fn check_where_there_is(transcript: &str) {
    let session = Session::start();
    if has_command(&session, "msetex") {
        session.check(transcript);
    }
}

#[test]
fn msetex_sets_all_keys() {
    check_where_there_is(
        r#"
        SET b old EX 100 => +OK
        RPUSH c x => :1
        MSETEX 3 a 1 b 2 c 3 => :1
        MGET a b c => ["1", "2", "3"]
        TTL b => :-1
        MSETEX 2 a 1 b 2 EX 100 => :1
        TTL a => :99..100
        TTL b => :99..100
        MSETEX 1 a 1 PX 200000 => :1
        PTTL a => :190000..200000
        MSETEX 1 a 1 EXAT 33177117420 => :1
        EXPIRETIME a => :33177117420
        MSETEX 2 a 5 nosuch 6 KEEPTTL => :1
        EXPIRETIME a => :33177117420
        MGET a nosuch => ["5", "6"]
        MSETEX 1 a 1 pxat 33177117420123 => :1
        PEXPIRETIME a => :33177117420123
        // The last of two equal keys counts, and the last of two equal options.
        MSETEX 2 a 1 a 2 EX 100 EX 200 => :1
        GET a => "2"
        TTL a => :199..200
        "#,
    );
}

#[test]
fn msetex_sets_all_or_none() {
    check_where_there_is(
        r#"
        SET a 1 => +OK
        MSETEX 2 a 2 b 2 NX => :0
        MSETEX 2 a 2 b 2 XX => :0
        MGET a b => ["1", (nil)]
        MSETEX 2 b 2 c 2 NX EX 100 => :1
        MSETEX 2 a 3 b 3 XX KEEPTTL => :1
        MGET a b c => ["3", "3", "2"]
        TTL b => :99..100
        MSETEX 2 d 1 d 2 NX => :1
        GET d => "2"
        RPUSH l x => :1
        MSETEX 1 l x NX => :0
        MSETEX 1 l x XX => :1
        GET l => "x"
        "#,
    );
}

#[test]
fn a_deadline_that_has_passed_deletes_the_keys() {
    check_where_there_is(
        r#"
        SET a 1 => +OK
        MSETEX 2 a 2 b 2 PXAT 1 => :1
        EXISTS a b => :0
        "#,
    );
}

#[test]
fn msetex_refuses() {
    check_where_there_is(
        r#"
        MSETEX 1 a => -ERR wrong number of arguments for 'msetex' command
        MSETEX 0 a 1 => ~-ERR invalid numkeys value*
        MSETEX -1 a 1 => ~-ERR invalid numkeys value*
        MSETEX x a 1 => ~-ERR invalid numkeys value*
        MSETEX 2147483648 a 1 => ~-ERR invalid numkeys value*
        MSETEX 2 a 1 b => ~-ERR *
        MSETEX 2147483647 a 1 => ~-ERR *
        MSETEX 1 a 1 NX XX => -ERR syntax error
        MSETEX 1 a 1 b 2 => -ERR syntax error
        MSETEX 1 a 1 IFEQ 1 => -ERR syntax error
        MSETEX 1 a 1 GET => -ERR syntax error
        MSETEX 1 a 1 PERSIST => -ERR syntax error
        MSETEX 1 a 1 EX => -ERR syntax error
        MSETEX 1 a 1 EX 10 KEEPTTL => -ERR syntax error
        MSETEX 1 a 1 KEEPTTL PX 10 => -ERR syntax error
        MSETEX 1 a 1 EX 10 PX 10 => -ERR syntax error
        MSETEX 1 a 1 EX 0 => -ERR invalid expire time in 'msetex' command
        MSETEX 1 a 1 PX -5 => -ERR invalid expire time in 'msetex' command
        MSETEX 1 a 1 EX 9223372036854775807 => -ERR invalid expire time in 'msetex' command
        MSETEX 1 a 1 EX abc => -ERR value is not an integer or out of range
        EXISTS a => :0
        "#,
    );
    check(
        "
        # needs redis >= 8.4
        MSETEX 0 a 1 => -ERR invalid numkeys value
        MSETEX 2 a 1 b => -ERR wrong number of key-value pairs
        MSETEX 2147483647 a 1 => -ERR wrong number of key-value pairs
        ",
    );
}

#[test]
fn its_keys_are_found() {
    check_where_there_is(
        r#"
        COMMAND GETKEYS MSETEX 2 a 1 b 2 EX 10 => ["a", "b"]
        COMMAND GETKEYSANDFLAGS MSETEX 2 a 1 b 2 NX => [["a", [+OW, +update]], ["b", [+OW, +update]]]
        MULTI => +OK
        MSETEX 2 a 1 b 2 => +QUEUED
        EXEC => [:1]
        EVAL "return redis.call('MSETEX', 2, KEYS[1], 5, KEYS[2], 6, 'XX')" 2 a b => :1
        MGET a b => ["5", "6"]
        "#,
    );
}

/// A user needs the right to each key, not to what stands between them.
#[test]
fn access_is_checked_by_key() {
    check_where_there_is(
        r#"
        ACL SETUSER alice on >pw ~a* +msetex +get => +OK
        2> AUTH alice pw => +OK
        2> MSETEX 2 a1 v a2 b EX 100 => :1
        2> MSETEX 2 a1 v b v => ~-NOPERM *
        2> MSETEX 2 a1 v a2 v NX => :0
        ACL DELUSER alice => :1
        "#,
    );
}
