//! Arguments of Holdfast's own commands: counted lists, options that are given once, numbers with a name. Errors say
//! which argument is wrong and how. Redis's commands have Redis's error texts and do not use this.

use execution::args::Args;
pub(crate) use execution::error::shown;
use execution::error::{ArgumentError, CommandError, Hint};
use numbers::parse_i64;
use smallvec::SmallVec;

/// Names or values.
pub(crate) type Names<'a> = SmallVec<[&'a [u8]; 8]>;
/// Fields with their values.
pub(crate) type Pairs<'a> = SmallVec<[(&'a [u8], &'a [u8]); 8]>;
/// Fields with offsets in milliseconds from the time of the command.
pub(crate) type Stamps<'a> = SmallVec<[(&'a [u8], i64); 2]>;

pub(crate) fn error(text: String) -> CommandError {
    CommandError::said(format!("ERR {text}"))
}

/// The error for the argument that was just taken, which is not an option. The row adds which options there are.
pub(crate) fn unknown_option(args: &Args<'_>) -> CommandError {
    let at = args.position() - 1;
    let text = format!("unknown option {}", shown(args.request().arg(at)));
    CommandError::Arguments(Box::new(ArgumentError { text, hint: Hint::Options { at } }))
}

/// The error for an argument that is missing. The row adds the usage.
pub(crate) fn missing(what: &str) -> CommandError {
    usage(format!("missing: {what}"))
}

/// An error to which the row adds the usage.
fn usage(text: String) -> CommandError {
    CommandError::Arguments(Box::new(ArgumentError { text, hint: Hint::Usage }))
}

/// The next argument; errors call it `what`.
pub(crate) fn argument<'a>(args: &mut Args<'a>, what: &str) -> Result<&'a [u8], CommandError> {
    args.try_next().ok_or_else(|| missing(what))
}

/// The next argument as a whole number within a range.
pub(crate) fn number(args: &mut Args<'_>, what: &str, least: i64, most: i64) -> Result<i64, CommandError> {
    let arg = argument(args, what)?;
    match parse_i64(arg).filter(|number| (least..=most).contains(number)) {
        Some(number) => Ok(number),
        None if (least, most) == (i64::MIN, i64::MAX) => {
            Err(error(format!("{what} must be a whole number of 64 bits, not {}", shown(arg))))
        }
        None if most == i64::MAX => {
            Err(error(format!("{what} must be a whole number not below {least}, not {}", shown(arg))))
        }
        None => Err(error(format!("{what} must be a whole number from {least} to {most}, not {}", shown(arg)))),
    }
}

/// The number after the word LIMIT. Zero requests nothing.
pub(crate) fn limit(args: &mut Args<'_>) -> Result<usize, CommandError> {
    Ok(number(args, "the number behind LIMIT", 0, i64::MAX)? as usize)
}

/// The count `n` after an option, if `n` times `each` arguments follow.
fn count(args: &mut Args<'_>, option: &str, each: usize) -> Result<usize, CommandError> {
    let n = number(args, &format!("the count behind {option}"), 0, i64::MAX)? as usize;
    if n.checked_mul(each).is_none_or(|needed| needed > args.left()) {
        let left = args.left();
        let follow = if left == 1 { "1 argument follows".to_owned() } else { format!("{left} arguments follow") };
        return Err(usage(format!("{option} counts {n} items of {each}, but {follow}")));
    }
    Ok(n)
}

/// `n item …`
pub(crate) fn names<'a>(args: &mut Args<'a>, option: &str) -> Result<Names<'a>, CommandError> {
    let n = count(args, option, 1)?;
    (0..n).map(|_| args.bytes()).collect()
}

/// `n field value …`
pub(crate) fn pairs<'a>(args: &mut Args<'a>, option: &str) -> Result<Pairs<'a>, CommandError> {
    let n = count(args, option, 2)?;
    (0..n).map(|_| Ok((args.bytes()?, args.bytes()?))).collect()
}

/// `n field offset-ms …` behind STAMP
pub(crate) fn stamps<'a>(args: &mut Args<'a>) -> Result<Stamps<'a>, CommandError> {
    let n = count(args, "STAMP", 2)?;
    let stamp = |_| Ok((args.bytes()?, number(args, "an offset behind STAMP", i64::MIN, i64::MAX)?));
    (0..n).map(stamp).collect()
}

/// Stores an option that may be given once.
pub(crate) fn once<T>(slot: &mut Option<T>, value: T, option: &str) -> Result<(), CommandError> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(error(format!("{option} is given twice"))),
    }
}
