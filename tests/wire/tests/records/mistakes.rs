//! What the errors of our own commands say: where a counted list ended, which options there are, which one is meant, the
//! usage, the type of a key. The texts of Redis's commands are Redis's.

use crate::support::check;

#[test]
fn an_unknown_option_says_where_the_list_before_it_ended_and_which_options_there_are() {
    check(
        r##"
        # holdfast only
        > HCAS k IF 1 state SET 1 a b
        -ERR unknown option '1'. IF counts 1 item of 2, and ended before it with 'SET'. Known here: IF, ABSENT, SET, DEL, STAMP, EX, PX, EXAT, PXAT, PERSIST, WITHCURRENT
        > HCAS k DEL 2 a b c SET 1 a b
        ~-ERR unknown option 'c'. DEL counts 2 items, and ended before it with 'b'. Known here: *
        > HCAS k DEL 0 c SET 1 a b
        ~-ERR unknown option 'c'. DEL counts no items, so this follows it. Known here: *
        > SWEEP q BEFORE 5 WHERE state 1 x y SET 1 a b
        -ERR unknown option 'y'. WHERE counts 1 item, and ended before it with 'x'. Known here: BEFORE, WHERE, RETRY, SET, LIMIT, PUBLISH
        > CLAIM 1 a b SET 1 a b
        ~-ERR unknown option 'b'. The list of indexes counts 1 item, and ended before it with 'a'. Known here: *
        // A value that looks like an option is none.
        > HPUT k FIELDS 1 IF 1 x
        -ERR unknown option 'x'. FIELDS counts 1 item of 2, and ended before it with '1'. Known here: REPLACE, EX, PX, EXAT, PXAT, KEEPTTL, STAMP, FIELDS
        > HPUT k FIELD 1 a b
        ~-ERR unknown option 'FIELD'. Did you mean FIELDS? Known here: *
        > claim 1 q wehre state 1 x set 1 a b
        ~-ERR unknown option 'wehre'. The list of indexes counts 1 item, and ended before it with 'q'. Did you mean WHERE? Known here: MIN, MAX, WHERE, *
        > IDX.LIMIT q RATE 5 1000 BURTS 6
        ~-ERR unknown option 'BURTS'. Did you mean BURST? Known here: GROUP, EACH, ALL, HELD, RATE, WEIGHT, PAUSE, RESET
        > IDX.LIMIT q PAUSE maybe
        -ERR unknown option 'maybe'. Known here: YES, NO
        > CLAIM 1 q SET 1 a b ORDER last
        -ERR unknown option 'last'. Known here: FAIR, SCORE
        > RUN.APPEND r * t d STPE 1
        ~-ERR unknown option 'STPE'. Did you mean STEP? Known here: IFLAST, EVENTID, STEP, *
        > DBSIZE
        :0
        "##,
    );
}

#[test]
fn what_is_missing_is_named_with_the_usage() {
    check(
        r##"
        # holdfast only
        > HPUT k REPLACE STAMP 1 a 0
        -ERR missing: FIELDS, the fields to write. Usage: HPUT key [REPLACE] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL] [STAMP count field offset-ms ...] FIELDS count field value ...
        > IDX.LIMIT q RATE 5
        -ERR missing: the milliseconds behind RATE. Usage: IDX.LIMIT name [GROUP group | EACH | ALL] [[HELD <max | NONE | DEFAULT>] [RATE <takes milliseconds [BURST burst] | NONE | DEFAULT>] [WEIGHT weight] [PAUSE <YES | NO>] | RESET]
        > HPUT k FIELDS 3 a b c
        ~-ERR FIELDS counts 3 items of 2, but 3 arguments follow. Usage: HPUT key *
        > HPUT k REPLACE FIELDS 9 a
        ~-ERR FIELDS counts 9 items of 2, but 1 argument follows. Usage: HPUT key *
        > IDX.DROP
        -ERR wrong number of arguments for 'idx.drop' command. Usage: IDX.DROP name
        > IDX.LIST x
        -ERR wrong number of arguments for 'idx.list' command. Usage: IDX.LIST
        > SESSION.HOOK CREATED f x
        -ERR syntax error. Usage: SESSION.HOOK [<CREATED | EXPIRED> <function | NONE>]
        // Those who queue requests and those who call from scripts see the same.
        > MULTI
        +OK
        > IDX.DROP
        -ERR wrong number of arguments for 'idx.drop' command. Usage: IDX.DROP name
        > EXEC
        -EXECABORT Transaction discarded because of previous errors.
        > EVAL "return redis.pcall('IDX.LIMIT', 'q', 'PAUSE', 'maybe')" 0
        -ERR unknown option 'maybe'. Known here: YES, NO
        // Commands of Redis have Redis's texts.
        > GET
        -ERR wrong number of arguments for 'get' command
        > SET k v NOX
        -ERR syntax error
        > OBJECT ENCODING
        -ERR wrong number of arguments for 'object|encoding' command
        "##,
    );
}

#[test]
fn a_key_of_another_type_is_named_by_our_own_commands_alone() {
    check(
        r##"
        # holdfast only
        > LPUSH list a
        :1
        > HCAS list f a b
        -WRONGTYPE Operation against a key holding the wrong kind of value: the key's type is list
        > REG.RESTORE FROM list
        -WRONGTYPE Operation against a key holding the wrong kind of value: the key's type is list
        > REG.SNAPSHOT KEYS 1 list
        -WRONGTYPE Operation against a key holding the wrong kind of value: the key's type is list
        > EVAL "return redis.call('CELL.GET', KEYS[1])" 1 list
        ~-WRONGTYPE Operation against a key holding the wrong kind of value: the key's type is list*
        > HGET list f
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > CELL.SET cell 1
        :1
        > SET cell 1
        -WRONGTYPE Operation against a key holding the wrong kind of value
        "##,
    );
}
