//! RUN.EVENTS: every part of an event there and back, pages behind a watermark, and what is refused.

use crate::{find, get, run_seq};
use wire::own::{check, run_all, start};
use wire::{Connection, Random, Reply};

/// The options of RUN.APPEND that give an event its parts, each with what an event calls the part.
pub(crate) const PARTS: [(&str, &str); 10] = [
    ("EVENTID", "eventId"),
    ("STEP", "stepId"),
    ("ENGINEATTEMPT", "engineAttemptId"),
    ("LOGICALATTEMPT", "logicalAttemptId"),
    ("EMITTEDAT", "emittedAt"),
    ("ADAPTER", "adapterVersion"),
    ("REF", "engineRunRef"),
    ("SIGNAL", "causedBySignalId"),
    ("PARENT", "parentEventId"),
    ("PLANVERSION", "planVersion"),
];

/// Parts that an event has even if they were not given.
const ALWAYS: [&str; 2] = ["eventId", "emittedAt"];

#[test]
fn every_part_of_an_event_comes_back() {
    check(
        r#"
        > RUN.APPEND r k StepCompleted '{"rows": [1, 2.50, null], "text": "\u00e4"}' EVENTID 7c9e6679-7425-40de-944b-e07fc1f90ae7 STEP s-1 ENGINEATTEMPT ea-2 LOGICALATTEMPT la-3 EMITTEDAT 2026-02-11T10:00:00.000Z ADAPTER 1.4.0 REF '{"workflowId": "w"}' SIGNAL sig-4 PARENT p-5 PLANVERSION v6
        ["runSeq", :1, "idempotent", :0, "persisted", :1, "eventId", "7c9e6679-7425-40de-944b-e07fc1f90ae7", "persistedAt", *, "mismatch", :0]
        > RUN.EVENTS r
        [["runId", "r", "runSeq", :1, "eventId", "7c9e6679-7425-40de-944b-e07fc1f90ae7", "eventType", "StepCompleted",
          "eventData", "{\"rows\": [1, 2.50, null], \"text\": \"\\u00e4\"}", "idempotencyKey", "k",
          "emittedAt", "2026-02-11T10:00:00.000Z", "persistedAt", :1700000000000..,
          "stepId", "s-1", "engineAttemptId", "ea-2", "logicalAttemptId", "la-3", "adapterVersion", "1.4.0",
          "engineRunRef", "{\"workflowId\": \"w\"}", "causedBySignalId", "sig-4", "parentEventId", "p-5", "planVersion", "v6"]]
        // Absent parts are not there; empty ones are.
        > run.append r k2 "" "" planversion "" step "" emittedat ""
        ["runSeq", :2, ...]
        HELLO 3                                      => *
        > RUN.EVENTS r after 1
        [{"runId" => "r", "runSeq" => :2, "eventId" => ~"*-*-4*-*-*", "eventType" => "", "eventData" => "", "idempotencyKey" => "k2",
          "emittedAt" => "", "persistedAt" => :1700000000000.., "stepId" => "", "planVersion" => ""}]
        "#,
    );
}

/// Any bytes in any part, short, empty and long, with any of the parts given. `emittedAt` is `persistedAt` if it was not.
#[test]
fn random_events_come_back_as_they_were_given() {
    let Some(session) = start() else { return };
    let (mut connection, mut random) = (session.connect(), Random::from_env());
    let mut expected = Vec::new();
    for number in 0..200 {
        let text = |random: &mut Random| -> Vec<u8> {
            let len = random.pick(&[0, 1, 3, 20, 36, 64, 200, 200, 5_000]);
            (0..len).map(|_| random.next_u64() as u8).collect()
        };
        let key = format!("key-{number}").into_bytes();
        let event_type = random.pick(&[&b"RunStarted"[..], b"StepCompleted", b"custom", b"", b"\x00", b"\x05"]);
        let data = if random.one_in(100) { vec![number as u8; 300_000] } else { text(&mut random) };
        let mut command = vec![b"RUN.APPEND".to_vec(), b"r".to_vec(), key.clone(), event_type.to_vec(), data.clone()];
        let mut parts = Vec::new();
        for (option, name) in PARTS {
            if random.one_in(2) {
                let given = text(&mut random);
                command.extend([option.as_bytes().to_vec(), given.clone()]);
                parts.push((name, given));
            }
        }
        let reply = connection.run_args(&command);
        assert_eq!(run_seq(&reply), number + 1);
        let fixed = [
            ("runId", b"r".to_vec()),
            ("eventType", event_type.to_vec()),
            ("eventData", data),
            ("idempotencyKey", key),
        ];
        parts.extend(fixed);
        expected.push((parts, get(&reply, "eventId").clone(), get(&reply, "persistedAt").clone()));
    }
    for protocol in [2, 3] {
        connection.run(&format!("HELLO {protocol}"));
        let events = connection.run("RUN.EVENTS r");
        assert_eq!(events.items().len(), expected.len());
        for (number, (event, (parts, id, persisted_at))) in (1..).zip(events.items().iter().zip(&expected)) {
            assert_eq!((run_seq(event), get(event, "eventId"), get(event, "persistedAt")), (number, id, persisted_at));
            for (name, given) in parts {
                assert!(get(event, name).bytes() == given, "{name} of event {number}");
            }
            for (_, name) in PARTS {
                let was_given = parts.iter().any(|(given, _)| *given == name);
                assert_eq!(
                    find(event, name).is_some(),
                    was_given || ALWAYS.contains(&name),
                    "{name} of event {number}"
                );
                if name == "emittedAt" && !was_given {
                    assert_eq!(get(event, name).text(), persisted_at.integer().to_string());
                }
            }
        }
    }
}

#[test]
fn a_page_is_behind_its_watermark() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    append(&mut connection, "r", 1, 2_500);
    for (options, from, to) in [
        ("", 1, 1000),
        ("AFTER 0", 1, 1000),
        ("LIMIT 3", 1, 3),
        ("AFTER 1 LIMIT 3", 2, 4),
        ("limit 3 after 2497", 2498, 2500),
        ("AFTER 2498 LIMIT 100", 2499, 2500),
        ("AFTER 2499", 2500, 2500),
        ("AFTER 2499 BLOCK 0", 2500, 2500),
        ("AFTER 1500", 1501, 2500),
        ("AFTER 1499", 1500, 2499),
        ("LIMIT 2500", 1, 2500),
        ("LIMIT 9223372036854775807", 1, 2500),
        ("AFTER 5 LIMIT 9223372036854775807", 6, 2500),
        ("AFTER 2500", 1, 0),
        ("AFTER 2500 LIMIT 5", 1, 0),
        ("LIMIT 0", 1, 0),
        ("AFTER 7 LIMIT 0 BLOCK 0", 1, 0),
    ] {
        let events = connection.run(&format!("RUN.EVENTS r {options}"));
        assert_eq!(numbers(&events), (from..=to).collect::<Vec<i64>>(), "{options}");
    }
    // A loop with a watermark, as the seed has it.
    for limit in [37, 100, 999, 5_000] {
        let (mut seen, mut watermark) = (Vec::new(), 0);
        loop {
            let page = numbers(&connection.run(&format!("RUN.EVENTS r AFTER {watermark} LIMIT {limit}")));
            let Some(last) = page.last() else { break };
            watermark = *last;
            seen.extend(page);
        }
        assert_eq!(seen, (1..=2_500).collect::<Vec<i64>>());
    }
}

#[test]
fn wrong_arguments_are_named() {
    const WRONG_TYPE: &str = "~-WRONGTYPE * wrong kind of value: the key's type is *";
    check(&format!(
        r#"
        RUN.EVENTS nosuch                       => []
        RUN.EVENTS nosuch AFTER 5               => []
        RUN.EVENTS nosuch AFTER 5 LIMIT 0       => []
        RUN.APPEND r k t d                      => *
        > RUN.EVENTS r AFTER 2
        -ERR the run has been made anew: its last runSeq is 1, and AFTER is 2; read it again from AFTER 0
        > RUN.EVENTS r AFTER 9223372036854775807 BLOCK 0
        -ERR the run has been made anew: its last runSeq is 1, and AFTER is 9223372036854775807; read it again from AFTER 0
        RUN.EVENTS r LIMIT -1                   => -ERR the number behind LIMIT must be a whole number not below 0, not '-1'
        RUN.EVENTS nosuch LIMIT -1              => -ERR the number behind LIMIT must be a whole number not below 0, not '-1'
        RUN.EVENTS r LIMIT x                    => -ERR the number behind LIMIT must be a whole number not below 0, not 'x'
        RUN.EVENTS r LIMIT                      => ~-ERR missing: the number behind LIMIT. Usage: *
        RUN.EVENTS r LIMIT 1 LIMIT 1            => -ERR LIMIT is given twice
        RUN.EVENTS r AFTER -1                   => -ERR the runSeq behind AFTER must be a whole number not below 0, not '-1'
        RUN.EVENTS r AFTER 1.5                  => -ERR the runSeq behind AFTER must be a whole number not below 0, not '1.5'
        RUN.EVENTS r AFTER                      => ~-ERR missing: the runSeq behind AFTER. Usage: *
        RUN.EVENTS r AFTER 1 AFTER 1            => -ERR AFTER is given twice
        RUN.EVENTS r AFTER 1 BLOCK -1           => -ERR the time behind BLOCK must be a whole number not below 0, not '-1'
        RUN.EVENTS r BLOCK                      => ~-ERR missing: the time behind BLOCK. Usage: *
        RUN.EVENTS r BLOCK 1 BLOCK 1            => -ERR BLOCK is given twice
        RUN.EVENTS r 1                          => ~-ERR unknown option '1'. *
        RUN.EVENTS                              => ~-ERR wrong number of arguments for 'run.events' command. Usage: RUN.EVENTS*
        RUN.PROJECT r UPTO -1                   => -ERR the runSeq behind UPTO must be a whole number not below 0, not '-1'
        RUN.PROJECT r UPTO x                    => -ERR the runSeq behind UPTO must be a whole number not below 0, not 'x'
        RUN.PROJECT r UPTO                      => ~-ERR missing: the runSeq behind UPTO. Usage: *
        RUN.PROJECT r UPTO 1 UPTO 1             => -ERR UPTO is given twice
        RUN.PROJECT r 1                         => ~-ERR unknown option '1'. *
        RUN.SNAPSHOT r 1                        => ~-ERR wrong number of arguments for 'run.snapshot' command. Usage: RUN.SNAPSHOT*
        RUN.INFO r 1                            => ~-ERR wrong number of arguments for 'run.info' command. Usage: RUN.INFO*
        SET s x                                 => +OK
        RUN.EVENTS s                            => {WRONG_TYPE}
        RUN.EVENTS s BLOCK 0                    => {WRONG_TYPE}
        RUN.INFO s                              => {WRONG_TYPE}
        RUN.SNAPSHOT s                          => {WRONG_TYPE}
        RUN.PROJECT s                           => {WRONG_TYPE}
        "#
    ));
}

/// Appends the events with these numbers, each with its number in its key and its data.
pub(crate) fn append(connection: &mut Connection, run: &str, first: usize, last: usize) {
    let lines = (first..=last).map(|number| format!("RUN.APPEND {run} k{number} t d{number}"));
    for reply in run_all(connection, lines) {
        assert_eq!(get(&reply, "persisted").integer(), 1);
    }
}

/// The numbers of events.
pub(crate) fn numbers(events: &Reply) -> Vec<i64> {
    events.items().iter().map(run_seq).collect()
}
