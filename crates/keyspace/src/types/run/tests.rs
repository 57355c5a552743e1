//! Runs against plain lists of events, and the reducer against one that is written down another way.

use super::*;
use crate::encoding::Reader;
use crate::types::{self, Shapes, Thresholds};
use std::collections::BTreeMap;

/// An event as the model has it.
#[derive(Clone, Debug, PartialEq)]
struct Plain {
    time_ms: u64,
    key: Vec<u8>,
    id: Vec<u8>,
    event_type: Vec<u8>,
    fields: [Option<Vec<u8>>; EVENT_FIELDS],
    data: Vec<u8>,
}

impl Plain {
    fn bytes(&self) -> Vec<u8> {
        let mut fields = [None; EVENT_FIELDS];
        for (field, text) in fields.iter_mut().zip(&self.fields) {
            *field = text.as_deref();
        }
        let mut bytes = Vec::new();
        let event = NewEvent {
            key: PackedKey::of(&self.key),
            id: EventId::of(&self.id),
            event_type: &self.event_type,
            fields,
            data: &self.data,
        };
        event.encode(&mut bytes);
        assert!(bytes.len() <= event.bytes_max());
        assert!(Event::check(&bytes).is_ok());
        bytes
    }

    fn of(found: &Numbered<'_>) -> Plain {
        let event = &found.event;
        let all = [
            EventField::Step,
            EventField::EngineAttempt,
            EventField::LogicalAttempt,
            EventField::EmittedAt,
            EventField::PlanVersion,
            EventField::Adapter,
            EventField::EngineRunRef,
            EventField::Signal,
            EventField::Parent,
            EventField::Attributes,
        ];
        Plain {
            time_ms: found.time_ms,
            key: event.key().as_bytes().to_vec(),
            id: event.id().as_bytes().to_vec(),
            event_type: event.type_name().to_vec(),
            fields: all.map(|field| event.field(field).map(<[u8]>::to_vec)),
            data: event.data.to_vec(),
        }
    }
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
    "RunStartedAgain",
    "Step",
    "",
    "signal",
];

fn text(random: &mut fastrand::Rng) -> Vec<u8> {
    let len = [0, 1, 5, 30, 130][random.usize(..5)];
    (0..len).map(|_| random.u8(..)).collect()
}

/// A key or an id: one that is packed, one that nearly is, or any.
fn name(random: &mut fastrand::Rng, number: usize) -> Vec<u8> {
    match random.u8(..6) {
        0 => format!("{number:064x}").into_bytes(),
        1 => format!("{number:064X}").into_bytes(),
        2 => format!("{number:063x}g").into_bytes(),
        3 => uuid_text((number as u128).to_be_bytes()).to_vec(),
        4 => format!("{number:032x}ABCD").into_bytes(),
        _ => format!("key-{number}").into_bytes(),
    }
}

fn random_event(random: &mut fastrand::Rng, number: usize, time_ms: u64) -> Plain {
    let mut fields: [Option<Vec<u8>>; EVENT_FIELDS] = Default::default();
    for field in &mut fields {
        *field = (random.u8(..3) == 0).then(|| text(random));
    }
    fields[EventField::Attributes as usize] = (random.u8(..3) == 0).then(|| {
        let mut attributes = Vec::new();
        let pairs: Vec<_> = (0..random.usize(..4)).map(|_| (text(random), text(random))).collect();
        put_attributes(pairs.iter().map(|(name, value)| (&**name, &**value)), &mut attributes);
        attributes
    });
    fields[EventField::Step as usize] = match random.u8(..5) {
        0 => None,
        _ => Some(format!("step-{}", random.usize(..[3, 200][number % 2])).into_bytes()),
    };
    let data_len = [0, 3, 40, 40, 40, 300, 5_000][random.usize(..7)];
    Plain {
        time_ms,
        key: name(random, number),
        id: name(random, random.clone().usize(..1 << 40)),
        event_type: TYPES[random.usize(..TYPES.len())].as_bytes().to_vec(),
        fields,
        data: vec![number as u8; data_len],
    }
}

fn append(entry: &mut Entry, number: u64, event: &Plain) -> usize {
    let change = Change::Append { number, time_ms: event.time_ms, event: &event.bytes() };
    types::Change::from(change).apply(entry, &mut Shapes::default(), &Thresholds::default()).count
}

fn create(event: &Plain) -> Entry {
    let change = Change::Append { number: 1, time_ms: event.time_ms, event: &event.bytes() };
    change.create(b"run").expect("the first event makes the run").0
}

/// Status, times and data of a run, and its steps by name.
type Shown = (String, [Option<u64>; 2], Option<Vec<u8>>, Vec<(Vec<u8>, String)>);

/// A snapshot, computed by looking at all events for each question.
fn projected(events: &[Plain]) -> Shown {
    let runs: BTreeMap<&[u8], &str> = [
        (&b"RunStarted"[..], "running"),
        (b"RunResumed", "running"),
        (b"RunPaused", "paused"),
        (b"RunCompleted", "completed"),
        (b"RunFailed", "failed"),
        (b"RunCancelled", "cancelled"),
    ]
    .into();
    let steps: BTreeMap<&[u8], &str> = [
        (&b"StepStarted"[..], "running"),
        (b"StepRetried", "retrying"),
        (b"StepCompleted", "completed"),
        (b"StepFailed", "failed"),
        (b"StepSkipped", "skipped"),
        (b"StepCorrected", ""),
    ]
    .into();
    let of_run: Vec<&Plain> = events.iter().filter(|event| runs.contains_key(&*event.event_type)).collect();
    let step_of = |event: &Plain| event.fields[0].clone().filter(|_| steps.contains_key(&*event.event_type));
    let of_steps: Vec<&Plain> = events.iter().filter(|event| step_of(event).is_some()).collect();
    let status_of = |event: &&Plain| runs[&*event.event_type];
    let ends = |status: &str| ["completed", "failed", "cancelled"].contains(&status);
    let end = of_run.iter().position(|event| ends(status_of(event)));
    let counted = &of_run[..end.map_or(of_run.len(), |end| end + 1)];
    let status = counted.last().map_or("pending", status_of);
    let started = counted.iter().find(|event| event.event_type == b"RunStarted").map(|event| event.time_ms);
    let updated = of_run.iter().chain(&of_steps).map(|event| event.time_ms).max();
    let data = counted.last().map(|event| event.data.clone());
    let mut names: Vec<Vec<u8>> = Vec::new();
    for name in of_steps.iter().filter_map(|event| step_of(event)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let describe = |name: Vec<u8>| {
        let own: Vec<&&Plain> = of_steps.iter().filter(|event| step_of(event).as_ref() == Some(&name)).collect();
        let last = own.last().expect("a step has an event");
        let status = own.iter().rev().map(|event| steps[&*event.event_type]).find(|status| !status.is_empty());
        let starts: Vec<&&&Plain> = own.iter().filter(|event| event.event_type == b"StepStarted").collect();
        let shown = format!(
            "{} {} {:?} {} {}",
            status.unwrap_or("pending"),
            starts.len(),
            starts.first().map(|event| event.time_ms),
            last.time_ms,
            last.data.escape_ascii()
        );
        (name, shown)
    };
    (status.to_owned(), [started, updated], data, names.into_iter().map(describe).collect())
}

fn shown(snapshot: SnapshotRef<'_>) -> Shown {
    let step = |step: StepRef<'_>| {
        let StepRef { name, status, attempts, started_ms, updated_ms, data } = step;
        (name.to_vec(), format!("{} {attempts} {started_ms:?} {updated_ms} {}", status.name(), data.escape_ascii()))
    };
    (
        snapshot.status().name().to_owned(),
        [snapshot.started_ms(), snapshot.updated_ms()],
        snapshot.data().map(<[u8]>::to_vec),
        snapshot.steps_from(0).map(step).collect(),
    )
}

fn image(entry: &Entry) -> Vec<u8> {
    let mut image = Vec::new();
    (TYPE.write_image)(entry, &Shapes::default(), &mut image);
    image
}

fn restored(entry: &Entry) -> Entry {
    let image = image(entry);
    let mut reader = Reader::new(&image);
    (TYPE.check_image)(&mut reader).expect("an image that was just written is one");
    assert!(reader.is_empty());
    (TYPE.read_image)(b"run", Reader::new(&image), &mut Shapes::default(), None)
}

fn assert_equal(entry: &Entry, model: &[Plain]) {
    let run = run(entry);
    assert_eq!(run.len(), model.len() as u64);
    assert_eq!(run.after(0).map(|found| Plain::of(&found)).collect::<Vec<_>>(), model);
    assert_eq!(shown(run.snapshot()), projected(model));
    assert_eq!(run.snapshot().last(), run.len());
}

#[test]
fn random_appends_agree_with_a_list_of_events() {
    let mut random = fastrand::Rng::with_seed(14);
    for round in 0..40 {
        let mut time_ms = 1_763_172_000_000;
        let first = random_event(&mut random, 0, time_ms);
        let (mut entry, mut model) = (create(&first), vec![first]);
        for number in 1..random.usize(1..[40, 600][round % 2]) {
            time_ms += [0, 1, 5_000, 1 << 36][random.usize(..4)];
            let event = match random.u8(..3) {
                0 => Plain { time_ms, ..model[random.usize(..model.len())].clone() },
                _ => random_event(&mut random, number, time_ms),
            };
            let known = model.iter().position(|known| known.key == event.key);
            assert_eq!(append(&mut entry, model.len() as u64 + 1, &event), usize::from(known.is_none()));
            if known.is_none() {
                model.push(event);
            }
            let (run, asked) = (run(&entry), random.usize(..model.len()));
            let by_key = run.with_key(&PackedKey::of(&model[asked].key)).expect("it was appended");
            assert_eq!((by_key.number, Plain::of(&by_key)), (asked as u64 + 1, model[asked].clone()));
            let behind: Vec<Plain> = run.after(asked as u64).map(|found| Plain::of(&found)).collect();
            assert_eq!(behind, model[asked..]);
            assert!(run.with_key(&PackedKey::of(b"never")).is_none());
        }
        assert_equal(&entry, &model);
        assert_equal(&restored(&entry), &model);
        assert_eq!(image(&restored(&entry)), image(&entry));
        assert_equal(&Entry::with_object(b"copy", Box::new(entry.object().unwrap().clone()), None), &model);
    }
}

#[test]
fn a_replay_is_what_is_kept_at_every_event_and_however_it_is_sliced() {
    let mut random = fastrand::Rng::with_seed(15);
    for _ in 0..30 {
        let events: Vec<Plain> = (0..150).map(|number| random_event(&mut random, number, 5 + number as u64)).collect();
        let mut entry = create(&events[0]);
        for (number, event) in (2..).zip(&events[1..]) {
            append(&mut entry, number, event);
        }
        let run = run(&entry);
        for upto in [0, 1, 2, 77, 149, 150, 151, u64::MAX] {
            let mut replay = Replay::default();
            let end = upto.min(run.len());
            while replay.last() < end {
                run.replay(&mut replay, upto, random.usize(1..40));
            }
            assert_eq!(shown(run.replayed(&replay)), projected(&events[..end as usize]));
            assert_eq!(run.replayed(&replay).last(), end);
        }
    }
}

#[test]
fn what_does_not_follow_is_left_out() {
    let event = |key: &[u8], time_ms| Plain {
        time_ms,
        key: key.to_vec(),
        id: Vec::new(),
        event_type: b"t".to_vec(),
        fields: Default::default(),
        data: Vec::new(),
    };
    let mut entry = create(&event(b"a", 10));
    for (number, next) in [(1, event(b"b", 10)), (3, event(b"b", 10)), (2, event(b"b", 9)), (2, event(b"a", 10))] {
        assert_eq!(append(&mut entry, number, &next), 0);
    }
    assert_eq!(append(&mut entry, 2, &event(b"b", 10)), 1);
    assert_equal(&entry, &[event(b"a", 10), event(b"b", 10)]);
    assert!(Change::Append { number: 2, time_ms: 1, event: &event(b"a", 1).bytes() }.create(b"run").is_none());
    // A damaged image: the second event has the key of the first.
    let mut image = image(&entry);
    let at = image.iter().rposition(|byte| *byte == b'b').expect("the key is there");
    image[at] = b'a';
    let read = (TYPE.read_image)(b"run", Reader::new(&image), &mut Shapes::default(), None);
    assert_equal(&read, &[event(b"a", 10)]);
}

#[test]
fn a_long_run_finds_its_events_and_costs_little_beside_them() {
    let event = |number: usize| Plain {
        time_ms: 1_763_172_000_000 + number as u64,
        key: format!("{number:064x}").into_bytes(),
        id: uuid_text((number as u128).to_be_bytes()).to_vec(),
        event_type: b"StepCompleted".to_vec(),
        fields: Default::default(),
        data: vec![b'd'; 32],
    };
    const COUNT: usize = 100_000;
    let mut entry = create(&event(0));
    for number in 1..COUNT {
        assert_eq!(append(&mut entry, number as u64 + 1, &event(number)), 1);
    }
    let run = run(&entry);
    for number in (0..COUNT).step_by(997) {
        let found = run.with_key(&PackedKey::of(&event(number).key)).expect("it was appended");
        assert_eq!((found.number, Plain::of(&found)), (number as u64 + 1, event(number)));
    }
    // What the caller gave: key, type and data. The id, the time and the tables are beside them.
    let own = 64 + 13 + 32;
    let beside = run.heap_bytes(usize::MAX) / COUNT;
    assert!(beside <= own + 64, "an event of {own} bytes takes {beside}");
}

#[test]
fn a_run_lies_in_one_allocation_of_moderate_size() {
    assert!(size_of::<Object>() <= 160, "{}", size_of::<Object>());
}
