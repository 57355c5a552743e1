//! REG.PUT, REG.INCRBY and REG.SEAL: the commands that change a register. They decide whether a version is applied,
//! together with the versions buffered after it; whether it is buffered; or why nothing happens.

use crate::shared::options::{error, number, shown, unknown_option};
use execution::args::{Args, is_word};
use execution::context::WriteCx;
use execution::error::{CommandError, CommandResult};
use execution::settings::events::Events;
use keyspace::types::register::{self, Accumulator, Current, Operation, Order, RegisterRef, Unfit, Version};
use keyspace::{Effect, Key};

pub(super) fn put(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, version, value) = (cx.args.key()?, cx.args.bytes()?, cx.args.bytes()?);
    let when = WhenToApply::take(version, &mut cx.args)?;
    change(cx, key, when, Operation::Put(value), "reg.put")
}

pub(super) fn incrby(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, version) = (cx.args.key()?, cx.args.bytes()?);
    let added = number(&mut cx.args, "the number to add", i64::MIN, i64::MAX)?;
    let when = WhenToApply::take(version, &mut cx.args)?;
    change(cx, key, when, Operation::Add(added), "reg.incrby")
}

/// The version of an operation, and when it is applied.
#[derive(Clone, Copy)]
struct WhenToApply {
    version: Version,
    /// It is applied only after all versions below it, which are known by this order.
    order: Option<Order>,
}

impl WhenToApply {
    #[inline]
    fn take(version: &[u8], args: &mut Args<'_>) -> Result<WhenToApply, CommandError> {
        let (parsed, written) = Version::parse_written(version).ok_or_else(|| no_version(version))?;
        let mut is_ordered = false;
        while let Some(word) = args.try_next() {
            if !is_word(word, "ORDERED") {
                return Err(unknown_option(args));
            }
            if std::mem::replace(&mut is_ordered, true) {
                return Err(error("ORDERED is given twice".into()));
            }
        }
        if is_ordered {
            pass_ordered(parsed, written)?;
        }
        Ok(WhenToApply { version: parsed, order: is_ordered.then_some(written) })
    }
}

#[cold]
fn no_version(arg: &[u8]) -> CommandError {
    error(format!("the version must be a whole number of 64 bits, or two of them as epoch.round, not {}", shown(arg)))
}

/// Refuses version 0 of versions that are taken one by one.
fn pass_ordered(version: Version, written: Order) -> CommandResult {
    match (written, version.round) {
        (Order::OneByOne, 0) => Err(error(
            "ordered versions are 1, 2, 3 and so on: send 1 as the first one, or write versions as epoch.round".into(),
        )),
        _ => Ok(()),
    }
}

/// Refuses an ordered version that is written otherwise than those that the register has taken.
fn pass_order(decided: Option<Order>, written: Order) -> CommandResult {
    match decided {
        Some(decided) if decided != written => Err(other_order(decided)),
        _ => Ok(()),
    }
}

#[cold]
fn other_order(decided: Order) -> CommandError {
    CommandError::fixed(match decided {
        Order::OneByOne => {
            "ERR the register takes plain versions one by one (1, 2, 3): send the version without a dot, or use another \
             key"
        }
        Order::UntilSealed => {
            "ERR the register takes versions as epoch.round, which REG.SEAL applies: send the version with a dot (5 is \
             0.5), or use another key"
        }
    })
}

/// What happens with an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Applied,
    Duplicate,
    Mismatch,
    Stale,
    Buffered,
}

impl Verdict {
    /// Decides what happens with an operation. IMPORTANT: the same operation may arrive any number of times, in any
    /// order: the verdict must not depend on when it arrived first.
    #[inline]
    fn of(register: Option<RegisterRef<'_>>, when: WhenToApply, operation: Operation<'_>) -> Verdict {
        let WhenToApply { version, order } = when;
        let next = match register {
            None => Some(1),
            Some(register) => {
                if register.is_closed(version) {
                    return match register.current() {
                        Some(current) if current.version != version => Verdict::Stale,
                        Some(current) if current.is_by(operation) => Verdict::Duplicate,
                        Some(_) => Verdict::Mismatch,
                        None => Verdict::Stale,
                    };
                }
                if register.buffered(version).is_some_and(|buffered| buffered != operation) {
                    return Verdict::Mismatch;
                }
                if order.is_some() { register.next() } else { None }
            }
        };
        match order {
            None => Verdict::Applied,
            Some(Order::OneByOne) if next == Some(version.round) => Verdict::Applied,
            Some(Order::OneByOne | Order::UntilSealed) => Verdict::Buffered,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Verdict::Applied => "APPLIED",
            Verdict::Duplicate => "DUPLICATE",
            Verdict::Mismatch => "MISMATCH",
            Verdict::Stale => "STALE",
            Verdict::Buffered => "BUFFERED",
        }
    }
}

/// The state of a register before an operation.
struct Found {
    verdict: Verdict,
    /// How the register takes ordered versions.
    order: Option<Order>,
    /// The operation is buffered already.
    is_buffered: bool,
    /// How many operations are buffered.
    buffered: usize,
}

impl Found {
    #[inline]
    fn of(register: Option<RegisterRef<'_>>, when: WhenToApply, operation: Operation<'_>) -> Found {
        Found {
            verdict: Verdict::of(register, when, operation),
            order: register.and_then(|register| register.order()),
            is_buffered: register.is_some_and(|register| register.buffered(when.version).is_some()),
            buffered: register.map_or(0, |register| register.buffered_len()),
        }
    }
}

#[inline]
fn change(
    cx: &mut WriteCx<'_>,
    key: Key<'_>,
    when: WhenToApply,
    operation: Operation<'_>,
    event: &'static str,
) -> CommandResult {
    let found = cx.keys.look_at::<RegisterRef, _>(key, |register| Found::of(register, when, operation))?;
    if let Some(written) = when.order {
        pass_order(found.order, written)?;
    }
    match found.verdict {
        Verdict::Duplicate | Verdict::Mismatch | Verdict::Stale => {}
        Verdict::Buffered => {
            if !found.is_buffered {
                let order = when.order.expect("only ordered operations are buffered");
                buffer(cx, key, (when.version, order), operation, found.buffered)?;
                cx.keys.notify(Events::MODULE, event, key);
            }
        }
        Verdict::Applied => {
            match operation {
                // The most frequent case: a plain put, and nothing is buffered.
                Operation::Put(value) if found.buffered == 0 => {
                    let current = Current { version: when.version, added: None, value };
                    cx.keys.record(&Effect::change(key, register::Change::Set(current)));
                }
                _ => {
                    let register = cx.keys.view().typed::<RegisterRef>(key)?;
                    let progress = applied(register, when.version, operation).map_err(unfit)?.into_owned();
                    let current = progress.current().expect("an operation was applied");
                    cx.keys.record(&Effect::change(key, register::Change::Set(current)));
                }
            }
            if let (None, Some(decided)) = (found.order, when.order) {
                cx.keys.record(&Effect::change(key, register::Change::Order(decided)));
            }
            cx.keys.notify(Events::MODULE, event, key);
        }
    }
    cx.reply.simple(found.verdict.name());
    Ok(())
}

/// The result of an operation that is due, together with the buffered operations after it.
fn applied<'a>(
    register: Option<RegisterRef<'a>>,
    version: Version,
    operation: Operation<'a>,
) -> Result<Accumulator<'a>, Unfit> {
    let mut progress = Accumulator::from(register.and_then(|register| register.current()));
    progress.apply(version, operation)?;
    if let Some(register) = register
        && register.order() == Some(Order::OneByOne)
        && let Some(next) = version.successor().filter(|next| next.epoch == 0)
    {
        progress.apply_without_gap(register, next.round);
    }
    Ok(progress)
}

fn buffer(
    cx: &mut WriteCx<'_>,
    key: Key<'_>,
    (version, order): (Version, Order),
    operation: Operation<'_>,
    buffered: usize,
) -> CommandResult {
    let limit = cx.settings.reg_buffer_max();
    if buffered as u64 >= limit {
        return Err(error(format!(
            "{limit} versions of the register wait for their turn (reg-buffer-max): send the missing one, or REG.SEAL what will not come"
        )));
    }
    cx.keys.record(&Effect::change(key, register::Change::Buffer { version, order, operation }));
    Ok(())
}

#[cold]
fn unfit(unfit: Unfit) -> CommandError {
    CommandError::fixed(match unfit {
        Unfit::NotInteger => "ERR the value of the register is not a whole number of 64 bits: REG.PUT a number first",
        Unfit::Overflow => "ERR the sum does not fit in 64 bits: add less, or REG.PUT another value",
    })
}

pub(super) fn seal(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, arg) = (cx.args.key()?, cx.args.bytes()?);
    let (below, written) = Version::parse_written(arg).ok_or_else(|| no_version(arg))?;
    pass_ordered(below, written)?;
    let register = cx.keys.to_change::<RegisterRef>(key)?;
    let order = register.and_then(|register| register.order());
    pass_order(order, written)?;
    let open = register.map_or(Some(FIRST), |register| register.open_from());
    let mut progress = Accumulator::from(register.and_then(|register| register.current()));
    if let Some(register) = register
        && open.is_some_and(|open| below > open)
    {
        progress.apply_below(register, below).map_err(|(version, why)| cannot_seal(version, why))?;
        if order == Some(Order::OneByOne) {
            progress.apply_without_gap(register, below.round);
        }
    }
    let progress = progress.into_owned();
    if let Some(current) = progress.current().filter(|_| progress.applied() > 0) {
        cx.keys.record(&Effect::change(key, register::Change::Set(current)));
    }
    // After the applied operations, the register may have reached the seal already.
    let reached = progress.current().map_or(open, |current| current.version.successor());
    let is_ahead = open.is_some_and(|open| below > open) && reached.is_some_and(|reached| below > reached);
    if is_ahead {
        cx.keys.record(&Effect::change(key, register::Change::Seal { below }));
    }
    if is_ahead || progress.applied() > 0 {
        cx.keys.notify(Events::MODULE, "reg.seal", key);
    }
    cx.reply.integer(progress.applied() as i64);
    Ok(())
}

/// The lowest version that a seal of a missing register leaves open.
const FIRST: Version = Version::of_round(1);

#[cold]
fn cannot_seal(version: Version, why: Unfit) -> CommandError {
    let why = match why {
        Unfit::NotInteger => "the value before it is not a whole number of 64 bits",
        Unfit::Overflow => "the sum does not fit in 64 bits",
    };
    error(format!(
        "the buffered REG.INCRBY of version {version} cannot be applied: {why}; REG.PUT a higher version without ORDERED to drop it"
    ))
}
