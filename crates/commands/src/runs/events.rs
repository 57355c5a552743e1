//! RUN.EVENTS and RUN.INFO: the events of a run in order, and facts about it. RUN.EVENTS can wait for the next event,
//! and works in slices when many are requested.

use crate::shared::options::{error, limit, number, once, unknown_option};
use crate::shared::sliced_array::SlicedArray;
use execution::args::is_word;
use execution::context::ReadCx;
use execution::error::{CommandError, CommandResult};
use execution::waiting::keys::{Condition, Wait, WaitKeys, WaitRole};
use keyspace::Value;
use keyspace::types::run::{EVENT_FIELDS, EventField, Numbered, Run};
use resp::Reply;

/// The default LIMIT of RUN.EVENTS.
const LIMIT_DEFAULT: usize = 1000;
/// The most bytes of the field names of an event in a reply, with all lengths. A packed key, id or type takes up to
/// twice its size in memory.
const NAMES_BYTES_MAX: usize = 512;
/// Events between two checks of the clock.
const EVENTS_PER_LOOK: usize = 64;

/// The names of an event's fields in a reply, in order. `emittedAt` is always there, and `attributes` is a map.
const FIELD_NAMES: [(&str, EventField); EVENT_FIELDS - 2] = [
    ("stepId", EventField::Step),
    ("engineAttemptId", EventField::EngineAttempt),
    ("logicalAttemptId", EventField::LogicalAttempt),
    ("adapterVersion", EventField::Adapter),
    ("engineRunRef", EventField::EngineRunRef),
    ("causedBySignalId", EventField::Signal),
    ("parentEventId", EventField::Parent),
    ("planVersion", EventField::PlanVersion),
];

/// The progress of earlier slices.
struct Progress {
    /// Identifies the run that is read.
    birth: u64,
    body: SlicedArray,
    found: usize,
    /// The last event found, and the last one wanted.
    at: u64,
    upto: u64,
}

pub(super) fn events(cx: &mut ReadCx<'_>) -> CommandResult {
    let resumed = cx.resume::<Progress>()?;
    let key = cx.args.key()?;
    let (mut after, mut limit_asked, mut block_ms) = (None, None, None);
    while let Some(word) = cx.args.try_next() {
        if is_word(word, "AFTER") {
            once(&mut after, number(&mut cx.args, "the runSeq behind AFTER", 0, i64::MAX)? as u64, "AFTER")?;
        } else if is_word(word, "LIMIT") {
            once(&mut limit_asked, limit(&mut cx.args)?, "LIMIT")?;
        } else if is_word(word, "BLOCK") {
            let wait_ms = number(&mut cx.args, "the time behind BLOCK", 0, i64::MAX)?;
            once(&mut block_ms, wait_ms as u64, "BLOCK")?;
        } else {
            return Err(unknown_option(&cx.args));
        }
    }
    let (after, limit) = (after.unwrap_or(0), limit_asked.unwrap_or(LIMIT_DEFAULT));
    let is_served = cx.client.offer().is_some();
    let run = match cx.keys.get(key) {
        Some(Value::Run(run)) => Some(run),
        Some(other) => return Err(CommandError::wrong_type(other.value_type())),
        None => None,
    };
    cx.keys.looked_up(key, run.is_some());
    if let Some(run) = run {
        if after > run.len() {
            return Err(not_reached(after, run));
        }
        // The wait was ended by another run with as many events.
        if after == run.len() && is_served {
            return Err(CommandError::fixed(
                "ERR the run has been made anew while it was waited for: read it again from AFTER 0",
            ));
        }
    }
    match run {
        Some(run) if run.len() > after && limit > 0 => {
            let upto = run.len().min(after.saturating_add(limit as u64));
            let progress = match resumed {
                Some(progress) if progress.birth == run.birth() => progress,
                // The run was replaced since: the events found are those of the old one.
                _ => Progress { birth: run.birth(), body: SlicedArray::default(), found: 0, at: after, upto },
            };
            let slice = cx.begin_slice();
            let bytes_max = cx.client.output_bytes_max;
            match progress.go_on(run, key.name, slice.map(|slice| move || slice.is_over()), &mut cx.reply, bytes_max) {
                None => {}
                Some(unfinished) => cx.leave(unfinished),
            }
        }
        _ => {
            cx.reply.array(0);
            if let Some(block_ms) = block_ms
                && limit > 0
                && !is_served
            {
                let until_ms = (block_ms > 0).then(|| cx.keys.now_ms.saturating_add(block_ms));
                let condition = another_event(after, run.map(Run::birth));
                cx.client.wait(Wait { until_ms, keys: WaitKeys::All, condition, role: WaitRole::Reader });
            }
        }
    }
    Ok(())
}

impl Progress {
    /// Finds more events, and replies when there are no more. Returns itself if the time is over.
    fn go_on(
        mut self,
        run: &Run,
        name: &[u8],
        is_over: Option<impl Fn() -> bool>,
        reply: &mut Reply<'_>,
        bytes_max: usize,
    ) -> Option<Progress> {
        let mut writer = self.body.writer(reply.protocol(), bytes_max);
        let mut looked = 0usize;
        let wanted = run.after(self.at).take((self.upto - self.at) as usize);
        for event in wanted {
            reply_event(&mut writer, name, &event);
            self.at = event.number;
            looked += 1;
            if looked.is_multiple_of(EVENTS_PER_LOOK) && is_over.as_ref().is_some_and(|is_over| is_over()) {
                break;
            }
        }
        self.found += looked;
        // A reply that is too long is not sent: no need to continue.
        if self.at == self.upto || self.body.len() > bytes_max {
            self.body.send(self.found, reply);
            return None;
        }
        if !self.body.expects_more() {
            // The first events may be much longer than the others.
            let left = (self.upto - self.at) as usize;
            let longest = self.body.len() + 2 * run.bytes() as usize + left * (NAMES_BYTES_MAX + name.len());
            self.body.expect_more(self.found, looked, left, bytes_max.min(longest));
        }
        Some(self)
    }
}

/// The error for a watermark that the run has not reached.
fn not_reached(after: u64, run: &Run) -> CommandError {
    let last = run.len();
    error(format!(
        "the run has been made anew: its last runSeq is {last}, and AFTER is {after}; read it again from AFTER 0"
    ))
}

/// The condition that ends a wait for an event after `after`: a new event, or another run under the name. `seen`
/// identifies the run that existed when the wait began, whose last event was `after`.
fn another_event(after: u64, seen: Option<u64>) -> Condition {
    Box::new(move |value| match value {
        Some(Value::Run(run)) => run.len() != after || seen.is_some_and(|birth| birth != run.birth()),
        _ => false,
    })
}

fn reply_event(reply: &mut Reply<'_>, name: &[u8], found: &Numbered<'_>) {
    let event = &found.event;
    let given = || FIELD_NAMES.iter().filter_map(|(name, field)| event.field(*field).map(|text| (name, text)));
    let attributes = event.attributes();
    reply.map(8 + given().count() + usize::from(attributes.is_some()));
    reply.bulk(b"runId");
    reply.bulk(name);
    reply.bulk(b"runSeq");
    reply.integer(found.number as i64);
    reply.bulk(b"eventId");
    reply.bulk(event.id().as_bytes());
    reply.bulk(b"eventType");
    reply.bulk(event.type_name());
    reply.bulk(b"eventData");
    reply.bulk(event.data);
    reply.bulk(b"idempotencyKey");
    reply.bulk(event.key().as_bytes());
    reply.bulk(b"emittedAt");
    match event.field(EventField::EmittedAt) {
        Some(text) => reply.bulk(text),
        None => reply.bulk_integer(found.time_ms as i64),
    }
    reply.bulk(b"persistedAt");
    reply.integer(found.time_ms as i64);
    for (name, text) in given() {
        reply.bulk(name.as_bytes());
        reply.bulk(text);
    }
    if let Some(attributes) = attributes {
        reply.bulk(b"attributes");
        reply.map(attributes.len());
        for (name, value) in attributes {
            reply.bulk(name);
            reply.bulk(value);
        }
    }
}

pub(super) fn info(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let run = cx.keys.typed::<&Run>(key)?;
    cx.keys.looked_up(key, run.is_some());
    let Some(run) = run else {
        cx.reply.null();
        return Ok(());
    };
    let first_ms = run.get(1).map_or(run.last_ms(), |first| first.time_ms);
    cx.reply.map(7);
    cx.reply.bulk(b"runId");
    cx.reply.bulk(key.name);
    cx.reply.bulk(b"status");
    cx.reply.bulk(run.status().name().as_bytes());
    for (name, number) in [
        ("events", run.len()),
        ("lastEventSeq", run.len()),
        ("firstAt", first_ms),
        ("lastAt", run.last_ms()),
        ("bytes", run.bytes()),
    ] {
        cx.reply.bulk(name.as_bytes());
        cx.reply.integer(number as i64);
    }
    Ok(())
}
