//! How a record is queued again: through which index, with which state, when, and what becomes of its attempts. Refuses to know
//! what a page looks like.

use super::index::Index;
use super::shown::Shown;
use crate::talk::Trouble;
use crate::visit::Visit;

/// The field that counts the claims of a record, as the documents and the packages name it.
pub(super) const ATTEMPT: &[u8] = b"attempt";
/// The most seconds until a record is due again: ten years.
const SECONDS_MAX: u64 = 10 * 365 * 86_400;
/// States in which no job waits to be claimed.
const NOT_WAITING: &[&[u8]] =
    &[b"dead", b"failed", b"completed", b"done", b"cancelled", b"canceled", b"running", b"claimed", b""];

impl Index {
    /// True if it holds records of this state.
    pub(super) fn takes(&self, state: &[u8]) -> bool {
        match self.only {
            true => self.states.iter().any(|known| known == state),
            false => !self.states.iter().any(|known| known == state),
        }
    }

    /// The state in which a record waits here to be claimed. `None` if the index is no queue: it has no states, all of them are of
    /// jobs that are over or at work, or its number is when a record was written.
    pub(super) fn waiting_state(&self) -> Option<&[u8]> {
        if self.states.is_empty() || self.stamps {
            return None;
        }
        if self.takes(b"pending") {
            return Some(b"pending");
        }
        let mut states = self.states.iter().filter(|_| self.only).map(Vec::as_slice);
        states.find(|state| !NOT_WAITING.contains(state))
    }

    /// True if a record of that key, or all of that prefix, can be in it.
    pub(super) fn covers(&self, key: &[u8]) -> bool {
        self.prefixes.iter().any(|prefix| key.starts_with(prefix))
    }
}

/// The index through which records under `prefix` are queued again: this one if it is a queue, or else another that is.
pub(super) async fn queue(visit: &mut Visit<'_>, index: &Index, prefix: &[u8]) -> Result<Option<Index>, Trouble> {
    let mut found = vec![index.clone()];
    if !is_queue(index, prefix) {
        let names = visit.ask(&[b"IDX.LIST"]).await?;
        let names: Vec<Vec<u8>> = names.items().iter().map(|name| name.bytes().into_owned()).collect();
        found = Index::find_all(visit, names).await?;
    }
    Ok(best(found, index, prefix))
}

fn is_queue(index: &Index, prefix: &[u8]) -> bool {
    index.waiting_state().is_some() && index.covers(prefix)
}

/// Of several queues, one that names its states and is ordered by the same field; then by name, so that it is always the same.
fn best(found: Vec<Index>, like: &Index, prefix: &[u8]) -> Option<Index> {
    let queues = found.into_iter().filter(|index| is_queue(index, prefix));
    queues.min_by_key(|queue| (!queue.only, queue.field != like.field, queue.name.clone()))
}

/// The fields that must be as shown for a record to be changed.
pub(super) fn matter<'a>(index: &'a Index, queue: Option<&'a Index>) -> Vec<&'a [u8]> {
    let of = |index: &'a Index| [index.state_field.as_slice(), index.field.as_slice()];
    let mut names = of(index).to_vec();
    names.extend(queue.map(of).into_iter().flatten());
    names.push(ATTEMPT);
    names
}

/// HCAS that queues a record again, so many milliseconds from now.
pub(super) fn requeue(queue: &Index, shown: &Shown, to: &[u8], after_ms: u64) -> Vec<u8> {
    let mut set = vec![(queue.state_field.as_slice(), to)];
    if begins_anew(queue, shown) {
        set.push((ATTEMPT, b"0"));
    }
    shown.set(&set, &[(&queue.field, after_ms)])
}

/// True if the attempts of a record are counted anew: it was given up, and the next claim would give it up at once. Those of a
/// record that is still in the queue stay: they are the token that keeps its last worker from writing.
pub(super) fn begins_anew(queue: &Index, shown: &Shown) -> bool {
    shown.has(ATTEMPT) && !queue.takes(shown.value(&queue.state_field))
}

/// The state that a person has chosen, or what is wrong with it.
pub(super) fn checked_state<'a>(queue: &Index, to: &'a [u8]) -> Result<&'a [u8], String> {
    match to {
        b"" => Err("The new state is empty: nothing was changed.".to_owned()),
        to if queue.takes(to) => Ok(to),
        to => Err(format!(
            "The index {} does not hold records whose {} is {:?}, so the record would not be queued: nothing was changed.",
            brief(&queue.name),
            brief(&queue.state_field),
            brief(to)
        )),
    }
}

/// The milliseconds of the seconds that a person has typed, or what is wrong with them.
pub(super) fn checked_ms(text: &[u8]) -> Result<u64, String> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let seconds = std::str::from_utf8(text).ok().filter(|_| is_number).and_then(|text| text.parse::<u64>().ok());
    match seconds {
        Some(seconds) if seconds <= SECONDS_MAX => Ok(seconds * 1000),
        _ => Err(format!(
            "\"in seconds\" must be a whole number from 0 to {SECONDS_MAX} (ten years), not {:?}: nothing was changed.",
            brief(text)
        )),
    }
}

/// The begin of a name, for a sentence.
fn brief(name: &[u8]) -> String {
    String::from_utf8_lossy(&name[..name.len().min(60)]).into_owned()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::reply::Reply;
    use crate::talk::request;

    pub(in crate::pages) fn index(name: &str, field: &str, only: bool, states: &[&str], stamps: bool) -> Index {
        Index {
            name: name.into(),
            prefixes: vec![b"job:".to_vec()],
            field: field.into(),
            state_field: b"state".to_vec(),
            only,
            states: states.iter().map(|state| state.as_bytes().to_vec()).collect(),
            stamps,
            group: None,
            has_held: false,
            groups: 0,
        }
    }

    fn shown(fields: &[&str]) -> Shown {
        let fields = Reply::Map(fields.iter().map(|text| Reply::Bulk(text.as_bytes().to_vec())).collect());
        Shown::of(b"job:1", &fields, &[b"state", b"run_at", ATTEMPT]).unwrap()
    }

    #[test]
    fn a_queue_has_states_in_which_jobs_wait() {
        let waiting = |only, states: &[&str], stamps| {
            let index = index("a", "run_at", only, states, stamps);
            index.waiting_state().map(|state| String::from_utf8(state.to_vec()).unwrap())
        };
        assert_eq!(waiting(true, &["running", "pending"], false).as_deref(), Some("pending"));
        assert_eq!(waiting(true, &["running", "open"], false).as_deref(), Some("open"));
        assert_eq!(waiting(false, &["dead", "completed"], false).as_deref(), Some("pending"));
        assert_eq!(waiting(false, &["dead"], true), None, "the number is when a record was written");
        assert_eq!(waiting(true, &["dead"], false), None);
        assert_eq!(waiting(true, &["running"], false), None);
        assert_eq!(waiting(false, &["pending"], false), None);
        assert_eq!(waiting(false, &[], false), None);
    }

    #[test]
    fn a_record_of_another_index_goes_through_a_queue() {
        let stuck = index("a", "updated_at", false, &["dead"], true);
        let dead = index("b", "run_at", true, &["dead"], false);
        let due = index("due", "run_at", true, &["pending"], false);
        let other = index("c", "prio", true, &["pending"], false);
        let found = vec![stuck.clone(), dead.clone(), other, due];
        assert_eq!(best(found.clone(), &dead, b"job:1").unwrap().name, b"due");
        assert_eq!(best(found.clone(), &stuck, b"job:1").unwrap().name, b"c");
        assert!(best(found, &stuck, b"player:1").is_none());
        assert!(best(vec![stuck.clone(), dead], &stuck, b"job:1").is_none());
    }

    #[test]
    fn attempts_of_a_dead_letter_begin_anew_and_those_of_a_claimed_job_stay() {
        let queue = index("due", "run_at", true, &["pending", "running"], false);
        let words = |record: &[&str]| requeue(&queue, &shown(record), b"pending", 0);
        let dead = words(&["state", "dead", "run_at", "5", "attempt", "3"]);
        assert_eq!(
            dead,
            request(&[
                b"HCAS", b"job:1", b"IF", b"3", b"state", b"dead", b"run_at", b"5", b"attempt", b"3", b"SET", b"2",
                b"state", b"pending", b"attempt", b"0", b"STAMP", b"1", b"run_at", b"0"
            ])
        );
        assert!(!begins_anew(&queue, &shown(&["state", "running", "attempt", "3"])));
        assert!(!begins_anew(&queue, &shown(&["state", "dead"])), "it has no attempts");
    }

    #[test]
    fn what_is_typed_is_checked() {
        for (text, ms) in [("0", 0), ("600", 600_000), ("315360000", 315_360_000_000)] {
            assert_eq!(checked_ms(text.as_bytes()), Ok(ms));
        }
        for text in ["", "10m", "1.5", "x", "-5", "+5", "1e30", "315360001", "99999999999999999999999"] {
            assert!(checked_ms(text.as_bytes()).is_err(), "{text}");
        }
        let queue = index("due", "run_at", true, &["pending", "running"], false);
        assert_eq!(checked_state(&queue, b"pending"), Ok(&b"pending"[..]));
        for state in ["", "dead", "Pending", "x"] {
            assert!(checked_state(&queue, state.as_bytes()).is_err(), "{state}");
        }
        let open = index("open", "run_at", false, &["dead"], false);
        assert!(checked_state(&open, b"dead").is_err() && checked_state(&open, b"anything").is_ok());
    }
}
