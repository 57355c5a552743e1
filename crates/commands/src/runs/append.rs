//! RUN.APPEND: adds an event to a run, unless it has an event with the same idempotency key.

use crate::shared::options::{Pairs, argument, error, number, once, pairs, shown, unknown_option};
use execution::args::{Args, is_word};
use execution::context::WriteCx;
use execution::error::{CommandError, CommandResult};
use execution::settings::events::Events;
use keyspace::types::run::{
    self, EVENT_FIELDS, EVENTS_MAX, EventField, EventId, NewEvent, Numbered, PackedKey, Run, TIME_MAX_MS,
    put_attributes,
};
use keyspace::{Effect, Key};
use resp::Reply;
use sha2::{Digest, Sha256};

/// Stands for a key that the server computes.
const COMPUTED: &[u8] = b"*";

/// The options that give an event its fields. ATTR gives it the last one.
const FIELD_OPTIONS: [(&str, EventField); EVENT_FIELDS - 1] = [
    ("STEP", EventField::Step),
    ("ENGINEATTEMPT", EventField::EngineAttempt),
    ("LOGICALATTEMPT", EventField::LogicalAttempt),
    ("EMITTEDAT", EventField::EmittedAt),
    ("PLANVERSION", EventField::PlanVersion),
    ("ADAPTER", EventField::Adapter),
    ("REF", EventField::EngineRunRef),
    ("SIGNAL", EventField::Signal),
    ("PARENT", EventField::Parent),
];

pub(super) fn append(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, idempotency_key) = (cx.args.key()?, cx.args.bytes()?);
    let (event_type, data) = (cx.args.bytes()?, cx.args.bytes()?);
    let options = Options::take(&mut cx.args)?;
    if idempotency_key.is_empty() {
        return Err(CommandError::fixed("ERR the idempotency key is empty: give one, or * to have it computed"));
    }
    let idempotency_key = match idempotency_key == COMPUTED {
        true => PackedKey::Digits(compute_key(key.name, event_type, &options)?),
        false => PackedKey::of(idempotency_key),
    };
    let (last, last_ms) = match cx.keys.to_change::<&Run>(key)? {
        Some(run) => {
            if let Some(known) = run.with_key(&idempotency_key) {
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
    let time_ms = cx.keys.now_ms().max(last_ms);
    if last >= EVENTS_MAX {
        return Err(CommandError::fixed("ERR the run has as many events as it can: go on in another run"));
    }
    if time_ms > TIME_MAX_MS {
        return Err(CommandError::fixed("ERR the time of the run is at its maximum: go on in another run"));
    }
    let id = options.id.map_or_else(|| EventId::Uuid(random_uuid(cx, key)), EventId::of);
    let (mut attributes, mut fields) = (Vec::new(), options.fields);
    if let Some(given) = &options.attributes {
        put_attributes(given.iter().copied(), &mut attributes);
        fields[EventField::Attributes as usize] = Some(&attributes);
    }
    let event = NewEvent { key: idempotency_key, id, event_type, fields, data };
    let mut bytes = Vec::with_capacity(event.bytes_max());
    event.encode(&mut bytes);
    cx.keys.record(&Effect::change(key, run::Change::Append { number: last + 1, time_ms, event: &bytes }));
    cx.keys.notify(Events::MODULE, "run.append", key);
    Outcome::Appended { number: last + 1, time_ms, id: id.text().as_bytes() }.reply(&mut cx.reply);
    Ok(())
}

#[derive(Default)]
struct Options<'a> {
    if_last: Option<u64>,
    id: Option<&'a [u8]>,
    fields: [Option<&'a [u8]>; EVENT_FIELDS],
    attributes: Option<Pairs<'a>>,
}

impl<'a> Options<'a> {
    fn take(args: &mut Args<'a>) -> Result<Options<'a>, CommandError> {
        let mut options = Options::default();
        while let Some(word) = args.try_next() {
            if let Some((name, field)) = FIELD_OPTIONS.iter().find(|(name, _)| is_word(word, name)) {
                once(&mut options.fields[*field as usize], text(args, name)?, name)?;
            } else if is_word(word, "EVENTID") {
                once(&mut options.id, text(args, "EVENTID")?, "EVENTID")?;
            } else if is_word(word, "IFLAST") {
                let last = number(args, "the runSeq behind IFLAST", 0, i64::MAX)?;
                once(&mut options.if_last, last as u64, "IFLAST")?;
            } else if is_word(word, "ATTR") {
                once(&mut options.attributes, attributes(args)?, "ATTR")?;
            } else {
                return Err(unknown_option(args));
            }
        }
        Ok(options)
    }
}

/// `n name value …` behind ATTR. They are returned as a map: a name is given once.
fn attributes<'a>(args: &mut Args<'a>) -> Result<Pairs<'a>, CommandError> {
    let given = pairs(args, "ATTR")?;
    let mut names: Vec<&[u8]> = given.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(twice) => Err(error(format!("the attribute {} is given twice: send each name once", shown(twice[0])))),
        None => Ok(given),
    }
}

fn text<'a>(args: &mut Args<'a>, option: &str) -> Result<&'a [u8], CommandError> {
    match args.try_next() {
        Some(text) => Ok(text),
        None => argument(args, &format!("the text behind {option}")),
    }
}

/// Computes an event's key: the SHA-256, in hexadecimal, of everything that distinguishes events of a run. A field that
/// contains the separator is refused: two events could have one key.
fn compute_key(run: &[u8], event_type: &[u8], options: &Options<'_>) -> Result<[u8; 32], CommandError> {
    const SEPARATOR: u8 = b'|';
    let field = |field: EventField| options.fields[field as usize].unwrap_or_default();
    let fields = [
        ("the run", run),
        ("STEP", field(EventField::Step)),
        ("LOGICALATTEMPT", field(EventField::LogicalAttempt)),
        ("the type", event_type),
        ("PLANVERSION", field(EventField::PlanVersion)),
    ];
    let mut hasher = Sha256::new();
    for (at, (name, field)) in fields.iter().enumerate() {
        if field.contains(&SEPARATOR) {
            return Err(error(format!(
                "a key is not computed where {name} contains '|', which separates the parts: send a key of your own instead of *"
            )));
        }
        if at > 0 {
            hasher.update([SEPARATOR]);
        }
        hasher.update(field);
    }
    Ok(hasher.finalize().into())
}

/// Creates a random UUID (version 4). The generator has 64 bits of state; the name of the run and the time keep apart
/// ids for which two generators are in the same state.
fn random_uuid(cx: &mut WriteCx<'_>, key: Key<'_>) -> [u8; 16] {
    let high = cx.random.u64(..) ^ key.hash.get();
    let low = cx.random.u64(..) ^ cx.now_us.rotate_left(32);
    let mut uuid = [0; 16];
    uuid[..8].copy_from_slice(&high.to_be_bytes());
    uuid[8..].copy_from_slice(&low.to_be_bytes());
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}

/// The result of RUN.APPEND.
enum Outcome<'a> {
    Appended {
        number: u64,
        time_ms: u64,
        id: &'a [u8],
    },
    /// The event with that key, and whether the request differs from it.
    Known(&'a Numbered<'a>, bool),
    /// This is the last event, not the one of IFLAST.
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
