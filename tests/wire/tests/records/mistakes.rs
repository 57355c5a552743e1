//! What the errors of our own commands say: where a counted list ended, which options there are, which one is meant, the
//! usage, the type of a key. The texts of Redis's commands are Redis's.

use crate::support::{check, start};
use wire::glob;

/// Requests, and options that may follow them. Behind the colon: what each word behind the option is, with the smallest number that it may be.
const OPTIONS: &[(&str, &str)] = &[
    ("SWEEP i SET 1 a b LIMIT 5", "BEFORE 9: time"),
    ("SWEEP i BEFORE 9 LIMIT 5", "SET 1 a b: count 0"),
    ("SWEEP i BEFORE 9 SET 1 a b", "LIMIT 1: number 0; PUBLISH c: channel; WHERE s 1 x: field, count 0"),
    ("SWEEP i BEFORE 9 SET 1 a b ELSE 1 a b", "RETRY tries 3: field, maximum 0"),
    ("SWEEP i BEFORE 9 SET 1 a b RETRY tries 3", "ELSE 1 a b: count 0"),
    ("CLAIM 1 i KEYS WITHTTL", "SET 1 a b: count 0"),
    ("CLAIM 1 i SET 1 a b", "COUNT 1: number 1; BLOCK 1: time 0; COUNTER n: field; FIELDS 1 a: count 0; KEYS; WITHTTL"),
    ("CLAIM 1 i SET 1 a b COUNTER n ELSE 1 a c", "UPTO 3: maximum 0"),
    ("HFIND p:", "CURSOR 0; LIMIT 1: number 0; FIELDS 1 a: count 0; KEYS; WITHTTL"),
    ("IDX.RANGE i 0 5", "LIMIT 1: number 0; FIELDS 1 a: count 0; REV; KEYS; WITHTTL"),
    ("IDX.CREATE x FIELD at ONLY s 0", "PREFIX 1 a: count 0"),
    ("IDX.CREATE x PREFIX 1 a STAMP", "FIELD at: field"),
    ("IDX.CREATE x PREFIX 1 a FIELD at", "ONLY s 1 a: field, count 0; EXCLUDE s 1 a: field, count 0; STAMP; IFABSENT"),
    (
        "HCAS k PERSIST",
        "IF 1 a b: count 0; ABSENT 1 a: count 0; SET 1 a b: count 0; DEL 1 a: count 0; STAMP 1 a 0: count 0",
    ),
    ("HCAS k SET 1 a b", "WITHCURRENT"),
    ("HPUT k FIELDS 1 a b", "STAMP 1 c 0: count 0; REPLACE"),
    ("SESSION.OPEN", "ID a; TTL 5; CAP 1 x y: count 0"),
    ("SESSION.PENDING s", "AFTER 1: id 0; LIMIT 1: number 0; BLOCK 1: time 0"),
    ("SESSION.RETRY 5", "LIMIT 1: number 0"),
];

#[test]
fn an_option_is_given_once_with_all_that_belongs_to_it() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    connection.run("IDX.CREATE i PREFIX 1 p: FIELD at");
    let mut refused = |request: String, expected: String| {
        let reply = connection.run(&request).to_string();
        assert!(glob(expected.as_bytes(), reply.as_bytes()), "{request}: {reply}, and not {expected}");
    };
    for (base, options) in OPTIONS {
        for option in options.split("; ") {
            let (option, parts) = option.split_once(": ").unwrap_or((option, ""));
            let name = match option.split(' ').next().expect("it has a name") {
                "ONLY" | "EXCLUDE" => "ONLY or EXCLUDE",
                "FIELDS" | "KEYS" => "FIELDS or KEYS",
                name => name,
            };
            refused(format!("{base} {option} {option}"), format!("-ERR {name} is given twice"));
            let words: Vec<&str> = option.split(' ').collect();
            let name = words[0];
            for (at, part) in parts.split(", ").enumerate().filter(|(_, part)| !part.is_empty()) {
                let before = words[..=at].join(" ");
                let (what, min) = part.split_once(' ').unwrap_or((part, ""));
                refused(format!("{base} {before}"), format!("-ERR missing: the {what} behind {name}. Usage: *"));
                let wrong = ["x", "-1", "1.0", "9223372036854775808"];
                for number in wrong.into_iter().filter(|_| !min.is_empty()) {
                    let expected =
                        format!("-ERR the {what} behind {name} must be a whole number not below {min}, not '{number}'");
                    refused(format!("{base} {before} {number} y z"), expected);
                }
                if what == "count" {
                    let rest = words[at + 2..].join(" ");
                    refused(
                        format!("{base} {before} 999 {rest}"),
                        format!("-ERR {name} counts 999 items of ?, but ? argument*"),
                    );
                }
            }
            refused(format!("{base} {option} \"\\r\\n\""), "-ERR unknown option '?r?n'. *".into());
        }
    }
    assert_eq!(connection.run("KEYS *").to_string(), "[]");
}

#[test]
fn an_unknown_option_says_where_the_list_before_it_ended_and_which_options_there_are() {
    check(
        r##"
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
        HPUT k FIELD 1 a b => ~-ERR unknown option 'FIELD'. Did you mean FIELDS? Known here: *
        > claim 1 q wehre state 1 x set 1 a b
        ~-ERR unknown option 'wehre'. The list of indexes counts 1 item, and ended before it with 'q'. Did you mean WHERE? Known here: MIN, MAX, WHERE, *
        > IDX.LIMIT q RATE 5 1000 BURTS 6
        ~-ERR unknown option 'BURTS'. Did you mean BURST? Known here: GROUP, EACH, ALL, HELD, RATE, WEIGHT, PAUSE, RESET
        IDX.LIMIT q PAUSE maybe => -ERR unknown option 'maybe'. Known here: YES, NO
        // The very word that was given is not suggested.
        CELL.CAS c NONE x NONE => -ERR unknown option 'NONE'. NONE cannot stand here. Known here: EX, PX, PERSIST, WITHCURRENT
        CLAIM 1 q SET 1 a b ORDER last => -ERR unknown option 'last'. Known here: FAIR, SCORE
        > RUN.APPEND r * t d STPE 1
        ~-ERR unknown option 'STPE'. Did you mean STEP? Known here: IFLAST, EVENTID, STEP, *
        DBSIZE => :0
        "##,
    );
}

#[test]
fn what_is_missing_is_named_with_the_usage() {
    check(
        r##"
        > HPUT k REPLACE STAMP 1 a 0
        -ERR missing: FIELDS, the fields to write. Usage: HPUT key [REPLACE] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL] [STAMP count field offset-ms ...] FIELDS count field value ...
        > IDX.LIMIT q RATE 5
        -ERR missing: the milliseconds behind RATE. Usage: IDX.LIMIT name [GROUP group | EACH | ALL] [[HELD <max | NONE | DEFAULT>] [RATE <takes milliseconds [BURST burst] | NONE | DEFAULT>] [WEIGHT weight] [PAUSE <YES | NO>] | RESET]
        HPUT k FIELDS 3 a b c => ~-ERR FIELDS counts 3 items of 2, but 3 arguments follow. Usage: HPUT key *
        HPUT k REPLACE FIELDS 9 a => ~-ERR FIELDS counts 9 items of 2, but 1 argument follows. Usage: HPUT key *
        IDX.DROP => -ERR wrong number of arguments for 'idx.drop' command. Usage: IDX.DROP name
        IDX.LIST x => -ERR wrong number of arguments for 'idx.list' command. Usage: IDX.LIST
        SESSION.HOOK CREATED f x => -ERR syntax error. Usage: SESSION.HOOK [<CREATED | EXPIRED> <function | NONE>]
        // Those who queue requests and those who call from scripts see the same.
        ! MULTI
        IDX.DROP => -ERR wrong number of arguments for 'idx.drop' command. Usage: IDX.DROP name
        EXEC => -EXECABORT Transaction discarded because of previous errors.
        > EVAL "return redis.pcall('IDX.LIMIT', 'q', 'PAUSE', 'maybe')" 0
        -ERR unknown option 'maybe'. Known here: YES, NO
        // Commands of Redis have Redis's texts.
        GET => -ERR wrong number of arguments for 'get' command
        SET k v NOX => -ERR syntax error
        OBJECT ENCODING => -ERR wrong number of arguments for 'object|encoding' command
        "##,
    );
}

#[test]
fn a_long_word_is_cut_and_escaped_where_an_error_repeats_it() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    let word = format!("\\x00{}", "x".repeat(1000));
    connection.run(&format!("SET \"{word}\" 1"));
    for (request, expected) in [
        ("CLIENT DURABILITY ?", "' is no durability: "),
        ("ACL USAGE ?", "' not found"),
        ("ACL RESETUSAGE ?", "' not found"),
        ("IDX.CREATE ? IFABSENT PREFIX 1 p: FIELD at", "' is taken by a key"),
    ] {
        let reply = connection.run(&request.replace('?', &format!("\"{word}\""))).to_string();
        let (cut, longer) = ("x".repeat(63), "x".repeat(64));
        // A reply with such a word is shown in quotes, with each backslash twice.
        assert!(reply.contains(&format!(r"'\\x00{cut}")) && !reply.contains(&longer), "{request}: {reply}");
        assert!(reply.contains(expected), "{request}: {reply}, and not {expected}");
    }
}

#[test]
fn a_key_of_another_type_is_named_by_our_own_commands_alone() {
    check(
        r##"
        LPUSH list a => :1
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
        ! CELL.SET cell 1
        SET cell 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        "##,
    );
}

/// Which texts are times is for unit tests to say.
#[test]
fn a_time_that_is_none_is_refused_wherever_it_may_stand() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    connection.run("IDX.CREATE i PREFIX 1 p: FIELD at");
    for value in ["NOW+x", "NOW-9223372036854775807"] {
        for request in
            "IDX.RANGE i TIME +inf; IDX.RANGE i -inf TIME; IDX.RANGE i (TIME +inf; CLAIM 1 i MIN TIME SET 1 a b; \
                        CLAIM 1 i MAX (TIME SET 1 a b; CLAIM 1 i SET 1 at TIME; SWEEP i BEFORE TIME SET 1 a b; \
                        CLAIM 1 i SET 1 at 1 COUNTER n UPTO 1 ELSE 1 at TIME; SWEEP i BEFORE 9 SET 1 at TIME; \
                        SWEEP i BEFORE 9 RETRY tries 3 ELSE 1 at TIME SET 1 at NOW"
                .split("; ")
        {
            let expected = format!("-ERR '{value}' must be NOW, NOW+ms or NOW-ms, and a time from 0 to 2^63-1");
            assert_eq!(connection.run(&request.replace("TIME", value)).to_string(), expected, "{request}");
        }
    }
}
