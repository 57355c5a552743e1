//! HCAS and HPUT: atomic conditional changes of records (hashes). `docs/jobs.md` shows what they are for.

use super::times::{Settings, stamps_at};
use crate::hashes::notify_fields_deleted;
use crate::shared::deadline::TimeForm;
use crate::shared::options::{Names, Pairs, argument, error, missing, names, once, pairs, stamps, unknown_option};
use crate::value_reply::ValueReply;
use execution::args::{Args, is_word};
use execution::context::WriteCx;
use execution::error::{CommandError, CommandResult};
use execution::recorder::Recorder;
use execution::settings::events::Events;
use keyspace::types::hash;
use keyspace::{Cause, Effect, HashRef, Key};
use numbers::parse_i64;
use resp::Request;
use std::borrow::Cow;

/// What happens to a record's deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lifetime {
    Until(u64),
    Forever,
    Kept,
}

impl Lifetime {
    /// The lifetime that an option sets; `None` for another option.
    fn take(word: &[u8], args: &mut Args<'_>, now_ms: u64) -> Result<Option<Lifetime>, CommandError> {
        let Some(form) = TimeForm::of_word(word) else { return Ok(None) };
        let name = String::from_utf8_lossy(word).to_uppercase();
        let time = argument(args, &format!("the time behind {name}"))?;
        let instant = parse_i64(time).filter(|time| *time > 0).and_then(|time| form.instant(time, now_ms));
        match instant {
            Some(instant) => Ok(Some(Lifetime::Until(instant as u64))),
            None => Err(error(format!("the time behind {name} must be a positive number that fits in 63 bits of ms"))),
        }
    }
}

/// `HCAS key field expected new`, or the long form with its options.
pub(super) fn hcas(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    if cx.args.left() == 3 {
        return swap(cx, key);
    }
    let asked = Exchange::take(&mut cx.args, cx.keys.now_ms())?;
    let holds = asked.holds(cx.keys.to_change::<HashRef>(key)?);
    if holds {
        let set = with_stamps(&asked.set, &asked.stamps);
        change(&mut cx.keys, key, &set, &asked.delete, asked.lifetime.unwrap_or(Lifetime::Kept));
    }
    if !asked.with_current {
        cx.reply.integer(i64::from(holds));
        return Ok(());
    }
    cx.reply.array(2);
    cx.reply.integer(i64::from(holds));
    let hash = cx.keys.view().typed::<HashRef>(key)?;
    cx.reply.array(asked.conditions.len());
    for (field, _) in &asked.conditions {
        match hash.and_then(|hash| hash.get(field)) {
            Some(value) => value.reply(&mut cx.reply),
            None => cx.reply.null(),
        }
    }
    Ok(())
}

/// True for a request that sets no field.
pub(super) fn only_removes(request: Request<'_>) -> bool {
    let mut args = Args::new(request, 1, None);
    let is_long = args.key().is_ok() && args.left() != 3;
    let sets_none = |asked: Exchange<'_>| asked.set.is_empty() && asked.stamps.is_empty();
    is_long && Exchange::take(&mut args, 0).is_ok_and(sets_none)
}

fn swap(cx: &mut WriteCx<'_>, key: Key<'_>) -> CommandResult {
    let (field, expected, new) = (cx.args.bytes()?, cx.args.bytes()?, cx.args.bytes()?);
    let current = cx.keys.to_change::<HashRef>(key)?.and_then(|hash| hash.get(field));
    let holds = current.is_some_and(|current| current.with_bytes(|current| current == expected));
    if holds {
        cx.keys.record(&Effect::change(key, hash::Change::Set { fields: &[(field, new)], keep_deadlines: false }));
        cx.keys.notify(Events::HASH, "hset", key);
    }
    cx.reply.integer(i64::from(holds));
    Ok(())
}

/// The long form of HCAS.
#[derive(Default)]
struct Exchange<'a> {
    conditions: Pairs<'a>,
    absent: Names<'a>,
    set: Pairs<'a>,
    delete: Names<'a>,
    /// Fields of STAMP, with their times.
    stamps: Settings<'a>,
    lifetime: Option<Lifetime>,
    with_current: bool,
}

/// All fields that are set: those with given values, and those that are set to a time.
fn with_stamps<'s>(set: &'s [(&'s [u8], &'s [u8])], stamps: &'s Settings<'_>) -> Cow<'s, [(&'s [u8], &'s [u8])]> {
    match stamps.is_empty() {
        true => Cow::Borrowed(set),
        false => set.iter().copied().chain(stamps.iter().map(|(field, time)| (*field, &**time))).collect(),
    }
}

impl<'a> Exchange<'a> {
    fn take(args: &mut Args<'a>, now_ms: u64) -> Result<Exchange<'a>, CommandError> {
        let (mut conditions, mut absent, mut set, mut delete) = (None, None, None, None);
        let (mut stamped, mut lifetime, mut with_current) = (None, None, None);
        while let Some(word) = args.try_next() {
            if is_word(word, "IF") {
                once(&mut conditions, pairs(args, "IF")?, "IF")?;
            } else if is_word(word, "ABSENT") {
                once(&mut absent, names(args, "ABSENT")?, "ABSENT")?;
            } else if is_word(word, "SET") {
                once(&mut set, pairs(args, "SET")?, "SET")?;
            } else if is_word(word, "DEL") {
                once(&mut delete, names(args, "DEL")?, "DEL")?;
            } else if is_word(word, "STAMP") {
                once(&mut stamped, stamps(args)?, "STAMP")?;
            } else if is_word(word, "WITHCURRENT") {
                once(&mut with_current, true, "WITHCURRENT")?;
            } else if is_word(word, "PERSIST") {
                once(&mut lifetime, Lifetime::Forever, "the lifetime")?;
            } else if let Some(asked) = Lifetime::take(word, args, now_ms)? {
                once(&mut lifetime, asked, "the lifetime")?;
            } else {
                return Err(unknown_option(args));
            }
        }
        let (set, delete): (Pairs<'_>, Names<'_>) = (set.unwrap_or_default(), delete.unwrap_or_default());
        let others = set.iter().map(|(field, _)| *field).chain(delete.iter().copied());
        let stamps = stamps_at(&stamped.unwrap_or_default(), others, now_ms)?;
        Ok(Exchange {
            conditions: conditions.unwrap_or_default(),
            absent: absent.unwrap_or_default(),
            set,
            delete,
            stamps,
            lifetime,
            with_current: with_current.unwrap_or_default(),
        })
    }

    fn holds(&self, hash: Option<HashRef<'_>>) -> bool {
        let get = |field: &[u8]| hash.and_then(|hash| hash.get(field));
        self.conditions.iter().all(|(field, value)| get(field).is_some_and(|it| it.with_bytes(|it| it == *value)))
            && self.absent.iter().all(|field| get(field).is_none())
    }
}

/// Changes the fields and the deadline of a record, and notifies subscribers. A field that is both set and deleted is
/// deleted.
pub(super) fn change(
    keys: &mut Recorder<'_>,
    key: Key<'_>,
    set: &[(&[u8], &[u8])],
    delete: &[&[u8]],
    lifetime: Lifetime,
) -> usize {
    let mut created = 0;
    if !set.is_empty() {
        created = keys.record(&Effect::change(key, hash::Change::Set { fields: set, keep_deadlines: false })).count;
        keys.notify(Events::HASH, "hset", key);
    }
    let hash = keys.view().typed::<HashRef>(key).ok().flatten();
    if hash.is_some_and(|hash| delete.iter().any(|field| hash.get(field).is_some())) {
        keys.record(&Effect::change(key, hash::Change::Delete { fields: delete, cause: Cause::Deleted }));
        notify_fields_deleted(keys.view(), key);
    }
    if let Some(current) = keys.view().deadline(key) {
        match lifetime {
            Lifetime::Until(deadline) if deadline <= keys.now_ms() => {
                keys.record(&Effect::Delete { key, cause: Cause::Deleted });
                keys.notify(Events::GENERIC, "del", key);
            }
            Lifetime::Until(deadline) => {
                keys.record(&Effect::Deadline { key, deadline: Some(deadline) });
                keys.notify(Events::GENERIC, "expire", key);
            }
            Lifetime::Forever if current.is_some() => {
                keys.record(&Effect::Deadline { key, deadline: None });
                keys.notify(Events::GENERIC, "persist", key);
            }
            Lifetime::Forever | Lifetime::Kept => {}
        }
    }
    // The reply shows the record after the command.
    keys.stamp_written();
    created
}

pub(super) fn hput(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let (mut replace, mut lifetime, mut stamped, mut fields) = (None, None, None, None);
    while let Some(word) = cx.args.try_next() {
        if is_word(word, "FIELDS") {
            once(&mut fields, pairs(&mut cx.args, "FIELDS")?, "FIELDS")?;
        } else if is_word(word, "REPLACE") {
            once(&mut replace, true, "REPLACE")?;
        } else if is_word(word, "KEEPTTL") {
            once(&mut lifetime, Lifetime::Kept, "the lifetime")?;
        } else if is_word(word, "STAMP") {
            once(&mut stamped, stamps(&mut cx.args)?, "STAMP")?;
        } else if let Some(asked) = Lifetime::take(word, &mut cx.args, cx.keys.now_ms())? {
            once(&mut lifetime, asked, "the lifetime")?;
        } else {
            return Err(unknown_option(&cx.args));
        }
    }
    let fields = fields.ok_or_else(|| missing("FIELDS, the fields to write"))?;
    let named = fields.iter().map(|(field, _)| *field);
    let stamps = stamps_at(&stamped.unwrap_or_default(), named, cx.keys.now_ms())?;
    let fields = with_stamps(&fields, &stamps);
    if fields.is_empty() {
        return Err(CommandError::fixed("ERR FIELDS must name at least one field: a record has some"));
    }
    let hash = cx.keys.to_change::<HashRef>(key)?;
    let others: Vec<Vec<u8>> = match hash.filter(|_| replace.is_some()) {
        None => Vec::new(),
        Some(hash) => {
            let mut named: Names<'_> = fields.iter().map(|(field, _)| *field).collect();
            named.sort_unstable();
            let all = hash.iter().map(|(field, _)| field.scalar().bytes().into_owned());
            all.filter(|name| named.binary_search(&name.as_slice()).is_err()).collect()
        }
    };
    let others: Names<'_> = others.iter().map(Vec::as_slice).collect();
    let created = change(&mut cx.keys, key, &fields, &others, lifetime.unwrap_or(Lifetime::Kept));
    cx.reply.integer(created as i64);
    Ok(())
}
