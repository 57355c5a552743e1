//! Random commands on a few runs, compared with plain lists of events; and the reducer, against one that is written down
//! another way.

use crate::{get, run_seq};
use std::collections::BTreeMap;
use wire::own::{start, steps};
use wire::{Connection, Random, Reply};

/// An event as the model has it. `persisted_at` and `id` are what the server has told of it.
#[derive(Clone, Debug, PartialEq)]
struct Event {
    key: String,
    event_type: String,
    data: String,
    step: Option<String>,
    id: String,
    persisted_at: i64,
}

const TYPES: [&str; 16] = [
    "RunStarted",
    "RunResumed",
    "RunPaused",
    "RunCompleted",
    "RunFailed",
    "RunCancelled",
    "StepStarted",
    "StepRetried",
    "StepCompleted",
    "StepFailed",
    "StepSkipped",
    "StepCorrected",
    "StepStarted",
    "StepCompleted",
    "Unknown",
    "Step",
];

#[test]
fn random_commands_agree_with_lists_of_events() {
    let Some(session) = start() else { return };
    let (mut connection, mut random) = (session.connect(), Random::from_env());
    let mut model: BTreeMap<usize, Vec<Event>> = BTreeMap::new();
    for step in 0..steps(4_000) {
        let run = random.below(5);
        let events = model.entry(run).or_default();
        let last = events.len();
        match random.below(60) {
            0 => {
                assert_eq!(connection.run(&format!("DEL r{run}")).integer(), i64::from(last > 0));
                events.clear();
            }
            1 => {
                let (other, copied) = (random.below(5), events.clone());
                let reply = connection.run(&format!("COPY r{run} r{other} REPLACE"));
                // No run takes the place of another.
                let is_free = model.get(&other).is_none_or(Vec::is_empty);
                assert_eq!(reply.is_error(), other == run || last > 0 && !is_free, "{reply}");
                if last > 0 && is_free {
                    model.insert(other, copied);
                }
            }
            2 => {
                let (other, moved) = (random.below(5), events.clone());
                if last > 0 {
                    if other != run {
                        connection.run(&format!("DEL r{other}"));
                    }
                    connection.run(&format!("RENAME r{run} r{other}"));
                    model.insert(run, Vec::new());
                    model.insert(other, moved);
                }
            }
            3 => {
                let payload = connection.run(&format!("DUMP r{run}"));
                if last > 0 {
                    let name = format!("r{run}");
                    connection.run(&format!("DEL {name}"));
                    connection.run_args(&[b"RESTORE", name.as_bytes(), b"0", payload.bytes()]);
                }
            }
            4..=40 => {
                let event = some_event(&mut random, events, step);
                let if_last =
                    random.one_in(4).then(|| last as i64 - 1 + random.below(3) as i64).filter(|last| *last >= 0);
                append(&mut connection, &format!("r{run}"), events, event, if_last);
            }
            41..=50 => {
                let (after, limit) = (random.below(last + 1), random.below(30));
                let reply = connection.run(&format!("RUN.EVENTS r{run} AFTER {after} LIMIT {limit}"));
                let expected: Vec<(usize, Event)> = (1..).zip(events.iter().cloned()).skip(after).take(limit).collect();
                assert_eq!(reply.items().iter().map(event_of).collect::<Vec<_>>(), expected);
            }
            51 => {
                let reply = connection.run(&format!("RUN.EVENTS r{run} AFTER {}", last + 1 + random.below(3)));
                assert_eq!(reply.is_error(), last > 0, "{reply}");
                // What is refused takes no number.
                assert!(connection.run(&format!("RUN.APPEND r{run} * t d STEP '|'")).is_error());
            }
            52 | 53 => {
                let info = connection.run(&format!("RUN.INFO r{run}"));
                match events.as_slice() {
                    [] => assert!(info.is_nil()),
                    [first, ..] => {
                        let of = |name: &str| get(&info, name).integer();
                        let expected = (last as i64, first.persisted_at, events[last - 1].persisted_at);
                        assert_eq!((of("lastEventSeq"), of("firstAt"), of("lastAt")), expected);
                        assert_eq!(of("events"), last as i64);
                    }
                }
            }
            54 => {
                let status = random.pick(&["pending", "running", "paused", "completed", "failed", "cancelled"]);
                let reply = connection.run(&format!("RUN.LIST STATUS 1 {status}"));
                let mut found: Vec<&str> = reply.items()[1].items().iter().map(Reply::text).collect();
                found.sort_unstable();
                let is_it = |events: &[Event]| !events.is_empty() && status_of(events) == status;
                let expected = model.iter().filter(|(_, events)| is_it(events)).map(|(run, _)| format!("r{run}"));
                assert_eq!(found, expected.collect::<Vec<String>>());
            }
            _ => {
                let upto = random.below(last + 3);
                let reply = connection.run(&format!("RUN.PROJECT r{run} UPTO {upto}"));
                assert_eq!(snapshot_of(&reply), (last > 0).then(|| projected(&events[..upto.min(last)])));
                let reply = connection.run(&format!("RUN.SNAPSHOT r{run}"));
                assert_eq!(snapshot_of(&reply), (last > 0).then(|| projected(events)));
            }
        }
    }
}

/// All types of events in any order. After each append the kept snapshot is what a replay gives, byte for byte; later, a
/// replay up to an event gives what the snapshot was then; and all replays are the same.
#[test]
fn a_replay_is_the_snapshot_that_was_kept() {
    let Some(session) = start() else { return };
    let (mut connection, mut random) = (session.connect(), Random::from_env());
    for (round, protocol) in [2, 3, 2, 3].into_iter().enumerate() {
        connection.run(&format!("HELLO {protocol}"));
        let (run, mut events, mut kept) = (format!("r{round}"), Vec::new(), Vec::new());
        for step in 0..100 {
            let event = some_event(&mut random, &events, step);
            let event = Event { data: event.data.chars().take(30).collect(), ..event };
            append(&mut connection, &run, &mut events, event, None);
            let snapshot = raw(&mut connection, &format!("RUN.SNAPSHOT {run}"));
            let replay = raw(&mut connection, &format!("RUN.PROJECT {run}"));
            assert_eq!(snapshot.escape_ascii().to_string(), replay.escape_ascii().to_string());
            // A known key keeps it as it is.
            if kept.len() == events.len() {
                assert_eq!(kept.last(), Some(&snapshot));
                continue;
            }
            kept.push(snapshot);
        }
        assert_eq!(snapshot_of(&connection.run(&format!("RUN.SNAPSHOT {run}"))), Some(projected(&events)));
        for (upto, snapshot) in (1..).zip(&kept) {
            let replay = raw(&mut connection, &format!("RUN.PROJECT {run} UPTO {upto}"));
            assert_eq!(replay.escape_ascii().to_string(), snapshot.escape_ascii().to_string(), "UPTO {upto}");
        }
        for _ in 0..20 {
            assert!(Some(&raw(&mut connection, &format!("RUN.PROJECT {run}"))) == kept.last());
        }
    }
}

/// Sends an append and compares the reply with the model, which learns from it what only the server knows.
fn append(connection: &mut Connection, run: &str, events: &mut Vec<Event>, event: Event, if_last: Option<i64>) {
    let Event { key, event_type, data, step, .. } = &event;
    let mut command = vec!["RUN.APPEND", run, key, event_type, data];
    if let Some(step) = step {
        command.extend(["STEP", step]);
    }
    let if_last_text = if_last.map(|last| last.to_string());
    if let Some(last) = &if_last_text {
        command.extend(["IFLAST", last]);
    }
    let reply = connection.run_args(&command);
    let told = ["runSeq", "idempotent", "persisted", "mismatch"].map(|name| get(&reply, name).integer());
    let last = events.len() as i64;
    match events.iter().position(|known| known.key == event.key) {
        Some(at) => {
            let known = &events[at];
            let differs = known.event_type != event.event_type || known.data != event.data;
            assert_eq!(told, [at as i64 + 1, 1, 0, differs.into()]);
            assert_eq!(get(&reply, "eventId").text(), known.id);
            assert_eq!(get(&reply, "persistedAt").integer(), known.persisted_at);
        }
        None if if_last.is_some_and(|expected| expected != last) => {
            assert_eq!(told, [last, 0, 0, 0]);
            assert!(get(&reply, "eventId").is_nil() && get(&reply, "persistedAt").is_nil());
        }
        None => {
            assert_eq!(told, [last + 1, 0, 1, 0]);
            let (id, persisted_at) = (get(&reply, "eventId").text().to_owned(), get(&reply, "persistedAt").integer());
            assert!(events.last().is_none_or(|before| before.persisted_at <= persisted_at));
            events.push(Event { id, persisted_at, ..event });
        }
    }
}

fn some_event(random: &mut Random, known: &[Event], number: usize) -> Event {
    let key = match random.one_in(4) && !known.is_empty() {
        true => known[random.below(known.len())].key.clone(),
        false => format!("key-{number}{}", "y".repeat(random.pick(&[0, 0, 0, 60]))),
    };
    let steps = random.pick(&[2, 5, 200]);
    Event {
        key,
        event_type: random.pick(&TYPES).to_owned(),
        data: format!("{number}{}", "x".repeat(random.pick(&[0, 0, 20, 20, 400, 5_000]))),
        step: (!random.one_in(5)).then(|| format!("step-{}", random.below(steps))),
        id: String::new(),
        persisted_at: 0,
    }
}

/// An event of a reply, with its number.
fn event_of(reply: &Reply) -> (usize, Event) {
    let text = |name: &str| get(reply, name).text().to_owned();
    let event = Event {
        key: text("idempotencyKey"),
        event_type: text("eventType"),
        data: text("eventData"),
        step: crate::find(reply, "stepId").map(|step| step.text().to_owned()),
        id: text("eventId"),
        persisted_at: get(reply, "persistedAt").integer(),
    };
    (run_seq(reply) as usize, event)
}

/// Status, last number, times and data of a run, and the same of its steps, in their order.
type Snapshot = (String, i64, [Option<i64>; 2], Option<String>, Vec<(String, String)>);

fn snapshot_of(reply: &Reply) -> Option<Snapshot> {
    if reply.is_nil() {
        return None;
    }
    let pairs = |map: &Reply| match map {
        Reply::Map(pairs) => pairs.clone(),
        flat => flat.items().chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect(),
    };
    let time = |map: &Reply, name: &str| Some(get(map, name)).filter(|time| !time.is_nil()).map(Reply::integer);
    let step = |(name, step): (Reply, Reply)| {
        let shown = format!(
            "{} {} {:?} {:?} {}",
            get(&step, "status").text(),
            get(&step, "attempts").integer(),
            time(&step, "startedAt"),
            time(&step, "updatedAt"),
            get(&step, "data").text()
        );
        (name.text().to_owned(), shown)
    };
    let data = get(reply, "data");
    Some((
        get(reply, "status").text().to_owned(),
        get(reply, "lastEventSeq").integer(),
        [time(reply, "startedAt"), time(reply, "updatedAt")],
        (!data.is_nil()).then(|| data.text().to_owned()),
        pairs(get(reply, "steps")).into_iter().map(step).collect(),
    ))
}

/// What a type of event makes of a run; `None` where it is about something else.
fn run_status(event_type: &str) -> Option<&'static str> {
    Some(match event_type {
        "RunStarted" | "RunResumed" => "running",
        "RunPaused" => "paused",
        "RunCompleted" => "completed",
        "RunFailed" => "failed",
        "RunCancelled" => "cancelled",
        _ => return None,
    })
}

/// The same for a step; empty where the status stays.
fn step_status(event_type: &str) -> Option<&'static str> {
    Some(match event_type {
        "StepStarted" => "running",
        "StepRetried" => "retrying",
        "StepCompleted" => "completed",
        "StepFailed" => "failed",
        "StepSkipped" => "skipped",
        "StepCorrected" => "",
        _ => return None,
    })
}

/// The events about the run up to the one that ended it.
fn counted(events: &[Event]) -> Vec<&Event> {
    let is_last =
        |event: &&Event| ["completed", "failed", "cancelled"].contains(&run_status(&event.event_type).unwrap_or(""));
    let of_run: Vec<&Event> = events.iter().filter(|event| run_status(&event.event_type).is_some()).collect();
    let end = of_run.iter().position(is_last).map_or(of_run.len(), |end| end + 1);
    of_run[..end].to_vec()
}

fn status_of(events: &[Event]) -> &'static str {
    counted(events).last().and_then(|event| run_status(&event.event_type)).unwrap_or("pending")
}

/// A snapshot, computed by looking at all events for each question.
fn projected(events: &[Event]) -> Snapshot {
    let of_step = |event: &&Event| event.step.is_some() && step_status(&event.event_type).is_some();
    let of_steps: Vec<&Event> = events.iter().filter(of_step).collect();
    let of_run = events.iter().filter(|event| run_status(&event.event_type).is_some());
    let started = counted(events).into_iter().find(|event| event.event_type == "RunStarted");
    let updated = of_run.chain(of_steps.iter().copied()).map(|event| event.persisted_at).max();
    let mut names: Vec<&str> = Vec::new();
    for name in of_steps.iter().filter_map(|event| event.step.as_deref()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let step = |name: &str| {
        let own: Vec<&&Event> = of_steps.iter().filter(|event| event.step.as_deref() == Some(name)).collect();
        let mut statuses = own.iter().filter_map(|event| step_status(&event.event_type));
        let status = statuses.rfind(|status| !status.is_empty()).unwrap_or("pending");
        let starts: Vec<i64> =
            own.iter().filter(|event| event.event_type == "StepStarted").map(|event| event.persisted_at).collect();
        let last = own.last().expect("a step has an event");
        let shown =
            format!("{status} {} {:?} {:?} {}", starts.len(), starts.first(), Some(last.persisted_at), last.data);
        (name.to_owned(), shown)
    };
    (
        status_of(events).to_owned(),
        events.len() as i64,
        [started.map(|event| event.persisted_at), updated],
        counted(events).last().map(|event| event.data.clone()),
        names.into_iter().map(step).collect(),
    )
}

/// A reply as it came, byte for byte: what stands between it and the reply to an ECHO.
fn raw(connection: &mut Connection, line: &str) -> Vec<u8> {
    const END: &[u8] = b"$17\r\nthis-is-the-end!!\r\n";
    connection.queue_line(line);
    connection.queue(&["ECHO", "this-is-the-end!!"]);
    let mut bytes = Vec::new();
    while !bytes.ends_with(END) {
        bytes.extend(connection.read_raw(1));
    }
    bytes.truncate(bytes.len() - END.len());
    bytes
}
