//! RUN.EVENTS and RUN.INFO: the events of a run in order, and what there is of it. RUN.EVENTS can wait for the next event,
//! and works in slices when it is asked for many.

use crate::args::is_word;
use crate::commands::shared::options::{error, limit, number, once, unknown_option};
use crate::commands::shared::sliced_array::SlicedArray;
use crate::error::{CommandError, CommandResult};
use crate::execution::context::ReadCx;
use crate::execution::waiting::keys::{Condition, Wait, WaitKeys, WaitRole};
use keyspace::Value;
use keyspace::types::run::{Numbered, PARTS, Part, Run};
use resp::Reply;

/// The default LIMIT of RUN.EVENTS.
const LIMIT_DEFAULT: usize = 1000;
/// What the names of the parts of an event take in a reply, and the lengths in front of all of them; a packed key, id or type takes
/// up to as much again as it does in memory.
const NAMES_BYTES_MAX: usize = 512;
/// Events between two looks at the clock.
const EVENTS_PER_LOOK: usize = 64;

/// What a reply calls the parts of an event, in its order. `emittedAt` is always there.
const PART_NAMES: [(&str, Part); PARTS - 1] = [
    ("stepId", Part::Step),
    ("engineAttemptId", Part::EngineAttempt),
    ("logicalAttemptId", Part::LogicalAttempt),
    ("adapterVersion", Part::Adapter),
    ("engineRunRef", Part::EngineRunRef),
    ("causedBySignalId", Part::Signal),
    ("parentEventId", Part::Parent),
    ("planVersion", Part::PlanVersion),
];

/// What the slices so far have found.
struct Progress {
    /// Of the run that is read.
    birth: u64,
    body: SlicedArray,
    found: usize,
    /// The last event that was found, and the last that is wanted.
    at: u64,
    upto: u64,
}

pub(super) fn events(cx: &mut ReadCx<'_>) -> CommandResult {
    let resumed = cx.client.unfinished.take().and_then(|unfinished| unfinished.downcast::<Progress>().ok());
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
            return Err(unknown_option(word));
        }
    }
    let (after, limit) = (after.unwrap_or(0), limit_asked.unwrap_or(LIMIT_DEFAULT));
    let is_served = cx.client.offer().is_some();
    let run = match cx.keys.get(key) {
        Some(Value::Run(run)) => Some(run),
        Some(_) => return Err(CommandError::WrongType),
        None => None,
    };
    cx.keys.looked_up(key, run.is_some());
    if let Some(run) = run {
        if after > run.len() {
            return Err(not_reached(after, run));
        }
        // What has ended the wait is another run with as many events.
        if after == run.len() && is_served {
            return Err(CommandError::fixed("ERR the run has been made anew while it was waited for"));
        }
    }
    match run {
        Some(run) if run.len() > after && limit > 0 => {
            let upto = run.len().min(after.saturating_add(limit as u64));
            let progress = match resumed {
                Some(progress) if progress.birth == run.birth() => *progress,
                // It has been made anew since: what was found of the other is worth nothing.
                _ => Progress { birth: run.birth(), body: SlicedArray::default(), found: 0, at: after, upto },
            };
            let slice = cx.begin_slice();
            let bytes_max = cx.client.output_bytes_max;
            match progress.go_on(run, key.name, slice.map(|slice| move || slice.is_over()), &mut cx.reply, bytes_max) {
                None => {}
                Some(unfinished) => cx.client.unfinished = Some(Box::new(unfinished)),
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
    /// Finds more events, and replies if there is no more to find. Returns itself if the time is over.
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
        // A reply that is too long is not sent: no need to go on.
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
    error(format!("the run has been made anew: its last runSeq is {last}, and AFTER is {after}"))
}

/// What ends a wait for an event after `after`: one that comes, or a run that is there anew. With `seen`, that run was
/// there when the wait began, and `after` was its last event.
fn another_event(after: u64, seen: Option<u64>) -> Condition {
    Box::new(move |value| match value {
        Some(Value::Run(run)) => run.len() != after || seen.is_some_and(|birth| birth != run.birth()),
        _ => false,
    })
}

fn reply_event(reply: &mut Reply<'_>, name: &[u8], found: &Numbered<'_>) {
    let event = &found.event;
    let given = || PART_NAMES.iter().filter_map(|(name, part)| event.part(*part).map(|text| (name, text)));
    reply.map(8 + given().count());
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
    match event.part(Part::EmittedAt) {
        Some(text) => reply.bulk(text),
        None => reply.bulk_integer(found.time_ms as i64),
    }
    reply.bulk(b"persistedAt");
    reply.integer(found.time_ms as i64);
    for (name, text) in given() {
        reply.bulk(name.as_bytes());
        reply.bulk(text);
    }
}

pub(super) fn info(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let run = cx.keys.run(key)?;
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
