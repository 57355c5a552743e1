//! RUN.APPEND: what it does and replies, and what it refuses.

use crate::events::PARTS;
use crate::{get, run_seq};
use wire::own::{check, start};

#[test]
fn a_new_key_gets_the_next_run_seq_and_a_known_one_changes_nothing() {
    check(
        r#"
        > RUN.APPEND r k1 RunStarted d1 EVENTID e1
        ["runSeq", :1, "idempotent", :0, "persisted", :1, "eventId", "e1", "persistedAt", :1700000000000.., "mismatch", :0]
        > RUN.APPEND r k2 StepStarted d2 EVENTID e2
        ["runSeq", :2, "idempotent", :0, "persisted", :1, "eventId", "e2", "persistedAt", :1700000000000.., "mismatch", :0]
        > RUN.APPEND r k1 RunStarted d1 EVENTID other
        ["runSeq", :1, "idempotent", :1, "persisted", :0, "eventId", "e1", "persistedAt", :1700000000000.., "mismatch", :0]
        > RUN.APPEND r k1 RunFailed d1
        ["runSeq", :1, "idempotent", :1, "persisted", :0, "eventId", "e1", "persistedAt", *, "mismatch", :1]
        > RUN.APPEND r k1 RunStarted other
        ["runSeq", :1, "idempotent", :1, "persisted", :0, "eventId", "e1", "persistedAt", *, "mismatch", :1]
        > RUN.APPEND r k2 StepStarted d2 STEP another EMITTEDAT never
        ["runSeq", :2, "idempotent", :1, "persisted", :0, "eventId", "e2", "persistedAt", *, "mismatch", :0]
        > RUN.APPEND other k1 RunStarted d1
        ["runSeq", :1, "idempotent", :0, "persisted", :1, "eventId", ~"????????-????-4???-????-????????????", *, *, "mismatch", :0]
        > RUN.EVENTS r
        [["runId", "r", "runSeq", :1, "eventId", "e1", "eventType", "RunStarted", "eventData", "d1", "idempotencyKey", "k1", "emittedAt", ~"17*", "persistedAt", :1700000000000..],
         ["runId", "r", "runSeq", :2, "eventId", "e2", "eventType", "StepStarted", "eventData", "d2", "idempotencyKey", "k2", "emittedAt", ~"17*", "persistedAt", :1700000000000..]]
        HELLO 3 => *
        > RUN.APPEND r k3 t d EVENTID e3
        {"runSeq" => :3, "idempotent" => :0, "persisted" => :1, "eventId" => "e3", "persistedAt" => :1700000000000.., "mismatch" => :0}
        > RUN.APPEND r k3 t "" EVENTID e4
        {"runSeq" => :3, "idempotent" => :1, "persisted" => :0, "eventId" => "e3", "persistedAt" => *, "mismatch" => :1}
        > RUN.APPEND r k4 t d IFLAST 2
        {"runSeq" => :3, "idempotent" => :0, "persisted" => :0, "eventId" => _, "persistedAt" => _, "mismatch" => :0}
        "#,
    );
}

#[test]
fn attributes_are_kept_as_given() {
    check(
        r#"
        > RUN.APPEND r k1 t d EVENTID e1 ATTR 2 tenant "a\x00b" region "" STEP s
        ["runSeq", :1, "idempotent", :0, "persisted", :1, ...]
        RUN.APPEND r k2 t d EVENTID e2 ATTR 0        => ["runSeq", :2, "idempotent", :0, "persisted", :1, ...]
        RUN.APPEND r k3 t d EVENTID e3 attr 1 STEP ATTR => ["runSeq", :3, "idempotent", :0, "persisted", :1, ...]
        // They do not count as what an event is.
        > RUN.APPEND r k1 t d ATTR 1 tenant other
        ["runSeq", :1, "idempotent", :1, "persisted", :0, "eventId", "e1", "persistedAt", *, "mismatch", :0]
        > RUN.EVENTS r
        [["runId", "r", "runSeq", :1, "eventId", "e1", "eventType", "t", "eventData", "d", "idempotencyKey", "k1", "emittedAt", *, "persistedAt", *,
          "stepId", "s", "attributes", ["tenant", "a\x00b", "region", ""]],
         ["runId", "r", "runSeq", :2, "eventId", "e2", "eventType", "t", "eventData", "d", "idempotencyKey", "k2", "emittedAt", *, "persistedAt", *,
          "attributes", []],
         ["runId", "r", "runSeq", :3, "eventId", "e3", "eventType", "t", "eventData", "d", "idempotencyKey", "k3", "emittedAt", *, "persistedAt", *,
          "attributes", ["STEP", "ATTR"]]]
        COPY r copy  => :1
        DEBUG RELOAD => +OK
        HELLO 3      => *
        > RUN.EVENTS copy LIMIT 1
        [{"runId" => "copy", "runSeq" => :1, "eventId" => "e1", "eventType" => "t", "eventData" => "d", "idempotencyKey" => "k1", "emittedAt" => *, "persistedAt" => *,
          "stepId" => "s", "attributes" => {"tenant" => "a\x00b", "region" => ""}}]
        HELLO 2 => *
        RUN.APPEND r k4 t d ATTR                        => ~-ERR missing: the count behind ATTR. Usage: *
        RUN.APPEND r k4 t d ATTR 2 a b c                => ~-ERR ATTR counts 2 items of 2, but 3 arguments follow. Usage: *
        RUN.APPEND r k4 t d ATTR -1                     => -ERR the count behind ATTR must be a whole number not below 0, not '-1'
        RUN.APPEND r k4 t d ATTR 1 a b ATTR 1 c d       => -ERR ATTR is given twice
        RUN.APPEND r k4 t d ATTR 3 a 1 b 2 a 3          => -ERR the attribute 'a' is given twice: send each name once
        > RUN.INFO r
        ["runId", "r", "status", "pending", "events", :3, ...]
        "#,
    );
}

#[test]
fn iflast_appends_only_behind_the_event_that_is_named() {
    check(
        r#"
        > RUN.APPEND r k1 t d IFLAST 1
        ["runSeq", :0, "idempotent", :0, "persisted", :0, "eventId", (nil), "persistedAt", (nil), "mismatch", :0]
        EXISTS r                     => :0
        RUN.APPEND r k1 t d IFLAST 0 => ["runSeq", :1, "idempotent", :0, "persisted", :1, ...]
        > RUN.APPEND r k2 t d iflast 0
        ["runSeq", :1, "idempotent", :0, "persisted", :0, "eventId", (nil), "persistedAt", (nil), "mismatch", :0]
        // A known key is answered first, whatever IFLAST says.
        > RUN.APPEND r k1 t d IFLAST 7
        ["runSeq", :1, "idempotent", :1, "persisted", :0, "eventId", ~"*-*", "persistedAt", :1.., "mismatch", :0]
        RUN.APPEND r k2 t d IFLAST 1                 => ["runSeq", :2, "idempotent", :0, "persisted", :1, ...]
        RUN.APPEND r k3 t d IFLAST 9223372036854775807 => ["runSeq", :2, "idempotent", :0, "persisted", :0, ...]
        RUN.APPEND r k3 t d IFLAST -1                   => -ERR the runSeq behind IFLAST must be a whole number not below 0, not '-1'
        RUN.APPEND r k3 t d IFLAST x                    => -ERR the runSeq behind IFLAST must be a whole number not below 0, not 'x'
        RUN.APPEND r k3 t d IFLAST                      => ~-ERR missing: the runSeq behind IFLAST. Usage: *
        RUN.APPEND r k3 t d IFLAST 2 IFLAST 2           => -ERR IFLAST is given twice
        > RUN.INFO r
        ["runId", "r", "status", "pending", "events", :2, "lastEventSeq", :2, ...]
        "#,
    );
}

#[test]
fn wrong_arguments_are_named_and_change_nothing() {
    let mut transcript = String::from(
        r#"
        RUN.APPEND r k t d UNKNOWN x        => ~-ERR unknown option 'UNKNOWN'. *
        RUN.APPEND r k t d x                => ~-ERR unknown option 'x'. *
        RUN.APPEND r "" t d                 => -ERR the idempotency key is empty: give one, or * to have it computed
        RUN.APPEND r k t                    => ~-ERR wrong number of arguments for 'run.append' command. Usage: RUN.APPEND*
        SET s x                             => +OK
        RUN.APPEND s k t d                  => ~-WRONGTYPE * wrong kind of value: the key's type is *
        RUN.APPEND s k t d IFLAST 0         => ~-WRONGTYPE * wrong kind of value: the key's type is *
        "#,
    );
    for (option, _) in PARTS {
        transcript += &format!(
            "
            RUN.APPEND r k t d {option}                         => ~-ERR missing: the text behind {option}. Usage: *
            RUN.APPEND r k t d {option} a {option} b            => -ERR {option} is given twice
            "
        );
    }
    check(&format!("{transcript}\nEXISTS r => :0\nGET s => \"x\"\n"));
}

#[test]
fn the_server_computes_the_key() {
    const NOT_COMPUTED: &str = "-ERR a key is not computed where";
    const SEPARATOR: &str = "contains '|', which separates the parts: send a key of your own instead of *";
    check(&format!(
        r#"
        RUN.APPEND r1 * StepCompleted d                             => ["runSeq", :1, "idempotent", :0, ...]
        > RUN.APPEND r1 * StepCompleted d STEP s1 LOGICALATTEMPT 2 PLANVERSION v7 ENGINEATTEMPT 9 SIGNAL x
        ["runSeq", :2, "idempotent", :0, ...]
        > RUN.APPEND r1 * StepCompleted other PLANVERSION v7 STEP s1 LOGICALATTEMPT 2
        ["runSeq", :2, "idempotent", :1, "persisted", :0, *, *, *, *, "mismatch", :1]
        > RUN.APPEND r1 15f6517e3c63215c9f3d2d9bb6f072e613579b9c7c08c2dfa792f505f68ddc3c StepCompleted d
        ["runSeq", :2, "idempotent", :1, "persisted", :0, *, *, *, *, "mismatch", :0]
        > RUN.APPEND r1 * StepCompleted d STEP "" LOGICALATTEMPT "" PLANVERSION ""
        ["runSeq", :1, "idempotent", :1, ...]
        RUN.APPEND "a|b" * t d                              => {NOT_COMPUTED} the run {SEPARATOR}
        RUN.APPEND r1 * "t|" d                              => {NOT_COMPUTED} the type {SEPARATOR}
        RUN.APPEND r1 * t d STEP |                          => {NOT_COMPUTED} STEP {SEPARATOR}
        RUN.APPEND r1 * t d LOGICALATTEMPT "1|2"            => {NOT_COMPUTED} LOGICALATTEMPT {SEPARATOR}
        RUN.APPEND r1 * t d PLANVERSION "1|2"               => {NOT_COMPUTED} PLANVERSION {SEPARATOR}
        RUN.APPEND r1 * t d ENGINEATTEMPT "1|2" REF "|"     => ["runSeq", :3, ...]
        RUN.APPEND "a|b" "k|1" "t|" "d|" STEP "s|"          => ["runSeq", :1, ...]
        "#
    ));
}

/// Digests that Python's hashlib has made of `run|step|attempt|type|plan`.
#[test]
fn computed_keys_agree_with_another_sha_256() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    let long = [b'x'; 150];
    let rows: [([&[u8]; 4], &str); 5] = [
        ([b"", b"", b"", b""], "fcfe0ab8fac21b7a13f747b070b52cf8b96000465d266c8121142992476e2eab"),
        ([b"s", b"2", b"StepCompleted", b""], "c56d7493caefd825e29c63805c973f00bcf0eb7ccca3597ee1d3a8a770e7dcb1"),
        (
            [b"\x00\xff\r\n", b"", b"t", b"a longer part of a key"],
            "d62bf39a6433e78583e0e622ce3f12779695a7316db58a555a8d5526d961da87",
        ),
        (
            ["schr\u{e4}g".as_bytes(), b"s", b"\x00\xff\r\n", b"s"],
            "83d715d330cee65c88c681fbfdc255383f035268eb6161eec222bc00200ca8e2",
        ),
        ([&long, &long, b"t", b""], "7ef68086a07bb47650dda8a334304c023e2e5799ade979f9bae516046b0ce29b"),
    ];
    for ([step, attempt, event_type, plan], digest) in rows {
        let options: [&[u8]; 6] = [b"STEP", step, b"LOGICALATTEMPT", attempt, b"PLANVERSION", plan];
        let command: [&[u8]; 5] = [b"RUN.APPEND", b"run", b"*", event_type, b""];
        let reply = connection.run_args(&[&command[..], &options].concat());
        let after = run_seq(&reply) - 1;
        let events = connection.run(&format!("RUN.EVENTS run AFTER {after}"));
        assert_eq!(get(&events.items()[0], "idempotencyKey").text(), digest);
    }
}

#[test]
fn keys_that_look_alike_are_different() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    let lower = "0123456789abcdef".repeat(4);
    let packed: Vec<u8> = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef].repeat(4);
    let keys: [&[u8]; 8] = [
        lower.as_bytes(),
        &lower.to_uppercase().into_bytes(),
        &packed,
        &lower.as_bytes()[..63],
        &[lower.as_bytes(), b"0"].concat(),
        b"\x00",
        b"k",
        b"K",
    ];
    for round in 0..2 {
        for (number, key) in (1..).zip(keys) {
            let reply = connection.run_args(&[b"RUN.APPEND" as &[u8], b"r", key, b"t", b"d"]);
            assert_eq!(
                (run_seq(&reply), get(&reply, "idempotent").integer()),
                (number, round),
                "{}",
                key.escape_ascii()
            );
        }
    }
    let events = connection.run("RUN.EVENTS r");
    for (event, key) in events.items().iter().zip(keys) {
        assert_eq!(get(event, "idempotencyKey").bytes(), key);
    }
}

#[test]
fn event_ids_are_random_uuids_or_what_was_given() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    let mut made = std::collections::BTreeSet::new();
    for number in 0..200 {
        let reply = connection.run(&format!("RUN.APPEND r{} k{number} t d", number % 3));
        let id = get(&reply, "eventId").text().to_owned();
        let is_digit = |(at, byte): (usize, u8)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            14 => byte == b'4',
            19 => matches!(byte, b'8' | b'9' | b'a' | b'b'),
            _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
        };
        assert!(id.len() == 36 && id.bytes().enumerate().all(is_digit), "{id}");
        assert!(made.insert(id), "an id came twice");
    }
    for id in [
        "",
        "*",
        "01234567-89ab-cdef-0123-456789abcdef",
        "01234567-89AB-cdef-0123-456789abcdef",
        "0123456789abcdef0123456789abcdef",
        "01234567-89ab-cdef-0123-456789abcde-",
        "01234567-89ab-cdef-0123-456789abcdeg",
    ] {
        let reply = connection.run_args(&["RUN.APPEND", "ids", &format!("k{id}"), "t", "d", "EVENTID", id]);
        assert_eq!(get(&reply, "eventId").text(), id);
        let events = connection.run(&format!("RUN.EVENTS ids AFTER {}", run_seq(&reply) - 1));
        assert_eq!(get(&events.items()[0], "eventId").text(), id);
    }
}
