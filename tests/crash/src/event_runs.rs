//! What the load's commands on runs of events do to the model. Times are the server's: the model learns them from replies.

use std::sync::Arc;

use wire::Reply;

use crate::commands::Call;
use crate::model::{Entry, Value, int};

/// The events of a run, in their order.
pub(crate) type Events = Vec<Arc<Event>>;

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Event {
    pub(crate) key: Vec<u8>,
    pub(crate) event_type: Vec<u8>,
    pub(crate) data: Vec<u8>,
    pub(crate) id: Vec<u8>,
    pub(crate) step: Option<Vec<u8>>,
    /// As far as it is known: the reply may have been lost, or is that of a transaction.
    pub(crate) persisted_at: Option<i64>,
}

/// What stands in a reply of the model where the server tells a time.
const SOME_TIME: Reply = Reply::Integer(0);

impl Event {
    /// True when what was found is this event.
    pub(crate) fn is(&self, found: &Event) -> bool {
        let persisted_at = self.persisted_at.or(found.persisted_at);
        Event { persisted_at, ..self.clone() } == Event { persisted_at: found.persisted_at, ..found.clone() }
    }
}

impl Call<'_> {
    /// `RUN.APPEND run key type data EVENTID id [STEP step] [IFLAST last]`
    pub(crate) fn run_append(&mut self, rest: &[Vec<u8>]) -> Reply {
        let option = |name: &[u8]| rest[3..].chunks(2).find(|pair| pair[0] == name).map(|pair| &pair[1]);
        let events = self.events();
        let last = events.len();
        if let Some(at) = events.iter().position(|event| event.key == rest[0]) {
            let known = &events[at];
            let differs = known.event_type != rest[1] || known.data != rest[2];
            return appended(at + 1, [1, 0], Some(&known.id), differs);
        }
        if option(b"IFLAST").is_some_and(|expected| int(expected) != last as i64) {
            return appended(last, [0, 0], None, false);
        }
        let event = Event {
            key: rest[0].clone(),
            event_type: rest[1].clone(),
            data: rest[2].clone(),
            id: option(b"EVENTID").expect("the load gives an id").clone(),
            step: option(b"STEP").cloned(),
            persisted_at: None,
        };
        let reply = appended(last + 1, [0, 1], Some(&event.id), false);
        if last == 0 {
            self.put(Entry { value: Value::Run(Vec::new()), deadline: None });
        }
        let Some(Entry { value: Value::Run(events), .. }) = self.entry_mut() else { panic!("it was just put") };
        events.push(Arc::new(event));
        reply
    }

    fn events(&self) -> &[Arc<Event>] {
        match self.entry().map(|entry| &entry.value) {
            None => &[],
            Some(Value::Run(events)) => events,
            Some(_) => panic!("a command for runs on another type"),
        }
    }
}

fn appended(run_seq: usize, [idempotent, persisted]: [i64; 2], id: Option<&[u8]>, mismatch: bool) -> Reply {
    let time = if id.is_some() { SOME_TIME } else { Reply::NilBulk };
    let told = [
        ("runSeq", Reply::Integer(run_seq as i64)),
        ("idempotent", Reply::Integer(idempotent)),
        ("persisted", Reply::Integer(persisted)),
        ("eventId", id.map_or(Reply::NilBulk, |id| Reply::Bulk(id.to_vec()))),
        ("persistedAt", time),
        ("mismatch", Reply::Integer(mismatch.into())),
    ];
    Reply::Array(told.into_iter().flat_map(|(name, value)| [Reply::Bulk(name.into()), value]).collect())
}

/// A reply with the times taken out that the model cannot know, also where it has replies in it. Lua knows one nil: what is nil in an array
/// may be either.
pub(crate) fn without_times(reply: &Reply) -> Reply {
    let Reply::Array(items) = reply else { return reply.clone() };
    let item = |item: &Reply| if *item == Reply::NilArray { Reply::NilBulk } else { without_times(item) };
    let mut items: Vec<Reply> = items.iter().map(item).collect();
    for at in 1..items.len() {
        if matches!(items[at], Reply::Integer(_)) && items[at - 1] == Reply::Bulk(b"persistedAt".to_vec()) {
            items[at] = SOME_TIME;
        }
    }
    Reply::Array(items)
}

/// The number and the time that the reply to an append tells.
pub(crate) fn told(reply: &Reply) -> Option<(usize, i64)> {
    let Reply::Array(items) = reply else { return None };
    match (items.get(1), items.get(9)) {
        (Some(Reply::Integer(run_seq)), Some(Reply::Integer(time))) => Some((*run_seq as usize, *time)),
        _ => None,
    }
}
