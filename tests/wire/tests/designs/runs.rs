//! Runs: one authority for numbers, corrections as events, snapshots that are derived.

use crate::{CLIENTS, at_once, check, start};
use std::collections::BTreeSet;

/// Writers of one run: the numbers are 1, 2, 3…, each once, and those of one writer grow in the order in which it sent.
#[test]
fn writers_of_one_run_share_its_numbers() {
    const EACH: usize = 250;
    let Some(session) = start() else { return };
    let numbers = at_once(&session, |mut connection, client| {
        let lines: Vec<String> = (0..EACH).map(|number| format!("RUN.APPEND r k{client}-{number} t d")).collect();
        let replies = connection.pipeline(&lines);
        let numbers: Vec<i64> = replies.iter().map(|reply| reply.items()[1].integer()).collect();
        assert!(numbers.is_sorted());
        numbers
    });
    let all: BTreeSet<i64> = numbers.concat().into_iter().collect();
    assert!(all.into_iter().eq(1..=(CLIENTS * EACH) as i64));
}

/// A watermark that has passed an event never misses one: reading on while others append finds each number once.
#[test]
fn nothing_appears_behind_a_watermark() {
    const EACH: usize = 300;
    let Some(session) = start() else { return };
    let seen = at_once(&session, |mut connection, client| {
        let mut seen = Vec::new();
        if client == 0 {
            let last = (CLIENTS - 1) * EACH;
            while seen.len() < last {
                let watermark = seen.last().copied().unwrap_or(0);
                let page = connection.run(&format!("RUN.EVENTS r AFTER {watermark} LIMIT 10"));
                seen.extend(page.items().iter().map(|event| event.items()[3].integer()));
            }
        } else {
            for number in 0..EACH {
                connection.run(&format!("RUN.APPEND r k{client}-{number} t d"));
            }
        }
        seen
    });
    assert!(seen[0].iter().copied().eq(1..=((CLIENTS - 1) * EACH) as i64));
}

/// A correction is one more event; the one that it corrects stays.
#[test]
fn a_correction_is_an_event_and_changes_no_other() {
    check(
        r#"
        RUN.APPEND r k1 StepCompleted wrong STEP a EVENTID e1 => ["runSeq", :1, ...]
        RUN.APPEND r k2 StepCorrected right STEP a EVENTID e2 PARENT e1 => ["runSeq", :2, ...]
        > RUN.EVENTS r
        [["runId", "r", "runSeq", :1, "eventId", "e1", "eventType", "StepCompleted", "eventData", "wrong", *, *, *, *, *, *, "stepId", "a"],
         ["runId", "r", "runSeq", :2, "eventId", "e2", "eventType", "StepCorrected", "eventData", "right", *, *, *, *, *, *, "stepId", "a", "parentEventId", "e1"]]
        > RUN.SNAPSHOT r
        ["runId", "r", "status", "pending", "lastEventSeq", :2, "startedAt", (nil), "updatedAt", :17..,
         "steps", ["a", ["status", "completed", "attempts", :0, "startedAt", (nil), "updatedAt", :17.., "data", "right"]], "data", (nil)]
        "#,
    );
}

/// The kept snapshot has each event as soon as its append is answered, whoever asks.
#[test]
fn a_snapshot_is_never_behind() {
    let Some(session) = start() else { return };
    let (mut writer, mut reader) = (session.connect(), session.connect());
    for number in 1..=300 {
        let kind = ["RunStarted", "StepStarted", "StepCompleted", "Unknown"][number % 4];
        writer.run(&format!("RUN.APPEND r k{number} {kind} d STEP s{}", number % 7));
        let kept = reader.run("RUN.SNAPSHOT r");
        assert_eq!(kept.items()[5].integer(), number as i64);
        assert_eq!(kept, reader.run("RUN.PROJECT r"));
    }
}
