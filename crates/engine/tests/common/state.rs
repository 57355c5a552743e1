//! Everything that a keyspace holds, to be compared. Knows forms and what is past its time; refuses to know how it came
//! to be.

use engine::Engine;
use keyspace::DATABASES;
use keyspace::IndexRef;
use keyspace::db::Db;
use keyspace::index::Index;
use keyspace::types::cell::{CellRef, Version};
use keyspace::types::list::{ListRef, Side};
use keyspace::types::register::{self, Operation, Order, RegisterRef};
use keyspace::types::run::{PackedKey, Replay, Run, SnapshotRef, StepRef};
use keyspace::types::session::Session;
use keyspace::types::set::SetRef;
use keyspace::types::sorted_set::{Direction, StoredRef};
use keyspace::types::stream::{Consumer, EntryRef, SEEN_LAG_MAX_MS, Stream, StreamId};
use keyspace::types::{hash, string};
use keyspace::{
    Change, Effect, Entry, HashRef, Key, Keyspace, Locked, NameHash, Scalar, SortedSetRef, Thresholds, Value,
};
use std::collections::BTreeMap;

/// Every key of every database, those past their time included; and libraries of functions, as keys of a database that
/// there is not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State(pub(crate) BTreeMap<(usize, Vec<u8>), Held>);

/// What a key holds and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) deadline: Option<u64>,
    pub(crate) content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Kept as a number, or as bytes; changed in place or not, which shows in short ones alone.
    String { bytes: Vec<u8>, number: bool, marked: bool },
    /// The fields of a small hash have an order.
    Packed(Vec<(Vec<u8>, Vec<u8>)>),
    /// Values and deadlines by field.
    Table { fields: BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>, encoding: &'static str },
    /// Names and the bits of their scores, in order.
    SortedSet { members: Vec<(Vec<u8>, u64)>, packed: bool, encoding: &'static str },
    /// In the order of their bytes, and the form that the set is kept in.
    Set { members: Vec<Vec<u8>>, form: &'static str },
    /// Whether it is packed depends on what became of it before.
    List { elements: Vec<Vec<u8>>, encoding: &'static str },
    /// Number, time and value of each version, the oldest first.
    Cell(Vec<(u64, u64, Vec<u8>)>),
    /// Number, time and bytes of each event.
    Run(Vec<(u64, u64, Vec<u8>)>),
    /// Version, value and what was added; what is sealed; what is buffered.
    Register {
        current: Option<(String, Vec<u8>, Option<i64>)>,
        order: Option<Order>,
        sealed: Option<register::Version>,
        buffer: Vec<(register::Version, String)>,
    },
    /// All that is journalled of it.
    Session { head: [u64; 4], capabilities: Vec<(Vec<u8>, Vec<u8>)>, answers: Vec<String>, pending: Vec<String> },
    /// All there is to it but where its chunks end, which the settings decide.
    Stream { head: String, entries: Vec<String>, groups: Vec<String> },
    /// A value of a type that needs no comparison of its own: equal values have equal images.
    Image(Vec<u8>),
}

/// Compares the list of runs that are not over with what a look at every key finds.
fn assert_open_runs_are_listed(db: &Db) {
    let is_open = |entry: &&Entry| matches!(db.value(entry, 0), Value::Run(run) if !run.status().is_final());
    let mut expected: Vec<&[u8]> = db.iter(0).filter(is_open).map(Entry::name).collect();
    let listed: Vec<(u32, &Entry)> = db.open_runs(0).collect();
    assert!(listed.is_sorted_by_key(|(position, _)| *position));
    assert!(listed.iter().all(|(position, entry)| NameHash::of(entry.name()).position() == *position));
    let mut found: Vec<&[u8]> = listed.iter().map(|(_, entry)| entry.name()).collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected, "runs that are not over");
}

/// Compares an index with what a look at every key finds.
fn assert_index_is_exact(locked: &Locked<'_>, db: usize, index: &Index) {
    let mut expected = Vec::new();
    for (_, shard) in locked.shards() {
        for entry in shard.db(db).iter(0).filter(|entry| index.definition.covers(entry.name())) {
            if let Value::Hash(hash) = shard.db(db).value(entry, 0)
                && let Some(score) = index.definition.score(hash)
            {
                expected.push((score, entry.name().to_vec()));
            }
        }
    }
    expected.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
    let found = IndexRef::find(locked, db, &index.name).expect("it is complete");
    let members = |ranks, direction| -> Vec<(f64, Vec<u8>)> {
        found.members(ranks, direction).map(|one| (one.score, one.name.into_bytes().into_owned())).collect()
    };
    let name = String::from_utf8_lossy(&index.name);
    assert_eq!(members(0..found.len(), Direction::Ascending), expected, "{name} in database {db}");
    let (third, middle) = (expected.len() / 3, expected.len() / 2);
    let mut some = members(third..middle, Direction::Descending);
    some.reverse();
    assert_eq!(some, expected[third..middle], "ranks {third} to {middle} of {name} in database {db}");
    if let Some((score, record)) = expected.get(middle) {
        assert_eq!(found.rank(record), Some((middle, *score)), "the rank of a record of {name}");
    }
}

/// Compares the groups of an index with what a look at every key finds.
fn assert_groups_are_exact(locked: &Locked<'_>, db: usize, index: &Index) {
    let definition = &index.definition;
    if !definition.has_queues() {
        return;
    }
    let mut expected: BTreeMap<Vec<u8>, (usize, u64, f64)> = BTreeMap::new();
    for (_, shard) in locked.shards() {
        for entry in shard.db(db).iter(0).filter(|entry| definition.covers(entry.name())) {
            let Value::Hash(hash) = shard.db(db).value(entry, 0) else { continue };
            let Some(group) = definition.group(hash) else { continue };
            let (score, is_held) = (definition.score(hash), definition.holds(|field| hash.get(field)));
            if score.is_some() || is_held {
                let (records, held, first) = expected.entry(group).or_insert((0, 0, f64::INFINITY));
                *records += usize::from(score.is_some());
                *held += u64::from(is_held);
                *first = first.min(score.unwrap_or(f64::INFINITY));
            }
        }
    }
    let mut found = BTreeMap::new();
    index.groups.lock(db).list(0, usize::MAX, |group| {
        // Groups are kept for their rates and turns, too.
        if group.records > 0 || group.held > 0 {
            let first = group.first_score.unwrap_or(f64::INFINITY);
            found.insert(group.name.to_vec(), (group.records, group.held, first));
        }
    });
    assert_eq!(found, expected, "groups of {} in database {db}", String::from_utf8_lossy(&index.name));
}

impl State {
    /// The state of an engine. What is kept beside the keys is compared with them on the way.
    pub(crate) fn of(engine: &Engine) -> State {
        let mut locked = engine.keyspace.lock_all();
        (0..DATABASES).for_each(|db| locked.apply_pending(db));
        let mut state = State::default();
        for (name, code) in locked.definitions().libraries() {
            let content = Content::String { bytes: code.to_vec(), number: false, marked: false };
            state.0.insert((DATABASES, name.to_vec()), Held { deadline: None, content });
        }
        for (name, definition) in locked.definitions().indexes() {
            let bytes = definition.unwrap_or_default().to_vec();
            let content = Content::String { bytes, number: false, marked: false };
            state.0.insert((DATABASES, name.to_vec()), Held { deadline: None, content });
        }
        for (name, limits) in locked.definitions().limits() {
            let content = Content::String { bytes: limits.to_vec(), number: false, marked: false };
            state.0.insert((DATABASES, name.to_vec()), Held { deadline: None, content });
        }
        for name in locked.definitions().forks() {
            let content = Content::String { bytes: Vec::new(), number: false, marked: false };
            state.0.insert((DATABASES, name.to_vec()), Held { deadline: None, content });
        }
        for db in 0..DATABASES {
            for index in engine.indexes.list().iter() {
                assert_index_is_exact(&locked, db, index);
                assert_groups_are_exact(&locked, db, index);
            }
        }
        for (number, shard) in locked.shards() {
            for index in 0..DATABASES {
                let db = shard.db(index);
                let (mut keys, mut deadlines, mut deadline_sum, mut field_deadlines) = (0, 0, 0, 0);
                // At the beginning of time nothing is past its time.
                for entry in db.iter(0) {
                    let key = Key::new(entry.name());
                    assert_eq!(key.shard(engine.keyspace.shard_count()), number, "a key in another key's shard");
                    let content = content(db, entry);
                    keys += 1;
                    deadlines += usize::from(entry.deadline().is_some());
                    deadline_sum += u128::from(entry.deadline().unwrap_or(0));
                    field_deadlines += usize::from(content.has_deadlines());
                    let held = Held { deadline: entry.deadline(), content };
                    let before = state.0.insert((index, entry.name().to_vec()), held);
                    assert!(before.is_none(), "a key is there twice");
                }
                assert_eq!(db.len(), keys, "keys in database {index}, or a hash without fields");
                assert_open_runs_are_listed(db);
                assert_eq!(db.with_deadline(), deadlines, "keys with a deadline in database {index}");
                assert_eq!(db.time_left_sum(0), deadline_sum, "the sum of deadlines in database {index}");
                assert_eq!(db.with_field_deadlines(), field_deadlines, "such hashes in database {index}");
            }
        }
        state
    }

    /// The same without what no command but OBJECT ENCODING can see.
    pub(crate) fn without_forms(mut self) -> State {
        for held in self.0.values_mut() {
            if let Content::Packed(fields) = &mut held.content {
                let fields = std::mem::take(fields).into_iter().map(|(field, value)| (field, (value, None))).collect();
                held.content = Content::Table { fields, encoding: "" };
            } else if let Content::Table { encoding, .. } = &mut held.content {
                *encoding = "";
            } else if let Content::Set { form, .. } = &mut held.content {
                *form = "";
            } else if let Content::SortedSet { members, packed, encoding } = &mut held.content {
                (*packed, *encoding) = (false, "");
                // Small sets have no negative zero.
                members.iter_mut().filter(|(_, bits)| *bits == (-0.0_f64).to_bits()).for_each(|(_, bits)| *bits = 0);
            }
        }
        self
    }

    /// Compares, and shows no more than what differs.
    pub(crate) fn assert_is(&self, expected: &State, what: &str) {
        if self == expected {
            return;
        }
        for name in expected.0.keys().chain(self.0.keys()) {
            let (found, expected) = (self.0.get(name), expected.0.get(name));
            if found != expected {
                let shown = |held: Option<&Held>| format!("{held:?}").chars().take(600).collect::<String>();
                let (db, name) = (name.0, name.1.escape_ascii());
                panic!("{what}: {name} in {db} is\n{}\nand not\n{}", shown(found), shown(expected));
            }
        }
    }
}

impl Content {
    fn has_deadlines(&self) -> bool {
        matches!(self, Content::Table { fields, .. } if fields.values().any(|(_, deadline)| deadline.is_some()))
    }
}

/// The members of a set, each found where it should be.
fn sorted_set(set: SortedSetRef<'_>) -> Content {
    let members: Vec<(Vec<u8>, f64)> =
        set.iter().map(|member| (member.name.into_bytes().into_owned(), member.score)).collect();
    assert_eq!(members.len(), set.len());
    for (rank, (name, score)) in members.iter().enumerate() {
        assert_eq!(set.rank(name), Some((rank, *score)), "{}", name.escape_ascii());
        let before = rank.checked_sub(1).map(|before| &members[before]);
        assert!(before.is_none_or(|before| before.1 < *score || before.1 == *score && before.0 < *name));
    }
    let packed = matches!(set, SortedSetRef::Stored(StoredRef::Packed(_)));
    let members = members.into_iter().map(|(name, score)| (name, score.to_bits())).collect();
    Content::SortedSet { members, packed, encoding: set.encoding() }
}

/// The members of a set, each found.
fn set(set: SetRef<'_>) -> Content {
    let mut members: Vec<Vec<u8>> = set.iter().map(|member| member.bytes().into_owned()).collect();
    assert_eq!(members.len(), set.len());
    assert!(members.iter().all(|member| set.has(Scalar::Bytes(member))), "a member is not found");
    members.sort();
    assert!(members.is_sorted_by(|a, b| a < b), "a member is there twice");
    let form = match set {
        SetRef::Intset(_) => "intset",
        SetRef::Packed(_) => "packed",
        SetRef::Table(table) => table.form().encoding(),
    };
    Content::Set { members, form }
}

/// The versions of a cell, each found by its number and by its time.
fn cell(cell: CellRef<'_>) -> Content {
    let versions: Vec<Version<'_>> = cell.oldest_first().collect();
    assert_eq!(versions.len(), cell.len());
    for version in &versions {
        assert_eq!(cell.version(version.number), Some(*version));
        assert_eq!(cell.as_of(version.time_us), Some(*version));
    }
    assert!(versions.windows(2).all(|two| two[0].number + 1 == two[1].number && two[0].time_us < two[1].time_us));
    assert_eq!(versions.last(), Some(&cell.current()));
    Content::Cell(versions.iter().map(|version| (version.number, version.time_us, version.value.to_vec())).collect())
}

/// The events of a run, each found by its number and by its key. The snapshot is what a replay comes to.
fn run(run: &Run) -> Content {
    let mut events = Vec::new();
    for found in run.after(0) {
        let key = found.event.key();
        let by_key = run.with_key(&PackedKey::of(key.as_bytes())).expect("an event is found by its key");
        let by_number = run.get(found.number).expect("an event is found by its number");
        for again in [by_key, by_number] {
            assert_eq!(
                (again.number, again.time_ms, again.event.bytes),
                (found.number, found.time_ms, found.event.bytes)
            );
        }
        events.push((found.number, found.time_ms, found.event.bytes.to_vec()));
    }
    assert_eq!(events.len() as u64, run.len());
    assert!(events.windows(2).all(|two| two[0].0 + 1 == two[1].0 && two[0].1 <= two[1].1));
    assert_eq!(events.last().map(|last| last.1), Some(run.last_ms()));
    let mut replay = Replay::default();
    while replay.last() < run.len() {
        run.replay(&mut replay, u64::MAX, 7);
    }
    assert_eq!(snapshot(run.replayed(&replay)), snapshot(run.snapshot()));
    Content::Run(events)
}

/// A register, with each buffered version found by its number, and none that is overtaken.
fn register(register: RegisterRef<'_>) -> Content {
    let buffer: Vec<(register::Version, Operation<'_>)> =
        register.buffered_from(register::Version::of_round(0)).collect();
    assert_eq!(buffer.len(), register.buffered_len());
    for (version, operation) in &buffer {
        assert!(register.open_from().is_some_and(|open| *version >= open), "a version was overtaken");
        assert!(!register.is_closed(*version));
        assert!(register.order().is_some(), "a buffer has an order");
        assert_eq!(register.buffered(*version), Some(*operation));
    }
    let current = register.current().map(|found| (found.version.to_string(), found.value.to_vec(), found.added));
    assert!(current.is_some() || register.sealed().is_some() || !buffer.is_empty(), "a register of nothing");
    let buffer = buffer.iter().map(|(version, operation)| (*version, format!("{operation:?}"))).collect();
    Content::Register { current, order: register.order(), sealed: register.sealed(), buffer }
}

type PlainSnapshot<'a> = (&'static str, u64, [Option<u64>; 2], Option<&'a [u8]>, Vec<StepRef<'a>>);

fn snapshot(snapshot: SnapshotRef<'_>) -> PlainSnapshot<'_> {
    let times = [snapshot.started_ms(), snapshot.updated_ms()];
    let steps: Vec<StepRef<'_>> = snapshot.steps_from(0).collect();
    assert_eq!(steps.len(), snapshot.step_count());
    (snapshot.status().name(), snapshot.last(), times, snapshot.data(), steps)
}

/// Longer strings are `raw` to OBJECT ENCODING whatever was done to them.
const EMBEDDED_BYTES_MAX: usize = 44;

/// A session, with its pending requests by when they were sent.
fn session(session: &Session) -> Content {
    let pending: Vec<String> = session.sent_before(u64::MAX).map(|request| format!("{request:?}")).collect();
    assert_eq!(pending.len(), session.pending_len());
    let capabilities = session.capabilities().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
    let answers: Vec<String> = session.all_answers().map(|answer| format!("{answer:?}")).collect();
    assert_eq!(answers.len(), session.answers());
    Content::Session {
        head: [session.created_ms(), session.ttl_ms(), session.low(), session.last_id()],
        capabilities,
        answers,
        pending,
    }
}

/// The elements of a list, each found where it should be, from both ends.
fn list(list: ListRef<'_>) -> Content {
    let mut elements = Vec::new();
    list.for_each(|element| elements.push(element.bytes().into_owned()));
    assert_eq!(elements.len(), list.len());
    let mut backwards = Vec::new();
    list.visit(0..list.len(), Side::Right, |element| {
        backwards.push(element.bytes().into_owned());
        true
    });
    assert!(elements.iter().rev().eq(backwards.iter()));
    let middle = elements.len() / 2;
    assert_eq!(list.with(middle, |element| element.bytes().into_owned()).as_ref(), elements.get(middle));
    Content::List { elements, encoding: list.form().encoding() }
}

fn stream(stream: &Stream) -> Content {
    let shown = |entry: EntryRef<'_>| format!("{} {:?}", entry.id, entry.fields().collect::<Vec<_>>());
    let entries: Vec<String> = stream.range(StreamId::MIN, StreamId::MAX).map(shown).collect();
    assert_eq!(entries.len() as u64, stream.len());
    let groups = stream.groups().map(|(name, group)| {
        let pending: Vec<String> = group
            .pending(..)
            .map(|(id, pending)| {
                let (at, times, owner) = (pending.delivered_ms, pending.deliveries(), group.owner_of(pending));
                format!("{id} {at} {times} {owner:?}")
            })
            .collect();
        let consumer = |consumer: &Consumer| {
            let pending: Vec<StreamId> = consumer.pending(..).collect();
            let times = (consumer.journalled_seen_ms(), consumer.active_ms());
            assert!(consumer.seen_ms().abs_diff(times.0) < SEEN_LAG_MAX_MS, "{}", consumer.seen_ms());
            format!("{:?} {times:?} {pending:?}", consumer.name())
        };
        let consumers: Vec<String> = group.consumers().map(consumer).collect();
        let released: Vec<StreamId> = group.released().collect();
        format!("{name:?} {} {:?} {pending:?} {consumers:?} {released:?}", group.last, group.entries_read)
    });
    let ids = stream.idempotency();
    let head = format!("{} {} {} {} {ids:?}", stream.first(), stream.last(), stream.max_deleted(), stream.added());
    Content::Stream { head, entries, groups: groups.collect() }
}

fn content(db: &Db, entry: &Entry) -> Content {
    let hash = match db.value(entry, 0) {
        Value::String(string) => {
            let number = matches!(string, Scalar::Number(_));
            let bytes = string.bytes().into_owned();
            let marked = entry.is_marked() && bytes.len() <= EMBEDDED_BYTES_MAX;
            return Content::String { bytes, number, marked };
        }
        Value::Hash(hash) => hash,
        Value::SortedSet(set) => return sorted_set(set),
        Value::Set(members) => return set(members),
        Value::List(elements) => return list(elements),
        Value::Cell(versions) => return cell(versions),
        Value::Run(events) => return run(events),
        Value::Register(found) => return register(found),
        Value::Session(found) => return session(found),
        Value::Stream(found) => return stream(found),
        _ => {
            let mut image = Vec::new();
            db.write_image(entry, &mut image);
            return Content::Image(image);
        }
    };
    let pairs: Vec<_> =
        hash.iter().map(|(field, value)| (field.scalar().bytes().into_owned(), value.bytes().into_owned())).collect();
    assert_eq!(pairs.len(), hash.len());
    let HashRef::Table(table, _) = hash else { return Content::Packed(pairs) };
    let with_deadline = |(field, value): (Vec<u8>, Vec<u8>)| {
        let deadline = hash.deadline(&field).flatten();
        (field, (value, deadline))
    };
    Content::Table { fields: pairs.into_iter().map(with_deadline).collect(), encoding: table.form().encoding() }
}

/// False for an effect that can rightly be replayed, but not in a test: a string longer than `bytes_max`, as SETRANGE
/// can make, and what had expired at the beginning of time, where [`State`] looks from.
pub(crate) fn is_tame(effect: &Effect<'_>, bytes_max: usize) -> bool {
    match *effect {
        Effect::Change {
            change:
                Change::String(string::Change::Write { offset, bytes } | string::Change::Splice { offset, bytes, .. }),
            ..
        } => offset.saturating_add(bytes.len()) < bytes_max,
        Effect::Change { change: Change::String(string::Change::Set { deadline, .. }), .. }
        | Effect::Change { change: Change::Hash(hash::Change::Deadline { deadline, .. }), .. }
        | Effect::Deadline { deadline, .. } => deadline != Some(0),
        Effect::Put { deadline, .. } => deadline != Some(0) && !has_expired_fields(effect),
        _ => true,
    }
}

/// True when some fields of a hash that is put whole had expired at the beginning of time.
fn has_expired_fields(put: &Effect<'_>) -> bool {
    let (keyspace, mut found) = (Keyspace::new(1), false);
    let mut locked = keyspace.lock_all();
    locked.apply(0, put, &Thresholds::default());
    for (_, shard) in locked.shards() {
        shard.db(0).visit_range(0, u32::MAX, |entry| {
            found |= match shard.db(0).value(entry, 0) {
                Value::Hash(hash) => hash.len() < shard.db(0).elements(entry),
                _ => false,
            };
        });
    }
    found
}
