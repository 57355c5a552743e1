//! RUN.APPEND: adds an event to a run, unless an event of the same idempotency key is there.

use crate::args::{Args, is_word};
use crate::commands::shared::options::{argument, error, number, once, unknown_option};
use crate::error::{CommandError, CommandResult};
use crate::execution::context::WriteCx;
use crate::settings::events::Events;
use keyspace::types::run::{
    self, EVENTS_MAX, NewEvent, Numbered, PARTS, PackedKey, Part, TIME_MAX_MS, to_hex, uuid_text,
};
use keyspace::{Effect, Key};
use resp::Reply;
use sha2::{Digest, Sha256};

/// Stands for a key that the server computes.
const COMPUTED: &[u8] = b"*";

/// The options that give an event its parts.
const PART_OPTIONS: [(&str, Part); PARTS] = [
    ("STEP", Part::Step),
    ("ENGINEATTEMPT", Part::EngineAttempt),
    ("LOGICALATTEMPT", Part::LogicalAttempt),
    ("EMITTEDAT", Part::EmittedAt),
    ("PLANVERSION", Part::PlanVersion),
    ("ADAPTER", Part::Adapter),
    ("REF", Part::EngineRunRef),
    ("SIGNAL", Part::Signal),
    ("PARENT", Part::Parent),
];

pub(super) fn append(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, idempotency_key) = (cx.args.key()?, cx.args.bytes()?);
    let (event_type, data) = (cx.args.bytes()?, cx.args.bytes()?);
    let options = Options::take(&mut cx.args)?;
    if idempotency_key.is_empty() {
        return Err(CommandError::fixed("ERR the idempotency key is empty: give one, or * to have it computed"));
    }
    let mut computed = [0; 64];
    let idempotency_key = match idempotency_key == COMPUTED {
        true => {
            compute_key(key.name, event_type, &options, &mut computed)?;
            &computed[..]
        }
        false => idempotency_key,
    };
    let (last, last_ms) = match cx.keys.run_to_change(key)? {
        Some(run) => {
            if let Some(known) = run.with_key(&PackedKey::of(idempotency_key)) {
                let is_same = known.event.type_name() == event_type && known.event.data == data;
                Outcome::Known(&known, !is_same).reply(&mut cx.reply);
                return Ok(());
            }
            (run.len(), run.last_ms())
        }
        None => (0, 0),
    };
    if options.if_last.is_some_and(|expected| expected != last) {
        Outcome::NotLast(last).reply(&mut cx.reply);
        return Ok(());
    }
    let time_ms = cx.keys.now_ms.max(last_ms);
    if last >= EVENTS_MAX {
        return Err(CommandError::fixed("ERR the run has as many events as it can: it takes no more"));
    }
    if time_ms > TIME_MAX_MS {
        return Err(CommandError::fixed("ERR the time of the run is at its maximum: it takes no more events"));
    }
    let made = random_uuid(cx, key);
    let id = options.id.unwrap_or(&made);
    let event = NewEvent { key: idempotency_key, id, event_type, parts: options.parts, data };
    let mut bytes = Vec::with_capacity(event.bytes_max());
    event.encode(&mut bytes);
    cx.keys.record(&Effect::change(key, run::Change::Append { number: last + 1, time_ms, event: &bytes }));
    cx.keys.notify(Events::MODULE, "run.append", key);
    Outcome::Appended { number: last + 1, time_ms, id }.reply(&mut cx.reply);
    Ok(())
}

#[derive(Default)]
struct Options<'a> {
    if_last: Option<u64>,
    id: Option<&'a [u8]>,
    parts: [Option<&'a [u8]>; PARTS],
}

impl<'a> Options<'a> {
    fn take(args: &mut Args<'a>) -> Result<Options<'a>, CommandError> {
        let mut options = Options::default();
        while let Some(word) = args.try_next() {
            if let Some((name, part)) = PART_OPTIONS.iter().find(|(name, _)| is_word(word, name)) {
                once(&mut options.parts[*part as usize], text(args, name)?, name)?;
            } else if is_word(word, "EVENTID") {
                once(&mut options.id, text(args, "EVENTID")?, "EVENTID")?;
            } else if is_word(word, "IFLAST") {
                let last = number(args, "the runSeq behind IFLAST", 0, i64::MAX)?;
                once(&mut options.if_last, last as u64, "IFLAST")?;
            } else {
                return Err(unknown_option(word));
            }
        }
        Ok(options)
    }
}

fn text<'a>(args: &mut Args<'a>, option: &str) -> Result<&'a [u8], CommandError> {
    match args.try_next() {
        Some(text) => Ok(text),
        None => argument(args, &format!("the text behind {option}")),
    }
}

/// SHA-256 of what tells one event of a run from another, in hexadecimal digits. A separator in one of the parts would let
/// two events have one key.
fn compute_key(
    run: &[u8],
    event_type: &[u8],
    options: &Options<'_>,
    digits: &mut [u8; 64],
) -> Result<(), CommandError> {
    const SEPARATOR: u8 = b'|';
    let part = |part: Part| options.parts[part as usize].unwrap_or_default();
    let parts = [
        ("the run", run),
        ("STEP", part(Part::Step)),
        ("LOGICALATTEMPT", part(Part::LogicalAttempt)),
        ("the type", event_type),
        ("PLANVERSION", part(Part::PlanVersion)),
    ];
    let mut hasher = Sha256::new();
    for (at, (name, part)) in parts.iter().enumerate() {
        if part.contains(&SEPARATOR) {
            return Err(error(format!("a key is not computed where {name} contains '|', which separates the parts")));
        }
        if at > 0 {
            hasher.update([SEPARATOR]);
        }
        hasher.update(part);
    }
    to_hex(&hasher.finalize(), digits);
    Ok(())
}

/// A random UUID (version 4). The generator has 64 bits of state; the name of the run and the time keep ids apart that two
/// generators would otherwise make alike.
fn random_uuid(cx: &mut WriteCx<'_>, key: Key<'_>) -> [u8; 36] {
    let high = cx.random.u64(..) ^ key.hash.get();
    let low = cx.random.u64(..) ^ cx.now_us.rotate_left(32);
    let mut uuid = [0; 16];
    uuid[..8].copy_from_slice(&high.to_be_bytes());
    uuid[8..].copy_from_slice(&low.to_be_bytes());
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid_text(uuid)
}

/// What RUN.APPEND came to.
enum Outcome<'a> {
    Appended {
        number: u64,
        time_ms: u64,
        id: &'a [u8],
    },
    /// The event of that key, and whether the request differs from it.
    Known(&'a Numbered<'a>, bool),
    /// The last event is this one, and not the one behind IFLAST.
    NotLast(u64),
}

impl Outcome<'_> {
    fn reply(&self, reply: &mut Reply<'_>) {
        let number = match self {
            Outcome::Appended { number, .. } | Outcome::NotLast(number) => *number,
            Outcome::Known(known, _) => known.number,
        };
        reply.map(6);
        reply.bulk(b"runSeq");
        reply.integer(number as i64);
        reply.bulk(b"idempotent");
        reply.integer(matches!(self, Outcome::Known(..)).into());
        reply.bulk(b"persisted");
        reply.integer(matches!(self, Outcome::Appended { .. }).into());
        reply.bulk(b"eventId");
        match self {
            Outcome::Appended { id, .. } => reply.bulk(id),
            Outcome::Known(known, _) => reply.bulk(known.event.id().as_bytes()),
            Outcome::NotLast(_) => reply.null(),
        }
        reply.bulk(b"persistedAt");
        match self {
            Outcome::Appended { time_ms, .. } => reply.integer(*time_ms as i64),
            Outcome::Known(known, _) => reply.integer(known.time_ms as i64),
            Outcome::NotLast(_) => reply.null(),
        }
        reply.bulk(b"mismatch");
        reply.integer(matches!(self, Outcome::Known(_, true)).into());
    }
}
