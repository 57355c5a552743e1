//! The clients' ledgers against what a server holds after it was started again.
//!
//! The rule: every acknowledged request is there; of those in flight, for each client some first part is there, each
//! request whole. So a client's keys must equal one of a few states, and all of them together must be all there is.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use crate::author::Owner;
use crate::client::Client;
use crate::indexes;
use crate::model::{CLOCK_SLACK_MS, DEFINITIONS, Deadline, Entry, Place, State, Value, clock_error_ms};
use crate::observe::{Window, World};
use crate::request::{Request, Subject, excerpt};
use crate::shared::{PREFIX, Shared};

pub(crate) struct Ledger {
    pub(crate) clients: Vec<Client>,
    pub(crate) shared: Shared,
    /// FLUSHALL was sent and not acknowledged: all is as it was, or nothing is there.
    pub(crate) flushing: bool,
}

/// What a check found.
#[derive(Default, Clone, Copy)]
pub(crate) struct Checked {
    pub(crate) keys: usize,
    pub(crate) in_flight: usize,
    /// How many of those in flight had been applied.
    pub(crate) applied: usize,
}

impl Ledger {
    pub(crate) fn new(clients: usize) -> Ledger {
        Ledger { clients: (0..clients).map(Client::new).collect(), shared: Shared::new(), flushing: false }
    }

    /// Forgets everything: an empty directory.
    pub(crate) fn reset(&mut self) {
        self.flush();
        self.shared.queue.forget();
        self.clients.iter_mut().for_each(|client| client.acknowledged = State::default());
    }

    /// Forgets all keys: FLUSHALL, which leaves definitions.
    pub(crate) fn flush(&mut self) {
        for client in &mut self.clients {
            client.acknowledged.entries.retain(|place, _| place.db == DEFINITIONS);
            client.in_flight.clear();
            client.unknown.clear();
        }
        self.shared.reset();
        self.flushing = false;
    }

    /// Compares the ledger with the world. What was uncertain until now is as it was found from now on.
    pub(crate) fn check(&mut self, world: World) -> Result<Checked, String> {
        let World { state, indexed, queue, window } = world;
        indexes::check(&state, &indexed)?;
        self.shared.queue.check(queue)?;
        let keys = state.entries.keys().filter(|place| place.db != DEFINITIONS).count();
        if self.flushing && keys == 0 {
            self.flush();
        }
        self.flushing = false;
        let mut found = Found::sort(state, self.clients.len())?;
        let in_flight = self.clients.iter().flat_map(|client| client.in_flight.iter().chain(&client.unknown));
        self.shared.check(&found.shared, in_flight)?;
        let mut checked = Checked { keys, ..Checked::default() };
        for (client, found) in self.clients.iter_mut().zip(&mut found.owned) {
            checked.in_flight += client.in_flight.len();
            let applied = applied(client, found, window)?;
            checked.applied += applied;
            client.in_flight.iter().take(applied).for_each(|request| drop(request.apply(&mut client.acknowledged)));
            found.keep_answers(&client.acknowledged);
            client.acknowledged = std::mem::take(found);
            client.in_flight.clear();
            client.unknown.clear();
        }
        Ok(checked)
    }
}

/// Finds out what became of the requests that a client had in flight, by what is found of its own keys.
pub(crate) fn settle(client: &mut Client, world: World) -> Result<(), String> {
    let World { state: mut found, window, .. } = world;
    let applied = applied(client, &found, window)?;
    client.in_flight.iter().take(applied).for_each(|request| drop(request.apply(&mut client.acknowledged)));
    found.keep_answers(&client.acknowledged);
    client.acknowledged = found;
    let is_shared = |request: &Request| !matches!(request.subject, Subject::Own | Subject::Near);
    client.unknown.extend(client.in_flight.drain(..).filter(is_shared));
    Ok(())
}

/// A world by whom its keys belong to.
struct Found {
    owned: Vec<State>,
    shared: BTreeMap<Vec<u8>, Arc<Entry>>,
}

impl Found {
    fn sort(state: State, owners: usize) -> Result<Found, String> {
        let mut found = Found { owned: vec![State::default(); owners], shared: BTreeMap::new() };
        for (place, entry) in state.entries {
            if place.db == 0 && place.key.starts_with(PREFIX.as_bytes()) {
                found.shared.insert(place.key, entry);
                continue;
            }
            match Owner::of(place.db, &place.key).and_then(|owner| found.owned.get_mut(owner)) {
                Some(owned) => owned.entries.insert(place, entry),
                None => return Err(format!("a key that no client wrote: {}", describe(&place, None, Some(&entry)))),
            };
        }
        Ok(found)
    }
}

/// How many of the requests in flight explain what was found, or why none do.
fn applied(client: &Client, found: &State, window: Window) -> Result<usize, String> {
    let mut expected = client.acknowledged.clone();
    let mut nearest = differences(&expected, found, window);
    let mut nearest_applied = 0;
    for (number, request) in client.in_flight.iter().enumerate() {
        if nearest.is_empty() {
            break;
        }
        request.apply(&mut expected);
        let differences = differences(&expected, found, window);
        if differences.len() < nearest.len() {
            nearest = differences;
            nearest_applied = number + 1;
        }
    }
    if nearest.is_empty() {
        return Ok(nearest_applied);
    }
    Err(explain(client, &nearest, nearest_applied))
}

/// A place, what the ledger says is there and what the server says.
type Difference = (Place, Option<Arc<Entry>>, Option<Arc<Entry>>);

fn differences(expected: &State, found: &State, window: Window) -> Vec<Difference> {
    let places: BTreeSet<&Place> = expected.entries.keys().chain(found.entries.keys()).collect();
    let both = places.into_iter().map(|place| (place, expected.entries.get(place), found.entries.get(place)));
    both.filter(|(_, expected, found)| !agree(expected.map(|e| &**e), found.map(|f| &**f), window))
        .map(|(place, expected, found)| (place.clone(), expected.cloned(), found.cloned()))
        .collect()
}

fn agree(expected: Option<&Entry>, found: Option<&Entry>, window: Window) -> bool {
    match (expected, found) {
        (None, found) => found.is_none(),
        (Some(expected), None) => window.entry_may_be_gone(expected),
        (Some(expected), Some(found)) => {
            deadlines_agree(expected.deadline, found.deadline, window)
                && match (&expected.value, &found.value) {
                    (Value::String(expected), Value::String(found)) => expected == found,
                    (Value::Scores(expected), Value::Scores(found)) => expected == found,
                    (Value::List(expected), Value::List(found)) => expected == found,
                    (Value::Cell(expected), Value::Cell(found)) => expected == found,
                    (Value::Run(expected), Value::Run(found)) => {
                        expected.len() == found.len()
                            && expected.iter().zip(found).all(|(event, found)| event.is(found))
                    }
                    (Value::Register(expected), Value::Register(found)) => expected == found,
                    (Value::Checkpoint(expected), Value::Checkpoint(found)) => {
                        let same = |(saved, found): (&Arc<Entry>, &Arc<Entry>)| agree(Some(saved), Some(found), window);
                        (&expected.prefix, &expected.position) == (&found.prefix, &found.position)
                            && expected.registers.keys().eq(found.registers.keys())
                            && expected.registers.values().zip(found.registers.values()).all(same)
                    }
                    (Value::Session(expected), Value::Session(found)) => expected.is(found),
                    (Value::Stream(expected), Value::Stream(found)) => expected == found,
                    (Value::Definition(expected), Value::Definition(found)) => expected == found,
                    (Value::Hash(expected), Value::Hash(found)) => {
                        found.keys().all(|name| expected.contains_key(name))
                            && expected.iter().all(|(name, expected)| match found.get(name) {
                                None => window.may_be_past(expected.deadline),
                                Some(found) => {
                                    expected.value == found.value
                                        && deadlines_agree(expected.deadline, found.deadline, window)
                                }
                            })
                    }
                    _ => false,
                }
        }
    }
}

/// Of something that was found: so its deadline must not be past either.
fn deadlines_agree(expected: Option<Deadline>, found: Option<Deadline>, window: Window) -> bool {
    match (expected, found) {
        (None, None) => true,
        (Some(expected), Some(found)) => expected.contains(found.earliest_ms) && !window.must_be_past(expected),
        _ => false,
    }
}

impl Window {
    fn may_be_past(self, deadline: Option<Deadline>) -> bool {
        deadline.is_some_and(|deadline| deadline.earliest_ms <= self.to_ms + CLOCK_SLACK_MS + clock_error_ms())
    }

    fn must_be_past(self, deadline: Deadline) -> bool {
        deadline.latest_ms < self.from_ms - CLOCK_SLACK_MS - clock_error_ms()
    }

    fn entry_may_be_gone(self, entry: &Entry) -> bool {
        let fields_may_be_gone = match &entry.value {
            Value::Hash(fields) => fields.values().all(|field| self.may_be_past(field.deadline)),
            _ => false,
        };
        fields_may_be_gone || self.may_be_past(entry.deadline)
    }
}

fn explain(client: &Client, nearest: &[Difference], applied: usize) -> String {
    const SHOWN_MAX: usize = 8;
    let in_flight = &client.in_flight;
    let mut text = format!(
        "client {}: with {applied} of its {} requests in flight applied, which comes nearest, {} keys differ",
        client.owner.number,
        in_flight.len(),
        nearest.len()
    );
    for (place, expected, found) in nearest.iter().take(SHOWN_MAX) {
        let _ = write!(text, "\n{}", describe(place, expected.as_deref(), found.as_deref()));
    }
    for (number, request) in in_flight.iter().enumerate() {
        let _ = write!(text, "\n  in flight {}: {request}", number + 1);
    }
    text
}

fn describe(place: &Place, expected: Option<&Entry>, found: Option<&Entry>) -> String {
    let (expected_fields, found_fields) = (fields(expected), fields(found));
    if let (Some(expected_fields), Some(found_fields)) = (expected_fields, found_fields) {
        // Of two hashes only what differs.
        let names: BTreeSet<&Vec<u8>> = expected_fields.keys().chain(found_fields.keys()).collect();
        let differing = names.into_iter().filter(|name| expected_fields.get(*name) != found_fields.get(*name));
        let mut text = format!("  key {} in db {}, a hash:", excerpt(&place.key), place.db);
        let _ = write!(text, " deadline {} / {}", deadline(expected), deadline(found));
        for name in differing.take(6) {
            let shown = |fields: &BTreeMap<Vec<u8>, crate::model::Field>| match fields.get(name) {
                None => "absent".to_string(),
                Some(field) => format!("{}{}", excerpt(&field.value), show_deadline(field.deadline)),
            };
            let _ = write!(
                text,
                "\n    field {}\n      ledger: {}\n      server: {}",
                excerpt(name),
                shown(expected_fields),
                shown(found_fields)
            );
        }
        return text;
    }
    format!(
        "  key {} in db {}\n    ledger: {}\n    server: {}",
        excerpt(&place.key),
        place.db,
        show(expected),
        show(found)
    )
}

fn fields(entry: Option<&Entry>) -> Option<&BTreeMap<Vec<u8>, crate::model::Field>> {
    match &entry?.value {
        Value::Hash(fields) => Some(fields),
        _ => None,
    }
}

fn show(entry: Option<&Entry>) -> String {
    let Some(entry) = entry else { return "absent".into() };
    let value = match &entry.value {
        Value::String(bytes) => format!("string {}", excerpt(bytes)),
        Value::Hash(fields) => {
            let shown =
                fields.iter().take(6).map(|(name, field)| format!(" {}={}", excerpt(name), excerpt(&field.value)));
            format!("hash of {}:{}", fields.len(), shown.collect::<String>())
        }
        Value::Scores(scores) => {
            let shown = scores.iter().take(6).map(|(member, score)| format!(" {}={score}", excerpt(member)));
            format!("sorted set of {}:{}", scores.len(), shown.collect::<String>())
        }
        Value::List(list) => {
            let shown = list.iter().take(6).map(|element| format!(" {}", excerpt(element)));
            format!("list of {}:{}", list.len(), shown.collect::<String>())
        }
        Value::Cell(cell) => {
            let shown = cell.values.iter().take(6).map(|value| format!(" {}", excerpt(value)));
            format!("cell of version {} with {} values:{}", cell.version, cell.values.len(), shown.collect::<String>())
        }
        Value::Run(events) => {
            // The last ones: what is lost or too much is there.
            let shown = events.iter().rev().take(6).rev();
            let shown = shown.map(|event| format!(" {}={}", excerpt(&event.key), excerpt(&event.data)));
            format!("run of {} events, the last of which are{}", events.len(), shown.collect::<String>())
        }
        Value::Register(register) => register.to_string(),
        Value::Checkpoint(checkpoint) => {
            let registers = checkpoint.registers.iter();
            let shown = registers.map(|(name, entry)| format!("\n      {}: {}", excerpt(name), show(Some(entry))));
            format!("checkpoint at {}:{}", excerpt(&checkpoint.position), shown.collect::<String>())
        }
        Value::Session(session) => {
            let ids: Vec<String> = session.pending.keys().map(i64::to_string).collect();
            format!(
                "session with {} replies, low {}, the last of its requests {}, pending {}",
                session.answers.len(),
                session.low,
                session.last_id,
                ids.join(" ")
            )
        }
        Value::Stream(stream) => {
            let pending = stream.pending.iter().map(|(number, consumer)| format!(" {number}={}", excerpt(consumer)));
            format!(
                "stream of {} entries up to {}, read up to {}, pending{}",
                stream.entries.len(),
                stream.last,
                stream.read,
                pending.collect::<String>()
            )
        }
        Value::Definition(definition) => format!("definition {}", excerpt(definition)),
    };
    format!("{value}{}", show_deadline(entry.deadline))
}

fn deadline(entry: Option<&Entry>) -> String {
    show_deadline(entry.and_then(|entry| entry.deadline))
}

fn show_deadline(deadline: Option<Deadline>) -> String {
    match deadline {
        None => String::new(),
        Some(deadline) => match deadline.exact_ms() {
            Some(ms) => format!(" (until {ms})"),
            None => format!(" (until {} to {})", deadline.earliest_ms, deadline.latest_ms),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::command;
    use crate::scripts;
    use wire::Reply;

    /// A client with these requests acknowledged and those in flight.
    fn client(acknowledged: &[&str], in_flight: &[&str]) -> Client {
        let mut client = Client::new(0);
        for line in acknowledged {
            request(line).apply(&mut client.acknowledged);
        }
        client.in_flight = in_flight.iter().map(|line| request(line)).collect();
        client
    }

    fn request(line: &str) -> Request {
        Request::new(0, line.split(' ').map(|word| word.as_bytes().to_vec()).collect())
    }

    fn state(lines: &[&str]) -> State {
        client(lines, &[]).acknowledged
    }

    const WINDOW: Window = Window { from_ms: 100_000, to_ms: 100_100 };

    #[track_caller]
    fn check(client: Client, found: &[&str], expected: Option<usize>) {
        assert_eq!(applied(&client, &state(found), WINDOW).ok(), expected);
    }

    #[test]
    fn an_acknowledged_write_must_be_there() {
        check(client(&["SET c0:a 1"], &[]), &["SET c0:a 1"], Some(0));
        check(client(&["SET c0:a 1"], &[]), &[], None);
        check(client(&["SET c0:a 1", "SET c0:a 2"], &[]), &["SET c0:a 1"], None);
    }

    #[test]
    fn what_was_deleted_must_not_come_back() {
        check(client(&["SET c0:a 1", "DEL c0:a"], &[]), &["SET c0:a 1"], None);
    }

    #[test]
    fn of_a_pipeline_any_first_part_may_be_there_and_no_other() {
        let pipeline = || client(&[], &["SET c0:a 1", "SET c0:b 2", "SET c0:a 3"]);
        check(pipeline(), &[], Some(0));
        check(pipeline(), &["SET c0:a 1"], Some(1));
        check(pipeline(), &["SET c0:a 1", "SET c0:b 2"], Some(2));
        check(pipeline(), &["SET c0:a 3", "SET c0:b 2"], Some(3));
        check(pipeline(), &["SET c0:b 2"], None);
        check(pipeline(), &["SET c0:a 3"], None);
    }

    #[test]
    fn a_request_is_whole_or_absent() {
        let flight = || client(&[], &["MSET c0:a 1 c0:b 2"]);
        check(flight(), &["SET c0:a 1"], None);
        check(flight(), &["MSET c0:a 1 c0:b 2"], Some(1));
        check(client(&[], &["HSET c0:h f 1 g 2"]), &["HSET c0:h f 1"], None);
        check(client(&["SET c0:a 1"], &["RENAME c0:a c0:b"]), &["SET c0:a 1", "SET c0:b 1"], None);
        check(client(&["SET c0:a 1"], &["RENAME c0:a c0:b"]), &[], None);
    }

    #[test]
    fn deadlines_are_kept_to_the_millisecond() {
        check(client(&["SET c0:a 1 PXAT 200000"], &[]), &["SET c0:a 1 PXAT 200000"], Some(0));
        check(client(&["SET c0:a 1 PXAT 200000"], &[]), &["SET c0:a 1 PXAT 200001"], None);
        check(client(&["SET c0:a 1 PXAT 200000"], &[]), &["SET c0:a 1"], None);
        check(client(&["SET c0:a 1"], &[]), &["SET c0:a 1 PXAT 200000"], None);
        let hash = ["HSET c0:h f 1", "HPEXPIREAT c0:h 200000 FIELDS 1 f"];
        check(client(&hash, &[]), &hash, Some(0));
        check(client(&hash, &[]), &hash[..1], None);
    }

    #[test]
    fn what_has_expired_is_absent() {
        check(client(&["SET c0:a 1 PXAT 50000"], &[]), &["SET c0:a 1 PXAT 50000"], None);
        check(client(&["SET c0:a 1 PXAT 50000"], &[]), &[], Some(0));
        // Due while the server was asked: either is right.
        check(client(&["SET c0:a 1 PXAT 100050"], &[]), &["SET c0:a 1 PXAT 100050"], Some(0));
        check(client(&["SET c0:a 1 PXAT 100050"], &[]), &[], Some(0));
        let hash = ["HSET c0:h f 1 g 1", "HPEXPIREAT c0:h 50000 FIELDS 1 f"];
        check(client(&hash, &[]), &["HSET c0:h g 1"], Some(0));
        check(client(&hash, &[]), &hash, None);
        check(client(&hash, &[]), &[], None);
    }

    #[test]
    fn scores_are_kept_to_the_last_bit() {
        check(client(&["ZADD c0:z 1.25 m 2 n"], &[]), &["ZADD c0:z 2 n 1.25 m"], Some(0));
        check(client(&["ZADD c0:z 1.25 m 2 n"], &[]), &["ZADD c0:z 1.25 m"], None);
        check(client(&["ZADD c0:z 1.25 m"], &[]), &["ZADD c0:z 1.5 m"], None);
        check(client(&["ZADD c0:z 1.25 m", "ZINCRBY c0:z 0.25 m"], &[]), &["ZADD c0:z 1.5 m"], Some(0));
        check(client(&["ZADD c0:z 1 m 2 n", "ZPOPMIN c0:z 1"], &[]), &["ZADD c0:z 2 n"], Some(0));
        check(client(&["ZADD c0:z 1 m 2 n", "ZPOPMIN c0:z 1"], &[]), &["ZADD c0:z 1 m 2 n"], None);
        check(client(&["ZADD c0:z 1 m"], &["ZREM c0:z m"]), &[], Some(1));
        check(client(&["ZADD c0:z 1 m 2 n"], &["ZRANGESTORE c0:y c0:z 0 0"]), &["ZADD c0:z 1 m 2 n"], Some(0));
        check(client(&["ZADD c0:z 1 m"], &[]), &["SET c0:z 1"], None);
    }

    #[test]
    fn a_compare_and_swap_is_whole_and_was_due() {
        let hash = "HSET c0:h f 1 g 1";
        check(client(&[hash, "HCAS c0:h f 1 2"], &[]), &["HSET c0:h f 2 g 1"], Some(0));
        check(client(&[hash, "HCAS c0:h f 1 2"], &[]), &[hash], None);
        check(client(&[hash, "HCAS c0:h f 7 2"], &[]), &["HSET c0:h f 2 g 1"], None);
        let flight = || client(&[hash], &["HCAS c0:h IF 1 f 1 SET 1 f 2 DEL 1 g PXAT 200000"]);
        check(flight(), &[hash], Some(0));
        check(flight(), &["HSET c0:h f 2", "PEXPIREAT c0:h 200000"], Some(1));
        check(flight(), &["HSET c0:h f 2"], None);
        check(flight(), &["HSET c0:h f 2 g 1", "PEXPIREAT c0:h 200000"], None);
    }

    #[test]
    fn a_call_takes_effect_once_and_its_reply_is_kept_with_it() {
        let open = "SESSION.OPEN ID c0:s TTL 60000";
        let (one, two) = ("SESSION.CALL c0:s 1 LOW 0 HSET c0:h a 1", "SESSION.CALL c0:s 2 LOW 2 HINCRBY c0:h a 1");
        check(client(&[open, one], &[]), &[open, one], Some(0));
        check(client(&[open, one, one], &[]), &[open, one], Some(0));
        check(client(&[open, one, two, two], &[]), &[open, one, two], Some(0));
        // The effect without its reply, and the reply without its effect.
        check(client(&[open], &[one]), &[open, "HSET c0:h a 1"], None);
        check(client(&[open], &[one]), &[open, "SESSION.CALL c0:s 1 LOW 0 HSET c0:g a 1"], None);
        check(client(&[open], &[one]), &[open, one], Some(1));
        check(client(&[open, one, two], &[]), &[open, one, two, "HINCRBY c0:h a 1"], None);
        // LOW goes with it too.
        check(client(&[open, one, two], &[]), &[open, one, "SESSION.CALL c0:s 2 LOW 0 HINCRBY c0:h a 1"], None);
        let pushed = [open, "SESSION.PUSH c0:s a", "SESSION.PUSH c0:s b", "SESSION.ACK c0:s 1"];
        check(client(&pushed, &[]), &pushed, Some(0));
        check(client(&pushed, &[]), &pushed[..3], None);
        check(client(&pushed, &[]), &[open, "SESSION.PUSH c0:s b"], None);
    }

    #[test]
    fn an_event_is_there_once_and_as_it_was_appended() {
        let (one, two) = ("RUN.APPEND c0:r k1 t d1 EVENTID e1", "RUN.APPEND c0:r k2 t d2 EVENTID e2 STEP s");
        check(client(&[one, two], &[]), &[one, two], Some(0));
        check(client(&[one, two], &[]), &[one], None);
        check(client(&[one, two], &[]), &[two, one], None);
        check(client(&[one], &[two]), &[one, two], Some(1));
        check(
            client(&[one], &[two, "RUN.APPEND c0:r k3 t d3 EVENTID e3"]),
            &[one, "RUN.APPEND c0:r k3 t d3 EVENTID e3"],
            None,
        );
        // Sent again, it is there once; in flight again too.
        check(client(&[one, one], &[one]), &[one], Some(0));
        check(client(&[one, "RUN.APPEND c0:r k1 t other EVENTID e9"], &[]), &[one], Some(0));
        check(client(&[one, "RUN.APPEND c0:r k9 t d EVENTID e9 IFLAST 7"], &[]), &[one], Some(0));
        check(
            client(&[one, "RUN.APPEND c0:r k9 t d EVENTID e9 IFLAST 7"], &[]),
            &[one, "RUN.APPEND c0:r k9 t d EVENTID e9"],
            None,
        );
        for wrong in [
            "RUN.APPEND c0:r k1 t other EVENTID e1",
            "RUN.APPEND c0:r k1 u d1 EVENTID e1",
            "RUN.APPEND c0:r k1 t d1 EVENTID e2",
            "RUN.APPEND c0:r k1 t d1 EVENTID e1 STEP s",
        ] {
            check(client(&[one], &[]), &[wrong], None);
        }
        // A time that was told is kept.
        for (time, expected) in [("7", Some(0)), ("8", None)] {
            let told = |time: &str| {
                let mut client = client(&[one], &[]);
                let mut reply = vec![Reply::Integer(1); 12];
                reply[9] = Reply::Integer(time.parse().expect("a time"));
                client.acknowledged.learn(0, &words(one), &Reply::Array(reply));
                client
            };
            assert_eq!(applied(&told("7"), &told(time).acknowledged, WINDOW).ok(), expected);
        }
    }

    #[test]
    fn a_register_is_at_its_newest_version_with_all_that_waits() {
        let (one, three) = ("REG.INCRBY c0:register:1 1 5 ORDERED", "REG.INCRBY c0:register:1 3 7 ORDERED");
        check(client(&[one, three], &[]), &[three, one], Some(0));
        check(client(&[one, three, one, three], &[]), &[one, three], Some(0));
        check(client(&[one, three], &[]), &[one], None);
        check(client(&[one, three], &[]), &[three], None);
        check(client(&[one], &[three]), &[one, three], Some(1));
        let (old, new) = ("REG.PUT c0:register:0 4 old", "REG.PUT c0:register:0 5 new");
        check(client(&[new, old], &[]), &[new], Some(0));
        check(client(&[old, new], &[]), &[old], None);
        check(client(&[old], &[new]), &[new], Some(1));
        check(client(&[old, "REG.SEAL c0:register:0 9"], &[]), &[old], None);
    }

    #[test]
    fn a_checkpoint_is_whole_and_so_is_a_restore() {
        let (one, two) = ("REG.PUT c0:register:1 1 a", "REG.PUT c0:register:2 2 b");
        let snapshot = "REG.SNAPSHOT PREFIX c0:register: POSITION 7 STORE c0:checkpoint:0";
        check(client(&[one, two, snapshot], &[]), &[two, one, snapshot], Some(0));
        check(client(&[one, two, snapshot], &[]), &[one, snapshot, two], None);
        check(client(&[one, two, snapshot], &[]), &[one, two], None);
        let after = [one, two, snapshot, "DEL c0:register:1", "REG.PUT c0:register:2 3 c", "REG.PUT c0:register:3 1 d"];
        for (policy, right) in [
            ("MERGE", &[one, two, snapshot, "REG.PUT c0:register:2 3 c", "REG.PUT c0:register:3 1 d"][..]),
            ("REPLACE", &[one, two, snapshot]),
        ] {
            let restore = format!("REG.RESTORE FROM c0:checkpoint:0 {policy}");
            check(client(&after, &[&restore]), right, Some(1));
            check(client(&after, &[&restore]), &after, Some(0));
            check(client(&after, &[&restore]), &[one, two, snapshot, "REG.PUT c0:register:3 1 d"], None);
        }
    }

    #[test]
    fn a_claim_is_whole_and_of_the_first_record() {
        let index = "IDX.CREATE c0:index:0 PREFIX 1 c0:key: FIELD f";
        let (first, second) = ("HSET c0:key:1 f 1", "HSET c0:key:2 f 2");
        let claim = "CLAIM 1 c0:index:0 SET 1 f 9 COUNTER n KEYS";
        let claimed = |claims: usize| client(&[&[index, first, second][..], &[claim; 2][..claims]].concat(), &[]);
        check(claimed(1), &[index, "HSET c0:key:1 f 9 n 1", second], Some(0));
        check(claimed(1), &[index, first, second], None);
        check(claimed(1), &[index, first, "HSET c0:key:2 f 9 n 1"], None);
        check(claimed(1), &[index, "HSET c0:key:1 f 9", second], None);
        check(claimed(2), &[index, "HSET c0:key:1 f 9 n 1", "HSET c0:key:2 f 9 n 1"], Some(0));
        // A counter that is no number passes the record over.
        let passed = client(&[index, "HSET c0:key:1 f 1 n x", second, claim], &[]);
        check(passed, &[index, "HSET c0:key:1 f 1 n x", "HSET c0:key:2 f 9 n 1"], Some(0));
    }

    fn words(line: &str) -> Vec<Vec<u8>> {
        line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn a_script_or_function_is_whole_or_absent() {
        let commands = [words("SET c0:a 1"), words("ZADD c0:z 1 m")];
        let library = command(&[&"FUNCTION", &"LOAD", &"REPLACE", &scripts::library("c0_library_0", "<1>")]);
        for call in [
            scripts::call_batch(false, &commands),
            scripts::call_batch(true, &commands),
            scripts::call_library("c0_library_0", &commands),
        ] {
            let flight = || {
                let mut client = client(&[], &[]);
                client.acknowledged.apply(0, &library, 0);
                client.in_flight = [Request::new(0, call.clone())].into();
                client
            };
            for (lines, expected) in [
                (&[][..], Some(0)),
                (&["SET c0:a 1", "ZADD c0:z 1 m"], Some(1)),
                (&["SET c0:a 1"], None),
                (&["ZADD c0:z 1 m"], None),
            ] {
                let mut found = state(lines);
                found.apply(0, &library, 0);
                assert_eq!(applied(&flight(), &found, WINDOW).ok(), expected, "{lines:?}");
            }
        }
        let pair = || {
            let mut client = client(&[], &[]);
            client.in_flight = [Request::new(0, scripts::call_pair(false, "c0:a", "c0:h", b"1", "f"))].into();
            client
        };
        check(pair(), &["SET c0:a 1", "HSET c0:h paired 1 f 1"], Some(1));
        check(pair(), &["SET c0:a 1"], None);
    }

    #[test]
    fn definitions_outlive_a_flush_and_nothing_else() {
        let library = |mark| command(&[&"FUNCTION", &"LOAD", &"REPLACE", &scripts::library("c0_library_0", mark)]);
        let with = |definitions: &[&[Vec<u8>]]| {
            let mut state = State::default();
            definitions.iter().for_each(|definition| drop(state.apply(0, definition, 0)));
            World { state, indexed: Vec::new(), queue: None, window: WINDOW }
        };
        let ledger = || {
            let mut client = client(&["SET c0:a 1", "IDX.CREATE c0:index:0 PREFIX 1 c0:key: FIELD f"], &[]);
            client.acknowledged.apply(0, &library("<2>"), 0);
            Ledger { flushing: true, clients: vec![client], ..Ledger::new(0) }
        };
        let index = words("IDX.CREATE c0:index:0 PREFIX 1 c0:key: FIELD f");
        assert!(ledger().check(with(&[&index, &library("<2>")])).is_ok());
        for wrong in [
            with(&[]),
            with(&[&index]),
            with(&[&library("<2>")]),
            with(&[&index, &library("<1>")]),
            with(&[&words("IDX.CREATE c0:index:0 PREFIX 1 c0:key: FIELD g"), &library("<2>")]),
        ] {
            assert!(ledger().check(wrong).is_err());
        }
    }

    #[test]
    fn a_key_that_no_client_wrote_is_found() {
        let mut ledger = Ledger::new(1);
        let mut world = World { state: State::default(), indexed: Vec::new(), queue: None, window: WINDOW };
        world.state.apply(0, &command(&[&"SET", &"stray", &"1"]), 0);
        let failure = ledger.check(world).err().expect("a failure");
        assert!(failure.contains("stray"), "{failure}");
    }

    #[test]
    fn a_flush_in_flight_leaves_all_or_nothing() {
        let flushing =
            || Ledger { flushing: true, clients: vec![client(&["SET c0:a 1", "SET c0:b 2"], &[])], ..Ledger::new(0) };
        let world = |lines: &[&str]| World { state: state(lines), indexed: Vec::new(), queue: None, window: WINDOW };
        assert!(flushing().check(world(&[])).is_ok());
        assert!(flushing().check(world(&["SET c0:a 1", "SET c0:b 2"])).is_ok());
        assert!(flushing().check(world(&["SET c0:a 1"])).is_err());
    }
}
